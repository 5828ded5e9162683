"""PortFactory builds the ports of one config out of the clients that the runs of a process share, and `Nexi` owns.

An offline factory has no backend and no fetcher, so that a run of scope `local` cannot reach another machine by any path.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nexi import __version__, ports
from nexi.app.clock import SystemClock
from nexi.app.plugins import as_backend, as_fetcher, backend_plugin, fetcher_plugin, is_local_tool
from nexi.app.stored_runs import RetentionNotice
from nexi.backends import Settings as BackendSettings
from nexi.backends import create_backend, require_backend
from nexi.backends import is_available as is_backend_available
from nexi.config import Config, Endpoint, EndpointRole
from nexi.errors import ConfigError, StoreError
from nexi.fetchers import Settings as FetcherSettings
from nexi.fetchers import create_fetcher
from nexi.fetchers import is_available as is_fetcher_available
from nexi.files import PRIVATE_FILE, make_private_directory
from nexi.history import FileHistory
from nexi.llm.openai.prices import price_of, price_table
from nexi.net.addresses import is_loopback_host
from nexi.net.suspensions import FileBreaker
from nexi.routing.table import SERVICES
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import new_long_id
from nexi.runs.recording import AgentReplay
from nexi.searcher import BackendConcurrency, Searcher, SearchPatience
from nexi.stores.embedders import MINILM, E5Encoder, LibraryEmbedder, StaticEmbedder, has_minilm, is_folder
from nexi.types import Answered, Message, PageView, Paper, Reply, ToolSpec, content_digest
from nexi.urls import host_of

if TYPE_CHECKING:
    from nexi.app.knowledge import Knowledge
    from nexi.app.pair_models import InstalledPairModel
    from nexi.backends.container import Lifecycle
    from nexi.backends.container import Options as ContainerOptions
    from nexi.backends.sender import Sender
    from nexi.fetchers.cache import PageCache
    from nexi.llm.openai.client import OpenAICompatible

TIDY_EVERY_S = 24 * 3600
MAX_MODELS = 64
EMBEDDING_TIMEOUT_S = 60.0
BUNDLED_ENCODINGS = ("cl100k_base", "o200k_base")
OFFLINE_BACKENDS = ("ripgrep",)
RECORD_SERVICES = ("crossref", "openalex", "europepmc", "unpaywall")  # who is asked for a paper by its DOI
ENGINE_KEY = "searxng:"
MIN_WEBHOOK_SECRET_CHARS = 16


# An adapter whose libraries are heavy, or that few runs need, is imported by the method that builds it.
class SharedClients:
    """What the runs of one process have in common: open connections, given ports, and how all of it is closed."""

    def __init__(
        self,
        config: Config,
        clock: ports.Clock,
        llms: Mapping[str, ports.LLM],
        backends: Sequence[Any] | None,
        fetchers: Sequence[Any] | None,
        state: ports.PersonalState | None = None,
    ) -> None:
        self.config = config  # the config that the given ports stand for
        self.state = state  # None for the files of the config's home
        self.clock = clock
        self.given_llms: Mapping[str, ports.LLM] = dict(llms)
        self.given_backends = None if backends is None else tuple(as_backend(b) for b in backends)
        self.backends: dict[tuple[object, ...], tuple[ports.SearchBackend, ...]] = {}  # by chain and open services
        self.given_fetchers = None if fetchers is None else tuple(as_fetcher(f) for f in fetchers)
        self.fetchers = self.given_fetchers
        self.llms: dict[tuple[object, ...], ports.LLM] = {}
        self.extra_backends: dict[str, ports.SearchBackend] = {}
        self.knowledge: dict[tuple[object, ...], Knowledge] = {}
        self.embedders: dict[tuple[object, ...], ports.Embedder | None] = {}
        self.local_embedders: dict[str, ports.Embedder | None] = state.local_embedders if state else {}
        self.breaker: ports.Breaker | None = None
        self.backend_concurrency = BackendConcurrency(clock, make_pacing=state.make_pacing if state else None)
        self._closing = AsyncExitStack()
        self.local_model: InstalledPairModel | None = None
        self.pictures: ports.PictureFetcher | None = None

    def renew(self) -> SharedClients:
        """The given ports without the clients that were built: for another config."""
        fresh = SharedClients(self.config, self.clock, self.given_llms, None, None, self.state)
        fresh.given_backends = self.given_backends
        fresh.fetchers = fresh.given_fetchers = self.given_fetchers
        return fresh

    def close_later(self, port: Any) -> Any:
        """Close a port with everything else, where it can be closed."""
        if hasattr(port, "aclose"):
            self._closing.push_async_callback(port.aclose)
        return port

    async def aclose(self) -> None:
        await self._closing.aclose()


def open_spaces(config: Config) -> ports.SpaceStore:
    """The spaces of a home."""
    from nexi.stores.spaces import SqliteSpaces

    return SqliteSpaces(config.spaces_path)


class _LimitedModel:
    """The LLM port around a model that is asked at most so often at once; what that one has beyond the port stays in reach."""

    def __init__(self, llm: ports.LLM, limit: ports.ConcurrencyLimit) -> None:
        self._llm, self._limit, self.name = llm, limit, llm.name

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Any) -> Reply:
        async with self._limit.acquire():
            return await self._llm.complete(messages, tools, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)


class PortFactory:
    """The ports of one config. Those given to `Nexi` are used where the config still names what they stand for."""

    def __init__(self, config: Config, shared: SharedClients, *, is_offline: bool = False) -> None:
        self.config, self.shared, self.is_offline = config, shared, is_offline
        self.clock = shared.clock

    def with_config(self, config: Config, *, is_offline: bool = False) -> PortFactory:
        return PortFactory(config, self.shared, is_offline=is_offline or self.is_offline)

    def has_given_llm(self, role: EndpointRole) -> bool:
        """Whether the model of that role was given by the caller, for this very endpoint."""
        endpoint, original = self.config.endpoint(role), self.shared.config.endpoint(role)
        return role in self.shared.given_llms and (endpoint.base_url, endpoint.model) == (original.base_url, original.model)

    def llm(self, role: EndpointRole) -> ports.LLM:
        if self.has_given_llm(role):
            return self.shared.given_llms[role]
        return self.llm_at(self.config.endpoint(role))

    def backends(self) -> tuple[ports.SearchBackend, ...]:
        if self.is_offline:
            return ()
        names, chains = self.config.search_chain(), self.shared.backends
        if self.shared.given_backends is not None:
            service = self.config.search_backend
            is_narrowed = service and service != self.shared.config.search_backend
            return tuple(b for b in self.shared.given_backends if not is_narrowed or b.name in names)
        if (key := (names, self.config.service_names())) not in chains:
            sender, chain = self._open_sender(("127.0.0.1",) if self._container() else ()), self._search_chain()
            chains[key] = tuple(self.shared.close_later(create_backend(n, own, sender)) for n, own in chain.items())
        return chains[key]

    def extra_backend(self, name: str) -> ports.SearchBackend | None:
        """A backend that a researcher's own tool asks, whatever the chain is; None where it cannot be used."""
        if not self.can_use_extra(name):
            return None
        extra = self.shared.extra_backends
        if name not in extra:
            extra[name] = self.shared.close_later(create_backend(name, self._backend_settings(name), self._open_sender()))
        return extra[name]

    def can_use_extra(self, name: str) -> bool:
        """Whether `extra_backend` has this one; nothing is built to find out."""
        if self.shared.given_backends is not None or (name == "ripgrep" and not self.config.grep_root):
            return False
        if self.is_offline and name in self.config.tools:
            return is_local_tool(self.config, name)
        return not self.is_offline or name in OFFLINE_BACKENDS

    async def find_paper(self, doi: str) -> Paper | None:
        """What the indexes of papers say of a DOI, in time; None where none may be asked or none knows it."""
        from nexi.backends.services import find_record

        try:
            services = self._open_services()
        except ConfigError:
            return None  # `nexi doctor` says so; a page is read without its record
        backends = [b for name in RECORD_SERVICES if name in services and (b := self.extra_backend(name))]
        return await find_record(doi, backends) if backends else None

    def searcher(
        self,
        emit: ports.Emit,
        replay: AgentReplay | None = None,
        *,
        backends: Callable[[], Sequence[ports.SearchBackend]] | None = None,
        retries: int = 1,
        patience: SearchPatience | None = None,
    ) -> Searcher:
        """The one way to ask backends: those of the chain, or others that were chosen among them."""
        return Searcher(
            backends or self.backends,
            emit=emit,
            clock=self.clock,
            breaker=self.breaker(),
            concurrency=self.shared.backend_concurrency,
            replay=replay,
            retries=retries,
            patience=patience,
        )

    def breaker(self) -> ports.Breaker | None:
        """The suspensions of the config's backends; a backend with other settings starts afresh."""
        if self.shared.breaker is None and self.shared.given_backends is None:
            try:
                chain = self._search_chain()
            except ConfigError:
                return None  # the search itself says so
            members = {name: s for each in chain.values() for name, s in each.members.items()}
            marks = {
                name: content_digest("\n".join((s.base_url, s.root, s.api_key, *s.spare_keys)))[:12]
                for name, s in (members | chain).items()
            }
            path, state = self.config.state_dir / "backends.json", self.shared.state
            self.shared.breaker = state.make_breaker(marks) if state else FileBreaker(path, clock=self.clock, marks=marks)
        return self.shared.breaker

    def fetchers(self) -> tuple[ports.ContentFetcher, ...]:
        if self.is_offline:
            return ()
        if self.shared.fetchers is None:
            names = self._fetch_chain()
            self.shared.fetchers = tuple(self.shared.close_later(create_fetcher(n, self._fetcher_settings(n))) for n in names)
        return self.shared.fetchers

    def uncached_fetchers(self) -> tuple[ports.ContentFetcher, ...]:
        """The fetch chain anew, with no cache around it; fetchers that were given stay as they are."""
        if self.shared.given_fetchers is not None:
            return self.shared.given_fetchers
        settings = {name: replace(self._fetcher_settings(name), cache_folder=None) for name in self._fetch_chain()}
        return tuple(self.shared.close_later(create_fetcher(name, own)) for name, own in settings.items())

    def picture_fetcher(self) -> ports.PictureFetcher | None:
        """What fetches pictures; None where pages are read by others, who would have to be asked for them."""
        if self.is_offline or not self.config.show_pictures:
            return None
        if (fetchers := self.shared.given_fetchers) is not None:
            can_fetch: list[Any] = [fetcher for fetcher in fetchers if hasattr(fetcher, "fetch_picture")]
            return can_fetch[0] if can_fetch else None
        if "http" not in self._fetch_chain():
            return None
        if self.shared.pictures is None:
            settings = replace(self._fetcher_settings("http"), cache_folder=None)
            self.shared.pictures = self.shared.close_later(create_fetcher("http", settings))
        return self.shared.pictures

    def check_url(self, url: str) -> object:
        """Refuse an address the guard refuses. Raises FetchError."""
        from nexi.fetchers.guard import AddressGuard

        return AddressGuard(self.config.allow_private).check_url(url)

    def knowledge(self) -> Knowledge:
        from nexi.app.knowledge import Knowledge

        config, stores = self.config, self.shared.knowledge
        key = (self.is_offline, config.use_hybrid_search, config.embedding_endpoint(), config.qdrant_url)
        if key not in stores:
            stores[key] = self.shared.close_later(Knowledge(self))
        return stores[key]

    def embedder(self) -> ports.Embedder | None:
        """What makes vectors: the endpoint or library that is named, else MiniLM or static vectors where installed."""
        embedders, key = self.shared.embedders, (self.config.embedding_endpoint(), self.config.embedding_library)
        if key not in embedders:
            embedders[key] = self.shared.close_later(self._make_embedder())
        return embedders[key]

    def _make_embedder(self) -> ports.Embedder | None:
        config = self.config
        if endpoint := config.embedding_endpoint():
            from nexi.llm.embeddings import OpenAIEmbedder

            return OpenAIEmbedder(self._connect(endpoint, EMBEDDING_TIMEOUT_S))
        # one on this machine keeps nothing of what it is given, so that people may share it
        library, embedders = config.embedding_library, self.shared.local_embedders
        if library not in embedders:
            embedders[library] = None
            if library or has_minilm():
                embedders[library] = LibraryEmbedder(library or MINILM, config.cache_dir / "models")
            else:
                with suppress(StoreError):  # words alone; `nexi doctor` says so
                    embedders[library] = StaticEmbedder()
        return embedders[library]

    def local_model(self) -> InstalledPairModel:
        """The cross-encoder that is installed on this machine, where there is one."""
        if self.shared.local_model is None:
            from nexi.app.pair_models import InstalledPairModel

            self.shared.local_model = self.shared.close_later(InstalledPairModel(self.config, self.clock))
        return self.shared.local_model

    def check(self) -> None:
        """Refuse what cannot work before anything is spent. Raises ConfigError."""
        for name, settings in self._search_chain().items() if self.shared.given_backends is None else ():
            require_backend(name, settings)
        if self.shared.fetchers is None:
            self._fetch_chain()
        self.config.trust.check()
        if self.config.webhook_url and len(self.config.webhook_secret) < MIN_WEBHOOK_SECRET_CHARS:
            cause = f"a notice is signed with a secret of at least {MIN_WEBHOOK_SECRET_CHARS} characters"
            fix = "nexi config set webhook_secret < FILE"
            raise ConfigError("webhook_url is set without webhook_secret", cause=cause, fix=fix)
        if self.config.tokenizer_encoding not in BUNDLED_ENCODINGS:
            from nexi.token_counter import get_encoding

            try:
                get_encoding(self.config.tokenizer_encoding)
            except ValueError as error:
                raise ConfigError("tokenizer_encoding cannot be used", cause=str(error), fix="set it to cl100k_base") from error
        endpoint = self.config.endpoint("answer")
        if self.config.max_cost is None or endpoint.is_extractive or self.has_given_llm("answer"):
            return
        # a cost limit that cannot be kept is refused; a server on this machine costs nothing, OpenRouter reports its cost
        host = host_of(endpoint.base_url)
        has_price = price_of(endpoint.model, price_table(self.config.prices)) is not None
        if not has_price and host != "openrouter.ai" and not is_loopback_host(host):
            fix = f'add it to the config: "prices": {{"{endpoint.model}": {{"input": 1.0, "output": 2.0}}}}'
            raise ConfigError(f"max_cost cannot be kept for {endpoint.model}", cause="its price is unknown", fix=fix)

    def _search_chain(self) -> dict[str, BackendSettings]:
        """The chain with what each backend needs; of the automatic chain, what this nexi can do."""
        config = self.config
        names = [n for n in config.search_chain() if config.search_backend or is_backend_available(n)]
        if not names:
            cause = "SEARXNG_URL is not set and no provider has a key"
            fix = "set SEARXNG_URL to a SearXNG instance with JSON on, like http://127.0.0.1:8080"
            raise ConfigError("no search service is configured", cause=cause, fix=fix)
        return {name: self._backend_settings(name) for name in names}

    def _backend_settings(self, name: str) -> BackendSettings:
        config = self.config
        keys = config.keys_for(name) or ("",)
        return BackendSettings(
            next(iter(config.searxng_urls()), "") if name == "searxng" else config.service_urls.get(name, ""),
            keys[0],
            config.jina_timeout if name == "jina" else config.search_timeout,
            config.https_proxy or config.http_proxy,
            tuple(keys[1:]),
            config.grep_root,
            config.ssl_cert_file,
            self._container() if name == "searxng" else None,
            backend_plugin(config, name),
            config.contact,
            config.searxng_urls() if name == "searxng" else (),
            self._open_services() if name == "services" else {},
            rate_meaning,
        )

    def _open_services(self) -> dict[str, BackendSettings]:
        """The settings of every open service that may be asked. Raises ConfigError for a name that is none."""
        names, urls = self.config.service_names(), self.config.service_urls
        exclusions = {name.removeprefix("-") for name in names if name.startswith("-")}
        wishes = [name for name in names if not name.startswith("-")] or list(SERVICES)
        if unknown := [name for name in (*wishes, *exclusions) if name not in SERVICES]:
            cause, fix = f"there are {', '.join(SERVICES)}", "correct the setting services"
            raise ConfigError(f"there is no open service called {unknown[0]!r}", cause=cause, fix=fix)
        lacking = {s.name for s in SERVICES.values() if s.needs_url and s.name not in urls}
        lacking |= {s.name for s in SERVICES.values() if s.needs_contact and not self.config.contact}
        return {name: self._backend_settings(name) for name in wishes if name not in exclusions | lacking}

    def _open_sender(self, no_proxy: tuple[str, ...] = ()) -> Sender:
        """What asks backends; it is called by the name of the program, with the address that complaints may go to."""
        from nexi.backends.sender import Sender

        connections, contact = self.connections(), self.config.contact
        connections["no_proxy"] += no_proxy
        user_agent = f"nexi/{__version__} (mailto:{contact})" if contact else f"nexi/{__version__}"
        sender: Sender = self.shared.close_later(Sender(user_agent=user_agent, **connections))
        return sender

    def _container(self) -> ContainerOptions | None:
        """The SearXNG to start at the first search; an instance that is named by its URL always wins."""
        starts_one = self.config.searxng_autostart and not self.config.searxng_urls()
        return container_options(self.config) if starts_one else None

    def _fetch_chain(self) -> list[str]:
        return [n for n in self.config.fetch_chain() if self.config.content_fetcher or is_fetcher_available(n)]

    def runs(self) -> ports.RunStore:
        return state.runs if (state := self.shared.state) else self._run_directory()

    def _run_directory(self) -> RunDirectory:
        """The runs of the home. Of a guest's run, the id alone says whose it is, so it cannot be guessed."""
        new_id = new_long_id if self.config.is_for_guests else None
        return RunDirectory(self.config.runs_dir, self.config.pages_dir, clock=self.clock, new_id=new_id)

    def history(self) -> ports.HistoryStore:
        return state.history if (state := self.shared.state) else FileHistory(self.config.history_path)

    def spaces(self) -> ports.SpaceStore:
        return state.spaces if (state := self.shared.state) else open_spaces(self.config)

    def pages(self) -> ports.PageStore:
        return self.runs().pages

    def page_cache(self) -> PageCache:
        """Pages kept between runs; `clear()` forgets them."""
        from nexi.fetchers.cache import PageCache

        return PageCache(self.config.page_cache_dir, clock=self.clock, ttl_s=self.config.page_cache_ttl_s)

    def retention(self) -> RetentionNotice:
        return RetentionNotice(self.config.personal_dir / "state" / "retention.json", self._run_directory(), self.clock)

    def tidy(self) -> None:
        """Once a day, announce and later delete runs beyond what the config keeps. Errors are ignored: best effort."""
        stamp = self.config.personal_dir / "state" / "tidied"
        with suppress(OSError, StoreError):
            if stamp.exists() and self.clock.now().timestamp() - stamp.stat().st_mtime < TIDY_EVERY_S:
                return
            make_private_directory(stamp.parent)
            stamp.touch(mode=PRIVATE_FILE)
            keep_days, max_mb = self.config.runs_keep_days, self.config.pages_max_mb
            if self.config.is_for_guests:
                self._run_directory().prune(keep_days, max_mb)  # there is nobody to announce it to
            else:
                self.retention().tidy(keep_days, max_mb)
            self.page_cache().sweep()

    def _fetcher_settings(self, name: str) -> FetcherSettings:
        config = self.config
        return FetcherSettings(
            plugin=fetcher_plugin(config, name),
            timeout_s=config.jina_timeout if name == "jina" else None,
            clock=self.clock,
            api_key=next(iter(config.keys_for(name)), ""),
            allow_private=config.allow_private,
            ocr_languages=config.ocr_languages,
            respect_robots=config.respect_robots,
            make_pacing=self.shared.state.make_pacing if self.shared.state else None,
            cache_folder=config.page_cache_dir if config.page_cache else None,
            cache_ttl_s=config.page_cache_ttl_s,
            **self.connections(),
        )

    def proxy_for(self, base_url: str) -> str | None:
        """The proxy for an endpoint of the operator's; hosts in no_proxy and loopback are called directly."""
        if not (self.config.http_proxy or self.config.https_proxy):
            return None
        host = host_of(base_url)
        direct = [host.lstrip(".") for host in self._direct_hosts()]
        if is_loopback_host(host) or any(d == "*" or host == d or host.endswith(f".{d}") for d in direct):
            return None
        return (self.config.https_proxy if base_url.startswith("https") else self.config.http_proxy) or None

    def connections(self) -> dict[str, Any]:
        """What every client of the open network is told."""
        proxy = self.config.https_proxy or self.config.http_proxy
        return {"proxy": proxy, "no_proxy": tuple(self._direct_hosts()), "trust": self.config.trust}

    def _direct_hosts(self) -> list[str]:
        return [host.strip() for host in self.config.no_proxy.split(",") if host.strip()]

    def llm_at(self, endpoint: Endpoint) -> ports.LLM:
        """The client of an endpoint, one for each model. Raises ConfigError when there are too many."""
        if endpoint.is_extractive:
            return built_in_llm()
        config, clients = self.config, self.shared.llms
        key = (endpoint.base_url, endpoint.model, endpoint.api_keys, config.stream, config.llm_timeout)
        if key not in clients:
            if len(clients) >= MAX_MODELS:
                cause, fix = f"{MAX_MODELS} others are in use by this process", "use one of those, or restart nexi"
                raise ConfigError(f"the model {endpoint.model!r} is one too many", cause=cause, fix=fix)
            clients[key] = self.shared.close_later(self._connect(endpoint, config.llm_timeout))
            if (most := config.team_max_model_calls) and (state := self.shared.state):
                clients[key] = _LimitedModel(clients[key], state.limit_calls(host_of(endpoint.base_url), most))
        return clients[key]

    def _connect(self, endpoint: Endpoint, idle_timeout_s: float) -> OpenAICompatible:
        from nexi.llm.openai.client import OpenAICompatible

        return OpenAICompatible(
            endpoint.base_url,
            endpoint.model,
            api_keys=endpoint.api_keys,
            clock=self.clock,
            max_retries=self.config.llm_max_retries,
            prices=price_table(self.config.prices),
            stream=self.config.stream,
            idle_timeout_s=idle_timeout_s,
            proxy=self.proxy_for(endpoint.base_url),
            trust=self.config.trust,
        )


