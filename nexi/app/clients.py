"""Clients: the ports of one config, built when first needed and closed together.

`Nexi` adds the searches. What a run does with the ports is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nexi import __version__
from nexi.app.clock import SystemClock
from nexi.config import Config
from nexi.errors import ConfigError, StoreError
from nexi.files import make_private_directory
from nexi.net.addresses import is_loopback_host
from nexi.ports import LLM, Breaker, Clock, ContentFetcher, Emit, PageStore, SearchBackend
from nexi.runs.directory import RunDirectory
from nexi.runs.pages import FilePages
from nexi.runs.recording import Track
from nexi.searcher import Lanes, Searcher
from nexi.types import content_digest
from nexi.urls import host_of

if TYPE_CHECKING:
    from nexi.app.knowledge import Knowledge
    from nexi.app.pair_models import LocalModel
    from nexi.backends import Settings as BackendSettings
    from nexi.backends.container import Options as ContainerOptions
    from nexi.config import Endpoint, EndpointRole
    from nexi.fetchers import Settings as FetcherSettings
    from nexi.fetchers.cache import PageCache

TIDY_EVERY_S = 24 * 3600
MOST_MODELS = 64
BUNDLED_ENCODINGS = ("cl100k_base", "o200k_base")


class Clients:
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
        self._backends = None if backends is None else _given_backends(backends)
        self._extra: dict[str, SearchBackend] = {}
        self._breaker: Breaker | None = None
        self._breaks = backends is None  # ports that were given are the caller's to judge
        self._lanes = Lanes(self.clock)
        self._fetchers = None if fetchers is None else _given_fetchers(fetchers)
        self._fetchers_given = self._fetchers
        self._closing = AsyncExitStack()
        self._knowledge: Knowledge | None = None
        self._local_model: LocalModel | None = None
        self._others: dict[str, Self] = {}
        self.notices: tuple[str, ...] = ()  # what a run under this config should say first

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    def llm(self, role: EndpointRole) -> LLM:
        if role not in self._llms:
            self._llms[role] = self._build_llm(role)
        return self._llms[role]

    def answering_with(self, model: str) -> Self:
        """The same clients with another model of the same endpoint; the config's own for "". Raises ConfigError."""
        if not model or model == self.config.endpoint("answer").model:
            return self
        if model not in self._others:
            if len(self._others) >= MOST_MODELS:
                cause, fix = f"{MOST_MODELS} others were asked for since this process began", "use one of those, or start again"
                raise ConfigError(f"the model {model!r} is one too many", cause=cause, fix=fix)
            self._others[model] = self._with(self.config.override(model=model))
        return self._others[model]

    def restricted_to_local(self) -> Self:
        """Clients that reach nothing beyond this machine. Raises ConfigError when the knowledge store is elsewhere."""
        from nexi.app.local_scope import restrict_to_local

        config, notices = restrict_to_local(self.config)
        local = self._with(config)
        local.notices, local._backends, local._fetchers = notices, (), ()
        local._knowledge, local._extra = None, {}
        if set(self._llms) and not notices:
            local._llms = self._llms
        return local

    def _with(self, config: Config) -> Self:
        """Clients of another config that share what is open here, and are closed with it."""
        self.knowledge(), self.fetchers(), self.breaker()
        if self._backends is None:
            with suppress(ConfigError):  # the run itself says so
                self.backends()
        other = copy(self)
        other.config, other._llms, other._others = config, {}, {}
        return other

    def backends(self) -> tuple[SearchBackend, ...]:
        if self._backends is None:
            from nexi.backends import create
            from nexi.backends.sender import Sender

            connections = self.connections()
            if self._container():
                connections["no_proxy"] += ("127.0.0.1",)
            sender = self._owned(Sender(user_agent=f"nexi/{__version__}", **connections))
            self._backends = tuple(self._owned(create(n, settings, sender)) for n, settings in self._search_chain().items())
        return self._backends

    def extra_backend(self, name: str) -> SearchBackend | None:
        """A backend that a researcher's own tool asks, whatever the chain is; None where it cannot be used."""
        if not self._breaks or (name == "ripgrep" and not self.config.grep_root):
            return None
        if name not in self._extra:
            from nexi.backends import create
            from nexi.backends.sender import Sender

            sender = self._owned(Sender(user_agent=f"nexi/{__version__}", **self.connections()))
            self._extra[name] = self._owned(create(name, self._backend_settings(name), sender))
        return self._extra[name]

    def searcher(
        self,
        emit: Emit,
        track: Track | None = None,
        *,
        backends: Callable[[], Sequence[SearchBackend]] | None = None,
        retries: int = 1,
    ) -> Searcher:
        """The one way to ask backends: those of the chain, or others that were chosen among them."""
        return Searcher(
            backends or self.backends,
            emit=emit,
            clock=self.clock,
            breaker=self.breaker(),
            lanes=self._lanes,
            track=track,
            retries=retries,
        )

    def breaker(self) -> Breaker | None:
        """What rests after failures, for the backends of the config; a backend with other settings starts afresh."""
        if self._breaker is None and self._breaks:
            from nexi.net.suspensions import FileBreaker

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

    def uncached_fetchers(self) -> tuple[ContentFetcher, ...]:
        """The fetch chain anew, with no cache around it; fetchers that were given stay as they are."""
        if self._fetchers_given is not None:
            return self._fetchers_given
        from nexi.fetchers import create

        names = self._fetch_chain()
        return tuple(self._owned(create(n, replace(self._fetcher_settings(n), cache_folder=None))) for n in names)

    def check_url(self, url: str) -> object:
        """Refuse an address the guard refuses, before anything is looked up. Raises FetchError."""
        from nexi.fetchers.guard import Guard

        return Guard(self.config.allow_private).check_url(url)

    def knowledge(self) -> Knowledge:
        """What was read before, and the user's files; opened when it is first asked."""
        if self._knowledge is None:
            from nexi.app.knowledge import Knowledge

            self._knowledge = self._owned(Knowledge(self))
        return self._knowledge

    def local_model(self) -> LocalModel:
        """The cross-encoder that is installed on this machine, where there is one."""
        if self._local_model is None:
            from nexi.app.pair_models import LocalModel

            self._local_model = self._owned(LocalModel(self.config, self.clock))
        return self._local_model

    def check(self) -> None:
        """Refuse what cannot work before anything is spent. Raises ConfigError."""
        from nexi.backends import require

        for name, settings in self._search_chain().items() if self._backends is None else ():
            require(name, settings)
        if self._fetchers is None:
            self._fetch_chain()
        self.config.trust.check()
        self._check_tokens()
        self._check_price()

    def _search_chain(self) -> dict[str, BackendSettings]:
        """The chain with what each backend needs; of the automatic chain, what this nexi can do."""
        from nexi.backends import available

        config = self.config
        names = [n for n in config.search_chain() if config.search_backend or available(n)]
        if not names:
            raise ConfigError(
                "no search service is configured",
                cause="SEARXNG_URL is not set and no provider has a key",
                fix="set SEARXNG_URL to a SearXNG instance with JSON on, like http://127.0.0.1:8080",
            )
        return {name: self._backend_settings(name) for name in names}

    def _backend_settings(self, name: str) -> BackendSettings:
        from nexi.backends import Settings

        config = self.config
        keys = config.keys_for(name) or ("",)
        return Settings(
            config.searxng_url if name == "searxng" else "",
            keys[0],
            config.search_timeout,
            config.https_proxy or config.http_proxy,
            tuple(keys[1:]),
            config.grep_root,
            config.ssl_cert_file,
            self._container() if name == "searxng" else None,
        )

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
        from nexi.llm.openai.prices import price_of, price_table

        host = host_of(endpoint.base_url)
        known = price_of(endpoint.model, price_table(self.config.prices)) is not None
        if not known and host != "openrouter.ai" and not is_loopback_host(host):
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
            **self.connections(),
        )

    def proxy_for(self, base_url: str) -> str | None:
        """The proxy for an endpoint of the operator's; hosts in no_proxy and loopback are called directly."""
        if not (self.config.http_proxy or self.config.https_proxy):
            return None
        host = host_of(base_url)
        direct = [h.strip().lstrip(".") for h in self.config.no_proxy.split(",") if h.strip()]
        if is_loopback_host(host) or any(d == "*" or host == d or host.endswith(f".{d}") for d in direct):
            return None
        return (self.config.https_proxy if base_url.startswith("https") else self.config.http_proxy) or None

    def connections(self) -> dict[str, Any]:
        """What every client of the open network is told."""
        hosts = (h.strip() for h in self.config.no_proxy.split(","))
        return {
            "proxy": self.config.https_proxy or self.config.http_proxy,
            "no_proxy": tuple(h for h in hosts if h),
            "trust": self.config.trust,
        }

    def _build_llm(self, role: EndpointRole) -> LLM:
        return self.llm_called(self.config.endpoint(role))

    def llm_called(self, endpoint: Endpoint) -> LLM:
        """A model of its own at an endpoint."""
        if endpoint.is_extractive:
            return built_in()
        from nexi.llm.openai.client import OpenAICompatible
        from nexi.llm.openai.prices import price_table

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
                trust=self.config.trust,
            )
        )
        return llm

    def _owned(self, port: Any) -> Any:
        """Close what can be closed when this Nexi ends."""
        if hasattr(port, "aclose"):
            self._closing.push_async_callback(port.aclose)
        return port


def _given_backends(backends: Sequence[Any]) -> tuple[SearchBackend, ...]:
    from nexi.app.plugins import as_backend

    return tuple(as_backend(b) for b in backends)


def _given_fetchers(fetchers: Sequence[Any]) -> tuple[ContentFetcher, ...]:
    from nexi.app.plugins import as_fetcher

    return tuple(as_fetcher(f) for f in fetchers)


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
    from nexi.llm.extractive.model import Extractive

    return Extractive()
