"""Budgets: limits nest, calls are reserved and settled, and a limit reached is a reason, never an exception."""

from __future__ import annotations

import pytest

from nexi.budget import Budget, Meter, _Reservation
from nexi.types import StopReason, Usage


def test_no_limits_means_no_stop() -> None:
    meter = Meter(Budget())
    assert meter.reserve_call(10**9) == _Reservation(10**9)
    assert meter.take_page()
    assert (meter.stop_reason(10**9), meter.deadline) == (None, None)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(max_iterations=1), StopReason.MAX_ITERATIONS),
        (Budget(max_tokens=15), StopReason.BUDGET_SPENT),
        (Budget(max_cost=0.5), StopReason.BUDGET_SPENT),
        (Budget(max_model_calls=1), StopReason.BUDGET_SPENT),
        (Budget(max_seconds=5), StopReason.TIME_TARGET),
        (Budget(max_iterations=1, max_seconds=5), StopReason.TIME_TARGET),
        (Budget(max_iterations=2, max_tokens=16, max_cost=0.6, max_model_calls=2, max_seconds=5.1), None),
    ],
)
def test_each_limit_stops_when_it_is_reached(budget: Budget, reason: StopReason | None) -> None:
    meter = Meter(budget, started=100)
    assert meter.stop_reason(100) is None
    meter.start_iteration()
    reservation = meter.reserve_call(10)
    assert isinstance(reservation, _Reservation)
    meter.settle_call(reservation, Usage(10, 5, False, 0.5))
    assert meter.stop_reason(105) is reason


def test_a_reservation_holds_its_tokens_until_it_is_settled() -> None:
    meter = Meter(Budget(max_tokens=100))
    first = meter.reserve_call(60)
    assert isinstance(first, _Reservation)
    assert meter.reserve_call(60) is StopReason.BUDGET_SPENT
    meter.settle_call(first, Usage(20, 10))
    assert meter.reserve_call(60) == _Reservation(60)
    assert (meter.model_calls, meter.usage) == (2, Usage(20, 10))


def test_an_unknown_price_never_counts_as_money_spent() -> None:
    meter = Meter(Budget(max_cost=1.0))
    meter.settle_call(_Reservation(0), Usage(1, 1, False, None))
    assert meter.stop_reason(0) is None


def test_a_child_spends_from_its_parent() -> None:
    parent = Meter(Budget(max_tokens=100, max_pages=2), started=0)
    child = parent.child(Budget(max_tokens=1000), started=5)
    reservation = child.reserve_call(80)
    assert isinstance(reservation, _Reservation)
    assert (parent.reserve_call(30), child.reserve_call(30)) == (StopReason.BUDGET_SPENT, StopReason.BUDGET_SPENT)
    child.settle_call(reservation, Usage(60, 40))
    assert (parent.usage, child.usage) == (Usage(60, 40), Usage(60, 40))
    assert child.stop_reason(6) is StopReason.BUDGET_SPENT
    assert [child.take_page(), child.take_page(), child.take_page(), parent.pages, child.pages] == [True, True, False, 2, 2]


def test_a_call_the_parent_refuses_leaves_no_trace_in_the_child() -> None:
    parent = Meter(Budget(max_model_calls=0))
    child = parent.child(Budget(max_tokens=50), started=0)
    assert child.reserve_call(50) is StopReason.BUDGET_SPENT
    assert (child.model_calls, parent.model_calls) == (0, 0)


def test_the_deadline_is_the_earliest_of_all_above() -> None:
    parent = Meter(Budget(max_seconds=10), started=0)
    assert parent.child(Budget(max_seconds=3), started=5).deadline == 8
    assert parent.child(Budget(max_seconds=30), started=5).deadline == 10
    assert parent.child(Budget(), started=5).deadline == 10
    assert parent.child(Budget(), started=5).stop_reason(10) is StopReason.TIME_TARGET


def test_work_ahead_never_takes_the_last_fifth_of_the_pages() -> None:
    meter = Meter(Budget(max_pages=10))
    assert [meter.take_page(ahead=True) for _ in range(9)] == [True] * 8 + [False]
    assert [meter.take_page() for _ in range(3)] == [True, True, False]


