"""Jina's search (s.jina.ai), which needs a key: JSON answers, and the text form it falls back to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nexi.backends._replies import check_status, json_object, plain_line, read_rows, with_sites
from nexi.backends.sender import BackendRequest
from nexi.types import Hit, Query

NAME = "jina"
_LINE = re.compile(r"^\[(\d+)\] (Title|URL Source|Description|Date|Published Time): ?(.*)$", re.MULTILINE)


class Jina(Struct, frozen=True):
    api_key: str = ""
    timeout_s: float = 30.0
    base_url: str = "https://s.jina.ai"
    name: str = NAME
    filters = frozenset({"site", "language"})

    def request(self, query: Query) -> BackendRequest:
        headers = {"Accept": "application/json", "X-Respond-With": "no-content", "X-Retain-Images": "none"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        params = {"q": with_sites(query), "num": str(max(1, min(query.count, 20)))}
        if query.language:
            params["hl"] = query.language
        return BackendRequest(url=f"{self.base_url}/", params=tuple(params.items()), headers=headers, timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        if status == 422 and b"No search results" in body:
            return []
        check_status("Jina", status, headers, body, key_setting="JINA_API_KEY (or jina_key in the config)")
        if body.lstrip()[:1] != b"{":
            # the text form: `[1] Title: …`, `[1] URL Source: …`, `[1] Description: …`
            rows: dict[str, dict[str, str]] = {}
            for number, field, value in _LINE.findall(body.decode("utf-8", "replace")):
                rows.setdefault(number, {})[field] = value.strip()
            return [
                Hit(address, r.get("Title", ""), r.get("Description", ""), r.get("Date") or r.get("Published Time", ""), NAME)
                for r in rows.values()
                if (address := r.get("URL Source"))
            ]
        return [
            Hit(
                row["url"],
                plain_line(row.get("title")),
                plain_line(row.get("description")) or plain_line(row.get("content"))[:500],
                str(row.get("date") or row.get("publishedTime") or ""),
                NAME,
            )
            for row in read_rows(json_object("Jina", body).get("data"), "url")
        ]
