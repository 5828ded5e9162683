"""Tavily's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.backends.replies import check_status, json_object, plain_line, read_rows
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "tavily"
_PERIODS = {"d": "day", "w": "week", "m": "month", "y": "year"}


class Tavily(Struct, frozen=True):
    """The dialect."""

    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://api.tavily.com"
    name: str = NAME
    filters = frozenset({"site", "time"})

    def request(self, query: Query) -> BackendRequest:
        wanted: dict[str, Any] = {"query": query.text.strip()[:400], "max_results": max(1, min(query.count, 20))}
        if period := _PERIODS.get(query.time_range[:1].lower()):
            wanted["time_range"] = period
        if query.sites:
            wanted["include_domains"] = list(query.sites)
        if query.excluded_sites:
            wanted["exclude_domains"] = list(query.excluded_sites)
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return BackendRequest(f"{self.base_url}/search", "POST", headers=headers, json=wanted, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        check_status("Tavily", status, headers, body, key_setting="TAVILY_API_KEY")
        found = read_rows(json_object("Tavily", body).get("results"))
        return [_parse_hit(row) for row in found if isinstance(row.get("url"), str) and row["url"]]


def _parse_hit(row: Mapping[str, object]) -> Hit:
    return Hit(
        str(row["url"]),
        plain_line(row.get("title")),
        plain_line(row.get("content"))[:500],
        str(row.get("published_date") or ""),
        NAME,
    )
