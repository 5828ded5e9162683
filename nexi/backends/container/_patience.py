"""How long a caller waits, and whether it still does.

Starting a container runs in a thread, which cannot be cancelled. So everything that waits there asks a Patience: it ends
with its time, and at once when the caller gives up.
"""

from __future__ import annotations

import threading
import time


class Time:
    """The part of time that is waited for in a thread. Tests have another."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, given_up: threading.Event, seconds: float) -> None:
        given_up.wait(seconds)


class Patience:
    def __init__(self, seconds: float, clock: Time, given_up: threading.Event | None = None) -> None:
        self.seconds, self._clock = seconds, clock
        self._until = clock.monotonic() + seconds
        self._given_up = given_up or threading.Event()

    def seconds_left(self) -> float:
        """Seconds left; none once the caller gave up."""
        return 0.0 if self._given_up.is_set() else max(0.0, self._until - self._clock.monotonic())

    def give_up(self) -> None:
        self._given_up.set()

    def pause(self, seconds: float) -> None:
        """Wait a little, and never beyond the end."""
        self._clock.wait(self._given_up, min(seconds, self.seconds_left()))

    def at_most(self, seconds: float) -> Patience:
        """A shorter one, given up together with this one."""
        return Patience(min(seconds, self.seconds_left()), self._clock, self._given_up)
