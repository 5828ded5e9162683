"""Asks search backends: the one place of pacing, retry, rest, fallback along the chain, and naming what failed.

Above it are the tools; below it, backends behind their port. It never raises: an empty outcome carries the reason. Site
filters hold for every backend, because hits of other sites are dropped here; a filter that only a backend could keep, and
that the answering one does not know, is named in the outcome. A focus under which nobody finds anything is dropped, aloud.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from nexi.errors import BackendError
from nexi.events import SearchDelayed, SearchFinished
from nexi.focus import within_focus
from nexi.net.breaker import Suspension, in_words
from nexi.ports import Breaker, Clock, Emit, SearchBackend
from nexi.runs.recording import Track
from nexi.types import Failure, Hit, Query, SearchOutcome
from nexi.urls import dedup_key, host_of, is_web_url

RETRY_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0  # with others to ask meanwhile
LAST_PAUSE_S = 30.0  # with nobody else to ask
AT_ONCE = 4


class Lanes:
    """How many queries one backend gets at once, and how far apart; shared by all searches of a process."""

    def __init__(self, clock: Clock, at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._at_once = at_once
        self._lanes: dict[str, asyncio.Semaphore] = {}
        self._next: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, backend: SearchBackend) -> AsyncIterator[None]:
        """Wait for a free place, and for the pause this backend wants between two queries (its `interval_s`)."""
        async with self._lanes.setdefault(backend.name, asyncio.Semaphore(self._at_once)):
            await self._pause(backend.name, getattr(backend, "interval_s", 0.0))
            yield

    async def _pause(self, name: str, interval_s: float) -> None:
        if interval_s <= 0:
            return
        now = self._clock.monotonic()
        start = max(now, self._next.get(name, now))
        self._next[name] = start + interval_s
        if start > now:
            await self._clock.sleep(start - now)


class Searcher:
    def __init__(
        self,
        backends: Callable[[], Sequence[SearchBackend]],
        *,
        emit: Emit,
        clock: Clock,
        breaker: Breaker | None = None,
        lanes: Lanes | None = None,
        track: Track | None = None,
        retries: int = 1,
    ) -> None:
        self._retries = retries
        self._chain = backends
        self._emit = emit
        self._clock = clock
        self._breaker = breaker
        self._lanes = lanes or Lanes(clock)
        self._track = track or Track()

    async def search(self, query: Query, *, deadline: float | None = None) -> SearchOutcome:
        """The first backend of the chain that has hits answers; those before it are named with their reason.

        Nobody is waited for beyond the deadline.
        """
        if known := await self._track.search(query.text):
            await self._emit(known)
            return SearchOutcome(known.query, known.hits, known.backend, known.failures)
        started = self._clock.monotonic()
        outcome = await self._focused(query, deadline)
        await self._emit(
            SearchFinished(
                query.text, outcome.backend, outcome.hits, outcome.failures, round(self._clock.monotonic() - started, 3)
            )
        )
        return outcome

    async def _focused(self, query: Query, deadline: float | None) -> SearchOutcome:
        """The answer within the focus, else without it: a narrow look that finds nothing must not end a search."""
        outcome = await self._along_the_chain(query, deadline)
        if outcome.hits or not (query.focus and outcome.backend):
            return outcome
        wide = await self._along_the_chain(replace(query, focus=""), deadline)
        why = f"nothing was found among {query.focus}, so the whole web was asked"
        return replace(wide, failures=(Failure("search", "focus_dropped", why, "ask with another focus"), *wide.failures))

    async def _along_the_chain(self, query: Query, deadline: float | None) -> SearchOutcome:
        """Backends that rest after faults of their own are asked last, when nobody else has answered."""
        if self._track.only:
            return SearchOutcome(query.text, failures=(Failure("search", "not_recorded", "the log does not hold this search"),))
        failures: dict[str, tuple[Failure, ...]] = {}
        tired: list[SearchBackend] = []
        empty_backend = ""
        backends = self._chain()
        for number, backend in enumerate(backends, 1):
            if rest := await self._rest(backend):
                failures[backend.name] = (_suspended(backend.name, rest, self._clock.now().timestamp()),)
                tired += [] if rest.is_held else [backend]
                continue
            patience = LONGEST_PAUSE_S if number < len(backends) else LAST_PAUSE_S
            answer = await self._ask(backend, query, self._patience(patience, deadline))
            failures[backend.name] = answer.failures
            if answer.hits:
                return _joined(query, answer, failures)
            empty_backend = empty_backend or answer.backend
        for backend in tired if not empty_backend else ():
            answer = await self._ask(backend, query, self._patience(LONGEST_PAUSE_S, deadline))
            failures[backend.name] = answer.failures
            if answer.hits:
                return _joined(query, answer, failures)
            empty_backend = empty_backend or answer.backend
        if not backends:
            fix = "set SEARXNG_URL, or see nexi doctor"
            failures["search"] = (Failure("search", "no_backend", "no search backend is configured", fix),)
        return _joined(query, SearchOutcome(query.text, (), empty_backend), failures)

    def _patience(self, most: float, deadline: float | None) -> float:
        return most if deadline is None else min(most, deadline - self._clock.monotonic())

    async def _ask(self, backend: SearchBackend, query: Query, patience: float) -> SearchOutcome:
        """One backend's answer; its `backend` is empty where it failed."""
        name = backend.name
        query = query if "focus" in getattr(backend, "filters", ()) else within_focus(query)
        try:
            found = await self._with_retries(backend, query, patience)
        except BackendError as error:
            if self._breaker:
                await self._breaker.failed(name, error)
            return SearchOutcome(query.text, (), "", (Failure(name, error.code, str(error), error.fix),))
        if self._breaker:
            await self._breaker.succeeded(name)
        kept = _clean(found, name, local=getattr(backend, "local", False))
        narrowed = query.sites or query.excluded_sites
        hits = tuple(hit for hit in kept if not is_web_url(hit.url) or wanted(hit.url, query)) if narrowed else kept
        partial: tuple[Failure, ...] = tuple(getattr(found, "failures", ()))
        if hits:
            return SearchOutcome(query.text, hits, name, (*partial, *_ignored(backend, query)))
        why = "its results are all of other sites" if kept else "it answered and has no result for this query"
        return SearchOutcome(query.text, (), name, (*partial, Failure(name, "empty", why, "try other words")))

    async def _rest(self, backend: SearchBackend) -> Suspension | None:
        return await self._breaker.admit(backend.name) if self._breaker else None

    async def _with_retries(self, backend: SearchBackend, query: Query, patience: float) -> list[Hit]:
        async with self._lanes.turn(backend):
            for _ in range(self._retries):
                try:
                    return await backend.search(query)
                except BackendError as error:
                    pause = RETRY_PAUSE_S if error.retry_after is None else error.retry_after
                    if not error.retryable or pause > patience:
                        raise
                    await self._emit(SearchDelayed(query.text, backend.name, error.code, round(pause, 3)))
                await self._clock.sleep(pause)
            return await backend.search(query)


