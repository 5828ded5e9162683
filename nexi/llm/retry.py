"""When to ask again, and how long to wait first.

The adapter above sleeps and asks; this file only decides, from the failure, the attempt, a random draw and the time left.
It knows neither a network nor a clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from nexi.errors import LLMError
from nexi.values import frozen


@frozen
class RetryPolicy:
    """Back-off doubles from `base_s` up to `cap_s`; a server that wants more than `patience_s` is not waited for."""

    max_retries: int = 3
    base_s: float = 0.5
    cap_s: float = 30.0
    patience_s: float = 120.0

    def wait_s(self, fault: LLMError, attempt: int, draw: float, left_s: float | None) -> float | None:
        """Seconds until attempt number `attempt` + 1 (the first is 0), or None to give up; `draw` is random in [0, 1)."""
        if not fault.retryable or attempt >= self.max_retries:
            return None
        wait = fault.retry_after if fault.retry_after else self._back_off(attempt, draw)
        limit = self.patience_s if left_s is None else min(self.patience_s, left_s)
        return wait if wait < limit else None

    def _back_off(self, attempt: int, draw: float) -> float:
        return min(self.cap_s, self.base_s * 2.0 ** min(attempt, 30)) * (0.5 + draw / 2)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The server's own wish in seconds: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("retry-after", "").strip()
    seconds = _number(wish)
    return _until(wish, now) if seconds is None and wish else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    now = now if now.tzinfo else now.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
