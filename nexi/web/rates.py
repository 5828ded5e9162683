"""Rates: how many requests a client may make, as buckets that refill. Pure: time is passed in."""

from __future__ import annotations

import math
from collections import OrderedDict

MOST_CLIENTS = 10_000


class Buckets:
    """One bucket per client; a client nobody has seen for long is forgotten, which gives it a full one."""

    def __init__(self, per_minute: float, burst: float, *, most_clients: int = MOST_CLIENTS) -> None:
        self._per_second = per_minute / 60
        self._burst = max(1.0, burst)
        self._most = most_clients
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now: float) -> int:
        """0 when the client may go on, else the whole seconds after which it may."""
        level, before = self._levels.pop(client, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - before) * self._per_second)
        allowed = level >= 1
        self._levels[client] = (level - 1 if allowed else level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        if allowed:
            return 0
        return max(1, math.ceil((1 - level) / self._per_second)) if self._per_second else 60

    def __len__(self) -> int:
        return len(self._levels)
