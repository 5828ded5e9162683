"""Tavily's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.backends.replies import read_answer, read_hit, read_rows
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "tavily"
_PERIODS = {"d": "day", "w": "week", "m": "month", "y": "year"}


class Tavily(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://api.tavily.com"
    name: str = NAME
    filters = frozenset({"site", "time"})

    def request(self, query: Query) -> BackendRequest:
        # A longer query is refused, and so is a wish for more results.
        options: dict[str, Any] = {"query": query.text.strip()[:400], "max_results": max(1, min(query.count, 20))}
        if period := _PERIODS.get(query.time_range[:1].lower()):
            options["time_range"] = period
        if query.sites:
            options["include_domains"] = list(query.sites)
        if query.excluded_sites:
            options["exclude_domains"] = list(query.excluded_sites)
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return BackendRequest(f"{self.base_url}/search", "POST", headers=headers, json=options, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        rows = read_answer("Tavily", status, headers, body, key_setting="TAVILY_API_KEY").get("results")
        return [read_hit(row, NAME, "url", "content", "published_date", max_chars=500) for row in read_rows(rows, "url")]
