"""Wikipedia's own search: no key, one language a query. Pure; the sender does the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nexi.backends._replies import read_answer, read_hit, read_rows
from nexi.backends.sender import BackendRequest
from nexi.errors import BackendError
from nexi.types import Hit, Query

NAME = "wikipedia"
SNIPPET_CHARS = 500
WIKIS = "https://{language}.wikipedia.org"
_LANGUAGE = re.compile(r"[a-z]{2,3}")


class Wikipedia(Struct, frozen=True):
    """The dialect. `host` names the wikis with their language left open, for a mirror or a test."""

    timeout_s: float = 10.0
    host: str = WIKIS
    name: str = NAME
    filters = frozenset({"language"})

    def request(self, query: Query) -> BackendRequest:
        """Search as a generator, so that each page comes with its address and its first sentences."""
        short = query.language.lower().partition("-")[0]
        wiki = self.host.format(language=short if _LANGUAGE.fullmatch(short) else "en")
        params = {
            "action": "query",
            "generator": "search",
            "gsrsearch": query.text.strip()[:300],  # MediaWiki's search refuses more
            "gsrlimit": str(max(1, min(query.count, 20))),
            "prop": "info|extracts",
            "inprop": "url",
            "exintro": "1",
            "explaintext": "1",
            "exsentences": "3",
            "exlimit": "max",
            "format": "json",
            "formatversion": "2",
        }
        return BackendRequest(url=f"{wiki}/w/api.php", params=tuple(params.items()), timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        data = read_answer("Wikipedia", status, headers, body)
        if isinstance(data.get("error"), dict):
            cause = str(data["error"].get("info") or data["error"].get("code"))[:200]
            raise BackendError("Wikipedia did not accept the query", code="bad_query", cause=cause, fix="change the query")
        reply = data.get("query")
        pages = read_rows(reply.get("pages") if isinstance(reply, dict) else None)
        pages.sort(key=lambda page: page["index"] if isinstance(page.get("index"), int) else 1_000)
        pages = [page for page in pages if isinstance(page.get("fullurl"), str)]
        return [read_hit(page, NAME, "fullurl", "extract", max_chars=SNIPPET_CHARS) for page in pages]
