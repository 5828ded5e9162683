"""Parts: the engine's pieces for one run, joined. Built anew for every run; the clients behind them are shared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from nexi.agent import AgentLoop, AgentSettings, AnswerChecker, RunContext
from nexi.app.clients import Clients, built_in
from nexi.app.options import SearchOptions
from nexi.budget import Meter
from nexi.compaction import CompactionSettings
from nexi.config import EXTRACTIVE, Config
from nexi.focus import FOCUSES
from nexi.model import CallCounter, MeteredLLM
from nexi.ports import LLM, ContentFetcher, Emit, PairModel, SearchBackend
from nexi.reader import Reader
from nexi.runs.recording import Track
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.token_counter import BYTES_PER_TOKEN, TokenCounter
from nexi.tools.specs import LOCAL_SEARCH, SPECS
from nexi.tools.summaries import SUMMARY_TOKENS
from nexi.tools.toolbox import Toolbox
from nexi.types import FetchLimits, Hit, Page, ToolCall, ToolSpec
from nexi.verify import Snapshots, Verifier

if TYPE_CHECKING:
    from nexi.app.knowledge import Knowledge
    from nexi.config import EndpointRole
    from nexi.knowledge.lookup import Lookup

MOST_EXTRACT_BYTES = 60_000
EXTRACT_PROMPT_TOKENS = 500
LEAST_SECRET = 8  # what is shorter stands in ordinary text too
FREE_FETCHERS = ("http",)  # reading ahead must cost nobody anything


class Parts:
    """The engine's parts for one run."""

    def __init__(
        self,
        nexi: Clients,
        session: Session,
        meter: Meter,
        emit: Emit,
        tasks: asyncio.TaskGroup,
        question: str,
        options: SearchOptions,
        *,
        track: Track | None = None,
        calls: CallCounter | None = None,
        ahead: bool = True,
        knows: bool = False,
        keep: Callable[[Page], object] | None = None,
        before: Callable[[str], Awaitable[tuple[Hit, ...]]] | None = None,
    ) -> None:
        """`knows` says that the store holds something to look into, `before` from which pages of it the same question was
        answered; `keep` takes pages for it."""
        self.nexi, self.session, self.meter, self.emit = nexi, session, meter, emit
        self.question, self.options = question, options
        self.counter = TokenCounter(nexi.config.tokenizer_encoding)
        self.calls = calls or CallCounter()
        self.track = track or Track()
        self.knows = knows
        self._before = before
        self.reader = Reader(
            self._fetchers,
            limits=FetchLimits(timeout_s=nexi.config.fetch_timeout),
            session=session,
            meter=meter,
            store=nexi.pages(),
            emit=emit,
            clock=nexi.clock,
            tasks=tasks,
            ahead=lambda fetcher: ahead and nexi.config.prefetch and fetcher.name in FREE_FETCHERS,
            track=self.track,
            keep=keep,
        )

    def _fetchers(self) -> tuple[ContentFetcher, ...]:
        """What is stored is read from the store, before and, where only that is wanted, instead of the web."""
        if not self.knows:
            return self.nexi.fetchers()
        from nexi.app.local import LocalFetcher

        only = self.options.only_local
        stored = LocalFetcher(self.knowledge, None if only else self.session.stored)
        return (stored,) if only else (stored, *self.nexi.fetchers())

    @property
    def knowledge(self) -> Knowledge:
        return self.options.shelf or self.nexi.knowledge()

    def _searcher(self) -> Searcher:
        if not self.options.only_local:
            return self.nexi.searcher(self.emit, self.track, backends=self._in_focus)
        return self.local_searcher()

    def _in_focus(self) -> tuple[SearchBackend, ...]:
        """The chain; under a focus first who keeps it, then the service that knows nothing else, then the others."""
        chain, focus = self.nexi.backends(), FOCUSES.get(self.options.query.focus)
        named = focus.backend if focus else ""
        own = self.nexi.extra_backend(named) if named and named not in {b.name for b in chain} else None
        keep = [b for b in chain if "focus" in getattr(b, "filters", ())]
        return (*keep, own, *(b for b in chain if b not in keep)) if own else chain

    def local_searcher(self) -> Searcher:
        """A searcher over what is known alone."""
        from nexi.app.local import LocalBackend

        backends = (LocalBackend(self.knowledge, self.emit),) if self.knows else ()
        return Searcher(lambda: backends, emit=self.emit, clock=self.nexi.clock, track=self.track)

    def _lookup(self) -> Lookup | None:
        if not self.knows or self.options.only_local:
            return None
        from nexi.knowledge.lookup import Lookup

        return Lookup(
            self.local_searcher(), question=self.question, emit=self.emit, template=self.options.query, before=self._before
        )

    def metered(self, role: EndpointRole) -> MeteredLLM:
        nexi = self.nexi
        window = nexi.config.endpoint(role).max_context
        return MeteredLLM(nexi.llm(role), role, self.meter, self.emit, nexi.clock, self.counter, window, self.calls, self.track)

    def toolbox(self, extractor: LLM) -> Toolbox:
        config, lookup = self.nexi.config, self._lookup()
        return Toolbox(
            session=self.session,
            searcher=self._searcher(),
            reader=self.reader,
            extractor=extractor,
            emit=self.emit,
            clock=self.nexi.clock,
            question=self.question,
            room=self._room,
            query_template=self.options.query,
            prompts_folder=config.prompts_dir,
            secrets=secrets_of(config),
            deadline=self.meter.deadline,
            extract_bytes=self._extract_bytes(),
            specs=(self._local_spec(), *SPECS) if lookup else SPECS,
            lookup=lookup,
        )

    def _local_spec(self) -> ToolSpec:
        about = self.options.shelf.about if self.options.shelf else ""
        return replace(LOCAL_SEARCH, description=f"{about} {LOCAL_SEARCH.description}") if about else LOCAL_SEARCH

    def verifier(self) -> Verifier:
        """How the answer is checked; the built-in model quotes, so it has nothing to mend."""
        mends = self.nexi.llm("answer").name != EXTRACTIVE
        return Verifier(Snapshots(self.session, self.nexi.pages()), strict=self.nexi.config.strict, mends=mends)

    def pair_model(self) -> PairModel | None:
        """What says whether passages support a sentence: the installed model, then the judge, each as far as it is tested."""
        from nexi.app.pair_models import RunJudge, joined_models

        llm = self.judge()
        judge = RunJudge(self.nexi.config, llm, self.nexi.clock).pair_model() if llm else None
        return joined_models(self.nexi.local_model().pair_model(), judge)

    def judge(self) -> MeteredLLM | None:
        """The model that may lower verdicts, where one is wished for and there is one."""
        config = self.nexi.config
        wanted = config.verify_judge and not config.endpoint("judge").is_extractive
        return self.metered("judge") if wanted else None

    def loop(self, stop: asyncio.Event) -> AgentLoop:
        toolbox = self.toolbox(self.metered("extract"))
        return AgentLoop(self.context(stop), toolbox, built_in, self.verifier(), self.judge())

    def answer_checker(self, stop: asyncio.Event) -> AnswerChecker:
        """How a text that was written elsewhere is checked and released."""
        return AnswerChecker(self.context(stop), self.verifier(), self.judge())

    def context(self, stop: asyncio.Event) -> RunContext:
        answering = self.metered("answer")
        return RunContext(
            question=self.question,
            llm=answering,
            session=self.session,
            meter=self.meter,
            emit=self.emit,
            clock=self.nexi.clock,
            counter=self.counter,
            settings=self._agent_settings(answering.max_context),
            stop=stop,
        )

    def _agent_settings(self, window: int) -> AgentSettings:
        config = self.nexi.config
        compaction = CompactionSettings(
            window,
            config.auto_compact_thresh,
            config.compact_target_words,
            config.preserve_last_n_messages,
            config.tokenizer_encoding,
            config.prompts_dir,
        )
        return AgentSettings(self.options.max_output_tokens or config.max_output_tokens, compaction, config.prompts_dir)

    def urls_of(self, call: ToolCall) -> list[str]:
        from nexi.tools.specs import WEB_GET, read_arguments

        return list(read_arguments(call, WEB_GET)[0].get("urls", ())) if call.name == WEB_GET.name else []

    def _extract_bytes(self) -> int:
        """Bytes of a page that the extract model can take in beside its instructions and its summary."""
        window = self.nexi.config.endpoint("extract").max_context
        return min(MOST_EXTRACT_BYTES, max(1000, window - SUMMARY_TOKENS - EXTRACT_PROMPT_TOKENS) * BYTES_PER_TOKEN)

    def _room(self) -> int:
        """Bytes of page text that fit beside the conversation, or that would fit once it is compacted."""
        config = self.nexi.config
        window = int(config.endpoint("answer").max_context * config.auto_compact_thresh)
        used = self.counter.upper_bound(self.session.messages) // BYTES_PER_TOKEN
        free = window - used - min(config.max_output_tokens, window // 4)
        return max(free, window // 3) * BYTES_PER_TOKEN


def secrets_of(config: Config) -> tuple[str, ...]:
    """Every key of a config, whatever it is for, and every password in one of its addresses."""
    keys = [k for role in ("answer", "extract", "judge") for k in config.endpoint(role).api_keys]
    keys += [k for name in (*config.api_keys, *config.origin.env_keys, "jina") for k in config.keys_for(name)]
    addresses = [config.searxng_url, config.qdrant_url, config.embedding_base_url, config.http_proxy, config.https_proxy]
    addresses += [config.endpoint(role).base_url for role in ("answer", "extract", "judge")]
    keys += [password for address in addresses for password in passwords_in(address)]
    return tuple({k for k in (*keys, config.token) if len(k) >= LEAST_SECRET})


def passwords_in(address: str) -> tuple[str, ...]:
    """As it is written, and as it is meant."""
    user, _, place = address.rpartition("@")
    password = user.rpartition("//")[2].partition(":")[2] if place else ""
    return (password, unquote(password)) if password else ()