def test_what_is_in_flight_at_the_deadline_may_take_as_long_again_and_below_another_meter_a_part_of_what_is_left() -> None:
    run = Meter(Budget(max_seconds=10))
    researchers = run.child(Budget(max_seconds=8), started=0)
    one = researchers.child(Budget(), started=2)
    assert (run.grace(15), run.grace(4)) == (10, 4)
    assert (researchers.grace(15), one.grace(15), one.grace(15, part=1.0), one.grace(0.5)) == (1, 1, 2, 0.5)
    assert Meter(Budget()).grace(15) == 15


def test_money_that_is_spent_forbids_the_next_call() -> None:
    meter = Meter(Budget(max_cost=0.01))
    first = meter.reserve_call(10)
    assert not isinstance(first, StopReason)
    meter.settle_call(first, Usage(5, 5, cost=0.01))
    assert meter.reserve_call(10) is StopReason.BUDGET_SPENT


# another call, shares, and what was spent before


@pytest.mark.parametrize(
    ("budget", "now", "may"),
    [
        (Budget(), 10**9, True),
        (Budget(max_seconds=5), 104.9, True),
        (Budget(max_seconds=5), 105, False),
        (Budget(max_tokens=16), 100, True),
        (Budget(max_tokens=15), 100, False),
        (Budget(max_cost=0.6), 100, True),
        (Budget(max_cost=0.5), 100, False),
        (Budget(max_model_calls=2), 100, True),
        (Budget(max_model_calls=1), 100, False),
        (Budget(max_iterations=1), 100, True),  # a call need not be an iteration
    ],
)
def test_one_more_call_is_allowed_until_a_limit_of_calls_is_reached(budget: Budget, now: float, may: bool) -> None:
    meter = Meter(budget, started=100)
    meter.start_iteration()
    meter.settle_call(_Reservation(0), Usage(10, 5, False, 0.5))
    meter.replay_call(Usage())
    assert meter.may_call(now) is may
    below = meter.child(Budget(), started=100)
    assert below.may_call(now) is may


def test_a_child_that_has_spent_its_own_may_not_call_though_its_parent_may() -> None:
    parent = Meter(Budget(max_tokens=100))
    child = parent.child(Budget(max_tokens=10), started=0)
    child.replay_call(Usage(10, 0))
    assert (child.may_call(0), parent.may_call(0)) == (False, True)


@pytest.mark.parametrize(
    ("budget", "used"),
    [
        (Budget(), 0.0),
        (Budget(max_iterations=1), 0.0),
        (Budget(max_tokens=60), 0.25),
        (Budget(max_cost=2.0), 0.25),
        (Budget(max_model_calls=8), 0.25),
        (Budget(max_pages=4), 0.5),
        (Budget(max_seconds=50), 0.2),
        (Budget(max_seconds=5), 2.0),
        (Budget(max_tokens=0), 1.0),
        (Budget(max_tokens=60, max_cost=1.0, max_seconds=50), 0.5),
    ],
)
def test_the_share_that_is_used_is_that_of_the_limit_nearest_its_end(budget: Budget, used: float) -> None:
    meter = Meter(budget, started=100)
    meter.restore(Usage(10, 5, False, 0.5), calls=2, pages=2)
    assert meter.used_share(110) == used


def test_an_unknown_price_uses_nothing_of_a_limit_of_money() -> None:
    meter = Meter(Budget(max_cost=1.0))
    meter.restore(Usage(10, 5, False, None), calls=1, pages=0)
    assert meter.used_share(0) == 0.0


def test_a_limit_of_no_money_is_reached_from_the_start() -> None:
    assert Meter(Budget(max_cost=0.0)).stop_reason(0) is StopReason.BUDGET_SPENT
    assert Meter(Budget(max_cost=0.0)).may_call(0) is False


def test_what_was_spent_before_counts_for_the_run_and_not_again_above_it() -> None:
    parent = Meter(Budget())
    child = parent.child(Budget(), started=0)
    child.restore(Usage(10, 5, False, 0.5), calls=3, pages=4)
    child.restore(Usage(1, 1, False, 0.1), calls=1, pages=1)
    child.replay_call(Usage(2, 2, False, 0.2))
    child.replay_page()
    assert (child.usage, child.model_calls, child.pages) == (Usage(13, 8, False, pytest.approx(0.8)), 5, 6)
    assert (parent.usage, parent.model_calls, parent.pages) == (Usage(), 0, 0)


