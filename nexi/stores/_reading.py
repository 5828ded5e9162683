"""What the embedded store reads, in one transaction so that words, vectors and texts are of one moment."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from nexi.stores import _faults
from nexi.stores._schema import CHUNKS, read_meta
from nexi.stores._scope import Condition, scope_condition
from nexi.stores._vectors import Array, Chosen, FirstPass, VectorReader, find_nearest, slots_of
from nexi.stores._words import Ranked
from nexi.stores._writing import key_of
from nexi.types import EVERYTHING, Passage, Scope, StoredSource, StoreStats, Vector

SOURCE_ROW = "s.url, s.title, s.domain, s.language, s.fetched_at, b.digest, b.chunks, b.words, s.tags, s.published, s.updated"
_PASSAGE = (
    "c.id, s.url, c.text, s.title, s.domain, c.heading, c.context, c.code, s.language, s.fetched_at, s.tags, c.start, "
    "s.published, s.updated"
)
MAX_SELECTIONS = 8
COPIED_NUMBERS = 524_288  # two megabytes: 2,048 vectors of 256


def list_sources(db: sqlite3.Connection, where: Condition, count: int, skip: int = 0) -> list[StoredSource]:
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


def of_page(db: sqlite3.Connection, url: str, first: int, last: int | None) -> list[Passage]:
    rows = db.execute(
        f"SELECT {_PASSAGE} FROM sources s JOIN chunks c ON c.id BETWEEN s.body * {CHUNKS} + ? AND s.body * {CHUNKS} + ? "  # noqa: S608
        "WHERE s.key = ? ORDER BY c.id",
        (max(0, first), CHUNKS - 1 if last is None else min(last, CHUNKS - 1), key_of(url)),
    )
    return [_parse_passage(row, 0.0) for row in rows]


def list_unembedded(db: sqlite3.Connection, count: int) -> list[Passage]:
    ids = db.execute("SELECT id FROM unembedded ORDER BY id LIMIT ?", (count,)).fetchall()
    return read_passages(db, [(int(row[0]), 0.0) for row in ids], EVERYTHING)


def read_passages(db: sqlite3.Connection, ranking: Sequence[tuple[int, float]], scope: Scope) -> list[Passage]:
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
        if not _faults.is_damage(error):
            raise
    # each by itself, so that only what the disk has lost is left out
    return [row for chunk in ids for row in _read_rows(db, [chunk], where)] if len(ids) > 1 else []


def _parse_passage(row: Sequence[Any], score: float) -> Passage:
    chunk, url, text, *about, tags, start, published, updated = row  # in the order of the fields of a Passage
    rest = (*about, tuple(json.loads(tags)), start, published, updated)
    return Passage(str(chunk), url, chunk % CHUNKS, text, score, *rest)


def read_stats(db: sqlite3.Connection) -> StoreStats:
    pages = int(db.execute("SELECT count(*) FROM sources").fetchone()[0])
    chunks, words = db.execute("SELECT coalesce(sum(chunks), 0), coalesce(sum(words), 0) FROM bodies").fetchone()
    unembedded = int(db.execute("SELECT count(*) FROM unembedded").fetchone()[0])
    return StoreStats(pages, chunks, words, unembedded, read_meta(db, "embedder"), int(read_meta(db, "dims") or 0))


class Nearest:
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
            raise _faults.other_embedder(str(about["embedder"]), dims, embedder, len(vector))
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
