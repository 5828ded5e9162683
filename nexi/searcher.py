"""Asks search backends: the one place of retry, fallback along the chain, and naming what failed.

Above it are the tools; below it, backends behind their port. It never raises: an empty outcome carries the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nexi.errors import BackendError
from nexi.events import SearchFinished
from nexi.ports import Clock, Emit, SearchBackend
from nexi.types import Failure, Hit, Query, SearchOutcome
from nexi.urls import dedup_key, is_web_url

RETRY_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0


class Searcher:
    def __init__(self, backends: Callable[[], Sequence[SearchBackend]], *, emit: Emit, clock: Clock) -> None:
        self._chain = backends
        self._emit = emit
        self._clock = clock

    async def search(self, query: Query) -> SearchOutcome:
        """The first backend of the chain that has hits answers; those before it are named with their reason."""
        started = self._clock.monotonic()
        outcome = await self._along_the_chain(query)
        await self._emit(
            SearchFinished(
                query.text, outcome.backend, outcome.hits, outcome.failures, round(self._clock.monotonic() - started, 3)
            )
        )
        return outcome

    async def _along_the_chain(self, query: Query) -> SearchOutcome:
        failures: list[Failure] = []
        empty_backend = ""
        backends = self._chain()
        for backend in backends:
            try:
                hits = _clean(await self._with_one_retry(backend, query), backend.name)
            except BackendError as error:
                failures.append(Failure(backend.name, error.code, str(error), error.fix))
                continue
            if hits:
                return SearchOutcome(query.text, hits, backend.name, tuple(failures))
            empty_backend = empty_backend or backend.name
            failures.append(Failure(backend.name, "empty", "it answered and has no result for this query", "try other words"))
        if not backends:
            failures.append(
                Failure("search", "no_backend", "no search backend is configured", "set SEARXNG_URL, or see nexi doctor")
            )
        return SearchOutcome(query.text, (), empty_backend, tuple(failures))

    async def _with_one_retry(self, backend: SearchBackend, query: Query) -> list[Hit]:
        try:
            return await backend.search(query)
        except BackendError as error:
            pause = RETRY_PAUSE_S if error.retry_after is None else error.retry_after
            if not error.retryable or pause > LONGEST_PAUSE_S:
                raise
        await self._clock.sleep(pause)
        return await backend.search(query)


def _clean(hits: Sequence[Hit], backend: str) -> tuple[Hit, ...]:
    """Web addresses only, each once, signed with the backend that found them."""
    seen: dict[str, Hit] = {}
    for hit in hits:
        if is_web_url(hit.url):
            seen.setdefault(dedup_key(hit.url), Hit(hit.url, hit.title, hit.snippet, hit.published, hit.backend or backend))
    return tuple(seen.values())
