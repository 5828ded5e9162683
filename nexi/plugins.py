"""Plug-ins: backends and fetchers that are not nexi's own, from a program, an installed package or the folder `plugins`.

Whatever such code raises or returns, the caller sees a BackendError or FetchError that names it, so that the next backend or
fetcher is asked. A plug-in of the seeds takes lists and a key with every call; a wrapper makes it a backend or fetcher.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from nexi.errors import BackendError, ConfigError, FetchError
from nexi.types import FetchLimits, Hit, Page, Query


class SearchPlugin:
    def __init__(self, plugin: Any, *, name: str = "", api_key: str = "", timeout_s: float = 30.0) -> None:
        self._plugin, self._api_key, self._timeout_s = plugin, api_key, timeout_s
        self.name = name or _name_of(plugin)

    async def search(self, query: Query) -> list[Hit]:
        try:
            answer = await self._plugin.search([query.text], self._api_key, self._timeout_s, False)
        except Exception as error:
            raise BackendError(f"the plug-in {self.name} failed", cause=repr(error)) from error
        entry = _first(answer, "searches")
        if entry.get("error"):
            raise BackendError(f"the plug-in {self.name} found nothing", cause=str(entry["error"]))
        hits = [_hit(r, self.name) for r in entry.get("results") or () if isinstance(r, Mapping) and r.get("url")]
        return hits[: query.count]


class FetchPlugin:
    def __init__(self, plugin: Any, *, name: str = "", api_key: str = "") -> None:
        self._plugin, self._api_key = plugin, api_key
        self.name = name or _name_of(plugin)

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        try:
            answer = await self._plugin.fetch([url], self._api_key, limits.timeout_s, False)
        except Exception as error:
            raise FetchError(f"the plug-in {self.name} failed", cause=repr(error)) from error
        entry = _first(answer, "pages")
        if entry.get("error") or not str(entry.get("content") or "").strip():
            raise FetchError(f"the plug-in {self.name} has no text of the page", cause=str(entry.get("error") or "empty"))
        return _read_page({"text": entry["content"], "title": entry.get("title")}, url, limits, self.name)


class PluginBackend:
    """A backend of other people's code: plain functions and hits as dictionaries work too, and every fault is named."""

    def __init__(self, backend: Any, *, name: str = "") -> None:
        self._backend = backend
        self.name = name or _name_of(backend)

    def __getattr__(self, name: str) -> Any:
        """What the searcher honours beside `search` (filters, interval_s, local) and `aclose` are the backend's own."""
        return getattr(self._backend, name)

    async def search(self, query: Query) -> list[Hit]:
        try:
            return _read_hits(await _call(self._backend.search, query), self.name)
        except BackendError:
            raise
        except Exception as error:
            fix = "fix the plug-in, or take it out of search_backend"
            raise BackendError(f"the plug-in {self.name} failed", cause=_describe(error), fix=fix, code="plugin") from error


class PluginFetcher:
    """A fetcher of other people's code; `check` refuses addresses before it is asked."""

    def __init__(self, fetcher: Any, *, name: str = "", check: Callable[[str], object] | None = None) -> None:
        self._fetcher, self._check = fetcher, check
        self.name = name or _name_of(fetcher)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fetcher, name)

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        if self._check:
            self._check(url)
        try:
            return _read_page(await _call(self._fetcher.fetch, url, limits), url, limits, self.name)
        except FetchError:
            raise
        except Exception as error:
            fix = "fix the plug-in, or take it out of content_fetcher"
            raise FetchError(f"the plug-in {self.name} failed", cause=_describe(error), fix=fix) from error


def _name_of(plugin: Any) -> str:
    return str(getattr(plugin, "name", "") or type(plugin).__name__)


async def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, of either kind; a plain one may block, so it runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer = await asyncio.to_thread(function, *arguments)
    return await answer if inspect.isawaitable(answer) else answer


