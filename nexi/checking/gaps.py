"""Scores that are not known, each with its reason: what a pair model returns where it has nothing to rely on."""

from __future__ import annotations

from collections.abc import Sequence

from nexi.types import PairScore

UNREADABLE = "the judge gave no verdict that can be read"
TOO_LATE = "the time for checking was used up"


def build_gap(reason: str) -> PairScore:
    return PairScore(0.0, known=False, reason=reason)


def build_gaps(pairs: Sequence[object], reason: str) -> list[PairScore]:
    return [build_gap(reason)] * len(pairs)
