"""Several rankings made one. Pure; agentic search and open services use it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
RANK_CONSTANT = 60  # how little the very first ranks matter; the value of the paper that proposed this


def by_reciprocal_rank(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Each thing with the sum of 1 / (60 + rank) over the rankings that have it, best first; equals keep their first place."""
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, thing in enumerate(ranking, 1):
            scores[thing] = scores.get(thing, 0.0) + 1.0 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
