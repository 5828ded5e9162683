"""What the embedded store reads from its tables: sources, passages, and the slots a scope covers.

`sqlite.py` calls it in the reader's thread, inside one read transaction, so that words, vectors and texts are of one moment.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from nexi.stores import faults
from nexi.stores.schema import CHUNKS, meta
from nexi.stores.scope import Condition, condition
from nexi.stores.vectors import VectorReader, nearest, slots_of
from nexi.stores.words import Ranked
from nexi.stores.writing import key_of
from nexi.types import EVERYTHING, Passage, Scope, StoredSource, StoreStats, Vector

_SOURCE = "s.url, s.title, s.domain, s.language, s.fetched_at, b.digest, b.chunks, b.words, s.tags"
_PASSAGE = "c.id, s.url, c.text, s.title, s.domain, c.heading, c.context, c.code, s.language, s.fetched_at, s.tags, c.start"
MOST_SELECTIONS = 8


def source(db: sqlite3.Connection, url: str) -> StoredSource | None:
    found = _sources(db, Condition("s.key = ?", (key_of(url),)), 1, 0)
    return found[0] if found else None


def sources(db: sqlite3.Connection, scope: Scope, count: int, skip: int) -> list[StoredSource]:
    return _sources(db, condition(scope), count, skip)


def _sources(db: sqlite3.Connection, where: Condition, count: int, skip: int) -> list[StoredSource]:
    rows = db.execute(
        f"SELECT {_SOURCE} FROM sources s JOIN bodies b ON b.id = s.body WHERE {where.sql or 1} "  # noqa: S608  # values are bound
        "ORDER BY s.fetched_at DESC, s.id DESC LIMIT ? OFFSET ?",
        (*where.values, count, skip),
    )
    return [_stored(row) for row in rows]


def _stored(row: Sequence[Any]) -> StoredSource:
    url, title, domain, language, fetched_at, digest, chunks, words, tags = row
    return StoredSource(url, title, domain, language, fetched_at, digest, chunks, words, tuple(json.loads(tags)))


def of_page(db: sqlite3.Connection, url: str, first: int, last: int | None) -> list[Passage]:
    rows = db.execute(
        f"SELECT {_PASSAGE} FROM sources s JOIN chunks c ON c.id BETWEEN s.body * {CHUNKS} + ? AND s.body * {CHUNKS} + ? "  # noqa: S608
        "WHERE s.key = ? ORDER BY c.id",
        (max(0, first), CHUNKS - 1 if last is None else min(last, CHUNKS - 1), key_of(url)),
    )
    return [_passage(row, 0.0) for row in rows]


def unembedded(db: sqlite3.Connection, count: int) -> list[Passage]:
    ids = db.execute("SELECT id FROM unembedded ORDER BY id LIMIT ?", (count,)).fetchall()
    return passages(db, [(int(row[0]), 0.0) for row in ids], EVERYTHING)


def passages(db: sqlite3.Connection, ranked: Iterable[tuple[int, float]], scope: Scope) -> list[Passage]:
    """The chunks behind ids, each with the first source in scope that leads to it. What the disk has lost is left out."""
    where = condition(scope)
    sql = (
        f"SELECT {_PASSAGE} FROM chunks c JOIN sources s ON s.body = c.id / {CHUNKS} "  # noqa: S608
        f"WHERE c.id = ? AND {where.sql or 1} ORDER BY s.id LIMIT 1"
    )
    found: list[Passage] = []
    for chunk, score in ranked:
        try:
            row = db.execute(sql, (chunk, *where.values)).fetchone()
        except sqlite3.DatabaseError as error:
            if not faults.is_damage(error):
                raise
            continue
        if row:
            found.append(_passage(row, score))
    return found


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


def stats(db: sqlite3.Connection) -> StoreStats:
    pages = int(db.execute("SELECT count(*) FROM sources").fetchone()[0])
    chunks, words = db.execute("SELECT coalesce(sum(chunks), 0), coalesce(sum(words), 0) FROM bodies").fetchone()
    missing = int(db.execute("SELECT count(*) FROM unembedded").fetchone()[0])
    return StoreStats(pages, chunks, words, missing, meta(db, "embedder"), int(meta(db, "dims") or 0))


class Nearest:
    """Search by vectors. Keeps the slots of the last scopes, until the store has changed."""

    def __init__(self, vectors: VectorReader) -> None:
        self._vectors = vectors
        self._generation = ""
        self._chosen: dict[Scope, Any] = {}

    def search(self, db: sqlite3.Connection, vector: Vector, embedder: str, count: int, scope: Scope) -> Ranked:
        """(chunk id, cosine), best first. Slots that turn out to be free are replaced by the next best."""
        stored, dims, slots = meta(db, "embedder"), int(meta(db, "dims") or 0), int(meta(db, "slots") or 0)
        if not slots or count < 1:
            return []
        if (stored, dims) != (embedder, len(vector)):
            raise faults.other_embedder(stored, dims, embedder, len(vector))
        held = self._vectors.held(int(meta(db, "epoch")), slots, dims)
        chosen = self._slots(db, scope)
        wanted = count
        while True:
            near = nearest(held, vector, wanted, chosen)
            found = [(chunk, score) for slot, score in near if (chunk := _chunk_in(db, slot)) is not None]
            if len(found) >= count or len(near) < wanted:
                return found[:count]
            wanted *= 4

    def _slots(self, db: sqlite3.Connection, scope: Scope) -> Any:
        """The slots of a scope, None for all of them."""
        if scope == EVERYTHING:
            return None
        generation = meta(db, "generation")
        if generation != self._generation or len(self._chosen) >= MOST_SELECTIONS:
            self._generation, self._chosen = generation, {}
        if scope not in self._chosen:
            self._chosen[scope] = _select(db, scope)
        return self._chosen[scope]


def _select(db: sqlite3.Connection, scope: Scope) -> Any:
    where = condition(scope)
    within = f"AND b.id IN (SELECT s.body FROM sources s WHERE {where.sql})" if where.sql else ""  # noqa: S608
    if scope.code is None:
        return slots_of(db, f"SELECT b.slot, b.chunks FROM bodies b WHERE b.slot >= 0 {within} ORDER BY b.slot", where.values)  # noqa: S608
    sign = "<>" if scope.code else "="
    sql = (
        f"SELECT b.slot + c.id % {CHUNKS}, 1 FROM chunks c JOIN bodies b ON b.id = c.id / {CHUNKS} "  # noqa: S608
        f"WHERE b.slot >= 0 AND c.code {sign} '' {within} ORDER BY 1"
    )
    return slots_of(db, sql, where.values)


def _chunk_in(db: sqlite3.Connection, slot: int) -> int | None:
    """The chunk whose vector is in a slot."""
    sql = "SELECT id, slot, chunks FROM bodies WHERE slot >= 0 AND slot <= ? ORDER BY slot DESC LIMIT 1"
    found = db.execute(sql, (slot,)).fetchone()
    if found is None or slot >= found[1] + found[2]:
        return None
    return int(found[0]) * CHUNKS + slot - int(found[1])
