"""Runs a piece of research: asks the pure core what is next, does it, and commits what happened.

Above, the assembly gives it ports and a log; below are planner, researchers and evaluator. It decides nothing that the
state could: it starts tasks, waits, watches the limits, and has the report checked. A resumed run starts here with the state
folded from its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from nexi import events
from nexi.agent import GRACE_S, AnswerChecker, StreamedAnswerCheck
from nexi.agent.fallbacks import LIMIT_DESCRIPTIONS, STOPPED_UNREAD
from nexi.budget import Budget, Meter
from nexi.config import EXTRACTIVE
from nexi.errors import NexiError, NoEvidenceError, ResearchError, StoppedError
from nexi.model import MeteredLLM
from nexi.notices import Notice
from nexi.ports import Clock, Emit
from nexi.research import evaluator
from nexi.research.evaluator import CUT_OFF, EvaluationLimits, RoundJudgement, Section
from nexi.research.planner import Agenda, PlanningContext, plan_by_parts, plan_research, split_question
from nexi.research.researcher import ResearcherFactory, ResearcherTask, SharedResearchContext
from nexi.research.sections import (
    MAX_EVIDENCE_BYTES,
    MAX_SECTION_WORDS,
    TOKENS_PER_WORD,
    SectionWriter,
    list_findings,
    write_introduction,
)
from nexi.research.state import (
    MAX_PARALLEL_RESEARCHERS,
    NEAR_LIMIT_SHARE,
    UNITS_PER_RESEARCHER,
    EvaluateStep,
    FailStep,
    FinishStep,
    PlanStep,
    Researcher,
    ResearchState,
    StartStep,
    WaitStep,
    next_step,
    reduce,
)
from nexi.research.titles import make_heading, make_title
from nexi.runs.recording import Recording
from nexi.tasks import run_unless_stopped
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.types import Answer, PageView, StopReason, Usage

PLANNING_TIME_SHARE = 0.3  # of the time, so that a coordinator that does not answer leaves some for the research
RESEARCH_BUDGET_SHARE = 0.85  # of the budget; the rest is kept for the report
COORDINATOR_CALLS = 2  # of the model calls, kept for the plan and the report
MAX_RESEARCHER_ITERATIONS = UNITS_PER_RESEARCHER + 4
MIN_SECTION_CALLS = 4  # the outline, two sections and the introduction
MIN_SECTION_TOKENS = MIN_SECTION_CALLS * (TOKENS_PER_WORD * MAX_SECTION_WORDS + MAX_EVIDENCE_BYTES // BYTES_PER_TOKEN)
MIN_SECTION_WINDOW = 3_000
MODEL_AUTHORS = ("model", CUT_OFF)


class _CoordinatorFactory(ResearcherFactory, Protocol):
    """Builds what a research run needs besides its researchers; implemented in `app`."""

    def coordinator_llm(self) -> MeteredLLM: ...

    def build_report_checker(self) -> AnswerChecker: ...

    def write_report(self, question: str, headings: Mapping[str, str], title: str, words: int) -> str:
        """Write a report with a section for each part from the pages that were read, without a model; "" without any."""
        ...

    def find_evidence(self, sections: Sequence[Section], findings: Sequence[Sequence[str]]) -> list[list[PageView]]:
        """Find the passages of the pages that were read for each section and for what was found on it, best first."""
        ...


# asks the user to approve the agenda before money is spent; gives the agenda to research, or None to stop
PlanApproval: TypeAlias = Callable[[Agenda], Awaitable[Agenda | None]]


@dataclass
class Orchestrator:
    """One research run. `observe` must be called with every fact in the order in which facts are committed."""

    factory: _CoordinatorFactory
    emit: Emit
    clock: Clock
    meter: Meter
    stop: asyncio.Event
    planning: PlanningContext
    shared: SharedResearchContext = field(default_factory=SharedResearchContext)
    state: ResearchState = field(default_factory=ResearchState)
    recording: Recording = field(default_factory=Recording)
    approve: PlanApproval | None = None
    estimate: Callable[[Agenda], str] = lambda _: ""
    concurrency: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PARALLEL_RESEARCHERS))
    max_output_tokens: int = 8192
    words: int = 0  # that the report should have; 0 leaves it to the evidence
    writes_from_parts: bool = False  # a small model, which plans no report
    names_limit: bool = True  # to the evaluator
    _researcher_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _researcher_meters: dict[str, Meter] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup | None = None
    _checker: AnswerChecker | None = None
    _streamed_report: StreamedAnswerCheck | None = None

    def __post_init__(self) -> None:
        # the part of the run's budget that the researchers may use
        budget = self.meter.budget
        limits = (budget.max_seconds, budget.max_tokens, budget.max_cost)
        seconds, tokens, cost = (None if limit is None else limit * RESEARCH_BUDGET_SHARE for limit in limits)
        calls = None if budget.max_model_calls is None else max(1, budget.max_model_calls - COORDINATOR_CALLS)
        whole_tokens = None if tokens is None else int(tokens)
        share = Budget(None, seconds, whole_tokens, cost, max_model_calls=calls, max_pages=budget.max_pages)
        self._research_meter = self.meter.child(share, started=self.meter.started)

    def observe(self, fact: events.Fact) -> None:
        self.state = reduce(self.state, fact)
        if isinstance(fact, events.ResearcherReported | events.ResearcherFailed):
            self.shared.finished[fact.researcher].set()

    def restore_usage(self, usage: Usage, calls: int, pages: int) -> None:
        """Count what the researchers of an interrupted run had already spent."""
        self._research_meter.restore(usage, calls, pages)
        for researcher in self.state.researchers:
            if researcher.status != "running":
                self.shared.finished[researcher.id].set()

    async def run(self) -> Answer:
        """Research to the end. Raises NoEvidenceError when nothing was found, ResearchError when all failed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                answer = await self._run_steps(tasks)
        finally:
            for task in self._researcher_tasks.values():
                task.cancel()
        if isinstance(answer, NexiError):
            raise answer  # raised here because the task group would wrap it in an exception group
        return answer

    async def _run_steps(self, tasks: asyncio.TaskGroup) -> Answer | NexiError:
        while True:
            await self._watch_limits()
            self._launch_researchers(tasks)
            step = next_step(self.state)
            try:
                if isinstance(step, PlanStep):
                    await self._make_plan()
                elif isinstance(step, StartStep):
                    for name, task in step.tasks:
                        await self.emit(events.ResearcherStarted(name, self.state.round, task))
                elif isinstance(step, WaitStep):
                    await self._wait_for_researcher()
                elif isinstance(step, EvaluateStep):
                    await self._evaluate_round(step)
                elif isinstance(step, FinishStep):
                    return await self._finish_report(step)
                elif isinstance(step, FailStep):
                    return self._build_failure(step)
                else:
                    return ResearchError("the run has already ended", code="ended")
            except NexiError as error:
                return error

    async def _watch_limits(self) -> None:
        """Emit a limit that is reached or near; a recorded step of a resumed run costs nothing and comes first."""
        state, now = self.state, self.clock.monotonic()
        if state.limit is not None:
            return
        if self.recording.is_replay_only:
            # at the positions recorded in the log: before a researcher starts or a round is evaluated
            place = (state.round - 1 if state.round else 0, len(state.researchers))
            while not isinstance(next_step(self.state), WaitStep) and (limit := self.recording.next_limit(place)):
                await self.emit(limit)
        elif self.stop.is_set():
            await self.emit(events.LimitReached(StopReason.CANCELLED))
        elif isinstance(next_step(state), PlanStep | EvaluateStep) and self.recording.for_agent("").is_catching_up:
            return
        elif reason := self._research_meter.stop_reason(now):
            await self.emit(events.LimitReached(reason))
        elif self._research_meter.used_share(now) >= NEAR_LIMIT_SHARE and not state.is_near_limit and state.synthesis is None:
            await self.emit(events.LimitNear())

    async def _make_plan(self) -> None:
        self.emit.delta(events.StatusDelta("planning"))
        seconds = self.meter.budget.max_seconds
        deadline = None if seconds is None else self.meter.started + seconds * PLANNING_TIME_SHARE
        context = replace(self.planning, deadline=deadline)
        if self.writes_from_parts and not self.recording.is_replay_only:  # a replay takes the plan from its log
            proposal = plan_by_parts(self.state.question, context)
        else:
            planning = plan_research(self.state.question, self.factory.coordinator_llm(), context)
            if isinstance(planned := await run_unless_stopped(planning, self.stop), StopReason):
                return  # the next step ends the run
            proposal = planned
        asked_at = self.clock.monotonic()
        agenda = await self._settle_plan(proposal)
        if agenda is None:
            raise ResearchError("the research was not started", cause="its plan was not approved", code="not_approved")
        waited_s = round(self.clock.monotonic() - asked_at, 3) if self.approve else 0.0
        for meter in (self.meter, self._research_meter):
            meter.extend(waited_s)
        await self.emit(events.AgendaSet(agenda.tasks, agenda.complexity, agenda.by, self.estimate(agenda), waited_s))

    async def _settle_plan(self, agenda: Agenda) -> Agenda | None:
        """Return the recorded agenda, or the one the user approves; a stop while the user decides rejects it."""
        if recorded := self.recording.agenda:
            return Agenda(recorded.tasks, recorded.complexity, recorded.by)
        if self.approve is None:
            return agenda
        asking = asyncio.ensure_future(self.approve(agenda))  # before the event, so that a listener can answer at once
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await self.emit(events.AgendaProposed(agenda.tasks, agenda.complexity, agenda.by, self.estimate(agenda)))
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            stopping.cancel()
            asking.cancel()

    def _launch_researchers(self, tasks: asyncio.TaskGroup) -> None:
        """Start a task for every running researcher that has none, also after a resume."""
        total = self._research_meter.budget
        # equal shares of the research budget, so that one researcher cannot starve the others
        planned = max(1, len(self.state.agenda), min(MAX_PARALLEL_RESEARCHERS, len(self.state.researchers)))
        tokens = None if total.max_tokens is None else max(1, total.max_tokens // planned)
        pages = None if total.max_pages is None else max(1, total.max_pages // planned)
        budget = Budget(max_iterations=MAX_RESEARCHER_ITERATIONS, max_tokens=tokens, max_pages=pages)
        for researcher in self.state.running_researchers:
            if researcher.id not in self._researcher_tasks:
                meter = self._research_meter.child(budget, started=self.clock.monotonic())
                work = self._build_task(researcher).run(self.factory, meter)
                self._researcher_meters[researcher.id] = meter
                self._researcher_tasks[researcher.id] = tasks.create_task(work, name=f"researcher {researcher.id}")
        running = self.state.running_researchers
        if total.max_tokens is None or not running:
            return
        # those that run may use what those before them have left of their shares
        share = (total.max_tokens - self._research_meter.usage.total) // len(running)
        for meter in (self._researcher_meters[r.id] for r in running):
            meter.budget = replace(meter.budget, max_tokens=max(meter.budget.max_tokens or 0, meter.usage.total + share))

    def _build_task(self, researcher: Researcher) -> ResearcherTask:
        # seconds by which this researcher started after the first running one, for a replay at the recorded pace
        offsets_s = {r.id: self.recording.for_agent(r.id).start_offset_s for r in self.state.running_researchers}
        return ResearcherTask(
            researcher,
            self.state.question,
            self.shared,
            lambda: self.state.reported_researchers,
            self.emit,
            self.recording.for_agent(researcher.id),
            self.planning,
            self.factory.coordinator_llm().max_context,
            offsets_s[researcher.id] - min(offsets_s.values()),
            self.concurrency,
        )

    async def _wait_for_researcher(self) -> None:
        """Wait until a researcher has ended or the run is stopped; a stopped researcher ends with what it has read."""
        running = [self._researcher_tasks[r.id] for r in self.state.running_researchers]
        if self.stop.is_set():
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _evaluate_round(self, step: EvaluateStep) -> None:
        self.emit.delta(events.StatusDelta("evaluating"))
        coordinator = self.factory.coordinator_llm()
        if coordinator.name == EXTRACTIVE:
            judgement = await self._judge_by_quotations(step)
        elif self.state.limit is StopReason.CANCELLED and not self._has_recorded_evaluation(coordinator, step):
            judgement = evaluator.judge_without_model(self.state, step)  # who stops a run does not wait for the model
        else:
            by_parts = self.writes_from_parts and not self._has_recorded_evaluation(coordinator, step)
            judging = self._judge_by_parts(step, coordinator) if by_parts else self._judge_by_model(step, coordinator)
            if isinstance(outcome := await run_unless_stopped(judging, self.stop), StopReason):
                return  # the next step has the limit
            judgement = outcome
        if judgement.decision == "synthesise" and judgement.by == "built-in":
            await self.emit(events.Warned("extractive", REPORT_ASSEMBLED))
        if judgement.reached_output_limit:
            cut = Notice("report.cut", "the report breaks off where it reached the output limit (--max-len)")
            await self.emit(events.Warned("cut", cut))
        await self.emit(events.RoundEvaluated(step.round, judgement.decision, judgement.tasks, judgement.text, judgement.by))

    async def _judge_by_model(self, step: EvaluateStep, coordinator: MeteredLLM) -> RoundJudgement:
        """Judge a round by the model: it delegates, or writes the report section by section, or in one call."""
        limits = self._evaluation_limits(coordinator)
        reason = self._find_one_call_reason(coordinator)
        if not self._has_recorded_evaluation(coordinator, step):
            has_own_prompt = limits.prompts_folder is not None and (limits.prompts_folder / "evaluator.md").is_file()
            limits = replace(limits, plans_sections=self.state.limit is None and not reason and not has_own_prompt)
        judgement = await evaluator.evaluate_round(self.state, step, coordinator, limits, self._stream_report)
        if judgement.decision == "outline":
            return await self._write_sections(step, judgement, coordinator)
        if judgement.decision == "synthesise" and judgement.by == "model" and reason and self.state.limit is None:
            one_call = Notice(
                "report.one_call", "the report was written in one call, not section by section: {reason}", reason=reason
            )
            await self.emit(events.Warned("one_call", one_call))
        return judgement

    def _evaluation_limits(self, coordinator: MeteredLLM) -> EvaluationLimits:
        window, folder, instructions = coordinator.max_context, self.planning.prompts_folder, self.planning.instructions
        budget_note = evaluator.describe_budget(self.state, names_limit=self.names_limit)
        most = min(self.max_output_tokens, window // 4)
        deadline = None if self.meter.deadline is None else self.meter.deadline + self.meter.grace(GRACE_S)
        return EvaluationLimits(window, most, budget_note, folder, deadline, words=self.words, instructions=instructions)

    def _has_recorded_evaluation(self, coordinator: MeteredLLM, step: EvaluateStep) -> bool:
        """Whether the log holds an evaluation that asked for the whole report, which is then repeated as it was."""
        messages = evaluator.build_messages(self.state, step.may_delegate, self._evaluation_limits(coordinator))
        return coordinator.has_recorded(messages)

    def _find_one_call_reason(self, coordinator: MeteredLLM) -> str:
        """Say why the report cannot be written section by section; "" where it can. Without a clock, so that it replays."""
        tokens_left = self.meter.tokens_left
        if not self.meter.can_make_calls(MIN_SECTION_CALLS) or (tokens_left is not None and tokens_left < MIN_SECTION_TOKENS):
            return Notice("report.small_budget", "the budget leaves too little for that")
        if coordinator.max_context < MIN_SECTION_WINDOW:
            return Notice("report.small_window", "the context window of the model is too small for that")
        return ""

    async def _judge_by_parts(self, step: EvaluateStep, coordinator: MeteredLLM) -> RoundJudgement:
        """Judge a round of a small model: the report quotes the pages part by part, and the model introduces it."""
        judgement = await self._judge_by_quotations(step)
        title, _, body = judgement.text.partition("\n\n")
        if judgement.decision != "synthesise" or self.state.limit is not None or "\n## " not in judgement.text:
            return judgement
        self.emit.delta(events.StatusDelta("writing the introduction"))
        draft = await write_introduction(self.state.question, body, coordinator, self._evaluation_limits(coordinator))
        introduction = await self.factory.build_report_checker().keep_supported(draft) if draft else ""
        text = f"{title}\n\n{introduction}\n\n{body}" if introduction else judgement.text
        return replace(judgement, text=text, by="model" if introduction else judgement.by)

    async def _write_sections(self, step: EvaluateStep, outline: RoundJudgement, coordinator: MeteredLLM) -> RoundJudgement:
        """Write the report section by section; without evidence for any of them, the reports themselves become a digest."""
        sections = outline.sections
        reports = [r.report for r in self.state.reported_researchers]
        findings = [list_findings(section, reports) for section in sections]
        evidence = await asyncio.to_thread(self.factory.find_evidence, sections, findings)
        writer = SectionWriter(
            self.state.question,
            sections,
            evidence,
            coordinator,
            self._evaluation_limits(coordinator),
            self.concurrency,
            reports,
            lambda text: self.emit.delta(events.StatusDelta(text)),
            outline.title,
            outline.gaps,
        )
        report = await writer.write_report()
        if not report.text or len(report.quoted) + len(report.missing) == len(sections):
            return evaluator.judge_without_model(self.state, EvaluateStep(step.round, may_delegate=False))
        if report.quoted:
            reason = report.reason or Notice("report.not_found", "what the model wrote was not found in the pages")
            quoted = Notice(
                "report.quoted",
                "passages of the pages stand in for these sections: {sections} ({reason})",
                sections="; ".join(report.quoted),
                reason=reason,
            )
            await self.emit(events.Warned("quoted_sections", quoted))
        return RoundJudgement("synthesise", text=report.text)

    async def _judge_by_quotations(self, step: EvaluateStep) -> RoundJudgement:
        """Judge a round of the built-in model; the report on a broad question quotes the pages part by part."""
        judgement = evaluator.judge_without_model(self.state, step, quoted=True)
        if judgement.decision != "synthesise":
            return judgement
        question = self.state.question
        headings = {part: make_heading(part) for part in split_question(question)}
        text = await asyncio.to_thread(self.factory.write_report, question, headings, make_title(question), self.words)
        return replace(judgement, text=text or judgement.text)

    def _stream_report(self, text: str) -> None:
        """Check and release a piece of the report while the model is still writing it."""
        if self._streamed_report is None and self._tasks:
            self._checker = self.factory.build_report_checker()
            self._streamed_report = StreamedAnswerCheck(self._checker.open_check(), self._tasks)
        if self._streamed_report:
            self._streamed_report.feed(text)

    async def _finish_report(self, step: FinishStep) -> Answer:
        """Check and release the rest of the report; streamed parts are already shown."""
        checker = self._checker or self.factory.build_report_checker()
        warn = checker.context.warn  # of what the report lacks, and why
        if limit := self.state.limit:
            reason = _LIMIT_DESCRIPTIONS[limit]
            partial = Notice("report.partial", "{reason}; the report uses what was found until then", reason=reason)
            await warn(limit.value, partial)
        for r in self.state.researchers:
            if r.status == "failed":
                failure = Notice("task.failed", "nothing was found out on: {task} ({reason})", task=r.task, reason=r.reason)
                await warn("not_researched", failure)
        if self.state.written_by == CUT_OFF:
            unfinished = Notice(
                "report.unfinished", "the model stopped writing before the report was complete; nexi resume asks it again"
            )
            await warn("cut", unfinished)
        for task in self.state.pending_tasks if limit else ():
            await warn("not_researched", Notice("task.not_researched", "not researched: {task}", task=task))
        stop = self.state.limit or StopReason.FINAL_ANSWER
        has_model = not (self.factory.coordinator_llm().name == EXTRACTIVE or self.writes_from_parts)
        if not self.state.limit and has_model and self.state.written_by != "model":
            stop = StopReason.API_ERROR  # so that the run can be resumed
        if self._streamed_report:
            return await checker.finish_check(self._streamed_report.check, stop)
        return await checker.check_answer(step.text, stop, by_model=self.state.written_by in MODEL_AUTHORS)

    def _build_failure(self, step: FailStep) -> NexiError:
        if self.state.limit is StopReason.CANCELLED:
            return StoppedError(STOPPED_UNREAD)
        if step.code == NoEvidenceError.code or self.state.limit:
            fix = step.fix or Notice("fix.search_service", "ask in other words, or check the search service: nexi doctor")
            if self.state.limit is StopReason.BUDGET_SPENT:
                fix = self.meter.advise_spent()
            elif self.state.limit:
                fix = _LIMIT_FIXES.get(self.state.limit, fix)
            return NoEvidenceError(Notice("report.none", "there is no report"), cause=step.message, fix=fix)
        fix = step.fix or Notice("fix.model_and_search", "check the model and the search service: nexi doctor")
        return ResearchError(Notice("research.failed", "the research failed"), cause=step.message, fix=fix, code=step.code)


REPORT_ASSEMBLED = Notice("report.assembled", "the report was assembled from the researchers' reports without a model")
_LIMIT_DESCRIPTIONS = {**LIMIT_DESCRIPTIONS, StopReason.CANCELLED: Notice("research.stopped", "the research was stopped")}
_LIMIT_FIXES = {
    StopReason.TIME_TARGET: Notice("fix.research_time", "raise --time-target"),
    StopReason.MAX_ITERATIONS: Notice("fix.research_iterations", "raise --max-iter"),
}