def test_time_that_was_not_the_runs_own_is_left_out() -> None:
    meter = Meter(Budget(max_seconds=10), started=100)
    meter.extend(5)
    assert (meter.deadline, meter.stop_reason(114.9), meter.stop_reason(115)) == (115, None, StopReason.TIME_TARGET)


def test_tokens_in_flight_are_told_until_they_are_settled() -> None:
    meter = Meter(Budget())
    first, second = meter.reserve_call(60), meter.reserve_call(5)
    assert isinstance(first, _Reservation)
    assert (meter.reserved_tokens, second) == (65, _Reservation(5))
    meter.settle_call(first, Usage(1, 1))
    assert meter.reserved_tokens == 5


def test_a_call_may_use_the_last_token_but_none_follows_it() -> None:
    meter = Meter(Budget(max_tokens=100))
    assert meter.reserve_call(101) is StopReason.BUDGET_SPENT
    assert meter.reserve_call(99) == _Reservation(99)
    assert meter.reserve_call(1) == _Reservation(1)
    assert meter.reserve_call(0) is StopReason.BUDGET_SPENT
    assert meter.stop_reason(0) is StopReason.BUDGET_SPENT


def test_calls_of_an_earlier_life_count_against_new_calls_and_not_against_recorded_ones() -> None:
    meter = Meter(Budget(max_cost=0.01, max_tokens=1000))
    meter.carry_over(Usage(500, 300, cost=0.008), 4)
    assert meter.stop_reason(0.0) is None
    assert meter.reserve_call(300) is StopReason.BUDGET_SPENT
    reserved = meter.reserve_call(150)
    assert isinstance(reserved, _Reservation)
    meter.settle_call(reserved, Usage(0, 0))
    for _ in range(4):
        meter.replay_call(Usage(125, 75, cost=0.002))
    assert (meter.usage, meter.reply_room) == (Usage(500, 300, cost=0.008), 200)


def test_a_replayed_call_is_held_against_new_calls_once() -> None:
    meter = Meter(Budget(max_tokens=1000, max_cost=0.1, max_model_calls=6))
    meter.carry_over(Usage(500, 300, cost=0.08), 4)
    meter.replay_call(Usage(125, 75, cost=0.02))
    assert (meter.usage, meter.reply_room) == (Usage(125, 75, cost=0.02), 200)
    assert meter.reserve_call(201) is StopReason.BUDGET_SPENT
    assert isinstance(meter.reserve_call(200), _Reservation)


def test_calls_of_an_earlier_life_count_against_the_limit_on_calls() -> None:
    meter = Meter(Budget(max_model_calls=3))
    meter.carry_over(Usage(10, 10), 2)
    meter.replay_call(Usage(5, 5))
    first = meter.reserve_call(1)
    assert isinstance(first, _Reservation)
    assert meter.reserve_call(1) is StopReason.BUDGET_SPENT
    assert meter.advise_spent() == "raise max_model_calls, which is 3: nexi config set max_model_calls NUMBER"


def test_a_call_that_cost_more_than_was_carried_over_leaves_nothing_negative() -> None:
    meter = Meter(Budget(max_tokens=1000, max_cost=1.0))
    meter.carry_over(Usage(100, 50, cost=0.5), 2)
    meter.replay_call(Usage(150, 80, cost=0.7))
    assert (meter.reply_room, meter.describe_spent()) == (770, "the budget has 770 tokens left, too few for another model call")
    money = Meter(Budget(max_cost=0.6))
    money.carry_over(Usage(100, 50, cost=0.5), 2)
    money.replay_call(Usage(150, 80, cost=0.7))
    assert money.describe_spent() == "the budget is spent"


