"""Replays what the log of a run already holds: replies by request, hits by query, pages by URL.

The model, the searcher and the reader of a run look here first, each for its own agent, so that an interrupted run continues
without requesting anything twice, and a finished one can be replayed without a network. Built from facts alone; where they
are stored is not known here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from nexi.errors import ContextOverflowError, LLMError
from nexi.events import (
    AgendaSet,
    ConflictsFound,
    Fact,
    Judged,
    LimitApplied,
    LimitNear,
    LimitReached,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    PageFailed,
    PageFetched,
    ReportsShared,
    ResearcherStarted,
    RoundEvaluated,
    RunFinished,
    RunStarted,
    SearchFinished,
    SourceNumbered,
    ToolFinished,
    encode,
    find_end,
    find_review,
)
from nexi.types import BACKGROUND_PURPOSES, REVIEW_VERSION, Conflict, Review, StopReason

Pace: TypeAlias = Callable[[float], Awaitable[None]]
ModelOutcome: TypeAlias = ModelReplied | ModelFailed

Place: TypeAlias = tuple[int, int]  # rounds evaluated so far, and researchers started so far

CANCELLED = "cancelled"  # the code of a call that nexi itself cancelled: it says nothing about the model


class AgentReplay:
    """The recorded results of one agent, each returned once, in the recorded order.

    Failures at the end of the log are left out, so that they are retried. Failures before a later reply are kept, because
    the conversation of that reply contains them.
    """

    def __init__(
        self,
        facts: Sequence[Fact] = (),
        *,
        pace: Pace | None = None,
        is_replay_only: bool = False,
        start_offset_s: float = 0.0,
        shared_pages: Mapping[str, PageFetched] | None = None,
    ) -> None:
        self.start_offset_s = start_offset_s  # seconds after the start of the run
        self._shared_pages = shared_pages or {}  # pages that any agent has read: another agent may be the first now
        self.is_replay_only = is_replay_only  # whether anything that is not recorded is refused
        self._pace = pace
        self._model_outcomes: dict[str, deque[tuple[ModelAsked, ModelOutcome]]] = defaultdict(deque)
        self._searches: dict[str, deque[SearchFinished]] = defaultdict(deque)
        self._pages: dict[str, deque[PageFetched | PageFailed]] = defaultdict(deque)
        self._delivered_reports: dict[int, tuple[str, ...]] = {}
        self._scrapes: dict[str, deque[ToolFinished]] = defaultdict(deque)
        self._tool_results: dict[str, deque[ToolFinished]] = defaultdict(deque)
        self._limits: dict[str, deque[StopReason]] = defaultdict(deque)
        self._judgements: dict[str, Judged] = {}
        self.earlier_check = _find_earlier_check(facts) if is_replay_only else None
        self._has_diverged = False
        self._late_pages = _find_late_pages(facts) if is_replay_only else frozenset()
        background = {f.call for f in facts if isinstance(f, ModelAsked) and f.purpose in BACKGROUND_PURPOSES}
        replies = (i for i, fact in enumerate(facts) if isinstance(fact, ModelReplied) and fact.call not in background)
        last_reply = max(replies, default=-1)
        self._index_facts(facts, len(facts) if is_replay_only else last_reply)

    def _index_facts(self, facts: Sequence[Fact], last_index: int) -> None:
        requests: dict[int, ModelAsked] = {}
        for index, fact in enumerate(facts):
            has_result = bool(fact.hits) if isinstance(fact, SearchFinished) else isinstance(fact, ModelReplied | PageFetched)
            is_cancelled = isinstance(fact, ModelFailed) and fact.code == CANCELLED and not self.is_replay_only
            if isinstance(fact, ModelAsked):
                if fact.purpose not in BACKGROUND_PURPOSES:  # what they brought is in the record as hits and pages
                    requests[fact.call] = fact
            elif isinstance(fact, ReportsShared):
                self._delivered_reports[fact.turn] = fact.reports
            elif isinstance(fact, ToolFinished):
                self._scrapes[fact.call_id].append(fact)
                self._tool_results[fact.call_id].append(fact)
            elif isinstance(fact, LimitApplied):
                self._limits[fact.at].append(fact.stop)
            elif isinstance(fact, Judged):
                self._judgements.setdefault(fact.about, fact)
            elif is_cancelled or (index > last_index and not has_result):
                continue
            elif isinstance(fact, ModelReplied | ModelFailed) and (request := requests.pop(fact.call, None)):
                self._model_outcomes[request.prompt_digest].append((request, fact))
            elif isinstance(fact, SearchFinished):
                self._searches[fact.query].append(fact)
            elif isinstance(fact, PageFetched | PageFailed) and fact.url not in self._late_pages:
                self._pages[fact.url].append(fact)

    async def next_reply(self, digest: str) -> tuple[ModelAsked, ModelOutcome] | None:
        """Return the recorded outcome of the request with this digest."""
        outcomes = self._model_outcomes.get(digest)
        if not outcomes:
            self._has_diverged = True
            return None
        request, fact = outcomes.popleft()
        await self.pass_time(fact.seconds)
        return request, fact

    def has_outcome(self, digest: str) -> bool:
        """Whether a request with this digest was answered, failed, or was refused by the budget."""
        return bool(self._model_outcomes.get(digest) or self._limits.get(f"call {digest}"))

    @property
    def is_catching_up(self) -> bool:
        """Whether a resumed run still repeats recorded steps: every request so far was recorded, and replies are left."""
        return not self.is_replay_only and not self._has_diverged and any(self._model_outcomes.values())

    async def next_search(self, query: str) -> SearchFinished | None:
        searches = self._searches.get(query)
        if not searches:
            return None
        fact = searches.popleft()
        await self.pass_time(fact.seconds)
        return fact

    async def next_page(self, url: str) -> PageFetched | PageFailed | None:
        pages = self._pages.get(url)
        fact = pages.popleft() if pages else self._shared_pages.get(url) if url not in self._late_pages else None
        if fact:
            await self.pass_time(fact.seconds)
        return fact

    def next_scrape(self, call_id: str) -> ToolFinished | None:
        """Return the recorded result of a `scrape` call, which depends on what other researchers had read."""
        scrapes = self._scrapes.get(call_id)
        return scrapes.popleft() if scrapes else None

    def recorded_tool_result(self, call_id: str) -> ToolFinished | None:
        """Return, in a replay, the result that the agent read; the original call may have been cut short by a limit."""
        results = self._tool_results.get(call_id) if self.is_replay_only else None
        return results.popleft() if results else None

    def next_limit(self, at: str) -> StopReason | None:
        """Return the limit that was applied at this place."""
        limits = self._limits.get(at)
        return limits.popleft() if limits else None

    def find_judgement(self, about: str) -> Judged | None:
        """The first judgement about something that the record holds."""
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


class Recording:
    """The replays of all agents of a log. `pace` repeats recorded waits; `is_replay_only` refuses anything not recorded."""

    def __init__(
        self,
        facts: Iterable[Fact] = (),
        *,
        pace: Pace | None = None,
        is_replay_only: bool = False,
        start_offsets: Mapping[str, float] | None = None,
    ) -> None:
        tracks: dict[str, list[Fact]] = defaultdict(list)
        common: dict[str, PageFetched] = {}
        self.agenda: AgendaSet | None = None  # the settled plan, if a new request would not return it
        self._limits: deque[tuple[Place, LimitNear | LimitReached]] = deque()
        place: Place = (0, 0)
        for fact in facts:
            place = (place[0] + isinstance(fact, RoundEvaluated), place[1] + isinstance(fact, ResearcherStarted))
            if isinstance(fact, LimitNear | LimitReached):
                self._limits.append((place, fact))
            if isinstance(fact, AgendaSet) and (is_replay_only or fact.by == "user"):
                self.agenda = fact
            tracks[fact.researcher if isinstance(fact, ReportsShared) else getattr(fact, "agent", "")].append(fact)
            if isinstance(fact, PageFetched):
                common[fact.url] = fact
        times = start_offsets or {}
        self._agents = {
            agent: AgentReplay(
                tracks[agent],
                pace=pace,
                is_replay_only=is_replay_only,
                start_offset_s=times.get(agent, 0.0),
                shared_pages=common,
            )
            for agent in {*tracks, *times}
        }
        self._empty = AgentReplay(is_replay_only=is_replay_only, shared_pages=common)
        self.is_replay_only = is_replay_only

    def next_limit(self, place: Place) -> LimitNear | LimitReached | None:
        """Return the next recorded limit that applies at this place or before it, each once."""
        if not self._limits or self._limits[0][0] > place:
            return None
        return self._limits.popleft()[1]

    def for_agent(self, agent: str) -> AgentReplay:
        return self._agents.get(agent, self._empty)


class CommittedFacts:
    """The facts in a log, so that a resumed run does not write them twice."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._left = Counter(map(_fingerprint, facts))

    def consume(self, fact: Fact) -> bool:
        """Whether the log has this fact, ignoring its duration; each logged fact counts once."""
        if not self._left or not self._left[mark := _fingerprint(fact)]:
            return False
        self._left[mark] -= 1
        return True


