"""Several rankings made one. Pure; stores and retrieval use it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
RANK_CONSTANT = 60  # how little the very first ranks matter; the value of the paper that proposed this


def fusion_width(count: int) -> int:
    """How many of each ranking are worth fusing for so many results."""
    return max(count * 3, 30)


def by_reciprocal_rank(rankings: Sequence[Sequence[T]], weights: Sequence[float] = ()) -> list[tuple[T, float]]:
    """Each thing with the sum of 1 / (60 + rank) over the rankings that have it, best first; equals keep their first place."""
    scores: dict[T, float] = {}
    for number, ranking in enumerate(rankings):
        weight = weights[number] if weights else 1.0
        for rank, thing in enumerate(ranking, 1):
            scores[thing] = scores.get(thing, 0.0) + weight / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
