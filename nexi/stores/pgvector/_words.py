"""Chunks by their words in Postgres: BM25 over terms of nexi's own, as the embedded store scores them.

The full-text search of Postgres knows neither how rare a word is nor identifiers and scripts without spaces, so a chunk
carries its terms and their counts, and only the index over them is the database's. A term begins with the number of its
collection: an index over everybody's terms then costs each person only her own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from nexi.stores.sqlite import HEAD_WEIGHT, MAX_TERMS, ORDERED, PAGE_TEXT, PAGE_TITLE, PAGE_WORTH, TEXT_WEIGHT, choose_rarest
from nexi.text import terms

MAX_SCORED = 2_000
MAX_COUNTED = 5_000  # a word that more chunks have says little, however many they are
T = TypeVar("T")
Values: TypeAlias = Mapping[str, Any]  # of the places in a statement, by name
Rows: TypeAlias = list[tuple[Any, ...]]
Fetch = Callable[[str, Values], Rows]
SATURATION, LENGTH = 1.2, 0.75
MIN_RARITY = 1e-6
MAX_REMEMBERED = 10_000
# How the database makes arrays of them: one text each is sent three times as fast as an array.
ARRAY_COLUMNS = {
    "terms": "string_to_array(%(terms)s, E'\\n')",
    **{name: f"string_to_array(%({name})s, ' ')::int[]" for name in ("head_counts", "title_counts", "text_counts")},
}

_COUNTS = """
select t.term, {count} from unnest(%(terms)s::text[]) as t(term)
"""
# A person's statements find chunks through functions that look at her collections only; those of the team need none.
_COUNT_OF_PERSON = "count_chunks_with_term(t.term, %(most)s)"
_COUNT_OF_ALL = "(select count(*) from (select from chunks where terms @> array[t.term] limit %(most)s) found)"
_CHUNKS_OF_PERSON = "chunks_with_terms(%(chosen)s::text[]) c where true"
_CHUNKS_OF_ALL = "chunks c where c.terms && %(chosen)s::text[]"
# The place of each word in the terms of a row `found`, looked for once: the planner would repeat it in every sum otherwise.
_PLACES = """lateral (
    select a.rarity, array_position(found.terms, a.term) as place
    from unnest(%(collections)s::bigint[], %(asked)s::text[], %(rarities)s::float8[]) as a(collection, term, rarity)
    where a.collection = found.collection offset 0
) p"""
_SCORE = "sum(rarity * tf * %(top)s / (tf + %(least)s + %(slope)s * length))"


_SCORES, _PAGE_SCORES = (
    Path(__file__).with_name(name).read_text(encoding="utf-8").replace("{places}", _PLACES).replace("{score}", _SCORE)
    for name in ("scores.sql", "page_scores.sql")
)


class StatementRunner(Protocol):
    """The database of a team server, as much of it as a store needs. Its methods raise StoreError."""

    def fetch(self, statement: str, values: Values | None = None) -> Rows: ...

    def fetch_as(self, owner: str, statement: str, values: Values | None = None) -> Rows: ...

    def transaction(self, owner: str | None = None) -> AbstractContextManager[Any]: ...

    async def in_thread(self, work: Callable[..., T], *values: Any) -> T: ...


class ReadCollection(Struct, frozen=True):
    """A collection that a search reads, with its sizes."""

    id: int
    is_own: bool
    generation: int
    chunks: int
    terms: int
    pages: int
    bytes: int


def count_terms(collection: int, above: str, within: str, column: str) -> dict[str, Any]:
    """Values for a row, in the form of ARRAY_COLUMNS: the terms of a text, each once, with how often it is above the text,
    which is kept in `column`, and in it."""
    heads, texts = _roots(above), _roots(within)
    names = list(dict.fromkeys((*texts, *heads)))
    return {
        "length": heads.total() + texts.total(),
        "terms": "\n".join(f"{collection} {name}" for name in names),
        column: " ".join(str(heads[name]) for name in names),
        "text_counts": " ".join(str(texts[name]) for name in names),
    }


def _roots(text: str) -> Counter[str]:
    """How often each root is in a text; of an unspaced script, each character too, since one may be all that is asked."""
    counts: Counter[str] = Counter()
    for root in terms.join_roots(text).split():
        counts[root] += 1
        if len(root) > 1 and terms.is_unspaced(root):
            counts[root[0]] += 1
    return counts


class WordSearch:
    """Remembers how common words are, until a collection has changed."""

    def __init__(self, fetch: Fetch, *, is_personal: bool) -> None:
        """`is_personal` says that `fetch` sees what one person may read."""
        self._fetch = fetch
        self._chunks, self._count = (_CHUNKS_OF_PERSON, _COUNT_OF_PERSON) if is_personal else (_CHUNKS_OF_ALL, _COUNT_OF_ALL)
        self._counts: dict[tuple[int, int, str], int] = {}

    def search(
        self, text: str, count: int, collections: Sequence[ReadCollection], scope: str, values: dict[str, Any]
    ) -> list[tuple[int, float]]:
        """(chunk id, score), best first. `scope` continues a condition on a chunk `c`; it blocks. Raises StoreError."""
        roots = terms.question_roots(text)[:MAX_TERMS]
        chunks = sum(c.chunks for c in collections)
        if not (roots and chunks) or count < 1:
            return []
        common = {root: self._count_chunks(root, collections) for root in roots}
        rarest = choose_rarest({root: n for root, n in common.items() if n}, MAX_SCORED)
        # the words that some chunk has, in each collection, with how rare they are
        rarity = {
            root: math.log((chunks - n + 0.5) / (n + 0.5)) if 2 * n < chunks else MIN_RARITY for root, n in common.items() if n
        }
        term_rows = [(c.id, f"{c.id} {root}", weight) for root, weight in rarity.items() for c in collections]
        term_values = {
            "collections": [row[0] for row in term_rows],
            "asked": [row[1] for row in term_rows],
            "rarities": [row[2] for row in term_rows],
        }
        rows = self._fetch(
            _SCORES.replace("{chunks}", self._chunks).replace("{scope}", scope),
            {
                **values,
                **_weights(TEXT_WEIGHT, HEAD_WEIGHT, sum(c.terms for c in collections) / chunks),
                **term_values,
                "chosen": [f"{c.id} {root}" for root in rarest for c in collections],
                "most": MAX_SCORED,
                "wide": max(ORDERED, count),
            },
        )
        bodies = sorted({row[1] for row in rows})
        pages = sum(c.pages for c in collections)
        weights = _weights(PAGE_TEXT, PAGE_TITLE, sum(c.terms for c in collections) / max(1, pages))
        page_values = {**weights, **term_values, "bodies": bodies}
        worth: dict[int, float] = dict(self._fetch(_PAGE_SCORES, page_values)) if bodies else {}
        scores = [(chunk, score + PAGE_WORTH * worth.get(body, 0.0)) for chunk, body, score in rows]
        return sorted(scores, key=lambda one: (-one[1], one[0]))[:count]

    def _count_chunks(self, root: str, collections: Sequence[ReadCollection]) -> int:
        """How many chunks have a word; the most that is counted for a very common one."""
        keys = [(c.id, c.generation, root) for c in collections]
        if unknown := [key for key in keys if key not in self._counts]:
            if len(self._counts) > MAX_REMEMBERED:
                self._counts = {}
            names = [f"{collection} {root}" for collection, _, _ in unknown]
            counts: dict[str, int] = dict(self._fetch(_COUNTS.format(count=self._count), {"terms": names, "most": MAX_COUNTED}))
            self._counts.update({key: counts[term] for key, term in zip(unknown, names, strict=True)})
        return sum(self._counts[key] for key in keys)


def _weights(text: float, head: float, mean: float) -> dict[str, float]:
    slope = SATURATION * LENGTH / max(1.0, mean)
    return {"text": text, "head": head, "top": SATURATION + 1, "least": SATURATION * (1 - LENGTH), "slope": slope}