def wanted(url: str, query: Query) -> bool:
    """Whether a hit is of the sites that were asked for and of none that was excluded."""
    if any(_within(url, site) for site in query.excluded_sites):
        return False
    return not query.sites or any(_within(url, site) for site in query.sites)


def _within(url: str, site: str) -> bool:
    """A site is a host and what lies below it, and may name the beginning of a path."""
    domain, _, path = site.strip().lower().removeprefix("https://").removeprefix("http://").strip("./").partition("/")
    host = host_of(url)
    domain = domain.removeprefix("*.").removeprefix("www.")
    if not domain or not (host == domain or host.endswith(f".{domain}")):
        return False
    return not path or url.lower().partition("://")[2].partition("/")[2].startswith(path)


def _joined(query: Query, answer: SearchOutcome, failures: dict[str, tuple[Failure, ...]]) -> SearchOutcome:
    return SearchOutcome(query.text, answer.hits, answer.backend, tuple(f for each in failures.values() for f in each))


def _suspended(name: str, rest: Suspension, now: float) -> Failure:
    left = in_words(max(rest.until, rest.trial_until) - now)
    why = rest.reason or rest.code
    fix = f"{rest.fix or 'mend the cause'}; `nexi doctor` asks it again at once and lifts the rest when it answers"
    return Failure(name, "suspended", f"it is not asked for {left} more, because of {rest.code}: {why}", fix)


def _ignored(backend: SearchBackend, query: Query) -> tuple[Failure, ...]:
    """The filters of a query that the answering backend does not know; a backend that says nothing is trusted."""
    known = getattr(backend, "filters", None)
    if known is None:
        return ()
    asked = [name for name, value in (("time", query.time_range), ("language", query.language)) if value]
    return tuple(
        Failure(
            backend.name,
            "filter_ignored",
            f"it has no {name} filter, so its results are of any {name}",
            f"put a backend that has one before it in search_backend, or ask without the {name}",
        )
        for name in asked
        if name not in known
    )


def _clean(hits: Sequence[Hit], backend: str, *, local: bool = False) -> tuple[Hit, ...]:
    """Web addresses only (of a backend that searches this machine, its own), each once, signed with the backend."""
    seen: dict[str, Hit] = {}
    for hit in hits:
        web = is_web_url(hit.url)
        if web or (local and hit.url.startswith("file:///")):
            key = dedup_key(hit.url) if web else hit.url
            seen.setdefault(key, Hit(hit.url, hit.title, hit.snippet, hit.published, hit.backend or backend))
    return tuple(seen.values())
