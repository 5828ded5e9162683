"""Exa's search, which needs a key. Built from its documentation; not verified live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexi.backends.replies import read_answer, read_hit, read_rows
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "exa"


class Exa(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 10.0
    base_url: str = "https://api.exa.ai"
    name: str = NAME
    filters = frozenset({"site"})

    def request(self, query: Query) -> BackendRequest:
        options: dict[str, Any] = {
            "query": query.text.strip(),
            "numResults": max(1, min(query.count, 25)),
            "contents": {"text": {"maxCharacters": 500}},
        }
        if query.sites:
            options["includeDomains"] = list(query.sites)
        if query.excluded_sites:
            options["excludeDomains"] = list(query.excluded_sites)
        headers = {"x-api-key": self.api_key}
        return BackendRequest(f"{self.base_url}/search", "POST", headers=headers, json=options, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        rows = read_answer("Exa", status, headers, body, key_setting="EXA_API_KEY").get("results")
        return [read_hit(row, NAME, "url", "text", "publishedDate", max_chars=500) for row in read_rows(rows, "url")]
