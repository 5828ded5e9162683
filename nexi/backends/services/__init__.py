"""The services that need no key: each a function that builds its request and one that reads a row of its answer.

`ServiceDialect` puts such a pair on the shared sender. What goes wrong with an answer is recognised here once for all of
them: a web page in the place of data, an error inside a 200, rows that are not where they should be. `OpenServices` is all of
them as one backend: which is asked is the route's, how each is asked is the searcher's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.backends._replies import check_status, plain_line, read_rows, service_message
from nexi.backends.sender import MAX_BODY, BackendRequest, BackendResponse, HttpBackend
from nexi.backends.services import papers, web
from nexi.backends.services._form import Caller, ServiceForm, dig
from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.fusion import fuse_hits, merge_papers
from nexi.routing.route import Choice, Route, ask_services, phrase_query, route_query
from nexi.routing.table import SERVICES
from nexi.routing.unreachable import UNREACHABLE, describe_unreachable
from nexi.types import Failure, Hit, Paper, Query, SearchOutcome

__all__ = ["FORMS", "Caller", "OpenServices", "ServiceBackend", "ServiceDialect", "find_record"]

NAME = "services"
MAX_RECORD_S = 4.0  # a page is read while its record is not known, so it must not wait long
RateMeaning = Callable[[str], Mapping[str, float]]  # how much a question is of each kind
FORMS: Mapping[str, ServiceForm] = {**papers.FORMS, **web.FORMS}
_RATE = re.compile(r"rate|limit|thrott|too many|quota|slow down", re.IGNORECASE)
_TITLE = re.compile(rb"<title[^>]*>(.{0,200}?)</title", re.IGNORECASE | re.DOTALL)


class ServiceDialect(Struct, frozen=True):
    """A form with a caller: the BackendDialect of the sender."""

    name: str
    form: ServiceForm
    caller: Caller
    timeout_s: float = 10.0

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(SERVICES[self.name].filters)

    @property
    def interval_s(self) -> float:
        return SERVICES[self.name].interval_s

    @property
    def _title(self) -> str:
        return SERVICES[self.name].title

    def request(self, query: Query) -> BackendRequest:
        return replace(self.form.request(query, self.caller), timeout_s=self.timeout_s)

    def follow(self, response: BackendResponse) -> BackendRequest | None:
        """The second request that the first answer leads to. Raises BackendError."""
        if self.form.follow is None:
            return None
        data = self._read_json(response.status, response.headers, response.body)
        if dig(data, self.form.first_rows) is None:
            raise _wrong_shape(self._title, data, self.form.first_rows)
        request = self.form.follow(data, self.caller)
        return replace(request, timeout_s=self.timeout_s) if request else None

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        if status == 404 and self.form.missing_is_empty:
            return []
        data = self._read_json(status, headers, body)
        rows = dig(data, self.form.rows)
        if self.form.unfold:
            rows = self.form.unfold(rows)
        if rows is None and self.form.is_empty and self.form.is_empty(data):
            return []
        if not isinstance(rows, list):
            raise _wrong_shape(self._title, data, self.form.rows)
        hits = map(self.form.read_row, read_rows(rows))
        return [hit for hit in hits if hit and hit.url]

    def _read_json(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        key_setting = f"api_keys.{self.name}" if self.caller.key else ""
        is_limit = status in (400, 403) and _RATE.search(service_message(body))
        check_status(self._title, 429 if is_limit else status, headers, body, key_setting=key_setting)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _no_data(self._title, body) from error


class ServiceBackend(HttpBackend):
    """A service on the sender, with the second request that some of them need."""

    async def _ask_dialect(self, dialect: Any, query: Query) -> list[Hit]:
        response = await self._sender.send(self.name, dialect.request(query))
        if request := dialect.follow(response):
            response = await self._sender.send(self.name, request)
        elif dialect.form.follow:
            return []
        hits: list[Hit] = dialect.parse(response.status, response.headers, response.body)
        return hits[: query.count]


def _no_data(title: str, body: bytes) -> BackendError:
    """Say what came in the place of JSON: a web page, or a sentence of the service."""
    if len(body) >= MAX_BODY:
        cause = f"it has more than {MAX_BODY // 1_000_000} MB, and the rest was not read"
        return BackendError(f"{title} sent too much", code="too_large", cause=cause, fix="ask for less, or try again later")
    start = body[:2000].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")) or b"<body" in start:
        page = _TITLE.search(body[:20_000])
        name = f": {plain_line(page[1].decode('utf-8', 'replace'))!r}" if page else ""
        cause, message = f"a login, a challenge or a notice{name}", f"{title} sent a web page instead of data"
        fix = "open the service in a browser to see why, or leave it out by the setting services"
        return BackendError(message, code="web_page", cause=cause, fix=fix)
    words = plain_line(body[:300].decode("utf-8", "replace"))
    if _RATE.search(words):
        return _rate_error(title, words)
    cause = f"it is no JSON: {words or 'it is empty'}"
    return BackendError(f"{title} sent an answer that cannot be read", code="bad_json", cause=cause, fix="try again later")


def _rate_error(title: str, words: str) -> BackendError:
    fix = "wait; other services are asked meanwhile"
    return BackendError(f"{title} limits how often it may be asked", code="rate_limit", cause=words, fix=fix, retryable=True)


def _wrong_shape(title: str, data: Any, path: str) -> BackendError:
    """An error inside a 200, or an answer of another version."""
    words = service_message(json.dumps(data)[:5000].encode() if isinstance(data, dict) else b"{}", default="")
    if _RATE.search(words):
        return _rate_error(title, words)
    if words:
        return BackendError(f"{title} reports an error", code="error_inside", cause=words, fix="change the query, or try later")
    return BackendError(
        f"{title} answers in a form that nexi does not know",
        code="bad_schema",
        cause=f"there is no {path or 'list of results'} in it; the service may have a new version",
        fix="look for a newer nexi, or tell its developers",
    )


class OpenServices:
    """The SearchBackend port over members that are built when they are first asked.

    The searcher knows a backend with a `route`: it asks the members one by one with its own pacing, suspensions and limits.
    Asked by itself, as `nexi doctor` does, this backend asks the same members without them.
    """

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
