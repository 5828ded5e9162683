"""Searches with a chain of backends: the one place of pacing, retries, suspension and fallback.

It never raises: an empty outcome carries the reason. Site filters hold for every backend, because hits of other sites are
dropped here; a time or language filter that the answering backend does not support is named in the outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import BackendError
from nexi.events import SearchDelayed, SearchFinished
from nexi.focus import within_focus
from nexi.net.breaker import format_duration
from nexi.net.limits import RateLimiter
from nexi.net.retry import RetryableError, RetryPolicy, call_with_retries
from nexi.notices import Notice
from nexi.ports import Breaker, Clock, Emit, MakePacing, Pacing, SearchBackend
from nexi.routing.fusion import fuse_hits
from nexi.routing.route import Choice, ask_services
from nexi.runs.recording import AgentReplay
from nexi.types import Failure, Hit, Query, SearchOutcome, ServiceAnswer
from nexi.urls import hit_key, host_of, is_web_url

MAX_PAUSE_S = 5.0  # while other backends can be asked
MAX_LAST_PAUSE_S = 30.0  # when no other backend is left
MAX_PARALLEL_QUERIES = 5  # as many as one call of the tool may have


class BackendConcurrency:
    """Limits parallel queries to a backend and their rate; shared by all searches of a process."""

    def __init__(self, clock: Clock, make_pacing: MakePacing | None = None) -> None:
        self._make_pacing = make_pacing or (lambda name, burst, rate: RateLimiter(clock, burst=burst, rate=rate))
        self._semaphores: dict[str, asyncio.Semaphore] = {}
        self._intervals: dict[str, Pacing] = {}

    @asynccontextmanager
    async def acquire(self, backend: SearchBackend) -> AsyncIterator[None]:
        """Wait for a free slot, and for the interval this backend wants between two queries (its `interval_s`)."""
        async with self._semaphores.setdefault(backend.name, asyncio.Semaphore(MAX_PARALLEL_QUERIES)):
            interval_s = getattr(backend, "interval_s", 0.0)
            if interval_s > 0:
                if backend.name not in self._intervals:
                    self._intervals[backend.name] = self._make_pacing("search", 1, 1 / interval_s)
                await self._intervals[backend.name].wait(backend.name)
            yield


class SearchPatience(Struct, frozen=True):
    """How long one backend is waited for, and all of them together; a backend that hangs leaves time for those after it."""

    backend_s: float
    total_s: float
    fair_share_s: float = 3.0  # a backend that was given less than this is not suspended for being late

    def share_s(self, elapsed_s: float, backends_left: int) -> float:
        """The time of the next backend: an equal part of what is left, and no more than one backend may take."""
        return max(0.0, min(self.backend_s, (self.total_s - elapsed_s) / max(1, backends_left)))


@dataclass(eq=False)
class Searcher:
    backends: Callable[[], Sequence[SearchBackend]]
    _: KW_ONLY
    emit: Emit
    clock: Clock
    breaker: Breaker | None = None
    concurrency: BackendConcurrency | None = None
    replay: AgentReplay | None = None
    retries: int = 1
    patience: SearchPatience | None = None

    def __post_init__(self) -> None:
        self._concurrency = self.concurrency or BackendConcurrency(self.clock)
        self._replay = self.replay or AgentReplay()

    @property
    def is_remote(self) -> bool:
        """Whether a query may leave this machine."""
        return any(not getattr(backend, "local", False) for backend in self.backends())

    async def search(self, query: Query, *, deadline: float | None = None) -> SearchOutcome:
        """Return the hits of the first backend that has some, with the reasons why those before it had none."""
        if record := await self._replay.next_search(query.text):
            await self.emit(record)
            return SearchOutcome(record.query, record.hits, record.backend, record.failures)
        start = self.clock.monotonic()
        outcome = await self._try_backends(query, deadline)
        if query.focus and outcome.backend and not outcome.hits:
            wide = await self._try_backends(replace(query, focus=""), deadline)
            why = f"nothing was found among {query.focus}, so the whole web was asked"
            note = Failure("search", "focus_dropped", why, "ask with another focus")
            outcome = replace(wide, failures=(note, *wide.failures))
        seconds = round(self.clock.monotonic() - start, 3)
        await self.emit(SearchFinished(query.text, outcome.backend, outcome.hits, outcome.failures, seconds))
        return outcome

    async def _try_backends(self, query: Query, deadline: float | None) -> SearchOutcome:
        """Ask the backends in order until one has hits. Suspended backends are a last resort."""
        if self._replay.is_replay_only:
            return SearchOutcome(query.text, failures=(Failure("search", "not_recorded", "the log does not hold this search"),))
        failures: dict[str, tuple[Failure, ...]] = {}
        suspended_backends: list[SearchBackend] = []
        empty_backend = ""
        answers: tuple[ServiceAnswer, ...] = ()
        backends = self.backends()
        start = asyncio.get_running_loop().time()

        async def ask(backend: SearchBackend, max_pause: float, backends_left: int) -> SearchOutcome:
            elapsed_s = asyncio.get_running_loop().time() - start
            share_s = self.patience.share_s(elapsed_s, backends_left) if self.patience else None
            max_wait_s = max_pause if deadline is None else min(max_pause, deadline - self.clock.monotonic())
            answer = await self._ask_backend(backend, query, max_wait_s, share_s)
            failures[backend.name] = answer.failures
            return answer

        for number, backend in enumerate(backends, 1):
            if suspension := await self._find_suspension(backend.name):
                failures[backend.name] = (suspension,)
                suspended_backends.append(backend)
                continue
            answer = await ask(backend, MAX_PAUSE_S if number < len(backends) else MAX_LAST_PAUSE_S, len(backends) - number + 1)
            if answer.hits:
                return _build_outcome(query, answer, failures)
            empty_backend, answers = empty_backend or answer.backend, (*answers, *answer.asked)
        for number, backend in enumerate(suspended_backends if not empty_backend else ()):
            answer = await ask(backend, MAX_PAUSE_S, len(suspended_backends) - number)
            if answer.hits:
                return _build_outcome(query, answer, failures)
            empty_backend = empty_backend or answer.backend
        if not backends:
            fix = "set SEARXNG_URL, or see nexi doctor"
            failures["search"] = (Failure("search", "no_backend", "no search backend is configured", fix),)
        return _build_outcome(query, SearchOutcome(query.text, (), empty_backend, asked=answers), failures)

    async def _find_suspension(self, name: str) -> Failure | None:
        """Why a backend is not asked now, where its suspension says so."""
        suspension = await self.breaker.admit(name) if self.breaker else None
        if suspension is None:
            return None
        remaining = format_duration(max(suspension.until, suspension.trial_until) - self.clock.now().timestamp())
        why = suspension.reason or suspension.code
        fix = f"{suspension.fix or 'fix the cause'}; `nexi doctor` retries it now and lifts the suspension if it answers"
        return Failure(name, "suspended", f"it is not asked for {remaining} more, because of {suspension.code}: {why}", fix)

    async def _ask_backend(
        self, backend: SearchBackend, query: Query, max_wait_s: float, share_s: float | None
    ) -> SearchOutcome:
        """Ask one backend; the outcome's `backend` is empty if it failed. Beyond `share_s` it is not waited for."""
        if hasattr(backend, "route"):
            return await self._ask_members(backend, query, share_s)
        name = backend.name
        query = query if "focus" in getattr(backend, "filters", ()) else within_focus(query)
        try:
            answer = await self._search_in_time(backend, query, max_wait_s, share_s)
        except BackendError as error:
            fair_share_s = self.patience.fair_share_s if self.patience else 0.0
            was_hurried = error.code == "timeout" and share_s is not None and share_s < fair_share_s
            if self.breaker and not was_hurried:
                await self.breaker.record_failure(name, error)
            return SearchOutcome(query.text, (), "", (Failure(name, error.code, str(error), error.fix),))
        if self.breaker:
            await self.breaker.record_success(name)
        # web URLs, and file URLs of a local backend, each once, with the name of the backend
        hits_by_url: dict[str, Hit] = {}
        for hit in answer:
            if is_web_url(hit.url) or (getattr(backend, "local", False) and hit.url.startswith("file:///")):
                hits_by_url.setdefault(hit_key(hit.url), replace(hit, backend=hit.backend or name))
        hits = clean_hits = tuple(hits_by_url.values())
        if query.sites or query.excluded_sites:
            hits = tuple(hit for hit in clean_hits if not is_web_url(hit.url) or _is_wanted_site(hit.url, query))
        partial: tuple[Failure, ...] = tuple(getattr(answer, "failures", ()))
        if hits:
            return SearchOutcome(query.text, hits, name, (*partial, *_ignored_filters(backend, query)))
        why = "its results are all of other sites" if clean_hits else "it answered and has no result for this query"
        return SearchOutcome(query.text, (), name, (*partial, Failure(name, "empty", why, "try other words")))

    async def _ask_members(self, backend: Any, query: Query, share_s: float | None) -> SearchOutcome:
        """Ask the services that a backend chooses among its own; one that fails is replaced at once and not waited for."""

        async def ask(choice: Choice) -> SearchOutcome:
            name = choice.service
            if suspension := await self._find_suspension(name):
                return SearchOutcome(query.text, failures=(suspension,))
            return await self._ask_backend(backend.member(name), backend.phrase(query, name), 0.0, share_s)

        answers = await ask_services(await asyncio.to_thread(backend.route, query), ask)
        service_answers = tuple(answer for answer, _ in answers)
        outcomes = [outcome for _, outcome in answers]
        hits = fuse_hits({answer.service: outcome.hits for answer, outcome in answers}, query.text)[: query.count]
        if hits:
            answering = [outcome for outcome in outcomes if outcome.hits]
            filter_failures = [tuple(f for f in outcome.failures if f.code == "filter_ignored") for outcome in answering]
            failures = filter_failures[0] if all(filter_failures) else ()
            return SearchOutcome(query.text, hits, backend.name, failures, service_answers)
        has_answer = any(outcome.backend for outcome in outcomes)
        failures = tuple(failure for outcome in outcomes for failure in outcome.failures)
        return SearchOutcome(query.text, (), backend.name if has_answer else "", failures, service_answers)

    async def _search_in_time(
        self, backend: SearchBackend, query: Query, max_wait_s: float, share_s: float | None
    ) -> list[Hit]:
        """Raises BackendError, also for a backend that does not answer in its share of the time."""

        async def report_delay(error: RetryableError, wait_s: float) -> None:
            await self.emit(SearchDelayed(query.text, backend.name, error.code, round(wait_s, 3)))

        policy = RetryPolicy(max_retries=self.retries, patience_s=max_wait_s)
        try:
            async with asyncio.timeout(share_s) as limit, self._concurrency.acquire(backend):
                return await call_with_retries(lambda: backend.search(query), policy, self.clock, report_delay)
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = Notice("service.timeout", "{service} did not answer in time", service=backend.name)
            cause = f"it was given {share_s:.2g} s of the time of this request"
            fix = "raise the time limits of the request, or take the backend out of the chain"
            raise BackendError(message, cause=cause, fix=fix, code="timeout") from error


