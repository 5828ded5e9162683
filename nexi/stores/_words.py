"""Chunks by their words: BM25 in SQLite's full-text index.

The embedded store asks; below is the table `words`. The words of a chunk find it; the first are put in order by their own
score and twice that of their page, because the page that says most of a question is where its answer is. Scoring
costs about a microsecond a chunk that matches, whatever its score, so in a large store the rarest words of a question choose
the candidates, and all but its most common words order them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from nexi.stores._scope import Condition, Value, scope_condition
from nexi.stores.schema import CHUNKS, read_meta
from nexi.text import terms
from nexi.types import Scope

TEXT_WEIGHT, HEAD_WEIGHT = 1.0, 1.5
MAX_SCORED = 5_000
ORDERING = 3  # times as many chunks may have the words that order the candidates: what is more common tells nothing
CANDIDATES = 300
ORDERED = 100  # how many of the first are put in order with their pages
PAGE_WORTH = 2.0
PAGE_TITLE, PAGE_TEXT = 2.0, 0.4  # a weight below 1 lets a word count longer the more often it is there
MOST_TERMS = 64
_SATURATION, _LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25, as SQLite has them for chunks

Ranked = list[tuple[int, float]]


class WordIndex:
    """Remembers how common words are, until the store has changed."""

    def __init__(self, max_scored: int = MAX_SCORED) -> None:
        self._max_scored = max_scored
        self._generation = ""
        self._common: dict[str, int] = {}
        self._pages_having: dict[str, int] = {}

    def search(self, db: sqlite3.Connection, text: str, count: int, scope: Scope) -> Ranked:
        """(chunk id, score), best first."""
        asked = terms.question_roots(text)[:MOST_TERMS]
        if not asked or count < 1:
            return []
        self._forget_old(db)
        where = _within_scope(scope)
        rare = self._rarest_words(db, asked, self._max_scored)
        if self._count_matches(db, rare[0]) > self._max_scored:
            where = _newest_matches(db, _any_of(rare[:1]), where, self._max_scored)
        wide = max(ORDERED, count)
        if len(rare) == len(asked):
            found = _score_matches(db, _any_of(asked), where, wide)
        else:
            chosen = _score_matches(db, _any_of(rare), where, max(CANDIDATES, wide))
            ordering = self._rarest_words(db, asked, self._max_scored * ORDERING)
            found = _score_chosen(db, _any_of(ordering), [chunk for chunk, _ in chosen])[:wide]
        return self._add_pages(db, rare, found)[:count] if found else []

    def _rarest_words(self, db: sqlite3.Connection, asked: Sequence[str], most: int) -> list[str]:
        """As many of the words as match no more than `most` chunks together; at least one."""
        by_rarity = sorted(asked, key=lambda term: (self._count_matches(db, term), term))
        kept: list[str] = []
        total = 0
        for term in by_rarity:
            total += self._count_matches(db, term)
            if kept and total > most:
                break
            kept.append(term)
        return kept

    def _count_matches(self, db: sqlite3.Connection, term: str) -> int:
        """How many chunks have a word, at most a little over what may be scored."""
        if term not in self._common:
            sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
            self._common[term] = int(db.execute(sql, (_quote_term(term), self._max_scored * 8)).fetchone()[0])
        return self._common[term]

    def _count_pages(self, db: sqlite3.Connection, term: str) -> int:
        """How many pages have a word in their title or text."""
        if term not in self._pages_having:
            sql = f"SELECT count(DISTINCT rowid / {CHUNKS}) FROM words WHERE words MATCH ?"  # noqa: S608  # a number of ours
            self._pages_having[term] = int(db.execute(sql, (f"{{text title}} : {_quote_term(term)}",)).fetchone()[0])
        return self._pages_having[term]

    def _forget_old(self, db: sqlite3.Connection) -> None:
        generation = read_meta(db, "generation")
        if generation != self._generation:
            self._generation, self._common, self._pages_having = generation, {}, {}

    def _add_pages(self, db: sqlite3.Connection, asked: Sequence[str], found: Ranked) -> Ranked:
        """The chunks found, each with the worth of its page added to its own: BM25 over the titles and texts of pages."""
        marks = ",".join("?" * len(bodies := sorted({chunk // CHUNKS for chunk, _ in found})))
        pages, words = (int(read_meta(db, key)) for key in ("pages", "page_terms"))
        about = {
            body: (chunks, _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length * pages / words))
            for body, chunks, length in db.execute(f"SELECT id, chunks, terms FROM bodies WHERE id IN ({marks})", bodies)  # noqa: S608
        }
        worth = dict.fromkeys(bodies, 0.0)
        sql = (
            f"SELECT doc / {CHUNKS} AS body, sum(col = 'title'), sum(col = 'text') FROM word_places "  # noqa: S608
            f"WHERE term BETWEEN ? AND ? AND doc / {CHUNKS} IN ({marks}) AND col <> 'head' GROUP BY body"
        )
        for term in asked:
            having = self._count_pages(db, term)
            rarity = max(1e-6, math.log((pages - having + 0.5) / (having + 0.5)))
            for body, titles, texts in db.execute(sql, (*_term_range(term), *bodies)):
                chunks, norm = about[body]
                count = PAGE_TITLE * titles / chunks + PAGE_TEXT * texts  # every chunk has the title
                worth[body] += rarity * count * (_SATURATION + 1) / (count + norm)
        scored = [(chunk, score + PAGE_WORTH * worth[chunk // CHUNKS]) for chunk, score in found]
        return sorted(scored, key=lambda one: (-one[1], one[0]))


def _any_of(asked: Sequence[str]) -> str:
    return " OR ".join(map(_quote_term, asked))


def _quote_term(term: str) -> str:
    """One character of an unspaced script stands for every pair that begins with it."""
    return f'"{term}"' + ("*" if _is_prefix(term) else "")


def _term_range(term: str) -> tuple[str, str]:
    """The first and the last term that a word of a question stands for."""
    return term, f"{term}\U0010ffff" if _is_prefix(term) else term


def _is_prefix(term: str) -> bool:
    return len(term) == 1 and terms.is_unspaced(term)


def _within_scope(scope: Scope) -> Condition:
    """The scope as a condition on the index's rows."""
    where = scope_condition(scope)
    clauses: list[str] = []
    values: list[Value] = []
    if where.sql:
        clauses.append(f"rowid / {CHUNKS} IN (SELECT s.body FROM sources s WHERE {where.sql})")  # noqa: S608  # values are bound
        values.extend(where.values)
    if scope.code is not None:
        clauses.append(f"rowid {'' if scope.code else 'NOT '}IN (SELECT id FROM chunks WHERE code <> '')")  # noqa: S608
    return Condition(" AND ".join(clauses), tuple(values))


