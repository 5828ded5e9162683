"""What is told before money is spent."""

from __future__ import annotations

import pytest

from nexi.research.planner import CostEstimate, estimate_cost


def test_an_estimate_is_a_range_and_has_a_price_where_one_is_known() -> None:
    told = estimate_cost(2, 3, 128_000, (1.0, 4.0))
    assert (told.calls, told.tokens) == ((14, 69), (45_600, 1_034_100))
    assert told.cost == pytest.approx((0.0564, 1.2384))
    assert told.describe() == "about 14 to 69 model calls and 45 k to 1.0 M tokens, $0.06 to $1.24"


def test_without_a_price_no_price_is_named() -> None:
    assert CostEstimate((1, 2), (3_000, 4_000)).describe() == "about 1 to 2 model calls and 3 k to 4 k tokens"


def test_a_small_window_bounds_every_call() -> None:
    assert estimate_cost(1, 2, 4_000).tokens[1] < estimate_cost(1, 2, 128_000).tokens[1]


def test_deeper_research_is_never_estimated_as_cheaper() -> None:
    told = [estimate_cost(depth, tasks, 128_000) for depth, tasks in ((1, 2), (2, 3), (3, 5))]
    assert [e.calls for e in told] == sorted(e.calls for e in told)
    assert all(e.calls[0] < e.calls[1] and e.tokens[0] < e.tokens[1] for e in told)
