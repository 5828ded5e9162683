"""Vectors searched exactly with numpy. The only file that needs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from nexi.stores import faults
from nexi.stores.schema import CHUNKS
from nexi.types import Vector


def matrix(vectors: Sequence[Vector], dims: int) -> Any:
    """Rows of length one."""
    np = _numpy()
    if any(len(v) != dims for v in vectors):
        raise faults.bad_vectors(f"lengths differ from {dims}")
    rows = np.array([np.asarray(v, dtype=np.float32) for v in vectors], dtype=np.float32)
    if not np.isfinite(rows).all():
        raise faults.bad_vectors("there are numbers in them that are not finite")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


class Held:
    """Every vector, in memory, as of one generation."""

    def __init__(self) -> None:
        self.generation = ""
        self.ids: Any = None
        self.rows: Any = None

    def refresh(self, db: sqlite3.Connection, generation: str, dims: int) -> None:
        if generation == self.generation:
            return
        np = _numpy()
        ids, blocks = [np.zeros(0, np.int64)], [np.zeros((0, dims), np.float32)]
        for body, data in db.execute("SELECT body, data FROM vectors"):
            block = np.frombuffer(data, np.float32).reshape(-1, dims)
            blocks.append(block)
            ids.append(np.arange(len(block), dtype=np.int64) + body * CHUNKS)
        self.ids, self.rows, self.generation = np.concatenate(ids), np.concatenate(blocks), generation

    def nearest(self, vector: Vector, count: int, bodies: Sequence[int] | None) -> list[tuple[int, float]]:
        np = _numpy()
        ids, rows = self.ids, self.rows
        if bodies is not None:
            chosen = np.isin(ids // CHUNKS, np.array(bodies, np.int64))
            ids, rows = ids[chosen], rows[chosen]
        scores = rows @ matrix([vector], rows.shape[1])[0]
        best = np.argsort(-scores, kind="stable")[:count]
        return [(int(ids[i]), float(scores[i])) for i in best]


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise faults.no_numpy() from None
    return numpy
