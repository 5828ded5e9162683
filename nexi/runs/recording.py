"""What the log of a run already holds, given out again: replies by request, hits by query, pages by address.

The model, the searcher and the reader of a run look here before they reach out, each for its own agent, so that a run which
was interrupted goes on without asking for anything twice, and a finished one can be played again without a network. Built
from facts alone; where they are kept is not known here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from nexi.errors import ContextOverflowError, LLMError
from nexi.events import (
    AgendaSet,
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
    SearchFinished,
    SourceNumbered,
    ToolFinished,
    encode,
)
from nexi.types import StopReason

Pace: TypeAlias = Callable[[float], Awaitable[None]]
Spoken: TypeAlias = ModelReplied | ModelFailed

Place: TypeAlias = tuple[int, int]  # how many rounds were judged, and how many researchers had begun

CANCELLED = "cancelled"  # the code of a call that we broke off ourselves: it says nothing of the model


class Track:
    """The recorded results of one agent, each given out once, in the order in which they came.

    Failures at the end of a track are left out: they are tried again. Those that later replies rest on are kept, because
    without them the conversation would be another one.
    """

    def __init__(
        self,
        facts: Sequence[Fact] = (),
        *,
        pace: Pace | None = None,
        only: bool = False,
        begun: float = 0.0,
        common: Mapping[str, PageFetched] | None = None,
    ) -> None:
        self.begun = begun  # seconds after the start of the run
        self._common = common or {}  # pages that any agent has read: who came first may differ now
        self.only = only  # whether what is not recorded must not be asked for
        self._pace = pace
        self._spoken: dict[str, deque[tuple[ModelAsked, Spoken]]] = defaultdict(deque)
        self._found: dict[str, deque[SearchFinished]] = defaultdict(deque)
        self._pages: dict[str, deque[PageFetched | PageFailed]] = defaultdict(deque)
        self._shared: dict[int, tuple[str, ...]] = {}
        self._tools: dict[str, deque[ToolFinished]] = defaultdict(deque)
        self._told: dict[str, deque[ToolFinished]] = defaultdict(deque)
        self._limits: dict[str, deque[StopReason]] = defaultdict(deque)
        self._judged: dict[str, Judged] = {}
        self._missed = False
        self._late = _came_too_late(facts) if only else frozenset()
        settled = max((i for i, fact in enumerate(facts) if isinstance(fact, ModelReplied)), default=-1)
        self._take(facts, len(facts) if only else settled)

    def _take(self, facts: Sequence[Fact], settled: int) -> None:
        asked: dict[int, ModelAsked] = {}
        for index, fact in enumerate(facts):
            if isinstance(fact, ModelAsked):
                asked[fact.call] = fact
            elif isinstance(fact, ReportsShared):
                self._shared[fact.turn] = fact.reports
            elif isinstance(fact, ToolFinished):
                self._tools[fact.call_id].append(fact)
                self._told[fact.call_id].append(fact)
            elif isinstance(fact, LimitApplied):
                self._limits[fact.at].append(fact.stop)
            elif isinstance(fact, Judged):
                self._judged.setdefault(fact.about, fact)
            elif index <= settled or _brought_something(fact):
                self._keep(fact, asked)

    def _keep(self, fact: Fact, asked: dict[int, ModelAsked]) -> None:
        if isinstance(fact, ModelFailed) and fact.code == CANCELLED and not self.only:
            return
        if isinstance(fact, ModelReplied | ModelFailed) and (request := asked.pop(fact.call, None)):
            self._spoken[request.prompt_digest].append((request, fact))
        elif isinstance(fact, SearchFinished):
            self._found[fact.query].append(fact)
        elif isinstance(fact, PageFetched | PageFailed) and fact.url not in self._late:
            self._pages[fact.url].append(fact)

    async def reply(self, digest: str) -> tuple[ModelAsked, Spoken] | None:
        """What a request with this digest brought."""
        spoken = self._spoken.get(digest)
        if not spoken:
            self._missed = True
            return None
        asked, fact = spoken.popleft()
        await self.pass_time(fact.seconds)
        return asked, fact

    @property
    def is_ahead(self) -> bool:
        """Whether an interrupted run is still where it was: replies are left, and every request so far was recorded."""
        return not self.only and not self._missed and any(self._spoken.values())

    async def search(self, query: str) -> SearchFinished | None:
        found = self._found.get(query)
        if not found:
            return None
        fact = found.popleft()
        await self.pass_time(fact.seconds)
        return fact

    async def page(self, url: str) -> PageFetched | PageFailed | None:
        pages = self._pages.get(url)
        fact = pages.popleft() if pages else self._common.get(url) if url not in self._late else None
        if fact:
            await self.pass_time(fact.seconds)
        return fact

    def tool(self, call_id: str) -> ToolFinished | None:
        """How a tool call ended, where its result depends on what others did meanwhile."""
        tools = self._tools.get(call_id)
        return tools.popleft() if tools else None

    def told(self, call_id: str) -> ToolFinished | None:
        """What the agent read when a tool call ended, in a replay: then it may have been short of time."""
        told = self._told.get(call_id) if self.only else None
        return told.popleft() if told else None

    def limit(self, at: str) -> StopReason | None:
        """The limit that decided what the agent did at this place."""
        limits = self._limits.get(at)
        return limits.popleft() if limits else None

    def judgement(self, about: str) -> Judged | None:
        """The first judgement about something that the record holds."""
        return self._judged.get(about)

    def has_page(self, url: str) -> bool:
        return self.has_own_page(url) or (url in self._common and url not in self._late)

    def has_own_page(self, url: str) -> bool:
        """Whether this agent itself asked for the page."""
        return bool(self._pages.get(url))

    def reports_at(self, turn: int) -> tuple[str, ...] | None:
        """Which reports reached the agent before this turn; None where the record does not reach so far."""
        if turn in self._shared:
            return self._shared[turn]
        return () if any(self._spoken.values()) else None

    async def pass_time(self, seconds: float) -> None:
        """Let a recorded wait take its time again, where somebody wants that."""
        if self._pace:
            await self._pace(seconds)


class Recording:
    """All agents of a log. `pace` lets recorded waits take time again; `only` forbids to ask for what is not recorded."""

    def __init__(
        self,
        facts: Iterable[Fact] = (),
        *,
        pace: Pace | None = None,
        only: bool = False,
        begun: Mapping[str, float] | None = None,
    ) -> None:
        tracks: dict[str, list[Fact]] = defaultdict(list)
        common: dict[str, PageFetched] = {}
        self.agenda: AgendaSet | None = None  # the plan as it was settled, where asking again would not bring it
        self._limits: deque[tuple[Place, LimitNear | LimitReached]] = deque()
        place: Place = (0, 0)
        for fact in facts:
            place = (place[0] + isinstance(fact, RoundEvaluated), place[1] + isinstance(fact, ResearcherStarted))
            if isinstance(fact, LimitNear | LimitReached):
                self._limits.append((place, fact))
            if isinstance(fact, AgendaSet) and (only or fact.by == "user"):
                self.agenda = fact
            tracks[_agent_of(fact)].append(fact)
            if isinstance(fact, PageFetched):
                common[fact.url] = fact
        times = begun or {}
        self._tracks = {
            agent: Track(tracks[agent], pace=pace, only=only, begun=times.get(agent, 0.0), common=common)
            for agent in {*tracks, *times}
        }
        self._empty = Track(only=only, common=common)
        self.only = only

    def limit(self, place: Place) -> LimitNear | LimitReached | None:
        """What the run was told of its limits when it had come so far, each once."""
        if not self._limits or self._limits[0][0] > place:
            return None
        return self._limits.popleft()[1]

    def of(self, agent: str) -> Track:
        return self._tracks.get(agent, self._empty)


class Committed:
    """Facts that a log has, so that a run which is taken up again does not write them twice."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._left = Counter(map(_print_of, facts))

    def has(self, fact: Fact) -> bool:
        """Whether this fact is in the log and was not asked for before; how long it took does not matter."""
        if not self._left or not self._left[mark := _print_of(fact)]:
            return False
        self._left[mark] -= 1
        return True


