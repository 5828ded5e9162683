"""How often something may happen: a burst, then a steady rate, for each key by itself (a host, a backend, a client).

Above sit fetchers, the searcher and the server's guard; below only a Clock. A key is a name; what it stands for is not known
here.
"""

from __future__ import annotations

from nexi.ports import Clock

MAX_KEYS = 4_096
ROUNDING_S = 1e-6  # sums of steps are not exact


class RateLimiter:
    """A bucket of `burst` tokens for each key that refills with `rate` tokens a second.

    A bucket is kept as the time at which it is full, so a key whose time has passed can be forgotten. With `evicts` no more
    than `max_keys` are ever remembered: the one not seen for longest is forgotten and starts with a full bucket.
    """

    def __init__(self, clock: Clock, *, burst: float, rate: float, max_keys: int = MAX_KEYS, evicts: bool = False) -> None:
        self._clock = clock
        self._step = 1.0 / rate
        self._slack = (burst - 1) * self._step
        self._max_keys = max_keys
        self._evicts = evicts
        self._full_at: dict[str, float] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are remembered, the one not seen for longest first."""
        return tuple(self._full_at)

    async def wait(self, key: str) -> None:
        """Take the next slot of a key and return when it comes; slots are given in the order of asking."""
        delay = self._take(key, wait=True)
        if delay:
            await self._clock.sleep(delay)

    def try_take(self, key: str) -> float:
        """Take a token if there is one, and return 0.0; else the seconds after which there is."""
        return self._take(key, wait=False)

    def _take(self, key: str, *, wait: bool) -> float:
        """Seconds until a token is there; it is taken at once, or ahead of time with `wait`."""
        now = self._clock.monotonic()
        full_at = max(self._full_at.pop(key, now), now)
        delay = full_at - self._slack - now
        delay = delay if delay > ROUNDING_S else 0.0
        self._full_at[key] = full_at + self._step if wait or not delay else full_at
        if len(self._full_at) > self._max_keys:
            self._forget(now)
        return delay

    def _forget(self, now: float) -> None:
        if self._evicts:
            del self._full_at[next(iter(self._full_at))]
        else:
            self._full_at = {key: full_at for key, full_at in self._full_at.items() if full_at > now}
