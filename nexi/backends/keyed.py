"""Search services that need a key and answer in JSON: Brave, Exa, Firecrawl, Serper and Tavily. Pure.

Each is a row of `FORMS`. Built from their documentation; not verified live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from nexi.backends._replies import read_answer, read_hit, read_rows, with_sites
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

__all__ = ["FORMS", "KeyedService"]

_PERIODS = {"d": "day", "w": "week", "m": "month", "y": "year"}


class KeyedForm(Struct, frozen=True):
    """One service. `options` writes a query; what is empty of it is not sent."""

    title: str
    url: str
    key_header: str
    options: Callable[[Query], dict[str, Any]]
    rows: str  # the path to the results
    fields: tuple[str, ...]  # the names of a result's address, its text and perhaps its day
    filters: tuple[str, ...] = ("site", "time")
    is_post: bool = True
    max_chars: int | None = None


class KeyedService(Struct, frozen=True):
    """The dialect of one of `FORMS`."""

    name: str
    api_key: str = ""
    timeout_s: float = 10.0

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(FORMS[self.name].filters)

    def request(self, query: Query) -> BackendRequest:
        form = FORMS[self.name]
        options = {name: value for name, value in form.options(query).items() if value}
        headers = {form.key_header: f"Bearer {self.api_key}" if form.key_header == "Authorization" else self.api_key}
        if form.is_post:
            return BackendRequest(form.url, "POST", headers=headers, json=options, timeout_s=self.timeout_s)
        headers["Accept"] = "application/json"
        return BackendRequest(form.url, params=tuple(options.items()), headers=headers, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        form = FORMS[self.name]
        rows: Any = read_answer(form.title, status, headers, body, key_setting=f"{self.name.upper()}_API_KEY")
        for step in form.rows.split("."):
            rows = rows.get(step) if isinstance(rows, dict) else rows
        address, text, *days = form.fields
        return [read_hit(row, self.name, address, text, *days, max_chars=form.max_chars) for row in read_rows(rows, address)]


def _limit_count(query: Query, most: int = 20) -> int:
    return max(1, min(query.count, most))  # more is refused


def _write_period(query: Query, prefix: str) -> str:
    """A period by its first letter, as Google's parameter has it; "" for none."""
    letter = query.time_range[:1].lower()
    return prefix + letter if letter in _PERIODS else ""


FORMS: Mapping[str, KeyedForm] = {
    "tavily": KeyedForm(
        "Tavily", "https://api.tavily.com/search", "Authorization",
        lambda query: {
            "query": query.text.strip()[:400],  # a longer one is refused
            "max_results": _limit_count(query),
            "time_range": _PERIODS.get(query.time_range[:1].lower()),
            "include_domains": list(query.sites),
            "exclude_domains": list(query.excluded_sites),
        },
        "results", ("url", "content", "published_date"), max_chars=500),
    "brave": KeyedForm(
        "Brave", "https://api.search.brave.com/res/v1/web/search", "X-Subscription-Token",
        lambda query: {
            "q": with_sites(query)[:400],  # a longer one is refused
            "count": str(_limit_count(query)),
            "freshness": _write_period(query, "p"),
            "search_lang": query.language.partition("-")[0],
        },
        "web.results", ("url", "description", "page_age", "age"), ("site", "time", "language"), is_post=False),
    "exa": KeyedForm(
        "Exa", "https://api.exa.ai/search", "x-api-key",
        lambda query: {
            "query": query.text.strip(),
            "numResults": _limit_count(query, 25),
            "contents": {"text": {"maxCharacters": 500}},
            "includeDomains": list(query.sites),
            "excludeDomains": list(query.excluded_sites),
        },
        "results", ("url", "text", "publishedDate"), ("site",), max_chars=500),
    "serper": KeyedForm(
        "Serper", "https://google.serper.dev/search", "X-API-KEY",
        lambda query: {
            "q": with_sites(query),
            "num": _limit_count(query),
            "tbs": _write_period(query, "qdr:"),
            "hl": query.language.partition("-")[0],
        },
        "organic", ("link", "snippet", "date"), ("site", "time", "language")),
    "firecrawl": KeyedForm(
        "Firecrawl", "https://api.firecrawl.dev/v2/search", "Authorization",
        lambda query: {"query": with_sites(query), "limit": _limit_count(query), "tbs": _write_period(query, "qdr:")},
        "data.web", ("url", "description")),
}  # fmt: skip
