"""Assembly: builds the ports from a Config, owns their clients, and runs searches.

Engines and adapters meet only here. Doors call `Nexi` and read events; they build nothing themselves.

    async with Nexi(config) as nexi, nexi.search("question") as run:
        async for event in run:
            ...
"""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nexi import __version__
from nexi.agent import Loop, LoopSettings
from nexi.budget import Budget, Meter
from nexi.config import EFFORT_LEVELS, Config, get_system_prompt
from nexi.errors import ConfigError, FetchError, InternalError, NexiError, QuestionError, StoreError
from nexi.events import TERMINAL, Delta, Event, Fact, RunFailed, RunFinished, RunStarted, SourceNumbered, Warned
from nexi.files import make_private_directory
from nexi.model import CallCounter, MeteredLLM
from nexi.plugins import FetchPlugin, SearchPlugin, takes_lists
from nexi.ports import LLM, Breaker, Clock, ContentFetcher, Emit, PageStore, RunLog, SearchBackend
from nexi.reader import Reader
from nexi.runlog import FilePages, MemoryPages, MemoryRunLog, RunDirectory
from nexi.searcher import Lanes, Searcher
from nexi.session import Session
from nexi.tasks import to_the_end
from nexi.token_counter import TokenCounter
from nexi.tools import SUMMARY_TOKENS, Toolbox
from nexi.types import (
    Answer,
    FetchLimits,
    Message,
    Page,
    PageView,
    Query,
    SearchOutcome,
    StopReason,
    ToolCall,
    ToolResult,
    content_digest,
)
from nexi.urls import host_of, is_web_url
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.backends import Settings as BackendSettings
    from nexi.backends.container import Options as ContainerOptions
    from nexi.config import EndpointRole
    from nexi.fetchers import Settings as FetcherSettings
    from nexi.fetchers.cache import PageCache

MAX_QUESTION_CHARS = 100_000
STOP_POLL_S = 0.5
MOST_EXTRACT_BYTES = 60_000
EXTRACT_PROMPT_TOKENS = 500
TIDY_EVERY_S = 24 * 3600
LOOPBACK = ("localhost", "127.0.0.1", "::1")
BUNDLED_ENCODINGS = ("cl100k_base", "o200k_base")
FREE_FETCHERS = ("http",)  # reading ahead must cost nobody anything
BYTES_PER_TOKEN = 3  # what page text costs at the least in practice; the exact count guards every request


class SystemClock:
    """The real time."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@frozen
class SearchOptions:
    """What one search may override; None and "" leave the config's word."""

    effort: str = ""
    max_iterations: int | None = None
    time_target: float | None = None
    max_output_tokens: int | None = None
    system_prompt: str = ""
    query: Query = Query("")


AS_CONFIGURED = SearchOptions()


@frozen
class RunResult:
    """A run that ended with an answer."""

    id: str
    answer: Answer
    finished: RunFinished
    facts: tuple[Fact, ...]
    session: Session


