"""Serper (Google's results), which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.backends.replies import read_answer, read_hit, read_rows, with_sites
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "serper"


class Serper(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://google.serper.dev"
    name: str = NAME
    filters = frozenset({"site", "time", "language"})

    def request(self, query: Query) -> BackendRequest:
        text = with_sites(query.text, query.sites, query.excluded_sites)
        options: dict[str, Any] = {"q": text, "num": max(1, min(query.count, 20))}
        if query.time_range[:1].lower() in ("d", "w", "m", "y"):
            options["tbs"] = f"qdr:{query.time_range[:1].lower()}"
        if query.language:
            options["hl"] = query.language.partition("-")[0]
        headers = {"X-API-KEY": self.api_key}
        return BackendRequest(f"{self.base_url}/search", "POST", headers=headers, json=options, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        rows = read_answer("Serper", status, headers, body, key_setting="SERPER_API_KEY").get("organic")
        return [read_hit(row, NAME, "link", "snippet", "date") for row in read_rows(rows, "link")]