def rebuild_error(failed: ModelFailed) -> LLMError:
    """Rebuild the error of a recorded failed call."""
    if failed.code != ContextOverflowError.code:
        return LLMError(failed.message, fix=failed.fix, code=failed.code)
    error = ContextOverflowError(failed.message, fix=failed.fix)
    error.window = failed.window or None
    return error


class EarlierCheck(Struct, frozen=True):
    """How an answer was checked by a version whose rules changed its text, and what came of it."""

    answer: str
    review: Review
    conflicts: tuple[Conflict, ...] = ()


def _find_earlier_check(facts: Sequence[Fact]) -> EarlierCheck | None:
    """Today's check would not come to the same text, so the replay of such a run takes what is recorded."""
    review, end = find_review(facts), find_end(facts)
    if review is None or not isinstance(end, RunFinished) or review.version >= REVIEW_VERSION:
        return None
    conflicts = next((f.conflicts for f in reversed(facts) if isinstance(f, ConflictsFound)), ())
    return EarlierCheck(end.answer, review, conflicts)


def _find_late_pages(facts: Sequence[Fact]) -> frozenset[str]:
    """Find pages that arrived after the last tool had ended and were not handed to the model.

    An agentic search has neither tools nor citation numbers: it reads a page only when it needs it.
    """
    if any(isinstance(fact, RunStarted) and fact.mode == "agentic" for fact in facts):
        return frozenset()
    last = max((i for i, fact in enumerate(facts) if isinstance(fact, ToolFinished)), default=-1)
    after = facts[last + 1 :]
    handed_over = {fact.source.digest for fact in after if isinstance(fact, SourceNumbered)}
    late = (fact for fact in after if isinstance(fact, PageFetched) and fact.digest not in handed_over)
    in_time = {fact.url for fact in facts[: last + 1] if isinstance(fact, PageFetched)}
    return frozenset(fact.url for fact in late if fact.url not in in_time)


def _fingerprint(fact: Fact) -> str:
    form = encode(fact)
    form.pop("seconds", None)
    return json.dumps(form, sort_keys=True)