class Nexi:
    """Owns the clients of one config. Ports may be given instead of built, for tests and for embedding."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        llms: Mapping[str, LLM] | None = None,
        backends: Sequence[Any] | None = None,
        fetchers: Sequence[Any] | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self._llms: dict[str, LLM] = dict(llms or {})
        self._backends = None if backends is None else tuple(_as_backend(b) for b in backends)
        self._breaker: Breaker | None = None
        self._breaks = backends is None  # ports that were given are the caller's to judge
        self._lanes = Lanes(self.clock)
        self._fetchers = None if fetchers is None else tuple(_as_fetcher(f) for f in fetchers)
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    def search(self, question: str, *, options: SearchOptions = AS_CONFIGURED, session: Session | None = None) -> Run:
        """A run to enter: `async with nexi.search(q) as run`. Raises QuestionError or ConfigError at once."""
        return Run(self, clean_question(question), _with_effort(options, self.config), session or Session())

    async def answer(
        self, question: str, *, options: SearchOptions = AS_CONFIGURED, session: Session | None = None
    ) -> RunResult:
        """Search to the end. Raises NexiError when there is no answer."""
        async with self.search(question, options=options, session=session) as run:
            async for _ in run:
                pass
            return run.result()

    async def run_tool(self, call: ToolCall, *, question: str = "") -> ToolResult:
        """One tool call outside a search, for a caller who vouches for the URLs in it."""
        session = Session()
        async with asyncio.TaskGroup() as tasks:
            emit = QuietEmit()
            meter = Meter(Budget(max_pages=self.config.max_pages), started=self.clock.monotonic())
            parts = Parts(self, session, meter, emit, tasks, question, AS_CONFIGURED)
            toolbox = parts.toolbox(parts.metered("extract"))
            session.allow(parts.urls_of(call))
            result = await toolbox.run(call)
            parts.reader.cancel()
        return result

    async def find(self, query: Query | str) -> SearchOutcome:
        """Raw hits along the search chain; an empty outcome says who failed and why. Raises QuestionError or ConfigError."""
        asked = Query(query) if isinstance(query, str) else query
        asked = replace(asked, text=clean_question(asked.text))
        return await self.searcher(QuietEmit()).search(asked)

    async def fetch(self, url: str) -> Page:
        """One page along the fetch chain, for a caller who vouches for its URL; the guard holds. Raises FetchError."""
        if not is_web_url(url):
            fix = "write it in full, like https://example.com/page"
            raise FetchError(f"{url[:200]!r} is not the address of a web page", reason="blocked", fix=fix)
        async with asyncio.TaskGroup() as tasks:
            reader = Reader(
                self.fetchers,
                limits=FetchLimits(timeout_s=self.config.fetch_timeout),
                session=Session(),
                meter=Meter(Budget(), started=self.clock.monotonic()),
                store=MemoryPages(),
                emit=QuietEmit(),
                clock=self.clock,
                tasks=tasks,
            )
            try:
                page: Page | NexiError = await reader.read(url)
            except NexiError as error:
                page = error  # carried past the task group, which would bundle it
        if isinstance(page, NexiError):
            raise page
        return page

    # ports, built when first needed

    def llm(self, role: EndpointRole) -> LLM:
        if role not in self._llms:
            self._llms[role] = self._build_llm(role)
        return self._llms[role]

    def backends(self) -> tuple[SearchBackend, ...]:
        if self._backends is None:
            from nexi.backends import create
            from nexi.backends.sender import Sender

            proxies = self._proxies()
            if self._container():
                proxies["no_proxy"] += ("127.0.0.1",)
            sender = self._owned(Sender(user_agent=f"nexi/{__version__}", **proxies))
            self._backends = tuple(self._owned(create(n, settings, sender)) for n, settings in self._search_chain().items())
        return self._backends

    def searcher(self, emit: Emit) -> Searcher:
        return Searcher(self.backends, emit=emit, clock=self.clock, breaker=self.breaker(), lanes=self._lanes)

    def breaker(self) -> Breaker | None:
        """What rests after failures, for the backends of the config; a backend with other settings starts afresh."""
        if self._breaker is None and self._breaks:
            from nexi.suspensions import FileBreaker

            try:
                chain = self._search_chain()
            except ConfigError:
                return None  # the search itself says so
            marks = {
                name: content_digest("\n".join((s.base_url, s.root, s.api_key, *s.spare_keys)))[:12]
                for name, s in chain.items()
            }
            self._breaker = FileBreaker(self.config.state_dir / "backends.json", clock=self.clock, marks=marks)
        return self._breaker

    def fetchers(self) -> tuple[ContentFetcher, ...]:
        if self._fetchers is None:
            from nexi.fetchers import create

            self._fetchers = tuple(self._owned(create(n, self._fetcher_settings(n))) for n in self._fetch_chain())
        return self._fetchers

    def check(self) -> None:
        """Refuse what cannot work before anything is spent. Raises ConfigError."""
        from nexi.backends import require

        for name, settings in self._search_chain().items() if self._backends is None else ():
            require(name, settings)
        if self._fetchers is None:
            self._fetch_chain()
        self._check_tokens()
        self._check_price()

    def _search_chain(self) -> dict[str, BackendSettings]:
        """The chain with what each backend needs; of the automatic chain, what this nexi can do."""
        from nexi.backends import Settings, available

        config = self.config
        names = [n for n in config.search_chain() if config.search_backend or available(n)]
        if not names:
            raise ConfigError(
                "no search service is configured",
                cause="SEARXNG_URL is not set and no provider has a key",
                fix="set SEARXNG_URL to a SearXNG instance with JSON on, like http://127.0.0.1:8080",
            )
        urls, containers = {"searxng": config.searxng_url}, {"searxng": self._container()}
        proxy = config.https_proxy or config.http_proxy
        keys = {n: config.keys_for(n) or ("",) for n in names}
        return {
            n: Settings(
                urls.get(n, ""),
                keys[n][0],
                config.search_timeout,
                proxy,
                tuple(keys[n][1:]),
                config.grep_root,
                containers.get(n),
            )
            for n in names
        }

    def _container(self) -> ContainerOptions | None:
        """The SearXNG to start at the first search; an instance that is named by its URL always wins."""
        wanted = self.config.searxng_autostart and not self.config.searxng_url
        return container_options(self.config) if wanted else None

    def _fetch_chain(self) -> list[str]:
        from nexi.fetchers import available

        return [n for n in self.config.fetch_chain() if self.config.content_fetcher or available(n)]

    def _check_tokens(self) -> None:
        if self.config.tokenizer_encoding in BUNDLED_ENCODINGS:
            return
        from nexi.token_counter import get_encoding

        try:
            get_encoding(self.config.tokenizer_encoding)
        except ValueError as error:
            raise ConfigError("tokenizer_encoding cannot be used", cause=str(error), fix="set it to cl100k_base") from error

    def _check_price(self) -> None:
        """A cost limit that cannot be kept is refused; a server on this machine costs nothing, OpenRouter reports its cost."""
        endpoint = self.config.endpoint("answer")
        if self.config.max_cost is None or endpoint.is_extractive or "answer" in self._llms:
            return
        from nexi.llm.prices import price_of, price_table

        host = host_of(endpoint.base_url)
        known = price_of(endpoint.model, price_table(self.config.prices)) is not None
        if not known and host not in (*LOOPBACK, "openrouter.ai"):
            raise ConfigError(
                f"max_cost cannot be kept for {endpoint.model}",
                cause="its price is unknown",
                fix=f'add it to the config: "prices": {{"{endpoint.model}": {{"input": 1.0, "output": 2.0}}}}',
            )

    def runs(self) -> RunDirectory:
        return RunDirectory(self.config.runs_dir, self.config.pages_dir, clock=self.clock)

    def pages(self) -> PageStore:
        return FilePages(self.config.pages_dir)

    def page_cache(self) -> PageCache:
        """Pages kept between runs; `clear()` forgets them."""
        from nexi.fetchers.cache import PageCache

        return PageCache(self.config.page_cache_dir, clock=self.clock, ttl_s=self.config.page_cache_ttl_s)

    def tidy(self) -> None:
        """Once a day, forget runs and pages beyond what the config keeps. Trouble with that is nobody's trouble now."""
        stamp = self.config.state_dir / "tidied"
        try:
            if stamp.exists() and self.clock.now().timestamp() - stamp.stat().st_mtime < TIDY_EVERY_S:
                return
            make_private_directory(stamp.parent)
            stamp.touch()
            self.runs().prune(self.config.runs_keep_days, self.config.pages_max_mb)
            self.page_cache().sweep()
        except (OSError, StoreError):
            return

    def _fetcher_settings(self, name: str) -> FetcherSettings:
        from nexi.fetchers import Settings

        config = self.config
        return Settings(
            clock=self.clock,
            api_key=next(iter(config.keys_for(name)), ""),
            allow_private=config.allow_private,
            respect_robots=config.respect_robots,
            cache_folder=config.page_cache_dir if config.page_cache else None,
            cache_ttl_s=config.page_cache_ttl_s,
            **self._proxies(),
        )

    def proxy_for(self, base_url: str) -> str | None:
        """The proxy for an endpoint of the operator's; hosts in no_proxy and loopback are called directly."""
        if not (self.config.http_proxy or self.config.https_proxy):
            return None
        host = host_of(base_url)
        direct = [h.strip().lstrip(".") for h in self.config.no_proxy.split(",") if h.strip()]
        if host in LOOPBACK or any(d == "*" or host == d or host.endswith(f".{d}") for d in direct):
            return None
        return (self.config.https_proxy if base_url.startswith("https") else self.config.http_proxy) or None

    def _proxies(self) -> dict[str, Any]:
        hosts = (h.strip() for h in self.config.no_proxy.split(","))
        return {"proxy": self.config.https_proxy or self.config.http_proxy, "no_proxy": tuple(h for h in hosts if h)}

    def _build_llm(self, role: EndpointRole) -> LLM:
        endpoint = self.config.endpoint(role)
        if endpoint.is_extractive:
            return built_in()
        from nexi.llm.openai import OpenAICompatible
        from nexi.llm.prices import price_table

        llm: LLM = self._owned(
            OpenAICompatible(
                endpoint.base_url,
                endpoint.model,
                api_keys=endpoint.api_keys,
                clock=self.clock,
                max_retries=self.config.llm_max_retries,
                prices=price_table(self.config.prices),
                stream=self.config.stream,
                idle_timeout_s=self.config.llm_timeout,
                proxy=self.proxy_for(endpoint.base_url),
            )
        )
        return llm

    def _owned(self, port: Any) -> Any:
        """Close what can be closed when this Nexi ends."""
        if hasattr(port, "aclose"):
            self._closing.push_async_callback(port.aclose)
        return port