def fetches_its_model(config: Config) -> bool:
    """Whether the library may go and get its model; what is a package or named by its folder is there or nowhere."""
    library, _, model = config.embedding_library.partition(":")
    return library not in ("", "e5", "minilm") and not (library == "model2vec" and is_folder(model))


def container_options(config: Config) -> ContainerOptions:
    """The SearXNG container of this config: what is started, and where that is written down."""
    from nexi.backends.container import Options

    engines = [name.removeprefix(ENGINE_KEY) for name in config.api_keys if name.startswith(ENGINE_KEY)]
    keys = {engine: config.keys_for(ENGINE_KEY + engine) for engine in engines if engine}
    return Options(
        state_dir=config.state_dir,
        own_settings=config.searxng_settings,
        image=config.searxng_image,
        tag=config.searxng_tag,
        port=config.searxng_port,
        proxies=tuple(p for p in (config.https_proxy or config.http_proxy,) if p),
        engine_keys={engine: own[0] for engine, own in keys.items() if own},
    )


def find_container_engine() -> str:
    """The command that could start a container on this machine; "" where there is none."""
    from nexi.backends.container.engine import COMMANDS

    return next((command for command in COMMANDS if shutil.which(command)), "")


def container_lifecycle(config: Config) -> Lifecycle:
    from nexi.backends.container import Lifecycle

    return Lifecycle(container_options(config))


