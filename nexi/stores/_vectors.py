"""Vectors in files of their own, mapped into memory and searched with numpy. The only file of the store that needs it.

Slots are given out in SQLite, in the transaction that stores the page, after the vectors are on the disk: what a crash leaves
beyond the last slot is written over. A row whose first number is no number holds nothing any more; a reader that maps a slot
to a page asks SQLite, which is authoritative.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from msgspec import Struct

from nexi import files
from nexi.errors import StoreError
from nexi.install import install_command
from nexi.stores._connection import damaged_error
from nexi.types import Vector

Array: TypeAlias = Any  # of numpy, which is imported only where there are vectors

BLOCK = 16_384
COPIED = 256
EMPTY = -2.0  # below every cosine
WORD = 64


def load_numpy() -> Any:
    try:
        import numpy as np
    except ImportError:
        fix = f"Install them with: {install_command('vectors')}"
        raise StoreError("Vectors need a part of nexi that is not installed", cause="numpy is missing", fix=fix) from None
    return np


def unit_rows(vectors: Sequence[Vector], dims: int) -> Array:
    np = load_numpy()
    if any(len(vector) != dims for vector in vectors):
        raise bad_vectors(f"not all of them have {dims} dimensions")
    rows = np.array([np.asarray(vector, np.float32) for vector in vectors], np.float32).reshape(-1, dims)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not np.isfinite(lengths).all():
        raise bad_vectors("some of their numbers are not finite")
    return rows / np.maximum(lengths, 1e-12)[:, None]  # one of zeros stays as it is


def other_embedder(current: str, current_dims: int, embedder: str, dims: int) -> StoreError:
    cause = f"it was made with {current} ({current_dims} dimensions), which {embedder} ({dims}) cannot be compared with"
    fix = f"Set the embedding model back to {current}, or embed the stored texts again with `nexi index --reembed`."
    message = "The knowledge store holds vectors of another embedding model"
    return StoreError(message, cause=cause, fix=fix, code="store_embedder")


def bad_vectors(cause: str) -> StoreError:
    fix = "Check the embedding model: its answers are not usable."
    return StoreError("These vectors cannot be stored", cause=cause, fix=fix)


def empty_rows(count: int, dims: int) -> Array:
    """Rows that hold nothing: no search finds them."""
    np = load_numpy()
    rows = np.zeros((count, dims), "<f4")
    rows[:, 0] = np.nan
    return rows


def _sign_bits(rows: Array) -> Array:
    """One bit a number (its sign), in whole words."""
    np = load_numpy()
    bits = np.packbits(rows > 0, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % (WORD // 8)))).view(np.uint64)


def _vector_directory(path: Path) -> Path:
    return path.with_name(path.name + "-vectors")


class VectorWriter:
    """Writes rows to their slots. One for each writing thread."""

    def __init__(self, store: Path) -> None:
        self.store, self._directory = store, _vector_directory(store)
        self._epoch = 0
        self._open: tuple[IO[bytes], ...] = ()

    def write(self, epoch: int, slot: int, rows: Array) -> None:
        """Rows and their bits from a slot on; `flush` before the transaction ends makes them lasting."""
        if not self._open or self._epoch != epoch:
            self.close()
            files.make_private_directory(self._directory)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            paths = _file_paths(self._directory, epoch)
            self._open = tuple(os.fdopen(os.open(path, flags, files.PRIVATE_FILE), "r+b") for path in paths)
            self._epoch = epoch
        for file, block in zip(self._open, (rows, _sign_bits(rows)), strict=True):
            data = block.tobytes()
            file.seek(slot * (len(data) // max(len(rows), 1)))
            file.write(data)

    def flush(self) -> None:
        for file in self._open:
            file.flush()
            os.fsync(file.fileno())

    def blank_rows(self, epoch: int, slot: int, count: int, dims: int) -> None:
        """Mark rows as empty, once the transaction that freed them is over; a failure only costs a later search time."""
        with suppress(OSError):
            self.write(epoch, slot, empty_rows(count, dims))
            for file in self._open:
                file.flush()

    def drop_before(self, epoch: int) -> None:
        """Remove the files of former epochs; where another process still has them open, they go another time."""
        if self._epoch < epoch:
            self.close()
        for path in self._directory.glob("*.*"):
            if path.stem.isdigit() and int(path.stem) < epoch:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        vector_files, self._open, self._epoch = self._open, (), 0
        for file in vector_files:
            with suppress(OSError):
                file.close()


def _file_paths(directory: Path, epoch: int) -> tuple[Path, Path]:
    return directory / f"{epoch}.f32", directory / f"{epoch}.bits"


class Held(Struct, frozen=True):
    """The vectors of one epoch, as the file has them: rows, and a word of bits for every 64 numbers."""

    rows: Array
    bits: Array


class Chosen(Struct, frozen=True):
    """The slots of a scope, and a copy of their rows where there are few: they lie apart in the file."""

    slots: Array
    rows: Array = None


class VectorReader:
    """Maps the files, and maps them again when they have grown or another epoch has begun. One for each reading thread."""

    def __init__(self, store: Path) -> None:
        self._directory = _vector_directory(store)
        self._known = (0, 0, 0)
        self._held: Held | None = None

    def read_vectors(self, epoch: int, slots: int, dims: int) -> Held:
        """The first `slots` vectors. Raises StoreError where the files do not have them."""
        if self._held is None or self._known[:2] != (epoch, dims) or self._known[2] < slots:
            np = load_numpy()
            rows, bits = _file_paths(self._directory, epoch)
            try:
                self._held = Held(
                    np.memmap(rows, "<f4", "r", shape=(slots, dims)).view(np.ndarray),
                    np.memmap(bits, "<u8", "r", shape=(slots, -(-dims // WORD))).view(np.ndarray),
                )
            except (OSError, ValueError) as error:
                raise damaged_error(rows, f"its vectors are missing: {error}") from None
            self._known = (epoch, dims, slots)
        return Held(self._held.rows[:slots], self._held.bits[:slots])

    def close(self) -> None:
        self._held = None


def newest_epoch(store: Path) -> int:
    return max((int(path.stem) for path in _vector_directory(store).glob("*.f32") if path.stem.isdigit()), default=0)


def read_sound_rows(vectors: Held | None, slots: Sequence[int]) -> tuple[Array, ...]:
    """The rows of some slots if all of them are vectors of length one, else none: what is not can be made again."""
    if vectors is None or not slots or max(slots) >= len(vectors.rows):
        return ()
    np = load_numpy()
    rows = vectors.rows[np.array(slots)]
    lengths = np.linalg.norm(rows, axis=1)
    return tuple(rows) if bool((abs(lengths - 1) < 1e-3).all()) else ()


class FirstPass(Struct, frozen=True):
    """When a first pass compares one bit of every number, and how many vectors it leaves for the exact one."""

    min_numbers: int = 48_000_000  # up to here (190,000 vectors of 256) every vector is compared
    min_candidates: int = 2_000
    oversampling: int = 40
    share: int = 80  # one vector in so many is a candidate; with fewer, real texts lose more than two of a hundred


def find_nearest(
    vectors: Held, vector: Vector, count: int, selection: Chosen | None, first_pass: FirstPass
) -> list[tuple[int, float]]:
    """(slot, cosine) of the nearest rows, best first, among the chosen slots or all of them."""
    np = load_numpy()
    numbers = np.frombuffer(vector, f"={vector.typecode}").astype(np.float32)
    length = float(np.dot(numbers, numbers)) ** 0.5
    if not 0 < length < float("inf"):
        raise bad_vectors("the vector to search with has no direction")
    query = numbers / np.float32(length)
    slots, copies = (None, None) if selection is None else (selection.slots, selection.rows)
    total = len(vectors.rows) if slots is None else len(slots)
    if total * len(query) > first_pass.min_numbers:
        candidates = max(first_pass.min_candidates, count * first_pass.oversampling, total // first_pass.share)
        slots, copies = _likely_slots(vectors.bits, query, candidates, slots), None
    scores = _score_rows(vectors.rows, query, slots) if copies is None else np.einsum("ij,j->i", copies, query)
    if np.isnan(scores.sum()):
        scores[np.isnan(scores)] = EMPTY
    # equal scores keep the order of the rows
    places = np.sort(np.argpartition(scores, -count)[-count:]) if len(scores) > count else np.arange(len(scores))
    best = places[np.argsort(-scores[places], kind="stable")]
    nearest = best if slots is None else slots[best]
    return [(s, score) for s, score in zip(nearest.tolist(), scores[best].tolist(), strict=True) if score > EMPTY]


def _score_rows(rows: Array, query: Array, slots: Array) -> Array:
    np = load_numpy()
    # Where most rows are chosen, all are multiplied in place: a copy of the chosen costs more. The product is not `@`: that
    # wakes a pool of threads whose waiting costs more than a product of this size.
    if slots is None or len(slots) * 4 > len(rows):
        every = np.einsum("ij,j->i", rows, query)
        return every if slots is None else every[slots]
    scores = np.empty(len(slots), np.float32)
    # few are copied at a time, into one place that stays in the processor's cache and needs no threads
    buffer = np.empty((min(COPIED, len(slots)), rows.shape[1]), np.float32)
    for start in range(0, len(slots), COPIED):
        some = slots[start : start + COPIED]
        block = rows.take(some, axis=0, out=buffer[: len(some)], mode="clip")
        np.dot(block, query, out=scores[start : start + COPIED])
    return scores


def _likely_slots(bits: Array, query: Array, count: int, slots: Array) -> Array:
    """Slots whose signs differ least from the query's."""
    np = load_numpy()
    query_bits = _sign_bits(query.reshape(1, -1))[0]
    distances = np.empty(len(bits), np.uint16)
    for start in range(0, len(bits), BLOCK):
        counts = np.bitwise_count(bits[start : start + BLOCK] ^ query_bits)
        if counts.shape[1] == 4:  # four in a row are added inside one 32-bit word, which is faster by far
            words = counts.view(np.uint32).ravel()
            pairs = (words & 0x00FF00FF) + ((words >> 8) & 0x00FF00FF)
            distances[start : start + BLOCK] = (pairs + (pairs >> 16)) & 0xFFFF
        else:
            distances[start : start + BLOCK] = counts.sum(axis=1, dtype=np.uint16)
    if slots is not None:
        distances = distances[slots]
    if len(distances) > count:
        limit = int(np.searchsorted(np.cumsum(np.bincount(distances)), count))
        places = np.flatnonzero(distances <= limit)
    else:
        places = np.arange(len(distances))
    return places if slots is None else slots[places]


def slots_of(db: sqlite3.Connection, sql: str, values: Sequence[str | int]) -> Array:
    """Every slot of ranges (first, count) that SQL selects."""
    np = load_numpy()
    ranges = np.array(db.execute(sql, values).fetchall(), np.int64).reshape(-1, 2)
    starts, counts = ranges[:, 0], ranges[:, 1]
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
