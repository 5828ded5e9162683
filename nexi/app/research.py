"""ResearchEngine: builds what `research.orchestrator` works with from the environment of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from nexi.agent import AgentLoop, AnswerChecker
from nexi.app.components import RunComponents, build_extra_searchers, list_extra_specs, usable_tools
from nexi.app.environment import RunEnvironment
from nexi.app.factory import built_in_llm, compare_texts, rate_pages
from nexi.app.resolve import estimate_research
from nexi.app.run import RunEngine
from nexi.budget import Budget, Meter
from nexi.events import Fact, PageFetched, RunResumed, SourceNumbered
from nexi.model import MeteredLLM
from nexi.ports import Emit
from nexi.reader import rebuild_page
from nexi.research.evaluator import Section
from nexi.research.orchestrator import Orchestrator
from nexi.research.planner import Agenda, PlanGate, PlanningContext, render_conversation, split_question
from nexi.research.researcher import LOCAL_SEARCH, ContextUsage, ResearchToolbox, SharedResearchContext, build_specs
from nexi.research.sections import LENGTHS, choose_evidence
from nexi.research.state import MAX_PARALLEL_RESEARCHERS, fold
from nexi.runs.session import Session
from nexi.tasks import catch_error, raise_error
from nexi.text.scope import plausible_day
from nexi.types import Answer, Answered, Message, PageView

TOKENS_PER_QUOTED_WORD = 2  # with its citation


class ResearchEngine(RunEngine):
    """Researchers in rounds, and a report. With `holds_plan` it waits at its `gate` until somebody settles the plan."""

    def __init__(self, environment: RunEnvironment) -> None:
        self.environment = environment
        self.gate = PlanGate() if environment.request.holds_plan else None
        self._facts: list[Fact] = list(environment.recorded.facts if environment.recorded.log else ())
        self._orchestrator: Orchestrator | None = None

    def observe(self, fact: Fact) -> None:
        if self._orchestrator:
            self._orchestrator.observe(fact)
        else:
            self._facts.append(fact)

    def settings(self) -> dict[str, Any]:
        parallel = {"seats": self.max_parallel} if self.max_parallel < MAX_PARALLEL_RESEARCHERS else {}
        names_limit = {"names_limit": True} if self.environment.recorded.has_setting("names_limit") else {}
        return {"tools": self.tools(), **parallel, **names_limit}

    def tools(self) -> list[str]:
        """The tools besides the web search that researchers are offered; a resumed run keeps its own."""
        environment = self.environment
        recorded = environment.recorded.settings.get("tools")
        searches_locally = environment.may_have_knowledge and not environment.is_local
        if isinstance(recorded, list):
            searches_locally = LOCAL_SEARCH.name in recorded
        return [*usable_tools(environment), *([LOCAL_SEARCH.name] if searches_locally else [])]

    @property
    def max_parallel(self) -> int:
        """How many researchers work at the same time; a resumed run goes on as it began."""
        recorded, resolved = self.environment.recorded, self.environment.resolved
        limit = recorded.settings.get("seats") if recorded.facts else resolved.max_parallel_researchers
        most = MAX_PARALLEL_RESEARCHERS
        return min(int(limit), most) if isinstance(limit, int) and limit > 0 else most

    def close_conversation(self, answer: Answer) -> None:
        """Leave the question and the report, so that a follow-up may refer to them and cite their sources."""
        self.environment.session.add_question(self.environment.question)
        self.environment.session.messages.append(Message("assistant", answer.text))

    async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
        environment = self.environment
        assembly = _ResearchAssembly(self, tasks, has_knowledge=await environment.has_knowledge())
        self._orchestrator = self._build(assembly)
        # the pages of researchers who have ended; those who still run meet theirs again one by one
        running = {researcher.id for researcher in self._orchestrator.state.running_researchers}
        recorded, store = environment.recorded, environment.ports.pages()
        for fact in recorded.facts if recorded.log else ():
            if isinstance(fact, PageFetched) and fact.agent not in running and (text := await store.get(fact.digest)):
                links = (await store.get(fact.links) or "") if fact.links else ""
                environment.session.add_page(fact.url, rebuild_page(fact, text, tuple(links.split())))
        outcome = await catch_error(self._orchestrator.run())
        await assembly.close(at_once=environment.stop.is_set())
        return raise_error(outcome)

    def _estimate(self, agenda: Agenda) -> str:
        """What a plan may come to; nothing where no model is paid."""
        config = self.environment.config
        if config.endpoint("answer").is_extractive:
            return ""
        return estimate_research(config, agenda.complexity, len(agenda.tasks)).describe()

    def _build(self, assembly: _ResearchAssembly) -> Orchestrator:
        environment, recorded = self.environment, self.environment.recorded
        config, depth, instructions = environment.config, environment.request.depth, environment.instructions
        before = render_conversation([m for m in environment.session.messages if m.role != "system"])
        words = LENGTHS.get(environment.request.length, 0)  # that the report should have; 0 leaves it to the evidence
        tokens = environment.request.limits.max_output_tokens
        if tokens and config.endpoint("answer").is_extractive:  # --max-len holds for the built-in model too
            most = max(1, tokens // TOKENS_PER_QUOTED_WORD)
            words = min(words or most, most)
        planning = PlanningContext(environment.today, depth, before, config.prompts_dir, instructions=instructions)
        orchestrator = Orchestrator(
            factory=assembly,
            emit=environment.emit,
            clock=environment.ports.clock,
            meter=environment.meter,
            stop=environment.stop,
            planning=planning,
            shared=assembly.shared,
            state=fold(f for f in self._facts if not isinstance(f, RunResumed)),
            recording=recorded.recording,
            approve=self.gate,
            names_limit=recorded.has_setting("names_limit"),
            estimate=self._estimate,
            concurrency=asyncio.Semaphore(self.max_parallel),
            max_output_tokens=tokens or config.max_output_tokens,
            words=words,
            writes_from_parts=environment.approach == "passages",
        )
        if recorded.run and not recorded.recording.is_replay_only:
            environment.meter.restore(*recorded.usage_so_far(agents=False))
            orchestrator.restore_usage(*recorded.usage_so_far(agents=True))
        return orchestrator


class _ResearchAssembly:
    """Builds the loops of one research run; the orchestrator's `Lead`."""

    def __init__(self, engine: ResearchEngine, tasks: asyncio.TaskGroup, *, has_knowledge: bool) -> None:
        self._engine, self._tasks, self._has_knowledge = engine, tasks, has_knowledge
        environment = self._environment = engine.environment
        self._indexer = environment.page_indexer(tasks)
        self._components: list[RunComponents] = []
        session, meter = environment.session, environment.meter
        session.pages = dict(session.pages)
        self.shared = SharedResearchContext(book=session.book, pages=session.pages, private=session.private)
        for fact in environment.recorded.facts if environment.recorded.log else ():
            if isinstance(fact, SourceNumbered):
                source = fact.source
                self.shared.book.number_for(source.url, source.title, source.digest, source.imprint)
        ledger = meter.child(Budget(), started=meter.started)  # recorded replies are already accounted for
        self._lead = self._build("", session, ledger, environment.emit, environment.question)

    def coordinator_llm(self) -> MeteredLLM:
        return self._lead.metered_llm("answer")

    def build_report_checker(self) -> AnswerChecker:
        context = self._lead.build_context(self._environment.stop, _rate_report)
        return AnswerChecker(context, self._lead.build_verifier(), drops_repeats=True)

    def write_report(self, question: str, headings: Mapping[str, str], title: str, words: int) -> str:
        from nexi.llm.extractive.report import write_report

        return write_report(question, headings, self._read_pages(), compare_texts, title=title, words=words)

    def find_evidence(self, sections: Sequence[Section], findings: Sequence[Sequence[str]]) -> list[list[PageView]]:
        return choose_evidence(sections, findings, self._read_pages())

    def _read_pages(self) -> list[PageView]:
        """The pages that were read, in the order of their numbers."""
        sources = {source.number: page for url, page in self.shared.pages.items() if (source := self.shared.book.find(url))}
        today = self._environment.ports.clock.now().date().isoformat()
        return [
            PageView(page.url, number, page.title, page.text, day=plausible_day(page.imprint), read_on=today)
            for number, page in sorted(sources.items())
        ]

    def build_researcher(
        self, agent: str, task: str, session: Session, meter: Meter, shared: SharedResearchContext, emit: Emit
    ) -> AgentLoop:
        self._lead.begin_judge_test()
        components = self._build(agent, session, meter, emit, task)
        context = components.build_context(self._environment.stop)
        replay, tools = self._environment.recorded.recording.for_agent(agent), self._engine.tools()
        others = dict(build_extra_searchers(self._environment.ports, tools, emit, replay))
        if LOCAL_SEARCH.name in tools:
            others[LOCAL_SEARCH.name] = components.local_searcher()
        attached, question, config = self._environment.attached, self._environment.question, self._environment.config
        plain, extra_specs = components.build_toolbox(built_in_llm()), list_extra_specs(config, others)
        about, counter = attached.about if attached else "", components.gate.counter
        own: dict[str, Any] = {
            "part_of": question if question != task else "",
            "specs": build_specs(extra_specs, has_local=LOCAL_SEARCH.name in others, about_local=about),
            "lookup": None,
            "researcher": agent,
            "pool": shared.link_pool,
            "extra_searchers": others,
            "context": ContextUsage(lambda: counter.upper_bound(session.messages) // 3, context.llm.max_context),
            "reads_passages": plain.chooses_passages and not config.endpoint("answer").is_extractive,
            "replay": components.replay,
        }
        toolbox = ResearchToolbox(**{**asdict(plain), **own})
        return AgentLoop(context, toolbox, built_in_llm)  # without a verifier: the report of the run is checked as a whole

    def _build(self, agent: str, session: Session, meter: Meter, emit: Emit, question: str) -> RunComponents:
        components = RunComponents(
            self._environment,
            self._tasks,
            question=question,
            session=session,
            meter=meter,
            emit=emit,
            replay=self._environment.recorded.recording.for_agent(agent),
            reads_ahead=False,  # researchers would fetch the same pages ahead, each on its own
            has_knowledge=self._has_knowledge,
            index_page=self._indexer.index_page,
        )
        self._components.append(components)
        return components

    async def close(self, *, at_once: bool) -> None:
        for components in self._components:
            components.cancel()
            await components.reader.report_prefetch()
        await self._indexer.close(at_once=at_once)


def _rate_report(question: str, pages: Sequence[PageView], earlier: str = "") -> Answered:
    """Whether pages answer the parts of a question: all of them, some, or none; where none, its words as a whole decide."""
    ratings = {rate_pages(part, pages, earlier) for part in split_question(question)}
    if "depends" in ratings:
        return "depends"
    if ratings == {"no"}:
        return rate_pages(question, pages, earlier)
    return ratings.pop() if len(ratings) == 1 else "likely"
