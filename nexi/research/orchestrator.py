"""Runs a piece of research: asks the pure core what is next, does it, and commits what happened.

Above, the assembly gives it ports and a log; below are planner, researchers and evaluator. It decides nothing that the
reducer could: it begins tasks, waits, watches the limits, and hands the report to be checked. A run that is taken up again
starts here with a state folded from its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from nexi.agent import GRACE_S, AnswerChecker, StreamedAnswerCheck
from nexi.budget import Budget, Meter
from nexi.config import EXTRACTIVE
from nexi.errors import NexiError, NoEvidenceError, ResearchError
from nexi.events import (
    AgendaProposed,
    AgendaSet,
    Fact,
    LimitNear,
    LimitReached,
    ResearcherFailed,
    ResearcherReported,
    ResearcherStarted,
    RoundEvaluated,
    StatusDelta,
    Warned,
)
from nexi.model import MeteredLLM
from nexi.ports import Clock, Emit
from nexi.research.evaluator import CUT, Terms, budget_words, evaluate, in_order, stand_in
from nexi.research.planner import Agenda, Brief, plan
from nexi.research.reducer import next_step, reduce
from nexi.research.researcher import Desk, Work, Workshop
from nexi.research.state import (
    AT_ONCE,
    NEAR,
    UNITS,
    Evaluate,
    Fail,
    Finish,
    Plan,
    Researcher,
    ResearchState,
    Start,
    Wait,
)
from nexi.runs.recording import Recording
from nexi.types import Answer, StopReason, Usage

PLAN_SHARE = 0.3  # of the time: a coordinator that says nothing must leave some for the research
RESEARCH_SHARE = 0.85  # of the budget; the rest is kept for the report
LEAD_CALLS = 2  # of the model calls, kept for the plan and the report
RESEARCHER_ITERATIONS = UNITS + 4
WRITERS = ("model", CUT)


class Lead(Workshop, Protocol):
    """What the assembly builds for a run as a whole."""

    def coordinator(self) -> MeteredLLM: ...

    def report_checker(self) -> AnswerChecker: ...


class Approve(Protocol):
    """A person's word on the agenda before money is spent; the tasks to research, or None to stop."""

    async def __call__(self, agenda: Agenda) -> Agenda | None: ...


