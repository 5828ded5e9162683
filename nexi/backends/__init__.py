"""Search backends by name, each imported when its name is asked for; third parties add theirs by `nexi.backends`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from nexi.errors import ConfigError
from nexi.notices import Notice
from nexi.ports import SearchBackend

if TYPE_CHECKING:
    from nexi.backends.container import Options as ContainerOptions
    from nexi.backends.sender import Sender

ENTRY_POINTS = "nexi.backends"


class Settings(Struct, frozen=True):
    """What a backend may need: its endpoint, its key and spare ones, its patience, the folder it may search."""

    base_url: str = ""
    api_key: str = ""
    timeout_s: float = 10.0
    proxy: str = ""
    spare_keys: tuple[str, ...] = ()
    root: str = ""
    certificates: str = ""  # a file, for a library that has clients of its own
    container: ContainerOptions | None = None  # what is started in the place of an endpoint
    plugin: Factory | None = None  # what makes a backend that is not nexi's own
    contact: str = ""  # an address that open services are told
    instances: tuple[str, ...] = ()  # of SearXNG, where there are several
    members: Mapping[str, Settings] = {}  # of a backend over other backends
    rate_meaning: Callable[[str], Mapping[str, float]] | None = None  # how much a question is of each kind


Factory: TypeAlias = "Callable[[Settings, Sender], SearchBackend]"


def _build_searxng(settings: Settings, sender: Sender) -> SearchBackend:
    from nexi.backends.searxng import PagedSearxng, Searxng, SearxngInstances
    from nexi.backends.sender import HttpBackend

    def at(url: str) -> SearchBackend:
        return PagedSearxng(lambda page: HttpBackend(Searxng(url, settings.timeout_s, page=page), sender))

    if len(settings.instances) > 1:
        return SearxngInstances(settings.instances, at)
    if settings.base_url or settings.container is None:
        return at(settings.base_url)
    from nexi.backends.container import ContainerBackend, Lifecycle

    return ContainerBackend(Lifecycle(settings.container), at)


def _build_own(name: str, settings: Settings, sender: Sender) -> SearchBackend:
    """A backend of nexi's own. One that only asks over HTTP is a dialect on the shared sender."""
    from nexi.backends.sender import BackendDialect, HttpBackend

    timeout_s = settings.timeout_s
    keys = (settings.api_key, *settings.spare_keys)
    mirror = {"base_url": settings.base_url} if settings.base_url else {}
    dialects: list[BackendDialect]
    match name:
        case "searxng":
            return _build_searxng(settings, sender)
        case "duckduckgo":
            from nexi.backends.duckduckgo import DuckDuckGo

            return DuckDuckGo(timeout_s=timeout_s, proxy=settings.proxy, certificates=settings.certificates)
        case "security":
            from nexi.backends.security import Security

            return Security(sender, timeout_s=timeout_s, api_key=settings.api_key)
        case "ripgrep":
            from nexi.backends.ripgrep import Ripgrep

            return Ripgrep(settings.root, timeout_s=timeout_s)
        case "kiwix":
            from nexi.backends.kiwix import KiwixBackend

            return KiwixBackend(settings.base_url, sender, timeout_s)
        case "stackexchange":
            from nexi.backends.stackexchange import StackExchange, StackExchangeBackend

            first, *spares = (StackExchange(api_key=key, timeout_s=timeout_s, **mirror) for key in keys)
            return StackExchangeBackend(first, sender, spares=spares)
        case "services":
            from nexi.backends.services import OpenServices

            builders = {member: partial(create_backend, member, own, sender) for member, own in settings.members.items()}
            return OpenServices(builders, settings.rate_meaning)
        case "wikipedia":
            from nexi.backends.wikipedia import WIKIS, Wikipedia

            dialects = [Wikipedia(timeout_s, settings.base_url or WIKIS)]
        case "arxiv":
            from nexi.backends.arxiv import Arxiv

            dialects = [Arxiv(timeout_s=timeout_s, **mirror)]
        case "jina":
            from nexi.backends.jina import Jina

            dialects = [Jina(key, timeout_s) for key in keys]
        case _ if name in NEEDS_KEY:
            from nexi.backends.keyed import KeyedService

            dialects = [KeyedService(name, key, timeout_s) for key in keys]
        case _:
            from nexi.backends.services import FORMS, Caller, ServiceBackend, ServiceDialect

            caller = Caller((settings.base_url or FORMS[name].base).rstrip("/"), settings.api_key, settings.contact)
            return ServiceBackend(ServiceDialect(name, FORMS[name], caller, timeout_s), sender)
    return HttpBackend(dialects[0], sender, spares=dialects[1:])


def _own_factory(name: str) -> Factory | None:
    """What makes a backend of nexi's own; None for another."""
    from nexi.routing.table import SERVICES

    return partial(_build_own, name) if name in BACKENDS or name in SERVICES else None


NEEDS_KEY = ("jina", "tavily", "brave", "exa", "serper", "firecrawl")
BACKENDS = (
    *("searxng", "jina", "duckduckgo", "wikipedia", "stackexchange", "arxiv", "security", "ripgrep", "kiwix", "services"),
    *NEEDS_KEY[1:],
)


def require_backend(name: str, settings: Settings) -> Factory:
    """What makes the backend of that name; ConfigError when nobody provides it or its settings are incomplete."""
    factory = _own_factory(name) or settings.plugin or _third_party(name)
    match name:
        case "searxng" if not settings.base_url and settings.container is None:
            fix = "set SEARXNG_URL to the start page of an instance, like http://127.0.0.1:8080"
            raise ConfigError("the searxng backend has no URL", cause="no instance is named", fix=fix)
        case "yacy" if not settings.base_url:
            fix = "nexi config set service_urls.yacy http://127.0.0.1:8090"
            raise ConfigError("the yacy backend has no address", cause="it is a peer of your own", fix=fix)
        case "kiwix" if not settings.base_url:
            fix = "nexi config set service_urls.kiwix http://127.0.0.1:8080"
            raise ConfigError("the kiwix backend has no address", cause="it is a kiwix-serve of your own", fix=fix)
        case "ripgrep" if not settings.root:
            cause, fix = "it searches only a folder that you name", "set grep_root to the folder of your code"
            raise ConfigError("the ripgrep backend has no folder", cause=cause, fix=fix)
        case _ if name in NEEDS_KEY and not settings.api_key:
            message = Notice("service.no_key", "the {service} backend has no key", service=name)
            raise ConfigError(message, cause=Notice("service.needs_key", "it requires one"), fix=f"set {name.upper()}_API_KEY")
    return factory


def is_available(name: str) -> bool:
    """Whether nexi or an installed package provides a backend of that name."""
    try:
        return bool(_own_factory(name) or _third_party(name))
    except ConfigError:
        return False


def create_backend(name: str, settings: Settings, sender: Sender) -> SearchBackend:
    return require_backend(name, settings)(settings, sender)


def _third_party(name: str) -> Factory:
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        factory: Factory = entry.load()
        return factory
    cause = f"nexi has {', '.join(BACKENDS)}, and no installed package or plug-in file adds it"
    fix = "set search_backend to one of these, or install the plug-in that provides it"
    raise ConfigError(f"there is no search backend called {name!r}", cause=cause, fix=fix)