def error_of(failed: ModelFailed) -> LLMError:
    """The error of a call that failed then."""
    if failed.code != ContextOverflowError.code:
        return LLMError(failed.message, fix=failed.fix, code=failed.code)
    error = ContextOverflowError(failed.message, fix=failed.fix)
    error.window = failed.window or None
    return error


def _came_too_late(facts: Sequence[Fact]) -> frozenset[str]:
    """Pages that came when the last tool had ended, and that nobody was given then."""
    last = max((i for i, fact in enumerate(facts) if isinstance(fact, ToolFinished)), default=-1)
    after = facts[last + 1 :]
    given = {fact.source.digest for fact in after if isinstance(fact, SourceNumbered)}
    late = (fact for fact in after if isinstance(fact, PageFetched) and fact.digest not in given)
    in_time = {fact.url for fact in facts[: last + 1] if isinstance(fact, PageFetched)}
    return frozenset(fact.url for fact in late if fact.url not in in_time)


def _print_of(fact: Fact) -> str:
    form = encode(fact)
    form.pop("seconds", None)
    return json.dumps(form, sort_keys=True)


def _agent_of(fact: Fact) -> str:
    return fact.researcher if isinstance(fact, ReportsShared) else getattr(fact, "agent", "")


def _brought_something(fact: Fact) -> bool:
    if isinstance(fact, SearchFinished):
        return bool(fact.hits)
    return isinstance(fact, ModelReplied | PageFetched)