class QuietEmit:
    """For work outside a run: nothing is logged and nobody listens."""

    async def __call__(self, fact: Fact) -> None:
        return None

    def delta(self, delta: Delta) -> None:
        return None


class RunEmit:
    """Commits facts whole, then hands events to the door. A log that cannot be written to is left, aloud, for memory."""

    def __init__(self, log: RunLog, publish: Callable[[Event], None]) -> None:
        self.log = log
        self.facts: list[Fact] = []
        self._publish = publish
        self._order = asyncio.Lock()

    async def __call__(self, fact: Fact) -> None:
        commit = asyncio.ensure_future(self._commit_in_order(fact))
        await to_the_end(commit)
        commit.result()

    def delta(self, delta: Delta) -> None:
        self._publish(delta)

    async def _commit_in_order(self, fact: Fact) -> None:
        async with self._order:
            await self._commit(fact)

    async def _commit(self, fact: Fact) -> None:
        try:
            await self.log.append(fact)
        except StoreError as error:
            await self._leave_the_disk(error)
            await self.log.append(fact)
        self.facts.append(fact)
        self._publish(fact)

    async def _leave_the_disk(self, error: StoreError) -> None:
        broken, self.log = self.log, MemoryRunLog(self.log.run_id, after=len(self.facts))
        await broken.close()
        await self._commit(Warned("log_not_kept", f"this run is not kept: {error}. {error.fix}".strip()))