def built_in_llm() -> ports.LLM:
    """The model that needs no server."""
    from nexi.llm.extractive.model import Extractive

    return Extractive(compare_texts)


@cache
def _reading_model() -> E5Encoder:
    """The small model that reads on this machine; its files are opened with the first text."""
    return E5Encoder()


def compare_texts(question: str, texts: Sequence[str]) -> Sequence[float] | None:
    """How near each text is to a question; None where the reading model is missing or broken, which `nexi doctor` says."""
    try:
        return _reading_model().compare(question, texts)
    except StoreError:
        return None


def rate_meaning(question: str) -> Mapping[str, float]:
    """How much a question is of each kind of service; nothing where the reading model is missing or broken."""
    from nexi.routing.route import rate_kinds

    try:
        return rate_kinds([float(value) for value in _reading_model().encode([question], query=True)[0]])
    except StoreError:
        return {}


def find_reading_problem() -> StoreError | None:
    """Why the reading model cannot be used, where it cannot."""
    try:
        _reading_model().compare("test", ["test"])
    except StoreError as error:
        return error
    return None


def rate_pages(question: str, pages: Sequence[PageView], earlier: str = "") -> Answered:
    """Whether pages answer a question that was asked after earlier ones."""
    from nexi.llm.extractive.composition import rate_pages as rate

    return rate(question, pages, compare_texts, earlier)


def factory_for(config: Config) -> PortFactory:
    return PortFactory(config, SharedClients(config, SystemClock(), {}, None, None))
