"""When to ask again, and how long to wait first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nexi.errors import BackendError, FetchError, LLMError
from nexi.net.retry import RetryableError, RetryPolicy, call_with_retries, retry_after
from nexi.testing import FakeClock

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BUSY = LLMError("busy", retryable=True)


def test_waits_double_up_to_a_cap_and_are_jittered_downwards_by_half() -> None:
    policy = RetryPolicy(max_retries=99)
    assert [policy.wait_s(BUSY, attempt, 1.0, None) for attempt in (0, 1, 2, 3, 6, 90)] == [0.5, 1.0, 2.0, 4.0, 30.0, 30.0]
    assert [policy.wait_s(BUSY, attempt, 0.0, None) for attempt in (0, 1, 90)] == [0.25, 0.5, 15.0]


@pytest.mark.parametrize(
    ("fault", "attempt", "left", "wait"),
    [
        (LLMError("no"), 0, None, None),
        (BUSY, 3, None, None),
        (BUSY, 2, None, 2.0),
        (BUSY, 2, 2.0, None),
        (BUSY, 2, 2.1, 2.0),
        (LLMError("busy", retryable=True, retry_after=7.0), 0, None, 7.0),
        (LLMError("busy", retryable=True, retry_after=7.0), 0, 7.0, None),
        (LLMError("busy", retryable=True, retry_after=3600.0), 0, None, None),
        (LLMError("busy", retryable=True, retry_after=0.0), 0, None, 0.5),
    ],
)
def test_it_gives_up_when_nothing_will_mend_or_time_or_tries_are_short(
    fault: LLMError, attempt: int, left: float | None, wait: float | None
) -> None:
    assert RetryPolicy(max_retries=3).wait_s(fault, attempt, 1.0, left) == wait


@pytest.mark.parametrize(("wish_s", "attempt", "wait"), [(120.0, 0, 120.0), (120.5, 0, None), (7.0, 2, 7.0), (7.0, 3, None)])
def test_unless_set_otherwise_a_service_is_asked_four_times_and_waited_for_two_minutes(
    wish_s: float, attempt: int, wait: float | None
) -> None:
    assert RetryPolicy().wait_s(LLMError("busy", retryable=True, retry_after=wish_s), attempt) == wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, 60.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05 -0000"}, 60.0),
        ({"retry-after": "Fri, 02 Jan 2020 03:05:05 GMT"}, 0.0),
        ({"retry-after": "Fri, 99 Jan 2026"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "5", "retry-after-ms": "250"}, 0.25),
    ],
)
def test_the_wish_of_a_server_is_read_in_each_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


async def test_a_call_is_made_again_until_it_succeeds_with_waits_between() -> None:
    clock, outcomes = FakeClock(), [BUSY, BUSY, BackendError("busy", retryable=True, retry_after=7.0), "done"]
    told: list[tuple[str, float]] = []

    async def call() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, str):
            return outcome
        raise outcome

    async def tell(error: RetryableError, wait_s: float) -> None:
        told.append((str(error), wait_s))

    assert await call_with_retries(call, RetryPolicy(), clock, tell) == "done"
    assert (clock.slept, told) == ([0.5, 1.0, 7.0], [("busy", 0.5), ("busy", 1.0), ("busy", 7.0)])


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (FetchError("gone", status=404), 1),
        (FetchError("broken", status=502), 2),
        (FetchError("lost", retryable=True), 2),
        (FetchError("busy", retry_after=5.0), 2),
        (FetchError("busy", retry_after=5.1), 1),
    ],
)
async def test_the_last_error_is_raised_where_the_policy_gives_up(error: FetchError, tries: int) -> None:
    made = []

    async def call() -> None:
        made.append(1)
        raise error

    with pytest.raises(FetchError) as caught:
        await call_with_retries(call, RetryPolicy(max_retries=1, patience_s=5.0), FakeClock())
    assert (caught.value, len(made)) == (error, tries)
