"""Several rankings made one."""

from __future__ import annotations

import pytest

from nexi.routing.fusion import by_reciprocal_rank


def test_what_several_rankings_have_comes_first() -> None:
    fused = by_reciprocal_rank([["a", "b", "c"], ["c", "d"]])
    assert [thing for thing, _ in fused] == ["c", "a", "b", "d"]
    assert fused[0][1] == pytest.approx(1 / 63 + 1 / 61)


def test_nothing_fuses_to_nothing() -> None:
    assert (by_reciprocal_rank([]), by_reciprocal_rank([[], []])) == ([], [])