def _is_wanted_site(url: str, query: Query) -> bool:
    if any(_is_within_site(url, site) for site in query.excluded_sites):
        return False
    return not query.sites or any(_is_within_site(url, site) for site in query.sites)


def _is_within_site(url: str, site: str) -> bool:
    """Whether a URL is on a site: a host with its subdomains, and optionally the beginning of a path."""
    domain, _, path = site.strip().lower().removeprefix("https://").removeprefix("http://").strip("./").partition("/")
    host = host_of(url)
    domain = domain.removeprefix("*.").removeprefix("www.")
    if not domain or not (host == domain or host.endswith(f".{domain}")):
        return False
    return not path or url.lower().partition("://")[2].partition("/")[2].startswith(path)


def _build_outcome(query: Query, answer: SearchOutcome, failures: dict[str, tuple[Failure, ...]]) -> SearchOutcome:
    all_failures = tuple(failure for each in failures.values() for failure in each)
    return SearchOutcome(query.text, answer.hits, answer.backend, all_failures, answer.asked)


def _ignored_filters(backend: SearchBackend, query: Query) -> tuple[Failure, ...]:
    """List the filters of a query that the backend does not support; one that declares no filters is trusted."""
    filters, failures = getattr(backend, "filters", None), []
    for name, value in (("time", query.time_range), ("language", query.language)):
        if value and filters is not None and name not in filters:
            why = f"it has no {name} filter, so its results are of any {name}"
            fix = f"put a backend that has one before it in search_backend, or ask without the {name}"
            failures.append(Failure(backend.name, "filter_ignored", why, fix))
    return tuple(failures)
