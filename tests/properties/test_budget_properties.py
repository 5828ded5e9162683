"""What holds of every way to spend: no limit is passed by more than the call in flight, and children never outspend."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi.budget import PREFETCH_SHARE, Budget, Meter, _Reservation
from nexi.types import Usage

limits = st.none() | st.integers(0, 60)
budgets = st.builds(Budget, max_tokens=limits, max_model_calls=limits, max_pages=limits)
calls = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 30)), max_size=20)


def within(value: int, limit: int | None) -> bool:
    return limit is None or value <= limit


@given(budgets, budgets, calls)
def test_calls_that_cost_at_most_their_reservation_never_overrun(
    above: Budget, below: Budget, plan: list[tuple[bool, int, int]]
) -> None:
    parent = Meter(above)
    child = parent.child(below, started=0)
    for by_child, reserved, spent in plan:
        meter = child if by_child else parent
        got = meter.reserve_call(reserved)
        if isinstance(got, _Reservation):
            meter.settle_call(got, Usage(min(reserved, spent), 0))
    for meter in (parent, child):
        assert within(meter.usage.total, meter.budget.max_tokens)
        assert within(meter.model_calls, meter.budget.max_model_calls)
    assert child.usage.total <= parent.usage.total
    assert child.model_calls <= parent.model_calls


@given(budgets, st.lists(st.integers(0, 30), max_size=10))
def test_reservations_in_flight_never_promise_more_than_there_is(budget: Budget, wanted: list[int]) -> None:
    meter = Meter(budget)
    held = [got for got in map(meter.reserve_call, wanted) if isinstance(got, _Reservation)]
    assert within(sum(r.tokens for r in held), budget.max_tokens)


@given(limits, st.lists(st.integers(0, 30), max_size=10))
def test_what_was_settled_at_nothing_is_free_again(max_tokens: int | None, wanted: list[int]) -> None:
    meter = Meter(Budget(max_tokens=max_tokens))
    for reservation in [got for got in map(meter.reserve_call, wanted) if isinstance(got, _Reservation)]:
        meter.settle_call(reservation, Usage())
    fresh = Meter(Budget(max_tokens=max_tokens))
    assert meter.stop_reason(0) == fresh.stop_reason(0)
    assert meter.reserve_call(60) == fresh.reserve_call(60)


@given(budgets, budgets, st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80))
def test_pages_stay_within_every_limit(above: Budget, below: Budget, plan: list[tuple[bool, bool]]) -> None:
    parent = Meter(above)
    child = parent.child(below, started=0)
    ahead_taken = 0
    for by_child, ahead in plan:
        ahead_taken += (child if by_child else parent).take_page(ahead=ahead) and ahead
    assert within(parent.pages, above.max_pages)
    assert within(child.pages, below.max_pages)
    assert above.max_pages is None or ahead_taken <= int(above.max_pages * PREFETCH_SHARE)


@given(st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=5), st.floats(0, 500))
def test_a_deadline_nests(seconds: list[float | None], now: float) -> None:
    meter = Meter(Budget(max_seconds=seconds[0]))
    for limit in seconds[1:]:
        meter = meter.child(Budget(max_seconds=limit), started=0)
    ends = [limit for limit in seconds if limit is not None]
    assert meter.deadline == min(ends, default=None)
    assert (meter.stop_reason(now) is not None) == bool(ends and now >= min(ends))
