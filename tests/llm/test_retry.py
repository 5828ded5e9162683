"""When to ask again, and how long to wait first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nexi.errors import LLMError
from nexi.llm.openai.retry import RetryPolicy
from nexi.net.retry import retry_after

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