class Parts:
    """The engine's parts for one run."""

    def __init__(
        self,
        nexi: Nexi,
        session: Session,
        meter: Meter,
        emit: Emit,
        tasks: asyncio.TaskGroup,
        question: str,
        options: SearchOptions,
    ) -> None:
        self.nexi, self.session, self.meter, self.emit = nexi, session, meter, emit
        self.question, self.options = question, options
        self.counter = TokenCounter(nexi.config.tokenizer_encoding)
        self.calls = CallCounter()
        self.reader = Reader(
            nexi.fetchers,
            limits=FetchLimits(timeout_s=nexi.config.fetch_timeout),
            session=session,
            meter=meter,
            store=nexi.pages(),
            emit=emit,
            clock=nexi.clock,
            tasks=tasks,
            ahead=lambda fetcher: nexi.config.prefetch and fetcher.name in FREE_FETCHERS,
        )

    def metered(self, role: EndpointRole) -> MeteredLLM:
        nexi = self.nexi
        window = nexi.config.endpoint(role).max_context
        return MeteredLLM(nexi.llm(role), role, self.meter, self.emit, nexi.clock, self.counter, window, self.calls)

    def toolbox(self, extractor: LLM) -> Toolbox:
        config = self.nexi.config
        return Toolbox(
            session=self.session,
            searcher=self.nexi.searcher(self.emit),
            reader=self.reader,
            extractor=extractor,
            emit=self.emit,
            clock=self.nexi.clock,
            question=self.question,
            room=self._room,
            query_template=self.options.query,
            prompts_folder=config.prompts_dir,
            secrets=_secrets(config),
            deadline=self.meter.deadline,
            extract_bytes=self._extract_bytes(),
        )

    def loop(self, stop: asyncio.Event) -> Loop:
        config = self.nexi.config
        answering = self.metered("answer")
        return Loop(
            llm=answering,
            spare=built_in,
            toolbox=self.toolbox(self.metered("extract")),
            session=self.session,
            meter=self.meter,
            emit=self.emit,
            clock=self.nexi.clock,
            counter=self.counter,
            settings=LoopSettings(
                self.options.max_output_tokens or config.max_output_tokens,
                replace(config, max_context=answering.max_context),
                config.prompts_dir,
            ),
            stop=stop,
        )

    def urls_of(self, call: ToolCall) -> list[str]:
        from nexi.tools import WEB_GET, read_arguments

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


