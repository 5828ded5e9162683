"""Backends and fetchers of others behind our ports: objects, packages and single files; and ours, asked in the seeds' way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias

from msgspec import Struct

from nexi import __version__, backends, fetchers
from nexi.app.clock import SystemClock
from nexi.app.emit import QuietEmit
from nexi.config import Config, load_config
from nexi.errors import ConfigError, FetchError, NexiError
from nexi.plugins import (
    FetchPlugin,
    PluginBackend,
    PluginFetcher,
    SearchPlugin,
    list_plugin_files,
    load_plugin_file,
    takes_lists,
)
from nexi.ports import ContentFetcher, SearchBackend
from nexi.searcher import Searcher
from nexi.tasks import gather_all
from nexi.types import FetchLimits, PageView, Query, SearchOutcome

CheckUrl: TypeAlias = Callable[[str], object]
UPDATE_IT = "update or remove the package that provides it"
MAX_TOOL_CHARS = 1_000  # of what a tool says to a model


def as_backend(backend: Any, *, name: str = "", api_key: str = "", timeout_s: float = 30.0) -> SearchBackend:
    """A backend that others wrote, guarded. Raises ConfigError for an object that has no `search`."""
    _require_method(backend, name, "search(query)")
    if takes_lists(backend.search, "queries"):
        return SearchPlugin(backend, name=name, api_key=api_key, timeout_s=timeout_s)
    return PluginBackend(backend, name=name)


def as_fetcher(fetcher: Any, *, name: str = "", api_key: str = "", check: CheckUrl | None = None) -> ContentFetcher:
    """A fetcher that others wrote, guarded. Raises ConfigError for an object that has no `fetch`."""
    _require_method(fetcher, name, "fetch(url, limits)")
    if takes_lists(fetcher.fetch, "urls"):
        return FetchPlugin(fetcher, name=name, api_key=api_key)
    return PluginFetcher(fetcher, name=name, check=check)


def _require_method(plugin: object, name: str, method: str) -> None:
    if not callable(getattr(plugin, method.partition("(")[0], None)):
        fix = "give it that method, as docs/search-and-pages.md shows"
        raise ConfigError(f"{name or type(plugin).__name__} is no plug-in", cause=f"it has no {method}", fix=fix)


def backend_plugin(config: Config, name: str) -> backends.Factory | None:
    """What makes the backend of a plug-in file or an installed package; None where there is none. Raises ConfigError."""
    if name in backends.BACKENDS:
        return None
    module = load_plugin_file(config.plugins_dir, name)
    if module is not None and hasattr(module, "search"):
        return lambda settings, sender: as_backend(module, name=name, api_key=settings.api_key, timeout_s=settings.timeout_s)
    factory = _load_entry_point(backends.ENTRY_POINTS, name)
    return (lambda *given: as_backend(_build(factory, name, *given), name=name)) if factory else None


def describe_tool(config: Config, name: str) -> str:
    """What a tool of the user says to a model. Raises ConfigError."""
    return str(_load_tool(config, name).TOOL)[:MAX_TOOL_CHARS]


def is_local_tool(config: Config, name: str) -> bool:
    """Whether a tool of the user says that nothing it is asked leaves the machine."""
    return getattr(_load_tool(config, name), "local", False) is True


def _load_tool(config: Config, name: str) -> ModuleType:
    if name in backends.BACKENDS:
        raise ConfigError(f"{name} cannot be a tool", cause="nexi has a backend of that name", fix="rename the file")
    module = load_plugin_file(config.plugins_dir, name)
    if module is None:
        fix = f"write it, as docs/search-and-pages.md shows, or take {name} out of tools"
        raise ConfigError(f"there is no tool {name}", cause=f"{config.plugins_dir / name}.py does not exist", fix=fix)
    if not (callable(getattr(module, "search", None)) and str(getattr(module, "TOOL", "")).strip()):
        cause = "it lacks a function search(query) or the text TOOL, which says what it is for"
        raise ConfigError(f"the plug-in {name} is no tool", cause=cause, fix=f"add them, or take {name} out of tools")
    return module


def fetcher_plugin(config: Config, name: str) -> fetchers.Factory | None:
    """What makes the fetcher of a plug-in file or an installed package; None where there is none. Raises ConfigError."""
    if name in fetchers.FETCHERS:
        return None
    from nexi.fetchers.guard import AddressGuard

    check, module = AddressGuard(config.allow_private).check_url, load_plugin_file(config.plugins_dir, name)
    if module is not None and hasattr(module, "fetch"):
        return lambda settings: as_fetcher(module, name=name, api_key=settings.api_key, check=check)
    factory = _load_entry_point(fetchers.ENTRY_POINTS, name)
    return (lambda *given: as_fetcher(_build(factory, name, *given), name=name, check=check)) if factory else None


def _load_entry_point(group: str, name: str) -> Callable[..., Any] | None:
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        try:
            factory: Callable[..., Any] = entry.load()
        except Exception as error:
            raise ConfigError(f"the plug-in {name} cannot be loaded", cause=repr(error)[:300], fix=UPDATE_IT) from error
        return factory
    return None


def _build(factory: Callable[..., Any], name: str, *given: Any) -> Any:
    try:
        return factory(*given)
    except NexiError:
        raise
    except Exception as error:
        raise ConfigError(f"the plug-in {name} cannot be started", cause=repr(error)[:300], fix=UPDATE_IT) from error


class _PluginInfo(Struct, frozen=True):
    """A plug-in that is installed, used or not. `kinds` are among backend, fetcher and tool."""

    name: str
    kinds: tuple[str, ...]
    origin: str
    is_used: bool
    error: str = ""


def list_plugins(config: Config) -> list[_PluginInfo]:
    """Every plug-in of installed packages and of the folder `plugins`, loaded to see whether it works."""
    from importlib.metadata import entry_points

    chains = {"backend": config.search_chain(), "fetcher": config.fetch_chain(), "tool": config.tools}
    own = {"backend": backends.BACKENDS, "fetcher": fetchers.FETCHERS, "tool": ()}
    plugins = []
    for file in list_plugin_files(config.plugins_dir):
        uses = {"backend": file.searches, "fetcher": file.fetches, "tool": file.is_tool}
        kinds = tuple(kind for kind, is_offered in uses.items() if is_offered)
        conflicts = [kind for kind in kinds if file.name in own[kind]]
        error = f"nexi has a {conflicts[0]} of that name: rename the file" if conflicts else file.error
        plugins.append(_PluginInfo(file.name, kinds, str(file.path), any(file.name in chains[k] for k in kinds), error))
    for kind, group in (("backend", backends.ENTRY_POINTS), ("fetcher", fetchers.ENTRY_POINTS)):
        for entry in entry_points(group=group):
            origin = f"the package {entry.dist.name}" if entry.dist else entry.value
            error = ""
            try:
                _load_entry_point(group, entry.name)
            except ConfigError as failure:
                error = str(failure)
            plugins.append(_PluginInfo(entry.name, (kind,), origin, entry.name in chains[kind], error))
    return plugins


def _connections() -> dict[str, Any]:
    """The proxies and certificates of this machine hold for a call without a config, too."""
    from nexi.app.factory import factory_for

    return factory_for(load_config()).connections()


async def search_as_plugin(name: str, queries: Sequence[str], api_key: str, timeout_s: float) -> list[SearchOutcome]:
    """A backend of ours asked in the seeds' way: several queries and a key with the call."""
    from nexi.backends.sender import Sender

    connections = _connections()
    sender = Sender(user_agent=f"nexi/{__version__}", **connections)
    settings = backends.Settings("", api_key, timeout_s, connections["proxy"], certificates=connections["trust"].file)
    backend = backends.create_backend(name, settings, sender)
    searcher = Searcher(lambda: [backend], emit=QuietEmit(), clock=SystemClock())
    try:
        return await gather_all(searcher.search(Query(text)) for text in queries)
    finally:
        await sender.aclose()


async def fetch_as_plugin(name: str, urls: Sequence[str], api_key: str, timeout_s: float) -> list[PageView]:
    """A fetcher of ours asked in the seeds' way: several URLs and a key with the call."""
    fetcher: Any = fetchers.create_fetcher(name, fetchers.Settings(clock=SystemClock(), api_key=api_key, **_connections()))
    limits = FetchLimits(timeout_s=timeout_s)

    async def one(url: str) -> PageView:
        try:
            page = await fetcher.fetch(url, limits)
        except FetchError as error:
            return PageView(url, error=f"{error.reason}: {error}")
        return PageView(url, title=page.title, text=page.text)

    try:
        return await gather_all(one(url) for url in urls)
    finally:
        await fetcher.aclose()
