"""How fast we may ask one host: a burst, then a steady rate.

Above sits any fetcher; below only a Clock. It knows nothing of URLs or requests: a host is a name.
"""

from __future__ import annotations

from nexi.ports import Clock

MAX_HOSTS = 4_096


class Pacer:
    """A bucket of `burst` tokens per host that refills with `rate` tokens a second."""

    def __init__(self, clock: Clock, *, burst: int, rate: float, max_hosts: int = MAX_HOSTS) -> None:
        self._clock = clock
        self._max_hosts = max_hosts
        self._step = 1.0 / rate
        self._slack = (burst - 1) * self._step
        self._next_free: dict[str, float] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are remembered, in the order of their first request."""
        return tuple(self._next_free)

    async def wait(self, host: str) -> None:
        """Take the host's next slot and return when it comes; slots are given in the order of asking."""
        now = self._clock.monotonic()
        slot = max(self._next_free.get(host, now), now)
        self._next_free[host] = slot + self._step
        if len(self._next_free) > self._max_hosts:
            self._forget_idle(now)
        delay = slot - self._slack - now
        if delay > 0:
            await self._clock.sleep(delay)

    def _forget_idle(self, now: float) -> None:
        self._next_free = {host: free for host, free in self._next_free.items() if free > now}
