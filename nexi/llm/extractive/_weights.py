"""Learned weights by name: the JSON files beside this module, which scripts under `evals/` write.

Below everything that decides by figures. A weight that a file does not have is 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def load_weights(name: str) -> Mapping[str, float]:
    text = resources.files("nexi.llm.extractive").joinpath(name).read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


def sum_points(row: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in row.items())
