"""Brave's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nexi.backends.replies import read_answer, read_hit, read_rows, with_sites
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "brave"


class Brave(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://api.search.brave.com/res/v1"
    name: str = NAME
    filters = frozenset({"site", "time", "language"})

    def request(self, query: Query) -> BackendRequest:
        text = with_sites(query.text, query.sites, query.excluded_sites)[:400]  # a longer query is refused
        params = {"q": text, "count": str(max(1, min(query.count, 20)))}
        if query.time_range[:1].lower() in ("d", "w", "m", "y"):
            params["freshness"] = f"p{query.time_range[:1].lower()}"
        if query.language:
            params["search_lang"] = query.language.partition("-")[0]
        headers = {"Accept": "application/json", "X-Subscription-Token": self.api_key}
        url = f"{self.base_url}/web/search"
        return BackendRequest(url, params=tuple(params.items()), headers=headers, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        web = read_answer("Brave", status, headers, body, key_setting="BRAVE_API_KEY").get("web")
        rows = read_rows(web.get("results") if isinstance(web, dict) else None, "url")
        return [read_hit(row, NAME, "url", "description", "page_age", "age") for row in rows]
