"""When to ask again, and how long to wait first: one policy for models, search services and pages.

Adapters and engines above decide what is worth another try; this file reads how long a service asks to be left alone, and
counts tries and waits. It knows no network, and time comes in through the Clock.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias, TypeVar

from msgspec import Struct

from nexi.errors import BackendError, FetchError, LLMError
from nexi.ports import Clock

T = TypeVar("T")
RetryableError: TypeAlias = BackendError | FetchError | LLMError


class RetryPolicy(Struct, frozen=True):
    """Back-off doubles from `base_s` up to `cap_s`; a service that wants more than `patience_s` is not waited for."""

    max_retries: int = 3
    base_s: float = 0.5
    cap_s: float = 30.0
    patience_s: float = 120.0

    def wait_s(self, error: RetryableError, attempt: int, draw: float = 1.0, left_s: float | None = None) -> float | None:
        """Seconds until attempt number `attempt` + 1 (the first is 0), or None to give up; `draw` is random in [0, 1)."""
        if not error.retryable or attempt >= self.max_retries:
            return None
        wait = error.retry_after or min(self.cap_s, self.base_s * 2.0 ** min(attempt, 30)) * (0.5 + draw / 2)
        return wait if wait <= self.patience_s and (left_s is None or wait < left_s) else None


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    clock: Clock,
    before_wait: Callable[[RetryableError, float], Awaitable[None]] | None = None,
) -> T:
    """The result of the first call that succeeds; the error of the last one where the policy gives up."""
    attempt = 0
    while True:
        try:
            return await call()
        except (BackendError, FetchError, LLMError) as error:
            wait = policy.wait_s(error, attempt)
            if wait is None:
                raise
            if before_wait:
                await before_wait(error, wait)
        await clock.sleep(wait)
        attempt += 1


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The server's own wish in seconds: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("retry-after", "").strip()
    seconds = _parse_number(wish)
    if seconds is not None or not wish:
        return seconds
    # without `now` a date is measured from the answer's own, so that a clock that is wrong does not matter
    until, start = _parse_moment(wish), now or _parse_moment(headers.get("date", ""))
    return max(0.0, (until - _make_aware(start)).total_seconds()) if until and start else None


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _parse_moment(date: str) -> datetime | None:
    try:
        return _make_aware(parsedate_to_datetime(date))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _make_aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