class Run:
    """One search under way. Leaving its block cancels the engine and waits for its clean-up."""

    def __init__(self, nexi: Nexi, question: str, options: SearchOptions, session: Session) -> None:
        self.nexi, self.question, self.options, self.session = nexi, question, options, session
        self.id = ""
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._stop = asyncio.Event()
        self._started = 0.0

    async def __aenter__(self) -> Self:
        self._started = self.nexi.clock.monotonic()
        self._meter = Meter(self._budget(), started=self._started)
        log, self._log_warning = self._open_log()  # in one step with its task, so that nothing can come between
        self.id = log.run_id
        self._emit = RunEmit(log, self._events.put_nowait)
        self._task = asyncio.create_task(self._work(), name=f"run {self.id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await to_the_end(self._task)
        await self._end_as_cancelled()  # for a task that was cancelled before its first step

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event

    def stop(self) -> None:
        """Ask for the answer now, from what was read."""
        self._stop.set()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(self._emit.facts)

    def result(self) -> RunResult:
        """The answer of a run that has ended. Raises the run's error if it has none."""
        end = next((f for f in reversed(self.facts) if isinstance(f, TERMINAL)), None)
        if isinstance(end, RunFinished):
            answer = Answer(end.answer, end.sources, end.stop, end.warnings)
            return RunResult(self.id, answer, end, self.facts, self.session)
        if isinstance(end, RunFailed):
            raise error_of(end)
        raise InternalError("the run has not ended")

    # the engine's task

    async def _work(self) -> None:
        try:
            await self._begin()
            await self._finish(await self._engine())
        except asyncio.CancelledError:
            await self._end_as_cancelled()
            raise
        except NexiError as error:
            await self._fail(error, _stop_of(error))
        except Exception as error:  # noqa: BLE001 - the edge of the engine: a fault of ours must still end the run
            await self._fail(await self._internal(error), StopReason.API_ERROR)
        finally:
            await self._emit.log.close()
            self._events.put_nowait(None)
            await asyncio.to_thread(self.nexi.tidy)

    async def _begin(self) -> None:
        config, options = self.nexi.config, self.options
        settings: dict[str, Any] = {"search": list(config.search_chain()), "fetch": list(config.fetch_chain())}
        settings |= {"prefetch": config.prefetch, "continues": self.session.last_run}
        model = self.nexi.config.endpoint("answer").model
        await self._emit(RunStarted(self.question, options.effort, model, "search", options.max_iterations or 0, settings))
        self.nexi.check()
        if self._log_warning:
            await self._emit(Warned("log_not_kept", self._log_warning))
        for source in self.session.book.sources:
            await self._emit(SourceNumbered(source))  # a follow-up may cite them, so its log names them too
        self._open_conversation()

    def _open_conversation(self) -> None:
        if not any(m.role == "system" for m in self.session.messages):
            config = self.nexi.config
            prompt = get_system_prompt(
                self.options.effort,
                self.options.max_iterations,
                today=self.nexi.clock.now().date().isoformat(),
                config=config.override(system_prompt=self.options.system_prompt or None),
            )
            self.session.messages.insert(0, Message("system", prompt))
        self.session.ask(self.question)

    async def _engine(self) -> Answer:
        async with asyncio.TaskGroup() as tasks:
            watcher = tasks.create_task(self._watch_for_stop())
            parts: Parts | None = None
            try:
                parts = Parts(self.nexi, self.session, self._meter, self._emit, tasks, self.question, self.options)
                answer: Answer | NexiError = await parts.loop(self._stop).run()
            except NexiError as error:
                answer = error  # carried past the task group, which would bundle it
            watcher.cancel()
            if parts:
                parts.reader.cancel()
                await parts.reader.report()
        if isinstance(answer, NexiError):
            raise answer
        return answer

    async def _watch_for_stop(self) -> None:
        """Another process asks with a file. Polling it is I/O, not time, so it does not go through the clock."""
        while not self._stop.is_set():
            await asyncio.sleep(STOP_POLL_S)
            if self._emit.log.stop_requested():
                self._stop.set()

    async def _finish(self, answer: Answer) -> None:
        self.session.last_run = self.id
        trouble = await asyncio.to_thread(self._keep_history, answer)
        for message in trouble:
            await self._emit(Warned("history_not_kept", message))
        await self._emit(
            RunFinished(
                answer.text,
                answer.sources,
                answer.stop,
                self._meter.iterations,
                self._meter.usage,
                self._seconds(),
                self._meter.pages,
                self._meter.model_calls,
                (*answer.warnings, *trouble),
            )
        )

    async def _fail(self, error: NexiError, stop: StopReason) -> None:
        if any(isinstance(f, TERMINAL) for f in self._emit.facts):
            return
        failed = RunFailed(
            error.code, error.message, error.cause, error.fix, stop, self._meter.iterations, self._meter.usage, self._seconds()
        )
        await self._emit(failed)

    async def _end_as_cancelled(self) -> None:
        await self._fail(NexiError("the search was cancelled", code="cancelled"), StopReason.CANCELLED)
        await self._emit.log.close()

    async def _internal(self, error: BaseException) -> NexiError:
        name = self.nexi.config.runs_dir / self.id / "traceback.txt"
        text = "".join(traceback.format_exception(error))
        try:
            await asyncio.to_thread(name.write_text, text, "utf-8")
        except OSError:
            return InternalError("an internal error ended the search", cause=repr(error)[:500])
        return InternalError(
            "an internal error ended the search", cause=repr(error)[:500], fix=f"please report it with {name.parent}"
        )

    def _open_log(self) -> tuple[RunLog, str]:
        try:
            return self.nexi.runs().create(), ""
        except StoreError as error:
            return MemoryRunLog(), f"this run is not kept: {error}. {error.fix}".strip()

    def _keep_history(self, answer: Answer) -> list[str]:
        from nexi.history import add_history_entry, create_entry

        entry = create_entry(
            query=self.question,
            answer=answer.text,
            urls=[s.url for s in self.session.book.sources],
            effort=self.options.effort,
            iterations=self._meter.iterations,
            duration_s=self._seconds(),
            tokens=self._meter.usage.total,
            id=self.id,
        )
        try:
            add_history_entry(entry, self.nexi.config.history_path)
        except StoreError as error:
            return [f"the answer is not in the history: {error}. {error.fix}".strip()]
        return []

    def _seconds(self) -> float:
        return round(self.nexi.clock.monotonic() - self._started, 3)

    def _budget(self) -> Budget:
        config = self.nexi.config
        return Budget(
            max_iterations=self.options.max_iterations,
            max_seconds=self.options.time_target,
            max_tokens=config.max_tokens,
            max_cost=config.max_cost,
            max_pages=config.max_pages,
        )


def container_options(config: Config) -> ContainerOptions:
    """The SearXNG container of this config: what is started, and where that is written down."""
    from nexi.backends.container import Options

    return Options(
        state_dir=config.state_dir,
        own_settings=config.searxng_settings,
        image=config.searxng_image,
        tag=config.searxng_tag,
        port=config.searxng_port,
        proxies=tuple(p for p in (config.https_proxy or config.http_proxy,) if p),
    )


def built_in() -> LLM:
    """The model that needs no model."""
    from nexi.llm.extractive import Extractive

    return Extractive()


def clean_question(question: str) -> str:
    """The question without control characters and stray bytes. Raises QuestionError when nothing usable is left."""
    whole = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", question)  # halves of characters that are no escaped bytes
    text = whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0)).strip()
    if not text.strip("\ufffd \n\t"):
        raise QuestionError("the question is empty", fix='ask one: nexi "your question"')
    if len(text) > MAX_QUESTION_CHARS:
        raise QuestionError(
            f"the question has {len(text):,} characters",
            cause=f"at most {MAX_QUESTION_CHARS:,} are taken",
            fix="ask a shorter question",
        )
    return text


