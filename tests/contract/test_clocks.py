"""What every clock promises: one suite over the real time and the fake one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from nexi.app import SystemClock
from nexi.ports import Clock
from nexi.testing import FakeClock

every_clock = pytest.mark.parametrize("make", [SystemClock, FakeClock])


@every_clock
async def test_time_never_goes_back_and_sleeping_moves_it(make: Callable[[], Clock]) -> None:
    clock = make()
    before, then = clock.monotonic(), clock.now()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.009
    assert clock.now() - then >= timedelta(milliseconds=9)


@every_clock
async def test_the_date_has_a_zone(make: Callable[[], Clock]) -> None:
    assert make().now().utcoffset() == timedelta(0)


@every_clock
async def test_sleeping_lets_others_work(make: Callable[[], Clock]) -> None:
    done: list[str] = []

    async def other() -> None:
        done.append("other")

    task = asyncio.ensure_future(other())
    await make().sleep(0)
    await task
    assert done == ["other"]


@every_clock
async def test_a_sleeper_can_be_cancelled(make: Callable[[], Clock]) -> None:
    task = asyncio.ensure_future(make().sleep(60))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
