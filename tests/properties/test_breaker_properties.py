"""The breaker is total, rests as long as its table says, and always wakes again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexi.net.breaker import (
    MAX_ERROR_S,
    MAX_WISH_S,
    NO_FAULT,
    REFUSAL_RESTS_S,
    TRIAL_S,
    State,
    Suspension,
    after_failure,
    after_success,
    current_standing,
    format_duration,
    rest_seconds,
    try_admit,
)

times = st.floats(0, 4e9, allow_nan=False)
codes = st.sampled_from([*REFUSAL_RESTS_S, *NO_FAULT, "timeout", "dns", "server_error", "of a plug-in"])
faults = codes.filter(lambda code: code not in NO_FAULT)
wishes = st.none() | st.floats(allow_nan=True, allow_infinity=True)
suspensions = st.builds(
    Suspension,
    since=times,
    until=times,
    code=codes,
    errors=st.integers(1, 1000),
    trial_until=times,
)
states = st.none() | suspensions


@given(states, times, codes, wishes)
def test_no_rest_is_longer_than_a_day(state: State, now: float, code: str, wish: float | None) -> None:
    after = after_failure(None, now, code, retry_after=wish)
    assert after is None or 0 < after.until - now <= MAX_WISH_S + 0.01
    assert current_standing(state, now) in ("closed", "open", "half_open")


@given(times, faults)
def test_a_fault_opens_the_breaker_at_once(now: float, code: str) -> None:
    after = after_failure(None, now, code)
    assert (current_standing(after, now), try_admit(after, now)) == ("open", (False, after))


@given(states, times)
def test_an_answer_closes_it(state: State, now: float) -> None:
    assert try_admit(after_success(state), now) == (True, None)


@given(times, faults)
def test_after_the_rest_one_is_let_through_and_the_others_wait_for_it(now: float, code: str) -> None:
    state = after_failure(None, now, code)
    assert state is not None
    first, trying = try_admit(state, state.until)
    second, same = try_admit(trying, state.until + TRIAL_S / 2)
    third, _ = try_admit(same, state.until + TRIAL_S + 1)
    assert (first, second, third) == (True, False, True)


@given(times, st.lists(faults, min_size=2, max_size=6))
def test_failures_of_requests_under_way_together_count_once(now: float, together: list[str]) -> None:
    state: State = None
    for code in together:
        state = after_failure(state, now, code)
    assert state is not None
    assert state.errors == 1
    assert state.until == max(now + rest_seconds(code, 1) for code in together)


@given(st.sampled_from(sorted(NO_FAULT)), times)
def test_what_is_no_fault_of_the_backend_opens_nothing(code: str, now: float) -> None:
    assert after_failure(None, now, code) is None


@given(suspensions, times)
def test_a_clock_that_was_set_back_does_not_make_a_rest_endless(state: Suspension, now: float) -> None:
    if now < state.since and now < state.trial_until - TRIAL_S:
        assert current_standing(state, now) == "half_open"


def test_errors_rest_five_seconds_more_each_time_up_to_two_minutes() -> None:
    now, rests = 0.0, []
    state: State = None
    for _ in range(26):
        state = after_failure(state, now, "timeout")
        assert state is not None
        rests.append(state.until - now)
        now = state.until
    assert rests == [*range(5, 121, 5), 120, 120]
    assert rests[-1] == MAX_ERROR_S


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        ("captcha", 60),
        ("refused_us", 60),
        ("wrong_key", 300),
        ("rate_limit", 10),
        ("limiter", 10),
        ("quota", 300),
        ("timeout", 5),
        ("engines_suspended", 5),
        ("json_disabled", 5),
    ],
)
def test_a_first_failure_rests_seconds_to_minutes(code: str, seconds: float) -> None:
    assert rest_seconds(code, 1) == seconds


@pytest.mark.parametrize(
    ("code", "rests"),
    [
        ("rate_limit", [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]),
        ("captcha", [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600, 21600]),
    ],
)
def test_each_refusal_in_a_row_doubles_the_rest_up_to_the_longest(code: str, rests: list[float]) -> None:
    now, seen = 0.0, []
    state: State = None
    for _ in rests:
        state = after_failure(state, now, code)
        assert state is not None
        seen.append(state.until - now)
        now = state.until
    assert seen == rests


def test_the_wish_of_a_service_goes_before_the_table() -> None:
    assert [rest_seconds("rate_limit", 1, wish) for wish in (7.0, 0.0, 1e9)] == [7.0, 1.0, 86_400.0]
    assert rest_seconds("timeout", 1, 7.0) == 5.0


def test_a_time_is_told_in_words() -> None:
    assert [format_duration(s) for s in (0, 4.2, 119, 120, 3600, 7200, 86_400)] == [
        "1 s",
        "5 s",
        "119 s",
        "2 min",
        "60 min",
        "2 h",
        "24 h",
    ]
