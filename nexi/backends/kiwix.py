"""kiwix-serve: offline archives (ZIM) on this machine or in the house, searched by their own index.

Its search wants every word, so that a whole question finds nothing. The words of the question are counted first, each alone;
then all of them are asked for, and fewer and fewer, the most common dropped first, until there are enough pages; then each
rare word is left out once, since the right page may have another word for it. The pages are ranked here, by the rare words
that they have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from msgspec import Struct

from nexi.backends._replies import check_status, read_tag
from nexi.backends.sender import BackendRequest, BackendResponse, Sender
from nexi.errors import BackendError
from nexi.text.terms import question_terms
from nexi.types import Hit, Query

__all__ = ["KiwixBackend"]

NAME = "kiwix"
MAX_WORDS = 12
POOL = 20  # pages to rank, at least
LEFT_OUT = 6  # rare words that are left out, each once
_ITEM = re.compile(r"<item>(.*?)</item>", re.DOTALL)
_ENTRY = re.compile(r"<entry>(.*?)</entry>", re.DOTALL)
_TOTAL = re.compile(r"<opensearch:totalResults>([\d,. ]+)<")


class _KiwixAnswer(Struct, frozen=True):
    """An answer: how many pages have the words, and the first of them, each with the date of its archive."""

    total: int
    hits: tuple[Hit, ...]


def parse_search(base: str, status: int, headers: Mapping[str, str], body: bytes, dates: Mapping[str, str]) -> _KiwixAnswer:
    """Read an answer; `dates` are those of the archives by title. Raises BackendError."""
    if status == 404:  # what it answers where no archive has an index of its texts
        cause = "none that it serves has an index of its texts, or its files are damaged: it leaves out a truncated one"
        fix = "look at its start page, and download the archive again if it is missing there"
        raise BackendError("kiwix-serve has no archive that can be searched", code="search_failed", cause=cause, fix=fix)
    check_status("kiwix-serve", status, headers, body)
    text = body.decode("utf-8", "replace")
    total = _TOTAL.search(text)
    if not total:
        cause = "the address leads to another program, or to a version before 3.3"
        fix = "nexi config set service_urls.kiwix http://127.0.0.1:8080"
        raise BackendError("kiwix-serve did not answer with search results", code="bad_schema", cause=cause, fix=fix)
    root = re.match(r"https?://[^/]+", base)
    hits = []
    for item in _ITEM.findall(text):
        path = read_tag(item, "link")
        prefix, content, rest = path.rpartition("/content/")
        book, _, page = (rest if content else path.lstrip("/")).partition("/")
        # without the bar that kiwix-serve puts above a page
        url = f"{root[0] if root else base}{prefix}/raw/{book}/content/{page}"
        date = dates.get(read_tag(item.partition("<book>")[2], "title"), "")
        snippet = read_tag(item, "description") + (f" (archive of {date})" if date else "")
        hits.append(Hit(url, read_tag(item, "title"), snippet, date, NAME))
    return _KiwixAnswer(int(re.sub(r"\D", "", total[1])), tuple(hits))


def parse_dates(body: bytes) -> dict[str, str]:
    """The day of each archive by its title, from the catalogue."""
    entries = [entry[1] for entry in _ENTRY.finditer(body.decode("utf-8", "replace"))]
    return {read_tag(e, "title"): (read_tag(e, "dc:issued") or read_tag(e, "updated"))[:10] for e in entries}


class KiwixBackend:
    """The SearchBackend port over one kiwix-serve."""

    name = NAME
    filters: frozenset[str] = frozenset()

    def __init__(self, base: str, sender: Sender, timeout_s: float = 10.0) -> None:
        self._base, self._sender, self._timeout_s = base.rstrip("/"), sender, timeout_s

    async def search(self, query: Query) -> list[Hit]:
        catalogue = await self._send("catalog/v2/entries", ("count", "-1"))
        dates = parse_dates(catalogue.body) if catalogue.status == 200 else {}
        counts = {word: (await self._ask([word], 1, dates)).total for word in question_terms(query.text)[:MAX_WORDS]}
        words = sorted((word for word in counts if counts[word]), key=lambda word: counts[word])
        pool = _HitPool(max(POOL, query.count))
        for length in range(len(words), 0, -1):
            pool.add(words[:length], (await self._ask(words[:length], pool.enough, dates)).hits)
            if len(pool.hits) >= pool.enough:
                break
        for place in range(min(len(words), LEFT_OUT)):
            others = [*words[:place], *words[place + 1 :]]
            while len(others) > 1 and tuple(others) not in pool.searches:
                hits = (await self._ask(others, pool.enough, dates)).hits
                pool.add(others, hits)
                others = [] if hits else others[:-1]
        return pool.rank({word: math.log(1 + counts[words[-1]] / counts[word]) for word in words})[: query.count]

    async def _ask(self, words: Sequence[str], count: int, dates: Mapping[str, str]) -> _KiwixAnswer:
        size = str(max(1, min(count, 50)))
        answer = await self._send("search", ("pattern", " ".join(words)), ("format", "xml"), ("pageLength", size))
        return parse_search(self._base, answer.status, answer.headers, answer.body, dates)

    async def _send(self, path: str, *params: tuple[str, str]) -> BackendResponse:
        return await self._sender.send(NAME, BackendRequest(f"{self._base}/{path}", params=params, timeout_s=self._timeout_s))


class _HitPool:
    """The pages of several searches, and which words each is known to have."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.hits: dict[str, Hit] = {}
        self.searches: set[tuple[str, ...]] = set()
        self._words: dict[str, set[str]] = {}

    def add(self, words: Sequence[str], hits: Sequence[Hit]) -> None:
        self.searches.add(tuple(words))
        for hit in hits:
            self.hits.setdefault(hit.url, hit)
            self._words.setdefault(hit.url, set(question_terms(hit.snippet))).update(words)

    def rank(self, weights: Mapping[str, float]) -> list[Hit]:
        """The pages with the most and rarest words first; a word of the title counts twice."""

        def rate(hit: Hit) -> float:
            title, words = set(question_terms(unquote(hit.title))), self._words[hit.url]
            return sum(weight * ((word in words or word in title) + (word in title)) for word, weight in weights.items())

        return sorted(self.hits.values(), key=rate, reverse=True)