def error_of(failed: RunFailed) -> NexiError:
    """The error a terminal fact stands for."""
    from nexi.errors import LLMError, NoEvidenceError

    kinds: dict[str, type[NexiError]] = {cls.code: cls for cls in (NoEvidenceError, ConfigError, QuestionError, InternalError)}
    kind = kinds.get(failed.code, LLMError if failed.stop is StopReason.API_ERROR else NexiError)
    return kind(failed.message, cause=failed.cause, fix=failed.fix, code=failed.code)


def _stop_of(error: NexiError) -> StopReason:
    return StopReason.CANCELLED if error.code == "cancelled" else StopReason.API_ERROR


def _with_effort(options: SearchOptions, config: Config) -> SearchOptions:
    effort = options.effort or config.default_effort
    if effort not in EFFORT_LEVELS:
        raise ConfigError(f"effort {effort!r} is unknown", cause="it must be s, m or l", fix="use -e s, -e m or -e l")
    iterations = options.max_iterations or EFFORT_LEVELS[effort]["max_iter"]
    seconds = options.time_target if options.time_target is not None else config.time_target
    return replace(options, effort=effort, max_iterations=int(iterations), time_target=seconds)


def _secrets(config: Config) -> tuple[str, ...]:
    keys = [k for role in ("answer", "extract", "judge") for k in config.endpoint(role).api_keys]
    keys += [k for provider in config.api_keys for k in config.keys_for(provider)] + list(config.keys_for("jina"))
    return tuple({k for k in keys if len(k) >= 8})


