"""Replays what the log of a run already holds: replies by request, hits by query, pages by URL.

The model, the searcher and the reader of a run look here first, each for its own agent. Built from facts alone; where they are
stored is not known here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from msgspec import Struct

from nexi import events
from nexi.errors import ContextOverflowError, LLMError
from nexi.types import BACKGROUND_PURPOSES, REVIEW_VERSION, Conflict, Review, StopReason

T = TypeVar("T")
Pace: TypeAlias = Callable[[float], Awaitable[None]]
ModelOutcome: TypeAlias = events.ModelReplied | events.ModelFailed
Place: TypeAlias = tuple[int, int]  # rounds evaluated so far, and researchers started so far

CANCELLED = "cancelled"  # the code of a call that nexi itself cancelled: it says nothing about the model


class AgentReplay:
    """The recorded results of one agent, each returned once, in the recorded order. Failures at the end of the log are left
    out, so that they are retried; those before a later reply are kept, because the conversation of that reply has them."""

    def __init__(
        self,
        facts: Sequence[events.Fact] = (),
        *,
        pace: Pace | None = None,
        is_replay_only: bool = False,
        start_offset_s: float = 0.0,
        shared_pages: Mapping[str, events.PageFetched] | None = None,
    ) -> None:
        self.start_offset_s = start_offset_s  # seconds after the start of the run
        self._shared_pages = shared_pages or {}  # pages that any agent has read: another agent may be the first now
        self.is_replay_only = is_replay_only  # whether anything that is not recorded is refused
        self._pace = pace
        self._model_outcomes: dict[str, deque[tuple[events.ModelAsked, ModelOutcome]]] = defaultdict(deque)
        self._searches: dict[str, deque[events.SearchFinished]] = defaultdict(deque)
        self._pages: dict[str, deque[events.PageFetched | events.PageFailed]] = defaultdict(deque)
        self._delivered_reports: dict[int, tuple[str, ...]] = {}
        self._scrapes: dict[str, deque[events.ToolFinished]] = defaultdict(deque)
        self._tool_results: dict[str, deque[events.ToolFinished]] = defaultdict(deque)
        self._limits: dict[str, deque[StopReason]] = defaultdict(deque)
        self._judgements: dict[str, events.Judged] = {}
        self.earlier_check = _find_earlier_check(facts) if is_replay_only else None
        self._has_diverged = False
        self._late_pages = _find_late_pages(facts) if is_replay_only else frozenset()
        background = {f.call for f in facts if isinstance(f, events.ModelAsked) and f.purpose in BACKGROUND_PURPOSES}
        replies = (i for i, fact in enumerate(facts) if isinstance(fact, events.ModelReplied) and fact.call not in background)
        self._index_facts(facts, len(facts) if is_replay_only else max(replies, default=-1))

    def _index_facts(self, facts: Sequence[events.Fact], last_index: int) -> None:
        requests: dict[int, events.ModelAsked] = {}
        for index, fact in enumerate(facts):
            has_result = isinstance(fact, events.PROGRESS) and (not isinstance(fact, events.SearchFinished) or bool(fact.hits))
            is_cancelled = isinstance(fact, events.ModelFailed) and fact.code == CANCELLED and not self.is_replay_only
            if isinstance(fact, events.ModelAsked):
                if fact.purpose not in BACKGROUND_PURPOSES:  # what they brought is in the record as hits and pages
                    requests[fact.call] = fact
            elif isinstance(fact, events.ReportsShared):
                self._delivered_reports[fact.turn] = fact.reports
            elif isinstance(fact, events.ToolFinished):
                self._scrapes[fact.call_id].append(fact)
                self._tool_results[fact.call_id].append(fact)
            elif isinstance(fact, events.LimitApplied):
                self._limits[fact.at].append(fact.stop)
            elif isinstance(fact, events.Judged):
                self._judgements.setdefault(fact.about, fact)
            elif is_cancelled or (index > last_index and not has_result):
                continue
            elif isinstance(fact, events.ModelReplied | events.ModelFailed) and (request := requests.pop(fact.call, None)):
                self._model_outcomes[request.prompt_digest].append((request, fact))
            elif isinstance(fact, events.SearchFinished):
                self._searches[fact.query].append(fact)
            elif isinstance(fact, events.PageFetched | events.PageFailed) and fact.url not in self._late_pages:
                self._pages[fact.url].append(fact)

    async def next_reply(self, digest: str) -> tuple[events.ModelAsked, ModelOutcome] | None:
        """Return the recorded outcome of the request with this digest."""
        if outcome := _take_next(self._model_outcomes, digest):
            await self.pass_time(outcome[1].seconds)
        else:
            self._has_diverged = True
        return outcome

    def has_outcome(self, digest: str) -> bool:
        """Whether a request with this digest was answered, failed, or was refused by the budget."""
        return bool(self._model_outcomes.get(digest) or self._limits.get(f"call {digest}"))

    @property
    def is_catching_up(self) -> bool:
        """Whether a resumed run still repeats recorded steps: every request so far was recorded, and replies are left."""
        return not self.is_replay_only and not self._has_diverged and any(self._model_outcomes.values())

    async def next_search(self, query: str) -> events.SearchFinished | None:
        if fact := _take_next(self._searches, query):
            await self.pass_time(fact.seconds)
        return fact

    async def next_page(self, url: str) -> events.PageFetched | events.PageFailed | None:
        shared_page = self._shared_pages.get(url) if url not in self._late_pages else None
        if fact := _take_next(self._pages, url) or shared_page:
            await self.pass_time(fact.seconds)
        return fact

    def next_scrape(self, call_id: str) -> events.ToolFinished | None:
        """Return the recorded result of a `scrape` call, which depends on what other researchers had read."""
        return _take_next(self._scrapes, call_id)

    def recorded_tool_result(self, call_id: str) -> events.ToolFinished | None:
        """Return, in a replay, the result that the agent read; the original call may have been cut short by a limit."""
        return _take_next(self._tool_results, call_id) if self.is_replay_only else None

    def next_limit(self, at: str) -> StopReason | None:
        return _take_next(self._limits, at)

    def find_judgement(self, about: str) -> events.Judged | None:
        return self._judgements.get(about)

    def has_page(self, url: str) -> bool:
        return self.has_own_page(url) or (url in self._shared_pages and url not in self._late_pages)

    def has_own_page(self, url: str) -> bool:
        """Whether this agent itself requested the page."""
        return bool(self._pages.get(url))

    def reports_at(self, turn: int) -> tuple[str, ...] | None:
        """Return the reports delivered to the agent before this turn; None beyond the end of the record."""
        if turn in self._delivered_reports:
            return self._delivered_reports[turn]
        return () if any(self._model_outcomes.values()) else None

    async def pass_time(self, seconds: float) -> None:
        """Wait as long as the recorded step took, if the replay is paced."""
        if self._pace:
            await self._pace(seconds)


def _take_next(entries: Mapping[str, deque[T]], key: str) -> T | None:
    """The first entry under this key that was not taken before."""
    queue = entries.get(key)
    return queue.popleft() if queue else None


class Recording:
    """The replays of all agents of a log. `pace` repeats recorded waits; `is_replay_only` refuses anything not recorded."""

    def __init__(
        self,
        facts: Iterable[events.Fact] = (),
        *,
        pace: Pace | None = None,
        is_replay_only: bool = False,
        start_offsets: Mapping[str, float] | None = None,
    ) -> None:
        tracks: dict[str, list[events.Fact]] = defaultdict(list)
        common: dict[str, events.PageFetched] = {}
        self.agenda: events.AgendaSet | None = None  # the settled plan, if a new request would not return it
        self._limits: deque[tuple[Place, events.LimitNear | events.LimitReached]] = deque()
        place: Place = (0, 0)
        for fact in facts:
            place = (place[0] + isinstance(fact, events.RoundEvaluated), place[1] + isinstance(fact, events.ResearcherStarted))
            if isinstance(fact, events.LimitNear | events.LimitReached):
                self._limits.append((place, fact))
            if isinstance(fact, events.AgendaSet) and (is_replay_only or fact.by == "user"):
                self.agenda = fact
            tracks[fact.researcher if isinstance(fact, events.ReportsShared) else getattr(fact, "agent", "")].append(fact)
            if isinstance(fact, events.PageFetched):
                common[fact.url] = fact
        times = start_offsets or {}
        build = partial(AgentReplay, is_replay_only=is_replay_only, shared_pages=common)
        self._agents = {
            agent: build(tracks[agent], pace=pace, start_offset_s=times.get(agent, 0.0)) for agent in {*tracks, *times}
        }
        self._empty = build()
        self.is_replay_only = is_replay_only

    def next_limit(self, place: Place) -> events.LimitNear | events.LimitReached | None:
        """Return the next recorded limit that applies at this place or before it, each once."""
        if not self._limits or self._limits[0][0] > place:
            return None
        return self._limits.popleft()[1]

    def for_agent(self, agent: str) -> AgentReplay:
        return self._agents.get(agent, self._empty)


class CommittedFacts:
    """The facts in a log, so that a resumed run does not write them twice."""

    def __init__(self, facts: Iterable[events.Fact] = ()) -> None:
        self._left = Counter(map(_fingerprint, facts))

    def consume(self, fact: events.Fact) -> bool:
        """Whether the log has this fact, ignoring its duration; each logged fact counts once."""
        if not self._left or not self._left[mark := _fingerprint(fact)]:
            return False
        self._left[mark] -= 1
        return True


def rebuild_error(failed: events.ModelFailed) -> LLMError:
    if failed.code != ContextOverflowError.code:
        return LLMError(failed.message, fix=failed.fix, code=failed.code)
    error = ContextOverflowError(failed.message, fix=failed.fix)
    error.window = failed.window or None
    return error


class _EarlierCheck(Struct, frozen=True):
    """How an answer was checked by a version whose rules changed its text, and what came of it."""

    answer: str
    review: Review
    conflicts: tuple[Conflict, ...] = ()


def _find_earlier_check(facts: Sequence[events.Fact]) -> _EarlierCheck | None:
    """Today's check would not come to the same text, so the replay of such a run takes what is recorded."""
    review, end = events.find_review(facts), events.find_end(facts)
    if review is None or not isinstance(end, events.RunFinished) or review.version >= REVIEW_VERSION:
        return None
    conflicts = next((f.conflicts for f in reversed(facts) if isinstance(f, events.ConflictsFound)), ())
    return _EarlierCheck(end.answer, review, conflicts)


def _find_late_pages(facts: Sequence[events.Fact]) -> frozenset[str]:
    """Find pages that arrived after the last tool had ended and were not handed to the model."""
    # an agentic search has neither tools nor citation numbers: it reads a page only when it needs it
    if any(isinstance(fact, events.RunStarted) and fact.mode == "agentic" for fact in facts):
        return frozenset()
    last = max((i for i, fact in enumerate(facts) if isinstance(fact, events.ToolFinished)), default=-1)
    after = facts[last + 1 :]
    handed_over = {fact.source.digest for fact in after if isinstance(fact, events.SourceNumbered)}
    late = (fact for fact in after if isinstance(fact, events.PageFetched) and fact.digest not in handed_over)
    in_time = {fact.url for fact in facts[: last + 1] if isinstance(fact, events.PageFetched)}
    return frozenset(fact.url for fact in late if fact.url not in in_time)


def _fingerprint(fact: events.Fact) -> str:
    form = events.encode(fact)
    form.pop("seconds", None)
    return json.dumps(form, sort_keys=True)
