"""How often something may happen: a burst, then a steady rate, for each key by itself (a host, a backend, a client).

Above sit fetchers, the searcher and the server's guard; below only a Clock. A key is a name; what it stands for is not known
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexi.ports import Clock

MAX_KEYS = 4_096
ROUNDING_S = 1e-6  # sums of steps are not exact


class RateLimiter:
    """A bucket of `burst` tokens for each key that refills with `rate` tokens a second.

    A bucket is kept as the time at which it is full, so a key whose time has passed can be forgotten. With `evicts` no more
    than `max_keys` are ever remembered: the one not seen for longest is forgotten and starts with a full bucket.
    """

    def __init__(self, clock: Clock, *, burst: float, rate: float, max_keys: int = MAX_KEYS, evicts: bool = False) -> None:
        self._clock, self._max_keys, self._evicts = clock, max_keys, evicts
        self._step = 1.0 / rate
        self._slack = (burst - 1) * self._step
        self._full_at: dict[str, float] = {}  # of the keys that are remembered, the one not seen for longest first
        self._queues: dict[str, WaitingLine] = {}

    async def wait(self, key: str) -> None:
        """Take a token when there is one, in the order of asking. A caller that is cancelled takes none; others move up."""
        if key not in self._queues and not self.try_take(key):
            return
        async with stand_in_line(self._queues, key):
            while delay := self.try_take(key):
                await self._clock.sleep(delay)

    def try_take(self, key: str) -> float:
        """Take a token if there is one, and return 0.0; else the seconds after which there is."""
        now = self._clock.monotonic()
        full_at = max(self._full_at.pop(key, now), now)
        delay = full_at - self._slack - now
        delay = delay if delay > ROUNDING_S else 0.0
        self._full_at[key] = full_at if delay else full_at + self._step
        if len(self._full_at) > self._max_keys:
            if self._evicts:
                del self._full_at[next(iter(self._full_at))]
            else:
                self._full_at = {name: moment for name, moment in self._full_at.items() if moment > now}
        return delay


class WaitingLine:
    """Callers that wait for a token of one key; the one that holds the lock is next."""

    def __init__(self) -> None:
        self.lock, self.waiting = asyncio.Lock(), 0


@asynccontextmanager
async def stand_in_line(lines: dict[str, WaitingLine], key: str) -> AsyncIterator[None]:
    """Be the next of those who wait for a key, in the order of asking; a line in which nobody waits any more is forgotten."""
    line = lines.setdefault(key, WaitingLine())
    line.waiting += 1
    try:
        async with line.lock:
            yield
    finally:
        line.waiting -= 1
        if not line.waiting:
            del lines[key]
