"""Deep research as a pure function of its facts: what a run is, and what it does next.

`reduce` folds a fact into the state, `next_step` says what follows from a state; both are total. A fact that must not happen in
a state is a ResearchError that names it; facts that do not concern research leave the state as it is. Resume depends on this
file: it folds the log and continues with the next step. Nothing here acts or knows a clock, a model or a file.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nexi import events
from nexi.errors import NoEvidenceError, ResearchError
from nexi.notices import Notice, join_causes
from nexi.types import StopReason, Usage
from nexi.urls import host_of, is_web_url

ResearchStatus: TypeAlias = Literal["planning", "researching", "completed", "failed"]
ResearcherStatus: TypeAlias = Literal["running", "reported", "failed"]
ResearcherPhase: TypeAlias = Literal["starting", "gathering", "scraping", "reporting", "reported", "failed"]

FIRST_RESEARCHERS = {1: 2, 2: 3, 3: 5}
TARGET_ROUNDS = {1: 2, 2: 3, 3: 5}
EXTRA_ROUNDS = 2
MAX_PARALLEL_RESEARCHERS = 3
GATHERING_CALLS = 4
SCRAPING_CALLS = 4
UNITS_PER_RESEARCHER = 1 + GATHERING_CALLS + SCRAPING_CALLS + 1  # the start, the calls, the report
MAX_TASKS = 5
NEAR_LIMIT_SHARE = 0.8  # of a limit
MAX_UNFINISHED_PROGRESS = 0.99

SCRAPING_TOOL = "scrape"
REPORTING_TOOL = "final_answer"  # every other tool gathers
MAX_ACTION_CHARS = 200
_RUN_FACTS = (
    events.RunStarted,
    events.AgendaProposed,
    events.AgendaSet,
    events.RoundEvaluated,
    events.LimitNear,
    events.LimitReached,
    events.RunFinished,
    events.RunFailed,
)
_RESEARCHER_FACTS = (
    events.ResearcherStarted,
    events.ReportsShared,
    events.ResearcherReported,
    events.ResearcherFailed,
    events.ModelReplied,
    events.ModelFailed,
    events.ToolStarted,
    events.ToolFinished,
)


class Researcher(Struct, frozen=True):
    """One researcher: its task, its progress and its report."""

    id: str
    round: int
    task: str
    status: ResearcherStatus = "running"
    gathered: int = 0
    scraped: int = 0
    last_action: str = ""
    usage: Usage = Usage()
    report: str = ""
    reason: str = ""
    code: str = ""
    fix: str = ""

    @property
    def phase(self) -> ResearcherPhase:
        if self.status != "running":
            return self.status
        if self.scraped:
            return "scraping" if self.scraped < SCRAPING_CALLS else "reporting"
        return "gathering" if self.gathered else "starting"

    @property
    def units(self) -> int:
        """Units of work done, of UNITS_PER_RESEARCHER; a researcher that has ended has done all."""
        if self.status != "running":
            return UNITS_PER_RESEARCHER
        return 1 + min(self.gathered, GATHERING_CALLS) + min(self.scraped, SCRAPING_CALLS)


class ResearchState(Struct, frozen=True):
    """A research run, folded from its facts."""

    question: str = ""
    status: ResearchStatus = "planning"
    complexity: int = 0
    proposed: tuple[str, ...] = ()
    agenda: tuple[str, ...] = ()
    round: int = 0
    pending_tasks: tuple[str, ...] = ()
    researchers: tuple[Researcher, ...] = ()
    synthesis: str | None = None
    written_by: str = ""
    is_near_limit: bool = False
    limit: StopReason | None = None
    usage: Usage = Usage()
    progress: float = 0.0
    reason: str = ""

    @property
    def target_rounds(self) -> int:
        return TARGET_ROUNDS.get(self.complexity, 0)

    @property
    def max_rounds(self) -> int:
        return self.target_rounds + EXTRA_ROUNDS if self.target_rounds else 0

    @property
    def running_researchers(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.status == "running")

    @property
    def reported_researchers(self) -> tuple[Researcher, ...]:
        """The researchers that reported, in order of round and researcher, as they were started."""
        return tuple(r for r in self.researchers if r.status == "reported")

    @property
    def current_researchers(self) -> tuple[Researcher, ...]:
        return tuple(r for r in self.researchers if r.round == self.round)

    @property
    def header(self) -> str:
        """The line that shows the progress to the user."""
        if self.status == "planning":
            return "Research: the plan is waiting for your approval" if self.proposed else "Research: planning"
        if self.status == "researching" and self.round > self.target_rounds:
            return "Research: exploring"  # more rounds than planned, where a percentage would mislead
        return f"Research: {int(self.progress * 100)}%"


class PlanStep(Struct, frozen=True):
    """Divide the question into tasks."""


class StartStep(Struct, frozen=True):
    """Start a researcher for each of these tasks, given with their ids."""

    tasks: tuple[tuple[str, str], ...]


class WaitStep(Struct, frozen=True):
    """Wait until a running researcher has ended."""


class EvaluateStep(Struct, frozen=True):
    """Evaluate the round. Without `may_delegate` the report must be written now."""

    round: int
    may_delegate: bool


class FinishStep(Struct, frozen=True):
    """The report is written: check it and end the run with it."""

    text: str


class FailStep(Struct, frozen=True):
    """End the run with an error: there is nothing to write a report from."""

    code: str
    message: str
    fix: str = ""


class EndedStep(Struct, frozen=True):
    """The run has ended."""


Step: TypeAlias = PlanStep | StartStep | WaitStep | EvaluateStep | FinishStep | FailStep | EndedStep


def fold(facts: Iterable[events.Fact], state: ResearchState | None = None) -> ResearchState:
    return functools.reduce(reduce, facts, state or ResearchState())


def reduce(state: ResearchState, fact: events.Fact) -> ResearchState:
    """Return the state after one more fact. Raises ResearchError for a fact that must not happen in this state."""
    is_of_researcher = isinstance(fact, _RESEARCHER_FACTS)
    if not is_of_researcher and not isinstance(fact, _RUN_FACTS):
        return state
    if state.status in ("completed", "failed"):
        raise _impossible_fact(fact, "the run has ended")
    return _with_progress(state, _apply_to_researcher(state, fact) if is_of_researcher else _apply_to_run(state, fact))


def next_step(state: ResearchState) -> Step:
    """Return what to do in this state; every state has a next step."""
    if state.status in ("completed", "failed"):
        return EndedStep()
    if state.synthesis is not None:
        return FinishStep(state.synthesis)
    if state.status == "planning":
        return FailStep("no_evidence", "the run was stopped before it was planned") if state.limit else PlanStep()
    if start := _tasks_to_start(state):
        return StartStep(start)
    if state.running_researchers:
        return WaitStep()
    if not state.reported_researchers:
        code = NoEvidenceError.code if {r.code for r in state.researchers} == {NoEvidenceError.code} else "critical_failure"
        reasons = list(dict.fromkeys(r.reason for r in state.researchers if r.reason))
        unreported = Notice("research.unreported", "the run was stopped before any researcher had reported")
        fix = next((r.fix for r in state.researchers if r.fix), "")
        return FailStep(code, join_causes(reasons[:3]) if reasons else unreported, fix)
    any_reported = any(r.status == "reported" for r in state.current_researchers)
    return EvaluateStep(state.round, any_reported and state.limit is None and state.round < state.max_rounds)


def _tasks_to_start(state: ResearchState) -> tuple[tuple[str, str], ...]:
    if state.limit is not None:
        return ()
    free = max(0, MAX_PARALLEL_RESEARCHERS - len(state.running_researchers))
    started = len(state.current_researchers)
    return tuple((f"{state.round}.{started + n}", task) for n, task in enumerate(state.pending_tasks[:free], 1))


def _apply_to_run(state: ResearchState, fact: events.Fact) -> ResearchState:
    match fact:
        case events.RunStarted():
            if state.question:
                raise _impossible_fact(fact, "the run has already begun")
            return replace(state, question=fact.query)
        case events.AgendaProposed() | events.AgendaSet():
            if state.status != "planning":
                raise _impossible_fact(fact, "the agenda is already set")
            if isinstance(fact, events.AgendaSet) and fact.complexity not in TARGET_ROUNDS:
                raise _impossible_fact(fact, f"its complexity is {fact.complexity}, not 1, 2 or 3")
            _check_tasks(fact, fact.tasks)
            if isinstance(fact, events.AgendaProposed):
                return replace(state, proposed=fact.tasks)
            agenda, complexity = fact.tasks, fact.complexity
            return replace(state, status="researching", complexity=complexity, agenda=agenda, round=1, pending_tasks=agenda)
        case events.RoundEvaluated():
            step = next_step(state)
            if not isinstance(step, EvaluateStep):
                raise _impossible_fact(fact, "the round is not over")
            if fact.round != state.round:
                raise _impossible_fact(fact, f"the round is {state.round}")
            if fact.decision == "synthesise":
                return replace(state, synthesis=fact.text, written_by=fact.by)
            if fact.decision != "delegate":
                raise _impossible_fact(fact, f"{fact.decision!r} is no decision")
            if not step.may_delegate:
                raise _impossible_fact(fact, "no further round is allowed")
            _check_tasks(fact, fact.tasks)
            return replace(state, round=state.round + 1, pending_tasks=fact.tasks)
        case events.LimitNear():
            return replace(state, is_near_limit=True)
        case events.LimitReached():
            return replace(state, limit=state.limit or fact.stop)
        case events.RunFinished():
            if state.synthesis is None:
                raise _impossible_fact(fact, "no report was written")
            return replace(state, status="completed")
        case events.RunFailed():
            return replace(state, status="failed", reason=fact.message)
    return state


def _apply_to_researcher(state: ResearchState, fact: events.Fact) -> ResearchState:
    match fact:
        case events.ResearcherStarted():
            expected = dict(_tasks_to_start(state))
            if state.status != "researching" or state.synthesis is not None:
                raise _impossible_fact(fact, "no researcher may start now")
            if fact.round != state.round or expected.get(fact.researcher) != fact.task or fact.task != state.pending_tasks[0]:
                raise _impossible_fact(fact, f"researcher {fact.researcher} was not next")
            started = Researcher(fact.researcher, fact.round, fact.task)
            return replace(state, researchers=(*state.researchers, started), pending_tasks=state.pending_tasks[1:])
        case events.ReportsShared():
            _require_running(state, fact.researcher, fact)
            finished = {r.id for r in state.reported_researchers}
            if strangers := [name for name in fact.reports if name not in finished]:
                raise _impossible_fact(fact, f"researcher {strangers[0]} has not reported")
        case events.ResearcherReported():
            who = _require_running(state, fact.researcher, fact)
            return _replace_researcher(state, who, status="reported", report=fact.report)
        case events.ResearcherFailed():
            who, reason = _require_running(state, fact.researcher, fact), fact.message or fact.code
            return _replace_researcher(state, who, status="failed", reason=reason, code=fact.code, fix=fact.fix)
        case events.ModelReplied() | events.ModelFailed():
            state = replace(state, usage=state.usage + fact.usage)
            if fact.agent:
                who = _require_researcher(state, fact.agent, fact)
                return _replace_researcher(state, who, usage=who.usage + fact.usage)
        case events.ToolStarted() if fact.agent:
            who = _require_researcher(state, fact.agent, fact)
            return _replace_researcher(state, who, last_action=_describe_action(fact)[:MAX_ACTION_CHARS])
        case events.ToolFinished() if fact.agent:
            who = _require_researcher(state, fact.agent, fact)
            if fact.name == SCRAPING_TOOL:
                return _replace_researcher(state, who, scraped=min(who.scraped + 1, SCRAPING_CALLS))
            if fact.name != REPORTING_TOOL:
                return _replace_researcher(state, who, gathered=min(who.gathered + 1, GATHERING_CALLS))
    return state


def _describe_action(fact: events.ToolStarted) -> str:
    """Describe a tool call for the user: what was searched for, or the sites whose pages are read."""
    try:
        arguments = json.loads(fact.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return f"{fact.name} {fact.arguments}".strip()
    queries = [f'"{query}"' for query in _string_values(arguments, "queries") or _string_values(arguments, "query")]
    sites = dict.fromkeys(host_of(url) if is_web_url(url) else url for url in _string_values(arguments, "urls"))
    return " ".join((fact.name, ", ".join(queries or sites))).strip()


def _string_values(arguments: Mapping[str, Any], name: str) -> list[str]:
    value = arguments.get(name)
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _with_progress(before: ResearchState, state: ResearchState) -> ResearchState:
    """Advance the progress by the share of the remaining work that was done."""
    # work that a delegation adds makes later steps smaller, so the progress neither falls nor stands still
    if state.status == "completed":
        return replace(state, progress=1.0)
    done_before, done_now = (sum(r.units for r in s.researchers) for s in (before, state))
    # units of work of all researchers: started, waiting, and expected in the planned rounds to come
    expected = max(0, state.target_rounds - state.round) * max(1, FIRST_RESEARCHERS.get(state.complexity, 0) // 2)
    units_left = UNITS_PER_RESEARCHER * (len(state.researchers) + len(state.pending_tasks) + expected) - done_before
    if done_now <= done_before or units_left <= 0:
        return state
    progress = state.progress + (1.0 - state.progress) * (done_now - done_before) / units_left
    return replace(state, progress=min(progress, MAX_UNFINISHED_PROGRESS))


def _check_tasks(fact: events.Fact, tasks: tuple[str, ...]) -> None:
    if not 1 <= len(tasks) <= MAX_TASKS or any(not task.strip() for task in tasks):
        raise _impossible_fact(fact, f"it has {len(tasks)} tasks, not 1 to {MAX_TASKS} with words in them")


def _require_researcher(state: ResearchState, name: str, fact: events.Fact) -> Researcher:
    researcher = next((r for r in state.researchers if r.id == name), None)
    if researcher is None:
        raise _impossible_fact(fact, f"there is no researcher {name}")
    return researcher


def _require_running(state: ResearchState, name: str, fact: events.Fact) -> Researcher:
    researcher = _require_researcher(state, name, fact)
    if researcher.status != "running":
        raise _impossible_fact(fact, f"researcher {name} has already {researcher.status}")
    return researcher


def _replace_researcher(state: ResearchState, who: Researcher, **fields: Any) -> ResearchState:
    after = replace(who, **fields)
    return replace(state, researchers=tuple(after if r.id == who.id else r for r in state.researchers))


def _impossible_fact(fact: events.Fact, why: str) -> ResearchError:
    return ResearchError(f"the fact {fact.kind} must not happen here", cause=why, code="impossible_fact")
