"""ResearchRun: a deep question as a run like any other, with researchers instead of one conversation.

The engine is `research.orchestrator`; this file builds what it works with from the clients of one config. Everything a run is,
its log, its budget, its way to stop, comes from `run`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexi.agent import AgentLoop, AnswerChecker
from nexi.app.clients import Clients, built_in
from nexi.app.kept import KeptPages
from nexi.app.options import SearchOptions
from nexi.app.parts import Parts
from nexi.app.past import Past
from nexi.app.run import Run
from nexi.budget import Budget, Meter
from nexi.errors import NexiError
from nexi.events import Event, PageFetched, RunResumed, SourceNumbered, is_fact
from nexi.model import CallCounter, MeteredLLM
from nexi.ports import Emit, SearchBackend
from nexi.reader import rebuilt
from nexi.research.estimate import estimate_cost
from nexi.research.gate import PlanGate
from nexi.research.orchestrator import Orchestrator, PlanApproval
from nexi.research.planner import Agenda, PlanningContext, render_conversation
from nexi.research.reducer import fold
from nexi.research.researcher import SharedResearchContext
from nexi.research.state import MAX_PARALLEL_RESEARCHERS, ResearchState
from nexi.research.tools import LOCAL_SEARCH, ContextUsage, ResearchToolbox, build_specs
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.types import Answer, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTRA_TOOLS = {"security_search": "security", "stackexchange": "stackexchange", "grep": "ripgrep"}
LOCAL_TOOLS = ("grep",)  # those that ask nobody elsewhere


class ResearchRun(Run):
    """One piece of research under way. `state` is what the reducer makes of its facts, for every door the same.

    A run that is `held` has a `gate`: it waits there with its plan until somebody settles or refuses it.
    """

    mode = "research"

    def __init__(
        self,
        nexi: Clients,
        question: str,
        options: SearchOptions,
        session: Session,
        past: Past | None = None,
        *,
        depth: int = 0,
        approve: PlanApproval | None = None,
        held: bool = False,
    ) -> None:
        super().__init__(nexi, question, options, session, past)
        self.depth = depth
        self.gate = PlanGate() if held else None
        self._approve = approve or self.gate
        self._orchestrator: Orchestrator | None = None

    @property
    def state(self) -> ResearchState:
        return self._orchestrator.state if self._orchestrator else fold(self.facts)

    def _publish(self, event: Event) -> None:
        if self._orchestrator and is_fact(event):
            self._orchestrator.observe(event)
        super()._publish(event)

    def _settings(self) -> dict[str, Any]:
        held = {"held": True} if self.gate else {}
        seats = {"seats": self.seats} if self.seats < MAX_PARALLEL_RESEARCHERS else {}
        return {**super()._settings(), "depth": self.depth, "tools": self.tools(), **held, **seats}

    def tools(self) -> list[str]:
        """The tools besides the web search that researchers are offered; a run that began before keeps its own."""
        told = self.past.settings.get("tools")
        if isinstance(told, list):
            return [name for name in told if name in EXTRA_TOOLS or name == LOCAL_SEARCH.name]
        if self.options.only_local:
            return [tool for tool in LOCAL_TOOLS if self.nexi.extra_backend(EXTRA_TOOLS[tool])]
        local = [LOCAL_SEARCH.name] if self._may_know() else []
        return [tool for tool, backend in EXTRA_TOOLS.items() if self.nexi.extra_backend(backend)] + local

    @property
    def seats(self) -> int:
        """How many researchers work at the same time; a run that began before goes on as it was."""
        told = self.past.settings.get("seats") if self.past.facts else self.options.seats
        return min(int(told), MAX_PARALLEL_RESEARCHERS) if isinstance(told, int) and told > 0 else MAX_PARALLEL_RESEARCHERS

    def _open_conversation(self) -> None:
        return None  # every researcher has a conversation of its own

    async def _finish(self, answer: Answer) -> None:
        """What is asked next may refer to the report and cite its sources."""
        self.session.ask(self.question)
        self.session.messages.append(Message("assistant", answer.text))
        await super()._finish(answer)

    def _budget(self) -> Budget:
        return replace(super()._budget(), max_iterations=None)

    async def _engine(self) -> Answer:
        async with asyncio.TaskGroup() as tasks:
            watcher = tasks.create_task(self._watch_for_stop())
            knows = await self._knows()
            bench = Bench(self, tasks, self._keeping(tasks), knows=knows)
            self._orchestrator = self._build(bench)
            await bench.remember_pages(self._orchestrator.state)
            try:
                answer: Answer | NexiError = await self._orchestrator.run()
            except NexiError as error:
                answer = error  # carried past the task group, which would bundle it
            watcher.cancel()
            await bench.close(hurried=self.stopping.is_set())
        if isinstance(answer, NexiError):
            raise answer
        return answer

    def _estimated(self, agenda: Agenda) -> str:
        """What a plan may come to; nothing where no model is paid."""
        from nexi.llm.openai.prices import price_of, price_table

        config = self.nexi.config
        endpoint = config.endpoint("answer")
        if endpoint.is_extractive:
            return ""
        price = price_of(endpoint.model, price_table(config.prices))
        rates = (price.input, price.output) if price else None
        return estimate_cost(agenda.complexity, len(agenda.tasks), endpoint.max_context, rates).describe()

    def _build(self, bench: Bench) -> Orchestrator:
        config = self.nexi.config
        before = [m for m in self.session.messages if m.role != "system"]
        orchestrator = Orchestrator(
            factory=bench,
            emit=self.emit,
            clock=self.nexi.clock,
            meter=self.meter,
            stop=self.stopping,
            planning=PlanningContext(self.today, self.depth, render_conversation(before), config.prompts_dir),
            shared=bench.desk,
            state=fold(f for f in self.facts if not isinstance(f, RunResumed)),
            recording=self.past.recording,
            approve=self._approve,
            estimate=self._estimated,
            concurrency=asyncio.Semaphore(self.seats),
            max_output_tokens=self.options.max_output_tokens or config.max_output_tokens,
            prompts_folder=config.prompts_dir,
        )
        if self.past.run and not self.past.recording.only:
            self.meter.restore(*self.past.spent(agents=False))
            orchestrator.restore_usage(*self.past.spent(agents=True))
        return orchestrator


class Bench:
    """Builds the loops of one research run; the orchestrator's `Lead`."""

    def __init__(self, run: ResearchRun, tasks: asyncio.TaskGroup, kept: KeptPages, *, knows: bool) -> None:
        self._run = run
        self._tasks = tasks
        self._kept = kept
        self._knows = knows
        self._calls = CallCounter(run.past.calls)
        self._parts: list[Parts] = []
        run.session.pages = dict(run.session.pages)
        self.desk = SharedResearchContext(book=run.session.book, pages=run.session.pages)
        if run.past.log:
            self._remember_sources()
        ledger = run.meter.child(Budget(), started=run.meter.started)  # replies given out again are in the books already
        self._lead = self._made("", run.session, ledger, run.emit, run.question)

    def _remember_sources(self) -> None:
        for fact in self._run.past.facts:
            if isinstance(fact, SourceNumbered):
                source = fact.source
                self.desk.book.number_for(source.url, source.title, source.digest, source.imprint)

    async def remember_pages(self, state: ResearchState) -> None:
        """The pages of researchers who have ended; those who still run meet theirs again one by one."""
        run, running = self._run, {r.id for r in state.running}
        store = run.nexi.pages()
        for fact in run.past.facts if run.past.log else ():
            if isinstance(fact, PageFetched) and fact.agent not in running and (text := await store.get(fact.digest)):
                links = (await store.get(fact.links) or "") if fact.links else ""
                run.session.keep(fact.url, rebuilt(fact, text, tuple(links.split())))

    def coordinator_llm(self) -> MeteredLLM:
        return self._lead.metered("answer")

    def build_report_checker(self) -> AnswerChecker:
        return self._lead.answer_checker(self._run.stopping)

    def build_researcher(
        self, agent: str, task: str, session: Session, meter: Meter, shared: SharedResearchContext, emit: Emit
    ) -> AgentLoop:
        parts = self._made(agent, session, meter, emit, task)
        context = parts.context(self._run.stopping)
        others = self._others(emit, agent, parts)
        plain = parts.toolbox(built_in())
        toolbox = ResearchToolbox(
            **{name: getattr(plain, name) for name in _TOOLBOX_FIELDS},
            part_of=self._run.question if self._run.question != task else "",
            specs=build_specs(others, self._run.options.shelf.about if self._run.options.shelf else ""),
            researcher=agent,
            pool=shared.link_pool,
            extra_searchers=others,
            context=ContextUsage(lambda: parts.counter.upper_bound(session.messages) // 3, context.llm.max_context),
            track=parts.track,
        )
        return AgentLoop(context, toolbox, built_in)  # without a verifier: the report of the run is checked as a whole

    def _others(self, emit: Emit, agent: str, parts: Parts) -> Mapping[str, Searcher]:
        """A searcher over the one backend of each tool; over none where a tool is only remembered."""
        nexi, track = self._run.nexi, self._run.past.recording.of(agent)
        tools = self._run.tools()
        backends = {tool: nexi.extra_backend(EXTRA_TOOLS[tool]) for tool in tools if tool in EXTRA_TOOLS}
        others = {t: Searcher(_only(backend), emit=emit, clock=nexi.clock, track=track) for t, backend in backends.items()}
        return {**others, LOCAL_SEARCH.name: parts.local_searcher()} if LOCAL_SEARCH.name in tools else others

    def _made(self, agent: str, session: Session, meter: Meter, emit: Emit, question: str) -> Parts:
        run = self._run
        parts = Parts(
            run.nexi,
            session,
            meter,
            emit,
            self._tasks,
            question,
            run.options,
            track=run.past.recording.of(agent),
            calls=self._calls,
            ahead=False,  # colleagues would read the same pages ahead, each for itself
            knows=self._knows,
            keep=self._kept.keep,
        )
        self._parts.append(parts)
        return parts

    async def close(self, *, hurried: bool) -> None:
        for parts in self._parts:
            parts.reader.cancel()
            await parts.reader.report()
        await self._kept.close(hurried=hurried)


_TOOLBOX_FIELDS = (
    "session",
    "searcher",
    "reader",
    "extractor",
    "emit",
    "clock",
    "question",
    "room",
    "query_template",
    "prompts_folder",
    "secrets",
    "deadline",
    "extract_bytes",
)


def _only(backend: SearchBackend | None) -> Callable[[], tuple[SearchBackend, ...]]:
    return lambda: (backend,) if backend else ()
