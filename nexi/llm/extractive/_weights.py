"""What was learned: weights by name, how common an English word is, and which words mean nearly the same.

Below everything that decides by figures. The weights are the JSON files beside this module, which scripts under `evals/` write;
one that a file does not have is 0. The words are a table (`python -m evals.sentence_choice words`): one line for each stem with
the number of sentences it occurs in, then related stems with their similarity in hundredths.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib import resources

from nexi.llm.extractive._limits import MIN_NAME_CHARS, SAME

TOTAL = "*"  # the line that holds the number of all sentences


@cache
def load_weights(name: str) -> Mapping[str, float]:
    text = resources.files("nexi.llm.extractive").joinpath(name).read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


def sum_points(row: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in row.items())


@cache
def _load_lines() -> dict[str, str]:
    text = resources.files("nexi.llm.extractive").joinpath("related.txt").read_text(encoding="utf-8")
    return {stem: rest for stem, _, rest in (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))}


def find_rarity(count: int, total: int) -> float:
    """What a word says that stands in so many of all sentences, as BM25 weighs it."""
    return math.log((2 * total + 2) / (2 * count + 1))


@cache
def general_rarity(stem: str) -> float:
    """What a word says by how rare it is in general English."""
    lines = _load_lines()
    return find_rarity(int(lines.get(stem, "0").split(" ", 1)[0]), int(lines[TOTAL]))


@cache
def related_stems(stem: str) -> dict[str, float]:
    """Stems that mean nearly the same, each with its similarity below 1."""
    parts = _load_lines().get(stem, "").split(" ")[1:]
    return {word: float(f".{similarity}") for word, similarity in zip(parts[::2], parts[1::2], strict=True)}


def find_similarity(stem: str, stems: frozenset[str]) -> float:
    """How nearly a word is said by others: 1 where it is among them."""
    if stem in stems:
        return 1.0
    similarities = related_stems(stem)
    best = max((similarities[other] for other in similarities.keys() & stems), default=0.0)
    return max(best, SAME) if any(has_same_root(stem, other) for other in stems) else best


def has_same_root(one: str, other: str) -> bool:
    """Whether two words differ by their endings only, such as "Islam" and "Islamic"."""
    if one[:MIN_NAME_CHARS] != other[:MIN_NAME_CHARS] or len(one) < MIN_NAME_CHARS:
        return False
    least = SAME * max(len(one), len(other))
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same >= least