@dataclass
class Orchestrator:
    """One research run. `observe` must be called with every fact in the order in which facts are committed."""

    lead: Lead
    emit: Emit
    clock: Clock
    meter: Meter
    stop: asyncio.Event
    brief: Brief
    desk: Desk = field(default_factory=Desk)
    state: ResearchState = field(default_factory=ResearchState)
    recording: Recording = field(default_factory=Recording)
    approve: Approve | None = None
    estimate: Callable[[Agenda], str] = lambda _: ""
    seats: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    max_output_tokens: int = 8192
    prompts_folder: Path | None = None
    _working: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup | None = None
    _checker: AnswerChecker | None = None
    _draft: StreamedAnswerCheck | None = None

    def __post_init__(self) -> None:
        self._research = self.meter.child(_share(self.meter.budget), started=self.meter.started)

    def observe(self, fact: Fact) -> None:
        self.state = reduce(self.state, fact)
        if isinstance(fact, ResearcherReported | ResearcherFailed):
            self.desk.ended[fact.researcher].set()

    def restore(self, usage: Usage, calls: int, pages: int) -> None:
        """Take over what the researchers of an interrupted run had spent."""
        self._research.restore(usage, calls, pages)
        for researcher in self.state.researchers:
            if researcher.doing != "running":
                self.desk.ended[researcher.id].set()

    async def run(self) -> Answer:
        """Research to the end. Raises NoEvidenceError when nothing was found, ResearchError when all failed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                answer = await self._steps(tasks)
        finally:
            for task in self._working.values():
                task.cancel()
        if isinstance(answer, NexiError):
            raise answer  # carried past the task group, which would bundle it
        return answer

    async def _steps(self, tasks: asyncio.TaskGroup) -> Answer | NexiError:
        while True:
            await self._watch_limits()
            self._take_up(tasks)
            step = next_step(self.state)
            try:
                if isinstance(step, Plan):
                    await self._plan()
                elif isinstance(step, Start):
                    await self._start(step)
                elif isinstance(step, Wait):
                    await self._wait()
                elif isinstance(step, Evaluate):
                    await self._evaluate(step)
                elif isinstance(step, Finish):
                    return await self._finish(step)
                elif isinstance(step, Fail):
                    return self._failed(step)
                else:
                    return ResearchError("the run has already ended", code="ended")
            except NexiError as error:
                return error

    async def _watch_limits(self) -> None:
        """A step that the record of an interrupted run has paid for is taken before a limit counts."""
        if self.state.limit is not None:
            return None
        if self.recording.only:
            return await self._told_limits()
        now = self.clock.monotonic()
        if self.stop.is_set():
            return await self.emit(LimitReached(StopReason.CANCELLED))
        if self._is_paid_for():
            return None
        if reason := self._research.stop_reason(now):
            return await self.emit(LimitReached(reason))
        if self._research.used(now) >= NEAR and not self.state.nears_limit and self.state.synthesis is None:
            await self.emit(LimitNear())
        return None

    async def _told_limits(self) -> None:
        """In a replay no time passes: limits count where they counted then, before the next begins or the round is judged."""
        judged = self.state.round - 1 if self.state.round else 0
        place = (judged, len(self.state.researchers))
        while not isinstance(next_step(self.state), Wait) and (limit := self.recording.limit(place)):
            await self.emit(limit)

    def _is_paid_for(self) -> bool:
        return isinstance(next_step(self.state), Plan | Evaluate) and self.recording.of("").is_ahead

    async def _plan(self) -> None:
        self.emit.delta(StatusDelta("planning"))
        brief = replace(self.brief, deadline=self._part_of_time(PLAN_SHARE))
        agenda = await plan(self.state.question, self.lead.coordinator(), brief)
        began = self.clock.monotonic()
        settled = await self._settled(agenda)
        if settled is None:
            raise ResearchError("the research was not started", cause="its plan was not approved", code="not_approved")
        thought = round(self.clock.monotonic() - began, 3) if self.approve else 0.0
        for meter in (self.meter, self._research):
            meter.extend(thought)
        await self.emit(AgendaSet(settled.tasks, settled.complexity, settled.by, self.estimate(settled), thought))

    async def _settled(self, agenda: Agenda) -> Agenda | None:
        """The plan as it is researched: as it was settled before, or as a person wants it; a stop while they think is a no."""
        if before := self.recording.agenda:
            return Agenda(before.tasks, before.complexity, before.by)
        if self.approve is None:
            return agenda
        asking = asyncio.ensure_future(self.approve(agenda))  # before it is told, so that it can be answered at once
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await self.emit(AgendaProposed(agenda.tasks, agenda.complexity, agenda.by, self.estimate(agenda)))
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            stopping.cancel()
            asking.cancel()

    def _part_of_time(self, share: float) -> float | None:
        seconds = self.meter.budget.max_seconds
        return None if seconds is None else self.meter.started + seconds * share

    async def _start(self, step: Start) -> None:
        for name, task in step.tasks:
            await self.emit(ResearcherStarted(name, self.state.round, task))

    def _take_up(self, tasks: asyncio.TaskGroup) -> None:
        """Everyone whom the state knows as running is at work, also after an interruption."""
        for researcher in self.state.running:
            if researcher.id not in self._working:
                work = self._work(researcher)
                meter = self._research.child(self._researcher_budget(), started=self.clock.monotonic())
                self._working[researcher.id] = tasks.create_task(work.run(self.lead, meter), name=f"researcher {researcher.id}")

    def _work(self, researcher: Researcher) -> Work:
        return Work(
            researcher,
            self.state.question,
            self.desk,
            lambda: in_order(self.state.reported),
            self.emit,
            self.recording.of(researcher.id),
            self.brief.today,
            self.lead.coordinator().max_context,
            self.prompts_folder,
            self._delay(researcher),
            self.seats,
        )

    def _delay(self, researcher: Researcher) -> float:
        """How much later than the first of those who run this one had begun, where recorded waits take their time."""
        begun = {r.id: self.recording.of(r.id).begun for r in self.state.running}
        return begun[researcher.id] - min(begun.values())

    def _researcher_budget(self) -> Budget:
        """An equal share of what the plan may spend, so that one researcher cannot starve the others."""
        total = self._research.budget
        planned = max(1, len(self.state.agenda), min(AT_ONCE, len(self.state.researchers)))
        tokens = None if total.max_tokens is None else max(1, total.max_tokens // planned)
        pages = None if total.max_pages is None else max(1, total.max_pages // planned)
        return Budget(max_iterations=RESEARCHER_ITERATIONS, max_tokens=tokens, max_pages=pages)

    async def _wait(self) -> None:
        """Until somebody has ended, or the run is told to stop; those who run then end by themselves, from what they have."""
        running = [self._working[r.id] for r in self.state.running]
        if self.stop.is_set():
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _evaluate(self, step: Evaluate) -> None:
        self.emit.delta(StatusDelta("evaluating"))
        coordinator = self.lead.coordinator()
        terms = Terms(
            coordinator.max_context,
            min(self.max_output_tokens, coordinator.max_context // 4),
            budget_words(self.state),
            self.prompts_folder,
            None if self.meter.deadline is None else self.meter.deadline + self.meter.grace(GRACE_S),
        )
        built_in = coordinator_is_built_in(coordinator)
        judgement = (
            stand_in(self.state, step, quoted=True)
            if built_in
            else await evaluate(self.state, step, coordinator, terms, self._release)
        )
        if judgement.decision == "synthesise" and judgement.by == "built-in":
            await self.emit(Warned("extractive", "the report was assembled from the researchers' reports without a model"))
        if judgement.short:
            await self.emit(Warned("cut", "the report breaks off where it reached the output limit (--max-len)"))
        await self.emit(RoundEvaluated(step.round, judgement.decision, judgement.tasks, judgement.text, judgement.by))

    def _release(self, text: str) -> None:
        """A stretch of the report, while more of it is coming."""
        if self._draft is None and self._tasks:
            self._checker = self.lead.report_checker()
            self._draft = self._checker.check_stream(self._tasks)
        if self._draft:
            self._draft.feed(text)

    async def _finish(self, step: Finish) -> Answer:
        """What was told of the report as it came is out; the rest of it follows, checked like that."""
        checker = self._checker or self.lead.report_checker()
        for code, message in self._gaps():
            await checker.context.warn(code, message)
        stop = self._stop_reason()
        if self._draft:
            return await checker.finish_check(self._draft.check, stop)
        return await checker.check_answer(step.text, stop, by_model=self.state.written_by in WRITERS)

    def _gaps(self) -> list[tuple[str, str]]:
        """What the report lacks, and why."""
        limit, failed = self.state.limit, [r for r in self.state.researchers if r.doing == "failed"]
        gaps = [(limit.value, f"{_WHY[limit]}; the report uses what was found until then")] if limit else []
        gaps += [("not_researched", f"nothing was found out on: {r.task} ({r.reason})") for r in failed]
        unstarted = self.state.waiting if limit else ()
        if self.state.written_by == CUT:
            gaps.append(("cut", "the model stopped writing before the report was complete; nexi resume asks it again"))
        return gaps + [("not_researched", f"nobody got to: {task}") for task in unstarted]

    def _stop_reason(self) -> StopReason:
        """A report that the model could not write is no final one: the run may be taken up again."""
        if self.state.limit:
            return self.state.limit
        wanted = not coordinator_is_built_in(self.lead.coordinator())
        return StopReason.API_ERROR if wanted and self.state.written_by != "model" else StopReason.FINAL_ANSWER

    def _failed(self, step: Fail) -> NexiError:
        if step.code == NoEvidenceError.code or self.state.limit:
            fix = (
                "raise the budget, or ask again later"
                if self.state.limit
                else "ask in other words, or check the search service"
            )
            return NoEvidenceError("there is no report", cause=step.message, fix=fix)
        return ResearchError(
            "the research failed", cause=step.message, fix="check the model and the search service: nexi doctor", code=step.code
        )


_WHY = {
    StopReason.CANCELLED: "the research was stopped",
    StopReason.BUDGET_SPENT: "the budget is spent",
    StopReason.TIME_TARGET: "the time target was reached",
    StopReason.MAX_ITERATIONS: "the iteration limit was reached",
}


def coordinator_is_built_in(llm: MeteredLLM) -> bool:
    return llm.name == EXTRACTIVE


def _share(budget: Budget) -> Budget:
    """What the researchers may use of the run's budget."""

    def part(limit: float | None) -> float | None:
        return None if limit is None else limit * RESEARCH_SHARE

    tokens, seconds, calls = part(budget.max_tokens), part(budget.max_seconds), budget.max_model_calls
    return Budget(
        max_seconds=seconds,
        max_tokens=None if tokens is None else int(tokens),
        max_cost=part(budget.max_cost),
        max_model_calls=None if calls is None else max(1, calls - LEAD_CALLS),
        max_pages=budget.max_pages,
    )
