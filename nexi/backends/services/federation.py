"""All open services as one backend: which of them is asked is the route's, how each is asked is the searcher's.

The searcher knows a backend with a `route`: it asks the members one by one with its own pacing, suspensions and limits. Asked
by itself, as `nexi doctor` does, this backend asks the same members without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.asking import ask_services
from nexi.routing.fusion import fuse_hits, merge_papers
from nexi.routing.route import Choice, Route, phrase_query, route_query
from nexi.routing.table import SERVICES
from nexi.routing.unreachable import UNREACHABLE, describe_unreachable
from nexi.types import Failure, Hit, Paper, Query, SearchOutcome

NAME = "services"
MAX_RECORD_S = 4.0  # a page is read while its record is not known, so it must not wait long
RateMeaning = Callable[[str], Mapping[str, float]]  # how much a question is of each kind


class OpenServices:
    """The SearchBackend port over members that are built when they are first asked."""

    name = NAME
    filters = frozenset({"site", "time", "language", "focus"})  # each member says for itself what it ignores

    def __init__(self, builders: Mapping[str, Callable[[], SearchBackend]], rate_meaning: RateMeaning | None = None) -> None:
        self._builders, self._rate_meaning = builders, rate_meaning
        self._members: dict[str, SearchBackend] = {}
        self.services = builders.keys()  # the names of all that may be asked

    def route(self, query: Query) -> Route:
        """The services for a query. A model may be asked what it means, so this belongs off the event loop."""
        return route_query(query, self._builders, self._rate_meaning(query.text) if self._rate_meaning else {})

    def member(self, service: str) -> SearchBackend:
        if service not in self._members:
            self._members[service] = self._builders[service]()
        return self._members[service]

    def phrase(self, query: Query, service: str) -> Query:
        """The query in the words of a service; a focus is the route's, and stays for the general web alone."""
        return phrase_query(query if "site" in SERVICES[service].filters else replace(query, focus=""), service)

    async def search(self, query: Query) -> list[Hit]:
        async def ask_member(choice: Choice) -> SearchOutcome:
            name = choice.service
            try:
                hits = await self.member(name).search(self.phrase(query, name))
            except BackendError as error:
                return SearchOutcome(query.text, failures=(Failure(name, error.code, str(error), error.fix),))
            return SearchOutcome(query.text, tuple(hits), name)

        route = await asyncio.to_thread(self.route, query)
        answers = await ask_services(route, ask_member)
        hits = fuse_hits({answer.service: outcome.hits for answer, outcome in answers}, query.text)
        failures = [failure for _, outcome in answers for failure in outcome.failures]
        if not hits and failures and not any(outcome.backend for _, outcome in answers):
            codes = {failure.code for failure in failures}
            is_unreachable = codes <= UNREACHABLE
            raise BackendError(
                "no open service answered",
                code=codes.pop() if len(codes) == 1 else "sources_failed",
                cause=describe_unreachable(failures) if is_unreachable else "; ".join(f.message for f in failures)[:500],
                fix="check the network, or set SEARXNG_URL",
            )
        return list(hits[: query.count])

    async def aclose(self) -> None:
        for member in self._members.values():
            if hasattr(member, "aclose"):
                await member.aclose()


async def find_record(doi: str, backends: Sequence[SearchBackend], max_s: float = MAX_RECORD_S) -> Paper | None:
    """The record of one paper from several indexes at once; one that does not answer in time, or fails, says nothing."""

    async def ask(backend: SearchBackend) -> Paper | None:
        try:
            async with asyncio.timeout(max_s):
                hits = await backend.search(Query(doi, count=1))
        except (BackendError, TimeoutError):
            return None
        return next((hit.paper for hit in hits if hit.paper and hit.paper.doi == doi), None)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(backend)) for backend in backends]
    merged = None
    for task in tasks:  # since one knows of a notice that another does not
        merged = merge_papers(merged, task.result())
    return merged
