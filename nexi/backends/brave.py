"""Brave's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nexi.backends.replies import check_status, json_object, plain_line, read_rows, with_sites
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
        params = {
            "q": with_sites(query.text, query.sites, query.excluded_sites)[:400],
            "count": str(max(1, min(query.count, 20))),
        }
        if query.time_range[:1].lower() in ("d", "w", "m", "y"):
            params["freshness"] = f"p{query.time_range[:1].lower()}"
        if query.language:
            params["search_lang"] = query.language.partition("-")[0]
        headers = {"Accept": "application/json", "X-Subscription-Token": self.api_key}
        return BackendRequest(
            f"{self.base_url}/web/search", params=tuple(params.items()), headers=headers, timeout_s=self.timeout_s
        )

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        check_status("Brave", status, headers, body, key_setting="BRAVE_API_KEY")
        web = json_object("Brave", body).get("web")
        return [
            Hit(
                row["url"],
                plain_line(row.get("title")),
                plain_line(row.get("description")),
                str(row.get("page_age") or row.get("age") or ""),
                NAME,
            )
            for row in read_rows(web.get("results") if isinstance(web, dict) else None, "url")
        ]
