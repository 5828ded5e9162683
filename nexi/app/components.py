"""RunComponents: the engine's pieces for one agent of a run, joined, and SearchEngine, which answers with one agent.

The clients behind them are shared. The extra tools are those besides the web search; a resumed run keeps its own. One page
outside a run goes along the same fetch chain, past the same guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from nexi.agent import AgentLoop, AgentSettings, RunContext
from nexi.agent.context import RatePages
from nexi.agent.repeats import MAX_CALL_RUNS, RepeatedCalls
from nexi.app.emit import QuietEmit
from nexi.app.environment import RunEnvironment
from nexi.app.factory import PortFactory, built_in_llm, rate_pages
from nexi.app.knowledge import LocalBackend, LocalFetcher
from nexi.app.pair_models import JUDGE, PASSAGES, RecordedPairModel, RunJudge
from nexi.app.plugins import describe_tool
from nexi.app.run import RunEngine
from nexi.budget import Budget, Meter
from nexi.checking.answer import Snapshots, Verifier
from nexi.checking.judge import Judge, PairJudge
from nexi.compaction import CompactionSettings
from nexi.config import Config, EndpointRole, get_system_prompt
from nexi.errors import FetchError
from nexi.focus import FOCUSES
from nexi.knowledge.lookup import Lookup
from nexi.model import MeteredLLM
from nexi.ports import LLM, ContentFetcher, Emit, SearchBackend
from nexi.reader import Reader
from nexi.runs.directory import MemoryPages
from nexi.runs.recording import AgentReplay
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.tasks import catch_error, raise_error, run_in_group
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.tools.specs import BACKENDS_OF_TOOLS, EXTRA_SPECS, LOCAL_SEARCH, SPECS, build_spec
from nexi.tools.toolbox import MAX_SUMMARY_TOKENS, Toolbox
from nexi.types import Answer, FetchLimits, Hit, Page, PageView, ToolSpec
from nexi.urls import is_web_url

MAX_EXTRACT_BYTES = 60_000
MAX_LONG_PAGE_BYTES = 16_000_000
MAX_LONG_PAGE_CHARS = 8_000_000  # of a page that is read by its passages
EXTRACT_PROMPT_TOKENS = 500
MIN_SECRET_CHARS = 8  # anything shorter also occurs in ordinary text
FREE_FETCHERS = ("http",)  # reading ahead must cost nothing


def usable_tools(environment: RunEnvironment) -> list[str]:
    """Every extra tool that can be used here; a resumed run keeps its own."""
    config = environment.config
    if environment.recorded.facts:
        names, backends = environment.recorded.settings.get("tools"), _list_backends(config)
        return [name for name in names if name in backends] if isinstance(names, list) else []
    backends_allowed = {*config.search_chain(), *config.service_names(), "ripgrep"} if environment.request.services else None
    calls_tools = not config.endpoint("answer").is_extractive
    backends = {tool: name for tool, name in _list_backends(config).items() if calls_tools or name not in config.tools}
    usable = ((tool, name) for tool, name in backends.items() if environment.ports.can_use_extra(name))
    return [tool for tool, name in usable if backends_allowed is None or name in backends_allowed]


def _wanted_tools(environment: RunEnvironment) -> list[str]:
    """The extra tools of an ordinary search: those that are set up, for a model that chooses among tools itself."""
    if environment.recorded.facts:
        return usable_tools(environment)
    config = environment.config
    if environment.is_small_model or environment.approach == "passages" or config.endpoint("answer").is_extractive:
        return []
    names, backends = {*config.search_chain(), "ripgrep", *config.tools}, _list_backends(config)
    return [tool for tool in usable_tools(environment) if backends[tool] in names or config.keys_for(backends[tool])]


def list_extra_specs(config: Config, tools: Iterable[str]) -> tuple[ToolSpec, ...]:
    """What a model is told of these tools; of the user's own, what their files say."""
    backends = _list_backends(config)
    return tuple(
        EXTRA_SPECS.get(tool) or build_spec(tool, describe_tool(config, backends[tool])) for tool in tools if tool in backends
    )


def build_extra_searchers(ports: PortFactory, tools: Iterable[str], emit: Emit, replay: AgentReplay) -> Mapping[str, Searcher]:
    """A searcher over the one backend of each tool; over none where a tool is only remembered."""
    backends = _list_backends(ports.config)

    def build(name: str) -> Searcher:
        return Searcher(lambda: list(filter(None, [ports.extra_backend(name)])), emit=emit, clock=ports.clock, replay=replay)

    return {tool: build(backends[tool]) for tool in tools if tool in backends}


