"""When to ask again, and how long to wait first.

The adapter above sleeps and asks; this file only decides, from the failure, the attempt, a random draw and the time left.
It knows neither a network nor a clock.
"""

from __future__ import annotations

from msgspec import Struct

from nexi.errors import LLMError


class RetryPolicy(Struct, frozen=True):
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
