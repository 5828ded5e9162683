"""Chunks by their words: BM25 in SQLite's full-text index.

The words of a chunk find it; the first are put in order by their own score and twice that of their page, because the page that
says most of a question is where its answer is. Scoring costs about a microsecond a chunk that matches, whatever its score, so
in a large store the rarest words of a question choose the candidates, and all but its most common words order them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence

from nexi.stores._schema import CHUNKS, read_meta
from nexi.stores._scope import Condition, scope_condition
from nexi.text import terms
from nexi.types import Scope

TEXT_WEIGHT, HEAD_WEIGHT = 1.0, 1.5
MAX_SCORED = 5_000
ORDERING = 3  # times as many chunks may have the words that order the candidates: what is more common tells nothing
CANDIDATES = 300
ORDERED = 100  # how many of the first are put in order with their pages
PAGE_WORTH = 2.0
PAGE_TITLE, PAGE_TEXT = 2.0, 0.4  # a weight below 1 lets a word count longer the more often it is there
MAX_TERMS = 64
_SATURATION, _LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25, as SQLite has them for chunks

_BM25 = f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}, {HEAD_WEIGHT}) AS cost FROM words"  # noqa: S608  # ours
_CHUNKS_HAVING = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
_PAGES_HAVING = f"SELECT count(DISTINCT rowid / {CHUNKS}) FROM words WHERE words MATCH ?"  # noqa: S608  # a number of ours
Ranked = list[tuple[int, float]]


class WordIndex:
    """Remembers how common words are, until the store has changed."""

    def __init__(self, max_scored: int = MAX_SCORED) -> None:
        self._max_scored, self._generation = max_scored, ""
        self._counts: dict[tuple[str | int, ...], int] = {}  # by statement and values

    def search(self, db: sqlite3.Connection, text: str, count: int, scope: Scope) -> Ranked:
        """(chunk id, score), best first."""
        roots = terms.question_roots(text)[:MAX_TERMS]
        if not roots or count < 1:
            return []
        generation = read_meta(db, "generation")
        if generation != self._generation:
            self._generation, self._counts = generation, {}
        condition = scope_condition(scope)
        clauses = [f"rowid / {CHUNKS} IN (SELECT s.body FROM sources s WHERE {condition.sql})"] if condition.sql else []  # noqa: S608  # values are bound
        if scope.code is not None:
            clauses.append(f"rowid {'' if scope.code else 'NOT '}IN (SELECT id FROM chunks WHERE code <> '')")  # noqa: S608
        where = Condition(" AND ".join(clauses), condition.values)
        most = self._max_scored * 8  # a little over what may be scored: more need not be counted
        counts = {root: self._count_having(db, _CHUNKS_HAVING, _quote_term(root), most) for root in roots}
        rare = choose_rarest(counts, self._max_scored)
        if counts[rare[0]] > self._max_scored:
            # too many have even the rarest word: only the newest of them are looked at
            sql = f"SELECT rowid FROM words WHERE words MATCH ? AND {where.sql or 1} ORDER BY rowid DESC LIMIT 1 OFFSET ?"  # noqa: S608
            oldest = db.execute(sql, (_quote_term(rare[0]), *where.values, self._max_scored)).fetchone()
            if oldest is not None:
                where = Condition(f"rowid > ? AND {where.sql or 1}", (int(oldest[0]), *where.values))
        wide = max(ORDERED, count)
        if len(rare) == len(roots):
            ranking = _score_matches(db, roots, where, wide)
        else:
            candidates = _score_matches(db, rare, where, max(CANDIDATES, wide))
            ordering = choose_rarest(counts, self._max_scored * ORDERING)
            # One statement, because bm25 counts how common each word is once a statement; the plus keeps SQLite from making it
            # one statement a chunk.
            chosen = Condition(f"+rowid IN ({','.join('?' * len(candidates))})", tuple(chunk for chunk, _ in candidates))
            ranking = _score_matches(db, ordering, chosen, wide)
        return self._add_pages(db, rare, ranking)[:count] if ranking else []

    def _count_having(self, db: sqlite3.Connection, sql: str, *values: str | int) -> int:
        if (sql, *values) not in self._counts:
            self._counts[sql, *values] = int(db.execute(sql, values).fetchone()[0])
        return self._counts[sql, *values]

    def _add_pages(self, db: sqlite3.Connection, roots: Sequence[str], ranking: Ranked) -> Ranked:
        """The chunks found, each with the worth of its page added to its own: BM25 over the titles and texts of pages."""
        marks = ",".join("?" * len(bodies := sorted({chunk // CHUNKS for chunk, _ in ranking})))
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
        for term in roots:
            having = self._count_having(db, _PAGES_HAVING, f"{{text title}} : {_quote_term(term)}")
            rarity = max(1e-6, math.log((pages - having + 0.5) / (having + 0.5)))
            for body, titles, texts in db.execute(sql, (term, f"{term}\U0010ffff" if _is_prefix(term) else term, *bodies)):
                chunks, norm = about[body]
                count = PAGE_TITLE * titles / chunks + PAGE_TEXT * texts  # every chunk has the title
                worth[body] += rarity * count * (_SATURATION + 1) / (count + norm)
        scores = [(chunk, score + PAGE_WORTH * worth[chunk // CHUNKS]) for chunk, score in ranking]
        return sorted(scores, key=lambda one: (-one[1], one[0]))


def choose_rarest(counts: Mapping[str, int], most: int) -> list[str]:
    """As many of the words as match no more than `most` chunks together; at least one."""
    rarest: list[str] = []
    total = 0
    for root in sorted(counts, key=lambda root: (counts[root], root)):
        total += counts[root]
        if rarest and total > most:
            break
        rarest.append(root)
    return rarest


def _quote_term(term: str) -> str:
    """One character of an unspaced script stands for every pair that begins with it."""
    return f'"{term}"' + ("*" if _is_prefix(term) else "")


def _is_prefix(term: str) -> bool:
    return len(term) == 1 and terms.is_unspaced(term)


def _score_matches(db: sqlite3.Connection, roots: Sequence[str], where: Condition, count: int) -> Ranked:
    sql = f"{_BM25} WHERE words MATCH ? AND {where.sql or 1} ORDER BY cost, rowid LIMIT ?"
    values = (" OR ".join(map(_quote_term, roots)), *where.values, count)
    return [(int(chunk), -float(cost)) for chunk, cost in db.execute(sql, values)]