def _list_backends(config: Config) -> dict[str, str]:
    """The backend of each tool; one of the user has the name of its file."""
    return {**BACKENDS_OF_TOOLS, **{name.replace("-", "_"): name for name in config.tools}}


class RunComponents:
    """The loop, toolbox, reader and verifier of one agent of a run; a researcher has a session, meter and emit of its own."""

    def __init__(
        self,
        environment: RunEnvironment,
        tasks: asyncio.TaskGroup,
        *,
        question: str = "",
        session: Session | None = None,
        meter: Meter | None = None,
        emit: Emit | None = None,
        replay: AgentReplay | None = None,
        reads_ahead: bool = True,
        has_knowledge: bool = False,
        index_page: Callable[[Page], object] | None = None,
        pages_before: Callable[[str], Awaitable[tuple[Hit, ...]]] | None = None,
        extra_tools: Sequence[str] = (),
    ) -> None:
        """`pages_before` names the pages from which the same question was answered earlier."""
        ports = environment.ports
        self.environment, self.ports, self.request = environment, ports, environment.request
        self.question, self.session = question or environment.question, session or environment.session
        self.meter, self.emit = meter or environment.meter, emit or environment.emit
        self.gate = environment.gate(meter=self.meter, emit=self.emit, replay=replay)
        self.replay = self.gate.replay
        self.has_knowledge, self._pages_before, self._tasks = has_knowledge, pages_before, tasks
        self._judge: RunJudge | None = None
        self._extra_searchers = build_extra_searchers(ports, extra_tools, self.emit, self.replay)
        self.reader = Reader(
            self._fetchers,
            limits=long_page_limits(ports.config.fetch_timeout),
            session=self.session,
            meter=self.meter,
            store=ports.pages(),
            emit=self.emit,
            clock=ports.clock,
            tasks=tasks,
            ahead=lambda fetcher: reads_ahead and ports.config.prefetch and fetcher.name in FREE_FETCHERS,
            replay=self.replay,
            keep=index_page,
            find_record=None if ports.is_offline else ports.find_paper,
        )

    def _fetchers(self) -> tuple[ContentFetcher, ...]:
        """Stored pages and files of the project are read where they lie; a local question reads no others."""
        chain = self.ports.fetchers()
        if root := self.ports.config.grep_root:
            from nexi.fetchers.code import CodeFetcher

            chain = (CodeFetcher(root, self.ports.clock), *chain)
        if not self.has_knowledge:
            return chain
        only = None if self.request.is_local else self.session.stored_urls
        return (LocalFetcher(self.environment.knowledge, only), *chain)

    def _in_focus(self) -> tuple[SearchBackend, ...]:
        """The chain; under a focus first who keeps it, then the service that knows nothing else, then the others."""
        chain, focus = self.ports.backends(), FOCUSES.get(self.request.query.focus)
        name = focus.backend if focus else ""
        is_allowed = name and not self.request.services and name not in {b.name for b in chain}
        own = self.ports.extra_backend(name) if is_allowed else None
        keep = [b for b in chain if "focus" in getattr(b, "filters", ())]
        return (*keep, own, *(b for b in chain if b not in keep)) if own else chain

    def local_searcher(self) -> Searcher:
        """A searcher over what is known alone."""
        about = self.environment.has_own_files
        backends = [LocalBackend(self.environment.knowledge, self.gate, is_about_question=about)] if self.has_knowledge else []
        return Searcher(lambda: backends, emit=self.emit, clock=self.ports.clock, replay=self.replay)

    def metered_llm(self, role: EndpointRole) -> MeteredLLM:
        # The built-in model reads typed results and has no window; compacting them would only make it search again.
        is_extractive = self.ports.config.endpoint(role).is_extractive
        return self.gate.open_llm(role, has_window=not is_extractive or not self.environment.chooses_passages)

    def build_toolbox(self, extractor: LLM) -> Toolbox:
        config, is_local, lookup = self.ports.config, self.request.is_local, None
        if self.has_knowledge and not is_local:
            lookup = Lookup(
                self.local_searcher(),
                question=self.question,
                emit=self.emit,
                template=self.request.query,
                before=self._pages_before,
                is_about_question=self.environment.looks_up_first,
            )
        local_spec = LOCAL_SEARCH
        if self.environment.attached and (about := self.environment.attached.about):
            local_spec = replace(LOCAL_SEARCH, description=f"{about} {LOCAL_SEARCH.description}")
        # what the extract model can take in of a page beside its instructions and its summary
        window = config.endpoint("extract").max_context
        room = max(1000, window - MAX_SUMMARY_TOKENS - EXTRACT_PROMPT_TOKENS) * BYTES_PER_TOKEN
        searcher = self.local_searcher() if is_local else self.ports.searcher(self.emit, self.replay, backends=self._in_focus)
        return Toolbox(
            session=self.session,
            searcher=searcher,
            reader=self.reader,
            extractor=extractor,
            emit=self.emit,
            clock=self.ports.clock,
            question=self.question,
            free_bytes=self._page_text_room,
            query_template=self.request.query,
            prompts_folder=config.prompts_dir,
            secrets=secrets_of(config),
            deadline=self.meter.deadline,
            extract_bytes=min(MAX_EXTRACT_BYTES, room),
            specs=((local_spec,) if lookup else ()) + list_extra_specs(config, self._extra_searchers) + SPECS,
            extra_searchers=self._extra_searchers,
            lookup=lookup,
            chooses_passages=self.environment.chooses_passages,
        )

    def build_verifier(self) -> Verifier:
        """How the answer is checked; the built-in model quotes, so it has nothing to rewrite."""
        snapshots, rewrites = Snapshots(self.session, self.ports.pages()), not self.gate.is_built_in("answer")
        is_strict = self.ports.config.strict
        return Verifier(snapshots, is_strict, rewrites, self._open_judge, self.begin_judge_test, self.question)

    def begin_judge_test(self) -> None:
        """Have a new judge tested while the run searches."""
        self._open_judge(by_model=not self.gate.is_built_in("answer"))
        if self._judge:
            self._judge.begin_test(self._tasks)

    def cancel(self) -> None:
        """End what works ahead of the run."""
        self.reader.cancel()
        if self._judge:
            self._judge.cancel_test()

    def _open_judge(self, by_model: bool) -> Judge | None:
        """Who says whether passages support a sentence: the judge as far as its test allows, else the installed model."""
        if not self.ports.config.verify_judge:
            return None
        config, replay, is_replay = self.ports.config, self.replay, self.replay.is_replay_only
        local = None if is_replay else self.ports.local_model().pair_model()
        if local or replay.find_judgement(PASSAGES):
            local = RecordedPairModel(local, replay, self.emit)
        stand_in = PairJudge(local) if local else None
        is_small = self.environment.approach == "passages"
        by_model = by_model or is_small
        knows_more = not is_small or config.endpoint(JUDGE).model != config.endpoint("answer").model
        is_asked = bool(replay.find_judgement(JUDGE)) if is_replay else not config.endpoint(JUDGE).is_extractive
        if not (by_model and knows_more and is_asked):
            return stand_in  # also for quotations: it costs nothing
        if self._judge is None:
            self._judge = RunJudge(config, self.metered_llm(JUDGE))
        return self._judge.open(stand_in)

    def build_loop(self, stop: asyncio.Event) -> AgentLoop:
        toolbox = self.build_toolbox(built_in_llm() if self.environment.is_small_model else self.metered_llm("extract"))
        is_asked = toolbox.lookup is not None and not self.gate.is_built_in("answer")  # which looks there first by itself
        looks_up_first = self.environment.looks_up_first and is_asked
        return AgentLoop(self.build_context(stop), toolbox, built_in_llm, self.build_verifier(), looks_up_first=looks_up_first)

    def build_context(self, stop: asyncio.Event, rate: RatePages = rate_pages) -> RunContext:
        config, answering = self.ports.config, self.metered_llm("answer")
        settings = AgentSettings(
            self.request.limits.max_output_tokens or config.max_output_tokens,
            CompactionSettings(
                answering.max_context,
                config.auto_compact_thresh,
                config.compact_target_words,
                config.preserve_last_n_messages,
                config.tokenizer_encoding,
                config.prompts_dir,
            ),
            config.prompts_dir,
            final_answer_s=config.llm_timeout,
            approach=self.environment.approach,
            archives_results=self.environment.is_small_model,
        )
        return RunContext(
            question=self.question,
            llm=answering,
            session=self.session,
            meter=self.meter,
            emit=self.emit,
            rate_pages=rate,
            choose_passages=_choose_passages,
            adds_answer=_adds_answer,
            has_own_files=self.environment.has_own_files,
            clock=self.ports.clock,
            counter=self.gate.counter,
            settings=settings,
            stop=stop,
            repeats=RepeatedCalls(MAX_CALL_RUNS if self.environment.chooses_passages else None),
        )

    def _page_text_room(self) -> int:
        """Bytes of page text that fit beside the conversation, or that would fit once it is compacted."""
        config = self.ports.config
        window = int(config.endpoint("answer").max_context * config.auto_compact_thresh)
        used = self.gate.counter.upper_bound(self.session.messages) // BYTES_PER_TOKEN
        free = window - used - min(config.max_output_tokens, window // 4)
        return max(free, window // 3) * BYTES_PER_TOKEN


def _choose_passages(question: str, pages: Sequence[PageView]) -> str:
    from nexi.llm.extractive.guidance import choose_passages  # with the first page, as in `rate_pages`

    return choose_passages(question, pages)


def _adds_answer(question: str, text: str, quotation: str, titles: str) -> bool:
    from nexi.llm.extractive.guidance import adds_answer

    return adds_answer(question, text, quotation, titles)


def secrets_of(config: Config) -> tuple[str, ...]:
    """Every key of a config, whatever it is for, and every password in one of its addresses."""
    keys = [k for role in ("answer", "extract", "judge") for k in config.endpoint(role).api_keys]
    keys += [k for name in (*config.api_keys, *config.origin.env_keys, "jina") for k in config.keys_for(name)]
    addresses = [config.searxng_url, config.qdrant_url, config.embedding_base_url, config.http_proxy, config.https_proxy]
    addresses += [config.endpoint(role).base_url for role in ("answer", "extract", "judge")]
    for address in addresses:
        user, _, place = address.rpartition("@")
        password = user.rpartition("//")[2].partition(":")[2] if place else ""
        keys += [password, unquote(password)]  # as it is written, and as it is meant
    return tuple({k for k in (*keys, config.token) if len(k) >= MIN_SECRET_CHARS})


class SearchEngine(RunEngine):
    """Answers with the agent's loop over the session of its run, into which the loop writes its turns."""

    def __init__(self, environment: RunEnvironment) -> None:
        self._environment = environment

    def settings(self) -> dict[str, Any]:
        tools = _wanted_tools(self._environment)
        return {"tools": tools} if tools else {}

    def open_conversation(self) -> None:
        environment, request = self._environment, self._environment.request
        config, own = environment.config, request.system_prompt
        config = config.override(system_prompt=own) if own else config
        prompt = get_system_prompt(request.effort, request.limits.max_iterations, today=environment.today, config=config)
        environment.session.set_instructions(prompt + environment.instructions)
        environment.session.add_question(environment.question)

    async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
        environment = self._environment
        indexer = environment.page_indexer(tasks)
        components = RunComponents(
            environment,
            tasks,
            has_knowledge=await environment.has_knowledge(),
            index_page=indexer.index_page,
            pages_before=environment.pages_answered_before,
            extra_tools=_wanted_tools(environment),
        )
        outcome = await catch_error(components.build_loop(environment.stop).run())
        components.cancel()
        await components.reader.report_prefetch()
        await indexer.close(at_once=environment.stop.is_set())
        return raise_error(outcome)


def long_page_limits(timeout_s: float) -> FetchLimits:
    """What a page may cost where a question chooses what is read of it."""
    return FetchLimits(max_bytes=MAX_LONG_PAGE_BYTES, max_chars=MAX_LONG_PAGE_CHARS, timeout_s=timeout_s)


async def read_page(
    ports: PortFactory,
    url: str,
    limits: FetchLimits | None = None,
    *,
    emit: Emit | None = None,
    fetchers: Callable[[], Sequence[ContentFetcher]] | None = None,
) -> Page:
    """One page for a caller who vouches for its URL. Without `limits` it is read whole, as far as a long page is. Raises
    FetchError."""
    if not is_web_url(url):
        fix = "write it in full, like https://example.com/page"
        raise FetchError(f"{url[:200]!r} is not the address of a web page", reason="blocked", fix=fix)

    async def read(tasks: asyncio.TaskGroup) -> Page:
        reader = Reader(
            fetchers or ports.fetchers,
            limits=limits or long_page_limits(ports.config.fetch_timeout),
            session=Session(),
            meter=Meter(Budget(), started=ports.clock.monotonic()),
            store=MemoryPages(),
            emit=emit or QuietEmit(),
            clock=ports.clock,
            tasks=tasks,
        )
        return await reader.read(url)

    return await run_in_group(read)
