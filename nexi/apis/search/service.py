"""One request: search, or take the items a client saw; pick; read pages; pack.

Doors stand above; a searcher, a page reader, a cache and a model stand below, each given as a function, so nothing here
knows how they are built. The service has no state. A limit that is reached ends a step, and
what there is by then is returned: a search that fails is an empty pack with the reasons in `meta.failures`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from nexi.apis.search import pack, snippets
from nexi.apis.search.pack import SEEDS, Outcome, RankedHit
from nexi.apis.search.schema import MAX_ITEMS, Limits, SearchRequest, pick_ids, read_request
from nexi.errors import FetchError
from nexi.ports import LLM, Clock, Emit, SearchBackend
from nexi.types import Failure, FetchLimits, Page, Query, SearchOutcome

__all__ = ["Ports", "SearchService"]

MAX_PARALLEL_READS = 4
LAST_WORDS_S = 0.25  # for a chain to say which of its backends were late

Search = Callable[[Query, Sequence[SearchBackend], Limits], Awaitable[SearchOutcome]]  # over a chain of backends
Read = Callable[[str, FetchLimits], Awaitable[Page]]  # along the fetch chain, with guard and cache; raises FetchError


class _Cache(Protocol):
    def clear(self) -> int: ...

    def sweep(self) -> int: ...


class Ports(Struct, frozen=True):
    """What the service reaches the world through. `chain` gives the backends for a wanted name, "" for the usual ones."""

    search: Search
    chain: Callable[[str], Sequence[SearchBackend]]
    read: Read
    llm: Callable[[], LLM | None]
    clock: Clock
    emit: Emit
    cache: _Cache
    sweep_interval_s: float = 3600.0
    prompts: Path | None = None  # the folder of the user's own prompts


class SearchService:
    def __init__(self, ports: Ports) -> None:
        self._ports, self._clock = ports, ports.clock

    async def search(self, data: object) -> dict[str, Any]:
        """One request and its pack. Raises QuestionError for a request that cannot be used."""
        request = read_request(data)
        outcome = await self.run(request)
        echo: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        return pack.build_response(echo, request, outcome)

    async def run(self, request: SearchRequest, query: Query | None = None) -> Outcome:
        """What a request comes to; `query` may narrow the search by more than a request can say."""
        start = self._clock.monotonic()
        outcome = await self._find_results(request, query or Query(request.text, language=request.language))
        search_end = self._clock.monotonic()
        deadline = asyncio.get_running_loop().time() + max(0.0, request.limits.total_s - (search_end - start))
        first, rest = outcome.results[: request.limits.pages], outcome.results[request.limits.pages :]
        urls = [result.hit.url for result in first]
        pages = await self.read_all(urls, request.limits.page, deadline) if urls else []
        at = pack.format_utc(self._clock.now())
        pairs = zip(first, pages, strict=True)
        read = tuple(replace(result, page=page, read_at=at if isinstance(page, Page) else "") for result, page in pairs)
        now = self._clock.monotonic()
        return replace(
            outcome,
            results=(*read, *rest),
            search_s=search_end - start if request.seeds is None else 0.0,
            fetch_s=now - search_end if request.limits.pages else 0.0,
            total_s=now - start,
            at=at,
        )

    async def snippet_rank(self, data: object) -> dict[str, Any]:
        """The best candidates by one model call, or the first ones. Raises QuestionError."""
        ports = self._ports
        return await snippets.rank_snippets(data, ports.llm(), ports.clock, ports.emit, ports.prompts)

    async def llm_query(self, data: object) -> dict[str, Any]:
        """A search query for what a user wrote, by one model call, or the user's own words. Raises QuestionError."""
        ports = self._ports
        return await snippets.rewrite_query(data, ports.llm(), ports.clock, ports.emit, ports.prompts)

    async def read_all(self, urls: Sequence[str], limits: FetchLimits, deadline: float) -> list[Page | FetchError]:
        """Pages in order, a few at once; what is not there at the deadline (of the event loop) is late."""
        places = asyncio.Semaphore(MAX_PARALLEL_READS)
        outcomes: list[Page | FetchError] = [
            FetchError(f"{url[:200]} took too long", reason="timeout", cause="the time of this request is over") for url in urls
        ]

        async def one(place: int) -> None:
            async with places:
                try:
                    async with asyncio.timeout(limits.timeout_s):
                        outcomes[place] = await self._ports.read(urls[place], limits)
                except FetchError as error:
                    outcomes[place] = error
                except TimeoutError:
                    pass  # it is too late, as it says from the beginning

        with suppress(TimeoutError):  # the pages that came are in their places
            async with asyncio.timeout_at(deadline), asyncio.TaskGroup() as tasks:
                for place in range(len(urls)):
                    tasks.create_task(one(place))
        return outcomes

    async def clear_cache(self) -> int:
        """Forget every kept page; says how many there were."""
        return await asyncio.to_thread(self._ports.cache.clear)

    async def sweep_cache_regularly(self) -> NoReturn:
        """Forget pages past their time, at every interval until cancelled; requests do not wait for it."""
        while True:
            await asyncio.sleep(self._ports.sweep_interval_s)
            await asyncio.to_thread(self._ports.cache.sweep)

    async def _find_results(self, request: SearchRequest, query: Query) -> Outcome:
        if request.seeds is None:
            outcome = await self._search_backends(request, query)
        else:
            at = pack.format_utc(self._clock.now())
            engine = next((hit.backend for hit in request.seeds if hit.backend), SEEDS)  # a client may leave it out
            outcome = Outcome(tuple(RankedHit(hit, place, at) for place, hit in enumerate(request.seeds)), engine)
        if request.picks is not None:
            picks = pick_ids(request.picks, len(outcome.results))
            outcome = replace(outcome, results=tuple(outcome.results[pick] for pick in picks), picks=picks)
        return replace(outcome, results=outcome.results[: request.limits.results])

    async def _search_backends(self, request: SearchRequest, query: Query) -> Outcome:
        chain, limits = self._ports.chain(request.backend), request.limits
        names = [backend.name for backend in chain]
        # As many as the request wants, and enough for its highest pick.
        picks = pick_ids(request.picks or (), MAX_ITEMS)
        query = replace(query, count=min(MAX_ITEMS, max(query.count, limits.results, *(p + 1 for p in picks), 1)))
        try:
            async with asyncio.timeout(limits.total_s + LAST_WORDS_S):
                outcome = await self._ports.search(query, chain, limits)
        except TimeoutError:
            late = Failure("search", "timeout", "no backend answered in the time of this request", "raise its time limits")
            outcome = SearchOutcome(query.text, failures=(late,))
        at = pack.format_utc(self._clock.now())
        results = tuple(RankedHit(hit, place, at) for place, hit in enumerate(outcome.hits[: query.count]))
        failures = outcome.failures
        if request.backend and request.backend not in names:  # others answer for it, if any may
            fix = f"ask for {', '.join(names)}, or for none" if names else "set it up, see nexi doctor"
            failures = (Failure(request.backend[:40], "not_set_up", "this server has no such backend", fix), *failures)
        first = request.backend or "".join(names[:1])
        return Outcome(results, outcome.backend, bool(outcome.backend) and outcome.backend != first, failures=failures)
