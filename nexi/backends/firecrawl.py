"""Firecrawl's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.backends.replies import read_answer, read_hit, read_rows, with_sites
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "firecrawl"


class Firecrawl(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://api.firecrawl.dev/v2"
    name: str = NAME
    filters = frozenset({"site", "time"})

    def request(self, query: Query) -> BackendRequest:
        text = with_sites(query.text, query.sites, query.excluded_sites)
        options: dict[str, Any] = {"query": text, "limit": max(1, min(query.count, 20))}
        if query.time_range[:1].lower() in ("d", "w", "m", "y"):
            options["tbs"] = f"qdr:{query.time_range[:1].lower()}"
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return BackendRequest(f"{self.base_url}/search", "POST", headers=headers, json=options, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        data = read_answer("Firecrawl", status, headers, body, key_setting="FIRECRAWL_API_KEY").get("data")
        rows = read_rows(data.get("web") if isinstance(data, dict) else data, "url")
        return [read_hit(row, NAME, "url", "description") for row in rows]