def test_a_budget_that_an_earlier_life_used_up_is_spent() -> None:
    meter = Meter(Budget(max_tokens=800))
    meter.carry_over(Usage(500, 300), 1)
    assert meter.describe_spent() == "the budget is spent"
    assert meter.child(Budget(), started=0).describe_spent() == "the budget is spent"
    meter.replay_call(Usage(400, 300))
    assert meter.describe_spent() == "the budget has 100 tokens left, too few for another model call"


@pytest.mark.parametrize(("carried", "replayed"), [(0.9, None), (None, 0.1)])
def test_a_price_that_is_unknown_for_a_replayed_call_makes_the_rest_unknown(
    carried: float | None, replayed: float | None
) -> None:
    meter = Meter(Budget(max_cost=0.9))
    meter.carry_over(Usage(10, 10, cost=carried), 2)
    meter.replay_call(Usage(5, 5, cost=replayed))
    assert isinstance(meter.reserve_call(1), _Reservation)


def test_a_budget_is_called_spent_only_when_it_is() -> None:
    meter = Meter(Budget(max_tokens=1000))
    meter.replay_call(Usage(200, 76))
    assert meter.describe_spent() == "the budget has 724 tokens left, too few for another model call"
    meter.replay_call(Usage(700, 24))
    assert meter.describe_spent() == "the budget is spent"
    assert meter.child(Budget(), started=0.0).describe_spent() == "the budget is spent"


def test_a_budget_that_is_set_aside_for_calls_in_flight_is_not_called_spent() -> None:
    in_flight = "the rest of the budget is set aside for calls in flight"
    meter = Meter(Budget(max_tokens=1000))
    assert isinstance(meter.reserve_call(1000), _Reservation)
    assert (meter.reserve_call(1), meter.describe_spent()) == (StopReason.BUDGET_SPENT, in_flight)
    priced = Meter(Budget(max_cost=0.02))
    priced.replay_call(Usage(10, 10, cost=0.015))
    assert isinstance(priced.reserve_call(10), _Reservation)
    assert (priced.reserve_call(10), priced.describe_spent()) == (StopReason.BUDGET_SPENT, in_flight)
    priced.replay_call(Usage(10, 10, cost=0.005))
    assert priced.describe_spent() == "the budget is spent"


def test_a_limit_of_one_call_allows_one() -> None:
    meter = Meter(Budget(max_model_calls=1))
    assert [meter.reserve_call(5), meter.reserve_call(5)] == [_Reservation(5), StopReason.BUDGET_SPENT]


def test_the_cost_of_calls_in_flight_counts_before_they_end() -> None:
    meter = Meter(Budget(max_cost=0.01))
    meter.replay_call(Usage(10, 10, cost=0.004))
    assert isinstance(meter.reserve_call(10), _Reservation)
    assert isinstance(meter.reserve_call(10), _Reservation)
    assert meter.reserve_call(10) is StopReason.BUDGET_SPENT


def test_calls_in_flight_are_held_to_cost_what_a_call_before_them_did() -> None:
    meter = Meter(Budget(max_cost=0.010))
    for _ in range(2):
        meter.replay_call(Usage(10, 10, cost=0.003))
    calls = [meter.reserve_call(10) for _ in range(3)]
    assert calls == [_Reservation(10), _Reservation(10), StopReason.BUDGET_SPENT]
    free = Meter(Budget(max_cost=0.010))
    free.replay_call(Usage(10, 10, cost=0.0))
    assert [free.reserve_call(10) for _ in range(3)] == [_Reservation(10)] * 3


def settle(meter: Meter, usage: Usage) -> None:
    reservation = meter.reserve_call(0)
    assert isinstance(reservation, _Reservation)
    meter.settle_call(reservation, usage)


def test_the_tokens_left_are_the_least_of_a_meter_and_those_above_it() -> None:
    run = Meter(Budget(max_tokens=100))
    agent = run.child(Budget(), started=0)
    call = agent.child(Budget(max_tokens=40), started=0)
    assert (call.token_limit, agent.token_limit, call.root, run.root) == (40, 100, run, run)
    settle(agent, Usage(30, 5))
    reservation = call.reserve_call(7)
    assert isinstance(reservation, _Reservation)
    assert (call.tokens_left, agent.tokens_left, run.tokens_left) == (33, 58, 58)
    settle(agent, Usage(30, 5))
    assert (call.tokens_left, run.tokens_left) == (23, 23)


