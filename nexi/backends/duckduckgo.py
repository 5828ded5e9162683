"""DuckDuckGo through the ddgs library, which asks the page a person would see. No key.

The library is synchronous and reports a rate limit, a block and an empty page alike as "No results found.", so an empty
answer is never taken for certain here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from nexi.backends._replies import read_hit, read_rows, with_sites
from nexi.errors import BackendError
from nexi.net.causes import plain_cause
from nexi.notices import Notice
from nexi.types import Hit, Query

NAME = "duckduckgo"
_COUNTRIES = {"en": "us", "ja": "jp", "zh": "cn", "ko": "kr", "sv": "se", "da": "dk", "cs": "cz", "el": "gr", "uk": "ua"} | {
    same: same for same in ("de", "fr", "es", "it", "pt", "nl", "pl", "ru", "fi", "no", "hu", "ro", "tr")
}
DNS_MARKS = ("dns error", "dnserror", "resolving dns")
Ask = Callable[..., Sequence[dict[str, Any]]]


class DuckDuckGo:
    """The SearchBackend port over ddgs. `ask` stands for the library's call in tests."""

    name = NAME
    filters = frozenset({"site", "time", "language"})

    def __init__(self, *, timeout_s: float = 10.0, proxy: str = "", certificates: str = "", ask: Ask | None = None) -> None:
        self._timeout_s, self._proxy, self._certificates = timeout_s, proxy, certificates
        self._ask = ask or self._with_library

    async def search(self, query: Query) -> list[Hit]:
        # DuckDuckGo filters by country and language together; a language alone means its largest country there.
        language, _, country = query.language.lower().partition("-")
        country = country or _COUNTRIES.get(language, "")
        period = query.time_range[:1].lower()
        try:
            rows = await asyncio.to_thread(
                self._ask,
                with_sites(query),
                region=f"{country}-{language}" if country else "wt-wt",
                timelimit=period if period in ("d", "w", "m", "y") else None,
                max_results=query.count,
                backend="duckduckgo",
            )
        except BackendError:
            raise
        except Exception as error:  # the library lets through what its own libraries raise
            raise _translate_error(error) from error
        return [read_hit(row, NAME, "href", "body") for row in read_rows(list(rows), "href")]

    def _with_library(self, text: str, **options: Any) -> Sequence[dict[str, Any]]:
        try:
            from ddgs import DDGS
        except ImportError as error:
            fix = "pip install ddgs"
            raise BackendError("DuckDuckGo cannot be asked", code="not_installed", cause=str(error), fix=fix) from error
        client = DDGS(proxy=self._proxy or None, timeout=int(self._timeout_s), verify=self._certificates or True)
        rows: Sequence[dict[str, Any]] = client.text(text, **options)
        return rows


def _translate_error(error: Exception) -> BackendError:
    kind, cause = type(error).__name__, str(error)[:200]
    unreachable = Notice("service.unreachable", "{service} cannot be reached", service="DuckDuckGo")
    if "No results" in cause:
        return BackendError(
            Notice("duckduckgo.empty", "DuckDuckGo gave no results"),
            code="empty_or_blocked",
            cause=Notice("duckduckgo.same", "it says the same for a query without results, a rate limit and a block"),
            fix=Notice("fix.own_searxng", "try other words, wait, or set SEARXNG_URL to a SearXNG of your own"),
        )
    if kind == "RatelimitException":
        message = Notice("service.rate", "{service} limits how often it may be asked", service="DuckDuckGo")
        return BackendError(message, code="rate_limit", cause=cause, fix="wait, or set SEARXNG_URL")
    fix = Notice("fix.network", "check the network")
    if any(mark in cause.lower() for mark in DNS_MARKS):  # also where the look-up itself took too long
        no_name = Notice("network.host_name", "the name of its host cannot be resolved")
        return BackendError(unreachable, code="dns", cause=no_name, fix=fix)
    if kind == "TimeoutException" or isinstance(error, TimeoutError):
        message = Notice("service.timeout", "{service} did not answer in time", service="DuckDuckGo")
        return BackendError(message, code="timeout", cause=cause, fix="try again, or raise search_timeout", retryable=True)
    cause = cause.partition(" > ")[0].rpartition("('")[2]  # the library chains its causes and prints them as code
    return BackendError(unreachable, code="network", cause=plain_cause(cause), fix=fix)