def _read_hits(answer: Any, name: str) -> list[Hit]:
    if isinstance(answer, list) and all(isinstance(hit, Hit) for hit in answer):
        return answer  # as it is: it may carry the failures of its parts
    if not isinstance(answer, list | tuple):
        raise TypeError(f"search returned {type(answer).__name__}, not a list of hits")
    return [hit if isinstance(hit, Hit) else _hit(_as_mapping(hit, "a hit"), name) for hit in answer]


def _read_page(answer: Any, url: str, limits: FetchLimits, name: str) -> Page:
    if isinstance(answer, Page):
        return answer
    fields = {"text": answer} if isinstance(answer, str) else _as_mapping(answer, "a page")
    text = str(fields.get("text") or fields.get("content") or "")
    if not text.strip():
        raise ValueError("the page has no text")
    excerpt = text[: limits.max_chars]
    return Page(url, excerpt, title=str(fields.get("title") or ""), truncated=len(excerpt) < len(text), fetcher=name)


def _as_mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is {type(value).__name__}, not a dictionary")
    return value


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


# single files


class _PluginFile(Struct, frozen=True):
    """A file of the folder: its name, what it offers, and why it cannot be used where it cannot."""

    name: str
    path: Path
    searches: bool = False
    fetches: bool = False
    is_tool: bool = False
    error: str = ""


_FILE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,49}")


def list_plugin_files(folder: Path) -> list[_PluginFile]:
    plugins = []
    for path in sorted(path for path in folder.glob("*.py") if not path.name.startswith(("_", "."))):
        try:
            module = load_plugin_file(path.parent, path.stem)
        except ConfigError as error:
            plugins.append(_PluginFile(path.stem, path, error=str(error)))
        else:
            searches, fetches, is_tool = (hasattr(module, name) for name in ("search", "fetch", "TOOL"))
            plugins.append(_PluginFile(path.stem, path, searches, fetches, is_tool))
    return plugins


def load_plugin_file(folder: Path, name: str) -> ModuleType | None:
    """The module of a plug-in file; None where there is no such file. Raises ConfigError when it cannot be used."""
    # the file runs with the rights of nexi, so one that any user of the machine may change is refused
    path = folder / f"{name}.py"
    if not _FILE_NAME.fullmatch(name) or not path.is_file():
        return None
    if sys.platform != "win32" and path.stat().st_mode & stat.S_IWOTH:
        raise ConfigError(f"the plug-in {path} is not loaded", cause="every user may change it", fix=f"chmod o-w {path}")
    return _run_file(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _run_file(path: Path, _modified_ns: int) -> ModuleType:
    """The module of a file, run once until the file changes."""
    module = ModuleType(f"nexi_plugin_{path.stem.replace('-', '_')}")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - the user's own file
    except (Exception, SystemExit) as error:
        fix = "fix the file, or move it elsewhere"
        raise ConfigError(f"the plug-in {path} cannot be loaded", cause=f"{type(error).__name__}: {error}", fix=fix) from error
    if not (callable(getattr(module, "search", None)) or callable(getattr(module, "fetch", None))):
        cause, fix = "it has neither a function search(query) nor fetch(url, limits)", "add one of them"
        raise ConfigError(f"the plug-in {path} cannot be used", cause=cause, fix=fix)
    return module


def takes_lists(method: Any, first: str) -> bool:
    """Whether a method has the seeds' shape, told by the name of its first parameter."""
    with suppress(TypeError, ValueError):
        return next(iter(inspect.signature(method).parameters), "") == first
    return False


def _first(answer: object, key: str) -> Mapping[str, Any]:
    entries = answer.get(key) if isinstance(answer, Mapping) else None
    entry = entries[0] if isinstance(entries, list) and entries else {}
    return entry if isinstance(entry, Mapping) else {}


def _hit(result: Mapping[str, Any], backend: str) -> Hit:
    def text(*names: str) -> str:
        return next((str(result[n]) for n in names if result.get(n)), "")

    return Hit(str(result["url"]), text("title"), text("description", "snippet"), text("published_time"), backend)