def _newest_matches(db: sqlite3.Connection, match: str, where: Condition, most: int) -> Condition:
    """The scope, narrowed to the newest chunks with a word that too many have."""
    sql = f"SELECT rowid FROM words WHERE words MATCH ?{_and_clause(where)} ORDER BY rowid DESC LIMIT 1 OFFSET ?"  # noqa: S608
    oldest = db.execute(sql, (match, *where.values, most)).fetchone()
    if oldest is None:
        return where
    return Condition(f"rowid > ?{_and_clause(where)}", (int(oldest[0]), *where.values))


def _score_matches(db: sqlite3.Connection, match: str, where: Condition, count: int) -> Ranked:
    sql = (
        f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}, {HEAD_WEIGHT}) AS cost FROM words "  # noqa: S608
        f"WHERE words MATCH ?{_and_clause(where)} ORDER BY cost, rowid LIMIT ?"
    )
    return [(int(chunk), -float(cost)) for chunk, cost in db.execute(sql, (match, *where.values, count))]


def _and_clause(where: Condition) -> str:
    return f" AND {where.sql}" if where.sql else ""


def _score_chosen(db: sqlite3.Connection, match: str, chosen: Sequence[int]) -> Ranked:
    """The chosen chunks, scored with every word.

    One statement, because bm25 counts how common each word is once a statement; the plus keeps SQLite from making it one
    statement a chunk.
    """
    marks = ",".join("?" * len(chosen))
    sql = (
        f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}, {HEAD_WEIGHT}) FROM words "  # noqa: S608
        f"WHERE words MATCH ? AND +rowid IN ({marks})"
    )
    scored = [(int(chunk), -float(cost)) for chunk, cost in db.execute(sql, (match, *chosen))]
    return sorted(scored, key=lambda found: (-found[1], found[0]))
