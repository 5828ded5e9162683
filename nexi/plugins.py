"""Puts the seeds' plug-ins behind the ports.

The seeds' plug-in takes lists and a key with every call: `search(queries, api_key, timeout, verbose)` and
`fetch(urls, api_key, timeout, verbose)`. One wrapper each makes it a backend or fetcher like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from nexi.errors import BackendError, FetchError
from nexi.types import FetchLimits, Hit, Page, Query


class SearchPlugin:
    """A seeds' search plug-in as a SearchBackend."""

    def __init__(self, plugin: Any, *, name: str = "", api_key: str = "", timeout_s: float = 30.0) -> None:
        self._plugin = plugin
        self._api_key = api_key
        self._timeout_s = timeout_s
        self.name = name or str(getattr(plugin, "name", "") or type(plugin).__name__)

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
    """A seeds' fetch plug-in as a ContentFetcher."""

    def __init__(self, plugin: Any, *, name: str = "", api_key: str = "") -> None:
        self._plugin = plugin
        self._api_key = api_key
        self.name = name or str(getattr(plugin, "name", "") or type(plugin).__name__)

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        try:
            answer = await self._plugin.fetch([url], self._api_key, limits.timeout_s, False)
        except Exception as error:
            raise FetchError(f"the plug-in {self.name} failed", cause=repr(error)) from error
        entry = _first(answer, "pages")
        text = str(entry.get("content") or "")
        if entry.get("error") or not text.strip():
            raise FetchError(f"the plug-in {self.name} has no text of the page", cause=str(entry.get("error") or "empty"))
        cut = text[: limits.max_chars]
        return Page(url, cut, title=str(entry.get("title") or ""), truncated=len(cut) < len(text), fetcher=self.name)


def takes_lists(method: Any, first: str) -> bool:
    """Whether a method has the seeds' shape, told by the name of its first parameter."""
    try:
        return next(iter(inspect.signature(method).parameters), "") == first
    except (TypeError, ValueError):
        return False


def _first(answer: object, key: str) -> Mapping[str, Any]:
    entries = answer.get(key) if isinstance(answer, Mapping) else None
    entry = entries[0] if isinstance(entries, list) and entries else {}
    return entry if isinstance(entry, Mapping) else {}


def _hit(result: Mapping[str, Any], backend: str) -> Hit:
    def text(*names: str) -> str:
        return next((str(result[n]) for n in names if result.get(n)), "")

    return Hit(str(result["url"]), text("title"), text("description", "snippet"), text("published_time"), backend)
