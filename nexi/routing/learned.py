"""The kind of a question by its meaning: a linear model over the vector of the reading model. Pure; the vector comes in.

The weights are made by `python -m evals.routing --train` from questions that were written for the purpose.
"""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct


class _Weights(Struct, frozen=True):
    kinds: tuple[str, ...]
    size: int
    scale: float
    rows: tuple[array[int], ...]  # the mean vector first, then one row for each kind


@cache
def _load_weights() -> _Weights:
    data = json.loads(Path(__file__).with_name("weights.json").read_text(encoding="utf-8"))
    numbers = array("h")
    numbers.frombytes(base64.b64decode(data["numbers"]))
    size = data["size"]
    rows = tuple(numbers[start : start + size] for start in range(0, len(numbers), size))
    return _Weights(tuple(data["kinds"]), size, data["scale"], rows)


def rate_kinds(vector: Sequence[float]) -> Mapping[str, float]:
    """How much a question of this vector is of each kind: about 1 for the right one, about 0 for the others."""
    weights = _load_weights()
    if len(vector) != weights.size:
        return {}
    mean, *rows = weights.rows
    differences = [value - part * weights.scale for value, part in zip(vector, mean, strict=True)]
    rates = (sum(value * part for value, part in zip(differences, row, strict=True)) * weights.scale for row in rows)
    return dict(zip(weights.kinds, rates, strict=True))
