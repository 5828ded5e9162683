"""RunComponents: the engine's pieces for one agent of a run, joined. The clients behind them are shared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import unquote

from msgspec.structs import replace

from nexi.agent import AgentLoop, AgentSettings, RunContext
from nexi.agent.context import RatePages
from nexi.agent.repeats import MAX_CALL_RUNS, RepeatedCalls
from nexi.app.environment import RunEnvironment
from nexi.app.extra_tools import build_extra_searchers, list_extra_specs
from nexi.app.factory import built_in_llm, rate_pages
from nexi.app.local import LocalBackend, LocalFetcher
from nexi.app.pages import long_page_limits
from nexi.app.pair_models import JUDGE, PASSAGES, RecordedPairModel, RunJudge
from nexi.budget import Meter
from nexi.checking.answer import Snapshots, Verifier
from nexi.checking.judge import Judge, PairJudge
from nexi.compaction import CompactionSettings
from nexi.config import Config, EndpointRole
from nexi.focus import FOCUSES
from nexi.knowledge.lookup import Lookup
from nexi.model import MeteredLLM
from nexi.ports import LLM, ContentFetcher, Emit, SearchBackend
from nexi.reader import Reader
from nexi.runs.recording import AgentReplay
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.token_counter import BYTES_PER_TOKEN
from nexi.tools.specs import LOCAL_SEARCH, SPECS
from nexi.tools.toolbox import MAX_SUMMARY_TOKENS, Toolbox
from nexi.types import Hit, Page, PageView

MAX_EXTRACT_BYTES = 60_000
EXTRACT_PROMPT_TOKENS = 500
MIN_SECRET_CHARS = 8  # anything shorter also occurs in ordinary text
FREE_FETCHERS = ("http",)  # reading ahead must cost nothing


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
