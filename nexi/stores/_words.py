"""Chunks by their words: BM25 in SQLite's full-text indexes.

The embedded store asks; below are the tables `words` and `pages`. The words of a chunk find it; the first are put in order by
their own score and twice that of their page, because the page that says most of a question is where its answer is. Scoring
costs about a microsecond a chunk that matches, whatever its score, so in a large store the rarest words of a question choose
the candidates, and all but its most common words order them.
"""

from __future__ import annotations

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

Ranked = list[tuple[int, float]]


class WordIndex:
    """Remembers how common words are, until the store has changed."""

    def __init__(self, max_scored: int = MAX_SCORED) -> None:
        self._max_scored = max_scored
        self._generation = ""
        self._common: dict[str, int] = {}

    def search(self, db: sqlite3.Connection, text: str, count: int, scope: Scope) -> Ranked:
        """(chunk id, score), best first."""
        asked = [_quote_term(term) for term in terms.question_roots(text)[:MOST_TERMS]]
        if not asked or count < 1:
            return []
        where = _within_scope(scope)
        rare = self._rarest_words(db, asked, self._max_scored)
        if self._count_matches(db, rare[0]) > self._max_scored:
            where = _newest_matches(db, rare[0], where, self._max_scored)
        wide = max(ORDERED, count)
        if len(rare) == len(asked):
            found = _score_matches(db, " OR ".join(asked), where, wide)
        else:
            chosen = _score_matches(db, " OR ".join(rare), where, max(CANDIDATES, wide))
            ordering = self._rarest_words(db, asked, self._max_scored * ORDERING)
            found = _score_chosen(db, " OR ".join(ordering), [chunk for chunk, _ in chosen])[:wide]
        return _with_pages(db, " OR ".join(rare), found)[:count]

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
        generation = read_meta(db, "generation")
        if generation != self._generation:
            self._generation, self._common = generation, {}
        if term not in self._common:
            sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
            self._common[term] = int(db.execute(sql, (term, self._max_scored * 8)).fetchone()[0])
        return self._common[term]


def _quote_term(term: str) -> str:
    """One character of an unspaced script stands for every pair that begins with it."""
    return f'"{term}"' + ("*" if len(term) == 1 and terms.is_unspaced(term) else "")


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
        f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}) AS cost FROM words "  # noqa: S608
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
    sql = f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}) FROM words WHERE words MATCH ? AND +rowid IN ({marks})"  # noqa: S608
    scored = [(int(chunk), -float(cost)) for chunk, cost in db.execute(sql, (match, *chosen))]
    return sorted(scored, key=lambda found: (-found[1], found[0]))


def _with_pages(db: sqlite3.Connection, match: str, found: Ranked) -> Ranked:
    """The chunks found, each with the worth of its page added to its own."""
    bodies = sorted({chunk // CHUNKS for chunk, _ in found})
    sql = (
        f"SELECT rowid, -bm25(pages, {PAGE_TITLE}, {PAGE_TEXT}) FROM pages "  # noqa: S608
        f"WHERE pages MATCH ? AND +rowid IN ({','.join('?' * len(bodies))})"
    )
    worth = dict(db.execute(sql, (match, *bodies)))
    scored = [(chunk, score + PAGE_WORTH * worth.get(chunk // CHUNKS, 0.0)) for chunk, score in found]
    return sorted(scored, key=lambda one: (-one[1], one[0]))
