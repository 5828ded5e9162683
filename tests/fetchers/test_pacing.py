"""A burst goes at once, the rest at a steady rate, each host by itself."""

from __future__ import annotations

import pytest

from nexi.fetchers import pacing
from nexi.fetchers.pacing import Pacer
from nexi.testing import FakeClock


async def test_a_burst_goes_at_once_and_then_the_rate_holds() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, burst=8, rate=4.0)
    for _ in range(10):
        await pacer.wait("a.test")
    assert clock.slept == [0.25, 0.25]


async def test_hosts_do_not_wait_for_each_other() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, burst=1, rate=1.0)
    for host in ("a.test", "b.test", "c.test"):
        await pacer.wait(host)
    assert clock.slept == []


async def test_a_quiet_host_has_its_burst_again() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, burst=2, rate=1.0)
    for _ in range(2):
        await pacer.wait("a.test")
    clock.advance(2.0)
    for _ in range(2):
        await pacer.wait("a.test")
    assert clock.slept == []


async def test_idle_hosts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "MAX_HOSTS", 3)
    clock = FakeClock()
    pacer = Pacer(clock, burst=1, rate=1.0)
    for n in range(10):
        await pacer.wait(f"{n}.test")
        clock.advance(2.0)
    assert clock.slept == []
