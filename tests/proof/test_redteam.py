"""The sentences written by hand: enough of both kinds, and judged no worse than they were."""

from __future__ import annotations

from pathlib import Path

from evals.redteam import judge, statements

FLOOR_TRUE, FLOOR_LIES = 0.87, 0.80  # about our own pages, by rules alone


def test_there_are_enough_of_both_kinds() -> None:
    everything = statements(Path("webs"))
    lies = sum(not s.true for s in everything)
    assert len(everything) >= 400
    assert 0.4 < lies / len(everything) < 0.6


def test_those_about_our_own_pages_are_judged_no_worse_than_they_were() -> None:
    judged = [(s.true, passed) for s, passed, _ in judge(None, "both")]
    true, lies = [p for t, p in judged if t], [p for t, p in judged if not t]
    assert sum(true) / len(true) >= FLOOR_TRUE
    assert 1 - sum(lies) / len(lies) >= FLOOR_LIES
