"""The embedded knowledge store: one SQLite file, with the vectors in files beside it.

One thread reads and one writes, so that a search never waits for a write. Several processes may use one file at once.

The words of a chunk find it; the first are put in order by their own score and twice that of their page, because the page that
says most of a question is where its answer is. Scoring costs about a microsecond a chunk that matches, whatever its score, so
in a large store the rarest words of a question choose the candidates, and all but its most common words order them.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import StoreError
from nexi.stores import salvage
from nexi.stores._connection import BUSY_S, READING_KIB, SqliteThread, damaged_error, end_reading, in_transaction, is_damage
from nexi.stores._schema import CHUNKS, MIN_HOLES, Condition, Ranked, prepare_tables, read_meta, read_stats, scope_condition
from nexi.stores._vectors import Array, Chosen, FirstPass, VectorReader, VectorWriter, find_nearest, other_embedder, slots_of
from nexi.stores._writing import StoreTransaction, key_of
from nexi.text import terms
from nexi.types import EVERYTHING, IndexedPage, Passage, Scope, StoredSource, StoreRepair, StoreStats, Vector

__all__ = ["SqliteStore"]

T = TypeVar("T")
SOURCE_ROW = "s.url, s.title, s.domain, s.language, s.fetched_at, b.digest, b.chunks, b.words, s.tags, s.published, s.updated"
_PASSAGE = (
    "c.id, s.url, c.text, s.title, s.domain, c.heading, c.context, c.code, s.language, s.fetched_at, s.tags, c.start, "
    "s.published, s.updated"
)
MAX_SELECTIONS = 8
COPIED_NUMBERS = 524_288  # two megabytes: 2,048 vectors of 256
TEXT_WEIGHT, HEAD_WEIGHT = 1.0, 1.5
MAX_SCORED = 5_000
ORDERING = 3  # times as many chunks may have the words that order the candidates: what is more common tells nothing
CANDIDATES = 300
ORDERED = 100  # how many of the first are put in order with their pages
PAGE_WORTH = 2.0
PAGE_TITLE, PAGE_TEXT = 2.0, 0.4  # a weight below 1 lets a word count longer the more often it is there
MAX_TERMS = 64
SATURATION, LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25, as SQLite has them for chunks

_BM25 = f"SELECT rowid, bm25(words, {TEXT_WEIGHT}, {HEAD_WEIGHT}, {HEAD_WEIGHT}) AS cost FROM words"  # noqa: S608  # ours
_CHUNKS_HAVING = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
_PAGES_HAVING = f"SELECT count(DISTINCT rowid / {CHUNKS}) FROM words WHERE words MATCH ?"  # noqa: S608  # a number of ours


class StoreLimits(Struct, frozen=True):
    """How much a search compares exactly, and how many empty slots are worth closing."""

    max_scored: int = MAX_SCORED
    min_holes: int = MIN_HOLES
    first_pass: FirstPass = FirstPass()


class SqliteStore:
    """The KnowledgeStore port over a file."""

    name = "sqlite"

    def __init__(self, path: Path, *, busy_s: float = BUSY_S, limits: StoreLimits = StoreLimits()) -> None:  # noqa: B008 a frozen value
        self._path, self._limits = path, limits
        open_thread = partial(
            SqliteThread, path, lambda db: prepare_tables(db, path), busy_s=busy_s, check_file=self._refuse_lost_content
        )
        self._reader, self._writer = open_thread(cache_kib=READING_KIB, only_reads=True), open_thread()
        self._mapped = VectorReader(path)
        self._nearest = _NearestSearch(self._mapped, limits.first_pass)
        self._words = _WordIndex(limits.max_scored)
        self._vectors = VectorWriter(path)
        self._damage = ""

    def _refuse_lost_content(self) -> None:
        """Raise StoreError for an emptied file: tables made in it would hide that something was stored here."""
        if salvage.has_lost_content(self._path):
            raise damaged_error(self._path, "the file is empty, but the vectors of its passages are still beside it")

    async def aclose(self) -> None:
        self._mapped.close()
        try:
            await self._reader.aclose()
        finally:  # also for a caller that is cancelled
            await self._writer.aclose()
            self._vectors.close()

    async def put(self, pages: Sequence[IndexedPage], *, embedder: str = "") -> None:
        await self._run_writing(lambda writing: writing.put(pages, embedder))

    async def link(self, source: StoredSource) -> bool:
        # Looked up first without the lock of a writer: what is indexed is new as a rule.
        sql = "SELECT 1 FROM bodies WHERE digest = ?"
        body = await self._run_reading(lambda db: db.execute(sql, (source.digest,)).fetchone())
        return body is not None and await self._run_writing(lambda writing: writing.link(source))

    async def remove(self, urls: Sequence[str]) -> int:
        return await self._run_writing(lambda writing: writing.remove(urls))

    async def add_vectors(self, vectors: Mapping[str, Vector], *, embedder: str) -> None:
        await self._run_writing(lambda writing: writing.add_vectors(vectors, embedder))

    async def forget_vectors(self) -> None:
        await self._run_writing(lambda writing: writing.forget_vectors())

    async def prepare_reembedding(self, embedder: str) -> None:
        await self.forget_vectors()

    async def source(self, url: str) -> StoredSource | None:
        where = Condition("s.key = ?", (key_of(url),))
        sources = await self._run_reading(lambda db: _list_sources(db, where, 1))
        return sources[0] if sources else None

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        return await self._run_reading(lambda db: _list_sources(db, scope_condition(scope), count, skip))

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        sql = (
            f"SELECT {_PASSAGE} FROM sources s JOIN chunks c ON c.id BETWEEN s.body * {CHUNKS} + ? AND s.body * {CHUNKS} + ? "  # noqa: S608
            "WHERE s.key = ? ORDER BY c.id"
        )
        values = (max(0, first), CHUNKS - 1 if last is None else min(last, CHUNKS - 1), key_of(url))
        return await self._run_reading(lambda db: [_parse_passage(row, 0.0) for row in db.execute(sql, values)])

    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        def search(db: sqlite3.Connection) -> list[Passage]:
            try:
                ranking = self._words.search(db, text, count, scope)
            except sqlite3.DatabaseError as error:
                self._damage = str(error) if is_damage(error) else ""
                if not self._damage:
                    raise
                # without the index of words, every text that is left is read
                ranking = salvage.by_words(db, text, count, scope)
            return _read_passages(db, ranking, scope)

        return await self._run_reading(search)

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._run_reading(
            lambda db: _read_passages(db, self._nearest.search(db, vector, embedder, count, scope), scope)
        )

    async def list_unembedded(self, count: int = 100) -> list[Passage]:
        def read(db: sqlite3.Connection) -> list[Passage]:
            ids = db.execute("SELECT id FROM unembedded ORDER BY id LIMIT ?", (count,)).fetchall()
            return _read_passages(db, [(int(row[0]), 0.0) for row in ids], EVERYTHING)

        return await self._run_reading(read)

    async def stats(self) -> StoreStats:
        return replace(await self._run_reading(read_stats), bytes=salvage.size_of(self._path), damage=self._damage)

    async def repair(self, on_saved: Callable[[int, int], None] = lambda count, total: None) -> StoreRepair:
        """Nothing is changed where nothing is damaged."""

        def repair_file() -> StoreRepair:
            self._writer.close()
            self._vectors.close()
            report = salvage.repair_store(self._path, on_saved)
            self._damage = ""
            return report

        await self._reader.run_plainly(self._reader.close)
        self._mapped.close()
        return await self._writer.run_plainly(repair_file)

    async def _run_reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """All that a search reads is of one moment."""

        def read(db: sqlite3.Connection) -> T:
            db.execute("BEGIN")
            try:
                return work(db)
            finally:
                end_reading(db)

        return await self._reader.run(read)

    async def _run_writing(self, work: Callable[[StoreTransaction], T]) -> T:
        def write(db: sqlite3.Connection) -> T:
            writing = StoreTransaction(db, self._vectors, self._limits.min_holes)
            try:
                result = in_transaction(db, lambda: work(writing))
            except (OSError, StoreError, sqlite3.Error):
                self._vectors.close()
                raise
            writing.after_commit()
            return result

        return await self._writer.run(write)


def _list_sources(db: sqlite3.Connection, where: Condition, count: int, skip: int = 0) -> list[StoredSource]:
    """The newest sources that meet a condition."""
    rows = db.execute(
        f"SELECT {SOURCE_ROW} FROM sources s JOIN bodies b ON b.id = s.body WHERE {where.sql or 1} "  # noqa: S608  # values are bound
        "ORDER BY s.fetched_at DESC, s.id DESC LIMIT ? OFFSET ?",
        (*where.values, count, skip),
    )
    return [
        StoredSource(url, title, domain, language, fetched_at, digest, chunks, words, tuple(json.loads(tags)), *dates)
        for url, title, domain, language, fetched_at, digest, chunks, words, tags, *dates in rows
    ]


def _read_passages(db: sqlite3.Connection, ranking: Sequence[tuple[int, float]], scope: Scope) -> list[Passage]:
    """The chunks behind ids, each with the first source in scope that leads to it. What the disk has lost is left out."""
    row_by_chunk = {row[0]: row for row in _read_rows(db, [chunk for chunk, _ in ranking], scope_condition(scope))}
    return [_parse_passage(row_by_chunk[chunk], score) for chunk, score in ranking if chunk in row_by_chunk]


def _read_rows(db: sqlite3.Connection, ids: Sequence[int], where: Condition) -> list[Any]:
    first = f"SELECT s.id FROM sources s WHERE s.body = c.id / {CHUNKS} AND {where.sql or 1} ORDER BY s.id LIMIT 1"  # noqa: S608
    marks = ", ".join("?" * len(ids))
    sql = f"SELECT {_PASSAGE} FROM chunks c JOIN sources s ON s.id = ({first}) WHERE c.id IN ({marks})"  # noqa: S608
    try:
        return db.execute(sql, (*where.values, *ids)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    # each by itself, so that only what the disk has lost is left out
    return [row for chunk in ids for row in _read_rows(db, [chunk], where)] if len(ids) > 1 else []


def _parse_passage(row: Sequence[Any], score: float) -> Passage:
    chunk, url, text, *about, tags, start, published, updated = row  # in the order of the fields of a Passage
    rest = (*about, tuple(json.loads(tags)), start, published, updated)
    return Passage(str(chunk), url, chunk % CHUNKS, text, score, *rest)


class _WordIndex:
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
            body: (chunks, SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length * pages / words))
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
                worth[body] += rarity * count * (SATURATION + 1) / (count + norm)
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


class _NearestSearch:
    """Search by vectors. Keeps the slots of the last scopes, until the store has changed."""

    def __init__(self, vectors: VectorReader, first_pass: FirstPass) -> None:
        self._vectors, self._first_pass, self._generation = vectors, first_pass, -1
        self._chosen: dict[Scope, Chosen] = {}

    def search(self, db: sqlite3.Connection, vector: Vector, embedder: str, count: int, scope: Scope) -> Ranked:
        """(chunk id, cosine), best first. Slots that turn out to be free are replaced by the next best."""
        about: dict[str, str | int] = dict(db.execute("SELECT key, value FROM meta"))
        dims, slots = int(about["dims"]), int(about["slots"])
        if not slots or count < 1:
            return []
        if (about["embedder"], dims) != (embedder, len(vector)):
            raise other_embedder(str(about["embedder"]), dims, embedder, len(vector))
        vectors = self._vectors.read_vectors(int(about["epoch"]), slots, dims)
        if int(about["generation"]) != self._generation:
            self._generation, self._chosen = int(about["generation"]), {}
        if scope != EVERYTHING and scope not in self._chosen:
            if len(self._chosen) >= MAX_SELECTIONS:
                self._chosen = {}
            chosen = _select_slots(db, scope)
            is_small = len(chosen) * dims <= COPIED_NUMBERS
            self._chosen[scope] = Chosen(chosen, vectors.rows.take(chosen, axis=0) if is_small else None)
        selection = self._chosen.get(scope)  # none for everything
        width = count
        while True:
            near = find_nearest(vectors, vector, width, selection, self._first_pass)
            chunks = _chunks_in(db, [slot for slot, _ in near])
            ranking = [(chunks[slot], score) for slot, score in near if slot in chunks]
            if len(ranking) >= count or len(near) < width:
                return ranking[:count]
            width *= 4


def _select_slots(db: sqlite3.Connection, scope: Scope) -> Array:
    where = scope_condition(scope)
    within = f"AND b.id IN (SELECT s.body FROM sources s WHERE {where.sql})" if where.sql else ""  # noqa: S608
    if scope.code is None:
        return slots_of(db, f"SELECT b.slot, b.chunks FROM bodies b WHERE b.slot >= 0 {within} ORDER BY b.slot", where.values)  # noqa: S608
    sign = "<>" if scope.code else "="
    of_body = f"FROM chunks c JOIN bodies b ON b.id = c.id / {CHUNKS} WHERE b.slot >= 0"
    return slots_of(db, f"SELECT b.slot + c.id % {CHUNKS}, 1 {of_body} AND c.code {sign} '' {within} ORDER BY 1", where.values)


def _chunks_in(db: sqlite3.Connection, slots: Sequence[int]) -> dict[int, int]:
    """The chunks whose vectors are in these slots; a slot that is free has none."""
    sql = (
        f"SELECT hit.column1, b.id * {CHUNKS} + hit.column1 - b.slot "  # noqa: S608
        f"FROM (VALUES {', '.join(['(?)'] * len(slots)) or '(-1)'}) AS hit JOIN bodies b ON b.id = "
        "(SELECT id FROM bodies WHERE slot >= 0 AND slot <= hit.column1 ORDER BY slot DESC LIMIT 1) "
        "WHERE hit.column1 < b.slot + b.chunks"
    )
    return dict(db.execute(sql, slots))