def _as_backend(backend: Any) -> SearchBackend:
    wrapped: SearchBackend = SearchPlugin(backend) if takes_lists(backend.search, "queries") else backend
    return wrapped


def _as_fetcher(fetcher: Any) -> ContentFetcher:
    wrapped: ContentFetcher = FetchPlugin(fetcher) if takes_lists(fetcher.fetch, "urls") else fetcher
    return wrapped


async def search_as_plugin(name: str, queries: Sequence[str], api_key: str, timeout_s: float) -> list[SearchOutcome]:
    """A backend of ours asked in the seeds' way: several queries and a key with the call."""
    from nexi.backends import Settings, create
    from nexi.backends.sender import Sender

    sender = Sender(user_agent=f"nexi/{__version__}")
    backend = create(name, Settings("", api_key, timeout_s), sender)
    searcher = Searcher(lambda: [backend], emit=QuietEmit(), clock=SystemClock())
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(searcher.search(Query(text))) for text in queries]
    finally:
        await sender.aclose()
    return [task.result() for task in tasks]


async def fetch_as_plugin(name: str, urls: Sequence[str], api_key: str, timeout_s: float) -> list[PageView]:
    """A fetcher of ours asked in the seeds' way: several URLs and a key with the call."""
    from nexi.fetchers import Settings, create

    fetcher: Any = create(name, Settings(clock=SystemClock(), api_key=api_key))
    limits = FetchLimits(timeout_s=timeout_s)

    async def one(url: str) -> PageView:
        try:
            page = await fetcher.fetch(url, limits)
        except FetchError as error:
            return PageView(url, error=f"{error.reason}: {error}")
        return PageView(url, title=page.title, text=page.text)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(url)) for url in urls]
    finally:
        await fetcher.aclose()
    return [task.result() for task in tasks]
