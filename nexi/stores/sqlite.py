"""The embedded knowledge store: one SQLite file, with the vectors in files beside it.

One thread reads and one writes, so that a search never waits for a write. Several processes may use one file at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import StoreError
from nexi.stores import _reading, salvage
from nexi.stores._connection import BUSY_S, READING_KIB, SqliteThread, damaged_error, end_reading, in_transaction, is_damage
from nexi.stores._reading import MAX_SCORED, Nearest, WordIndex
from nexi.stores._schema import MIN_HOLES, Condition, prepare_tables, scope_condition
from nexi.stores._vectors import FirstPass, VectorReader, VectorWriter
from nexi.stores._writing import StoreTransaction, key_of
from nexi.types import EVERYTHING, IndexedPage, Passage, Scope, StoredSource, StoreRepair, StoreStats, Vector

__all__ = ["SqliteStore"]

T = TypeVar("T")


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
        self._nearest = Nearest(self._mapped, limits.first_pass)
        self._words = WordIndex(limits.max_scored)
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
        sources = await self._run_reading(lambda db: _reading.list_sources(db, where, 1))
        return sources[0] if sources else None

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        return await self._run_reading(lambda db: _reading.list_sources(db, scope_condition(scope), count, skip))

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        return await self._run_reading(lambda db: _reading.of_page(db, url, first, last))

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
            return _reading.read_passages(db, ranking, scope)

        return await self._run_reading(search)

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        return await self._run_reading(
            lambda db: _reading.read_passages(db, self._nearest.search(db, vector, embedder, count, scope), scope)
        )

    async def list_unembedded(self, count: int = 100) -> list[Passage]:
        return await self._run_reading(lambda db: _reading.list_unembedded(db, count))

    async def stats(self) -> StoreStats:
        return replace(await self._run_reading(_reading.read_stats), bytes=salvage.size_of(self._path), damage=self._damage)

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
