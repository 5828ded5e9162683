"""arXiv's search: an Atom feed, no key. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nexi.backends._replies import check_status, plain_line, read_tag
from nexi.backends.sender import BackendRequest
from nexi.errors import BackendError
from nexi.types import Hit, Paper, Query

NAME = "arxiv"
MAX_AUTHORS = 50
_NAME = re.compile(r"<name>(.*?)</name>", re.DOTALL)
_WITHDRAWN = re.compile(r"\b(?:paper|article|submission|manuscript|preprint) (?:has been|was|is) withdrawn\b", re.IGNORECASE)
_ENTRY = re.compile(r"<entry>(.*?)</entry>", re.DOTALL)


class Arxiv(Struct, frozen=True):
    timeout_s: float = 15.0
    base_url: str = "https://export.arxiv.org/api/query"
    name: str = NAME
    filters = frozenset[str]()
    interval_s = 3.0  # arXiv's terms of use

    def request(self, query: Query) -> BackendRequest:
        words = " AND ".join(f"all:{word}" for word in re.findall(r"[\w.-]+", query.text)[:20])
        size = str(max(1, min(query.count, 50)))
        params = {"search_query": words or "all:", "max_results": size, "sortBy": "relevance"}
        return BackendRequest(url=self.base_url, params=tuple(params.items()), timeout_s=self.timeout_s)

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        check_status("arXiv", status, headers, body)
        text = body.decode("utf-8", "replace")
        if "<feed" not in text[:2000]:
            message = "arXiv sent an answer that cannot be read"
            raise BackendError(message, code="bad_json", cause="it is no feed", fix="try again")
        return [hit for entry in _ENTRY.findall(text) if (hit := _parse_hit(entry))]


def _parse_hit(entry: str) -> Hit | None:
    url = read_tag(entry, "id")
    if not url.startswith("http") or "/api/errors" in url:
        return None
    day = read_tag(entry, "published")
    number = re.sub(r"v\d+$", "", url.partition("/abs/")[2]).lower()
    journal_doi = read_tag(entry, "arxiv:doi").lower()  # of the published version, where the authors have named it
    paper = Paper(
        f"10.48550/arxiv.{number}" if number else "",
        tuple(plain_line(name) for name in _NAME.findall(entry)[:MAX_AUTHORS]),
        "arXiv",
        day[:4],
        standing="retracted" if _WITHDRAWN.search(read_tag(entry, "arxiv:comment")) else "",
        versions=(journal_doi,) if journal_doi else (),
    )
    address = url.replace("http://", "https://", 1)
    return Hit(address, read_tag(entry, "title"), read_tag(entry, "summary")[:500], day, NAME, paper)
