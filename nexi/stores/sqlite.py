"""The embedded knowledge store: one SQLite file, by words and by vectors.

The KnowledgeStore port is above; below are a lane for reading and one for writing, so that a search never waits for a
write. Several processes may use one file at once. It refuses to know how its passages are ranked further.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexi import terms, urls
from nexi.errors import StoreError
from nexi.stores import faults, schema, writing
from nexi.stores.lane import Lane, in_transaction
from nexi.stores.schema import CHUNKS, meta
from nexi.stores.scope import Condition, condition
from nexi.stores.vectors import Held
from nexi.types import (
    EVERYTHING,
    IndexedPage,
    Passage,
    Scope,
    StoredSource,
    StoreRepair,
    StoreStats,
    Vector,
)

HEAD_WEIGHT = 1.0
RRF = 60
_SOURCE = "s.url, s.title, s.domain, s.language, s.fetched_at, b.digest, b.chunks, b.words, s.tags"
_PASSAGE = "c.id, s.url, c.text, s.title, s.domain, c.heading, c.context, c.code, s.language, s.fetched_at, s.tags, c.start"


class SqliteStore:
    """The KnowledgeStore port over a file."""

    name = "sqlite"

    def __init__(self, path: Path, *, busy_s: float = 30.0) -> None:
        self._path = path
        self._reader = Lane(path, lambda db: schema.prepare(db, path), busy_s=busy_s)
        self._writer = Lane(path, lambda db: schema.prepare(db, path), busy_s=busy_s)
        self._held = Held()

    async def aclose(self) -> None:
        await self._reader.aclose()
        await self._writer.aclose()

    async def put(self, pages: Sequence[IndexedPage], *, embedder: str = "") -> None:
        await self._write(lambda db: writing.put(db, pages, embedder))

    async def link(self, source: StoredSource) -> bool:
        return bool(await self._write(lambda db: writing.link(db, source)))

    async def remove(self, addresses: Sequence[str]) -> int:
        return int(await self._write(lambda db: writing.remove(db, addresses)))

    async def source(self, url: str) -> StoredSource | None:
        found = await self._reader.run(lambda db: _sources(db, Condition("s.key = ?", (urls.hit_key(url),)), 1, 0))
        return found[0] if found else None

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        return await self._reader.run(lambda db: _sources(db, condition(scope), count, skip))

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        return await self._reader.run(lambda db: _of_page(db, url, first, last))

    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._reader.run(lambda db: _passages(db, _by_words(db, text, count, scope), scope))

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._reader.run(lambda db: _passages(db, self._nearest(db, vector, embedder, count, scope), scope))

    async def hybrid(
        self, text: str, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING
    ) -> list[Passage]:
        def search(db: sqlite3.Connection) -> list[Passage]:
            wide = max(count * 3, 30)
            lists = (_by_words(db, text, wide, scope), self._nearest(db, vector, embedder, wide, scope))
            return _passages(db, _fused(lists)[:count], scope)

        return await self._reader.run(search)

    async def unembedded(self, count: int = 100) -> list[Passage]:
        return await self._reader.run(lambda db: _unembedded(db, count))

    async def add_vectors(self, vectors: Mapping[str, Vector], *, embedder: str) -> None:
        raise StoreError("not yet")

    async def forget_vectors(self) -> None:
        raise StoreError("not yet")

    async def stats(self) -> StoreStats:
        return await self._reader.run(self._stats)

    async def repair(self) -> StoreRepair:
        raise StoreError("not yet")

    async def _write(self, work: Any) -> Any:
        return await self._writer.run(lambda db: in_transaction(db, lambda: work(db)))

    def _nearest(
        self, db: sqlite3.Connection, vector: Vector, embedder: str, count: int, scope: Scope
    ) -> list[tuple[int, float]]:
        stored, dims = meta(db, "embedder"), int(meta(db, "dims") or 0)
        if not dims:
            return []
        if (stored, dims) != (embedder, len(vector)):
            raise faults.other_embedder(f"{stored} ({dims} dimensions)", f"{embedder} ({len(vector)} dimensions)")
        self._held.refresh(db, meta(db, "generation"), dims)
        where = condition(scope)
        bodies = None
        if where.sql:
            bodies = [r[0] for r in db.execute(f"SELECT DISTINCT s.body FROM sources s WHERE {where.sql}", where.values)]  # noqa: S608
        return self._held.nearest(vector, count, bodies)

    def _stats(self, db: sqlite3.Connection) -> StoreStats:
        sources = db.execute("SELECT count(*) FROM sources").fetchone()[0]
        chunks, words = db.execute("SELECT coalesce(sum(chunks), 0), coalesce(sum(words), 0) FROM bodies").fetchone()
        missing = db.execute(
            "SELECT coalesce(sum(chunks), 0) FROM bodies WHERE id NOT IN (SELECT body FROM vectors)"
        ).fetchone()[0]
        size = self._path.stat().st_size
        return StoreStats(sources, chunks, words, missing, meta(db, "embedder"), int(meta(db, "dims") or 0), size)


def _sources(db: sqlite3.Connection, where: Condition, count: int, skip: int) -> list[StoredSource]:
    rows = db.execute(
        f"SELECT {_SOURCE} FROM sources s JOIN bodies b ON b.id = s.body WHERE {where.sql or 1} "  # noqa: S608
        "ORDER BY s.fetched_at DESC, s.id DESC LIMIT ? OFFSET ?",
        (*where.values, count, skip),
    )
    return [StoredSource(*row[:-1], tags=tuple(json.loads(row[-1]))) for row in rows]


def _by_words(db: sqlite3.Connection, text: str, count: int, scope: Scope) -> list[tuple[int, float]]:
    match = _match(text)
    if not match:
        return []
    where = condition(scope)
    clauses, values = ["words MATCH ?"], [match]
    if where.sql:
        clauses.append(f"rowid / {CHUNKS} IN (SELECT s.body FROM sources s WHERE {where.sql})")  # noqa: S608
    if scope.code is not None:
        clauses.append(f"rowid {'' if scope.code else 'NOT '}IN (SELECT id FROM chunks WHERE code <> '')")  # noqa: S608
    rows = db.execute(
        f"SELECT rowid, bm25(words, 1.0, {HEAD_WEIGHT}) AS cost FROM words WHERE {' AND '.join(clauses)} "  # noqa: S608
        "ORDER BY cost, rowid LIMIT ?",
        (*values, *where.values, count),
    )
    return [(int(i), -float(cost)) for i, cost in rows]


def _match(text: str) -> str:
    """Any of the words; one character of an unspaced script stands for every pair that begins with it."""
    return " OR ".join(
        '"' + term + '"' + ("*" if len(term) == 1 and terms.is_unspaced(term) else "") for term in terms.asked(text)
    )


def _fused(lists: Sequence[list[tuple[int, float]]]) -> list[tuple[int, float]]:
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, (chunk, _) in enumerate(ranked, 1):
            scores[chunk] = scores.get(chunk, 0.0) + 1 / (RRF + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _passages(db: sqlite3.Connection, ranked: Sequence[tuple[int, float]], scope: Scope) -> list[Passage]:
    """The chunks behind ids, with the first source in scope that leads to each."""
    where = condition(scope)
    sql = (
        f"SELECT {_PASSAGE} FROM chunks c JOIN sources s ON s.body = c.id / {CHUNKS} "  # noqa: S608
        f"WHERE c.id = ? AND {where.sql or 1} ORDER BY s.id LIMIT 1"
    )
    found = ((db.execute(sql, (chunk, *where.values)).fetchone(), score) for chunk, score in ranked)
    return [_passage(row, score) for row, score in found if row]


def _of_page(db: sqlite3.Connection, url: str, first: int, last: int | None) -> list[Passage]:
    rows = db.execute(
        f"SELECT {_PASSAGE} FROM sources s JOIN chunks c ON c.id BETWEEN s.body * {CHUNKS} + ? AND s.body * {CHUNKS} + ? "  # noqa: S608
        "WHERE s.key = ? ORDER BY c.id",
        (max(0, first), CHUNKS - 1 if last is None else min(last, CHUNKS - 1), urls.hit_key(url)),
    )
    return [_passage(row, 0.0) for row in rows]


def _unembedded(db: sqlite3.Connection, count: int) -> list[Passage]:
    ids = db.execute(
        f"SELECT id FROM chunks WHERE id / {CHUNKS} NOT IN (SELECT body FROM vectors) ORDER BY id LIMIT ?",  # noqa: S608
        (count,),
    )
    return _passages(db, [(int(row[0]), 0.0) for row in ids], EVERYTHING)


def _passage(row: Sequence[Any], score: float) -> Passage:
    chunk, url, text, title, domain, heading, context, code, language, fetched_at, tags, start = row
    return Passage(
        id=str(chunk),
        url=url,
        number=chunk % CHUNKS,
        text=text,
        score=score,
        title=title,
        domain=domain,
        heading=heading,
        context=context,
        code=code,
        language=language,
        fetched_at=fetched_at,
        tags=tuple(json.loads(tags)),
        start=start,
    )