def test_without_a_limit_on_tokens_none_is_left_to_count() -> None:
    meter = Meter(Budget()).child(Budget(max_cost=1.0), started=0)
    assert (meter.token_limit, meter.tokens_left) == (None, None)


def test_a_cost_limit_counts_in_tokens_at_the_price_paid_so_far() -> None:
    meter = Meter(Budget(max_cost=1.0, max_tokens=900))
    assert meter.token_limit == 900
    settle(meter, Usage(60, 40, cost=0.25))
    assert (meter.token_limit, meter.tokens_left) == (400, 300)
    free = Meter(Budget(max_cost=1.0))
    settle(free, Usage(60, 40, cost=0.0))
    assert (free.token_limit, free.tokens_left) == (None, None)


def test_calls_can_be_made_up_to_the_limit_of_any_meter() -> None:
    run = Meter(Budget(max_model_calls=3))
    agent = run.child(Budget(max_model_calls=9), started=0)
    assert [agent.can_make_calls(count) for count in (3, 4)] == [True, False]
    settle(agent, Usage(1, 1))
    assert [agent.can_make_calls(count) for count in (2, 3)] == [True, False]
    narrow = run.child(Budget(max_model_calls=1), started=0)
    assert [narrow.can_make_calls(count) for count in (1, 2)] == [True, False]
    assert Meter(Budget()).can_make_calls(10**9)


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (Budget(max_tokens=21), "the budget has 1 tokens left, too few for another model call"),
        (Budget(max_tokens=20), "the budget is spent"),
        (Budget(max_cost=0.0), "the budget is spent"),
        (Budget(max_cost=1.0), "the rest of the budget is set aside for calls in flight"),
        (Budget(max_model_calls=3), "the budget is spent"),
        (Budget(max_model_calls=4), "the rest of the budget is set aside for calls in flight"),
        (Budget(max_tokens=20, is_quota=True), "your quota for today is spent"),
    ],
)
def test_what_is_left_is_described_by_the_limit_that_forbids_a_call(budget: Budget, left: str) -> None:
    meter = Meter(budget)
    meter.carry_over(Usage(10, 10), 2)
    meter.replay_call(Usage(5, 5))
    meter.restore(Usage(), calls=1, pages=0)
    assert meter.describe_spent() == left
    assert meter.child(Budget(), started=0).describe_spent() == left


@pytest.mark.parametrize(
    ("budget", "advice"),
    [
        (Budget(max_tokens=1), "raise --max-cost or --max-tokens"),
        (Budget(max_model_calls=3), "raise --max-cost or --max-tokens"),
        (Budget(max_model_calls=2), "raise max_model_calls, which is 2: nexi config set max_model_calls NUMBER"),
        (
            Budget(max_model_calls=2, is_quota=True),
            "ask again after midnight UTC, when your quota is renewed, or ask an administrator for more",
        ),
    ],
)
def test_the_advice_names_the_limit_that_was_reached(budget: Budget, advice: str) -> None:
    meter = Meter(budget)
    meter.replay_call(Usage(1, 1))
    meter.replay_call(Usage(1, 1))
    assert meter.advise_spent() == advice


@pytest.mark.parametrize(
    ("budget", "is_limited"),
    [
        (Budget(), False),
        (Budget(max_iterations=1, max_seconds=1, max_pages=1), False),
        (Budget(max_tokens=1), True),
        (Budget(max_cost=1.0), True),
        (Budget(max_model_calls=1), True),
    ],
)
def test_tokens_money_and_calls_are_limits_on_spending(budget: Budget, is_limited: bool) -> None:
    assert Meter(budget).has_spending_limit is is_limited
    assert Meter(budget).child(Budget(), started=0).has_spending_limit is is_limited
    assert Meter(Budget()).child(budget, started=0).has_spending_limit is is_limited


def test_a_budget_and_a_reservation_are_values() -> None:
    assert len({Budget(max_tokens=1), Budget(max_tokens=1), Budget(max_tokens=2)}) == 2
    assert len({_Reservation(1), _Reservation(1), _Reservation(2)}) == 2
