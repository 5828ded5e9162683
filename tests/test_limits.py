"""A burst goes at once, the rest at a steady rate, each host by itself."""

from __future__ import annotations

import asyncio

from nexi.net.limits import RateLimiter, WaitingLine, stand_in_line
from nexi.testing import FakeClock


async def test_a_burst_goes_at_once_and_then_the_rate_holds() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=8, rate=4.0)
    for _ in range(10):
        await pacer.wait("a.test")
    assert clock.slept == [0.25, 0.25]


class StandingClock(FakeClock):
    """Time stands still while others sleep."""

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.Event().wait()


async def test_waiters_that_give_up_leave_no_debt_behind() -> None:
    clock = StandingClock()
    pacer = RateLimiter(clock, burst=1, rate=4.0)
    await pacer.wait("a.test")
    waiters = [asyncio.create_task(pacer.wait("a.test")) for _ in range(400)]
    await asyncio.sleep(0)
    for waiter in waiters:
        waiter.cancel()
    await asyncio.wait(waiters)
    assert pacer.try_take("a.test") == 0.25
    clock.advance(0.25)
    await pacer.wait("a.test")
    assert clock.slept == [0.25]


async def test_the_next_in_line_moves_up_when_one_before_it_gives_up() -> None:
    clock, served = StandingClock(), list[int]()
    pacer = RateLimiter(clock, burst=1, rate=4.0)

    async def take(number: int) -> None:
        await pacer.wait("a.test")
        served.append(number)

    await take(0)
    first, second = asyncio.create_task(take(1)), asyncio.create_task(take(2))
    await asyncio.sleep(0)
    clock.advance(0.25)
    first.cancel()
    await asyncio.wait({first, second})
    assert served == [0, 2]


async def test_a_line_stays_while_somebody_stands_in_it_and_is_forgotten_after_the_last() -> None:
    lines, served = dict[str, WaitingLine](), list[int]()
    leave = [asyncio.Event() for _ in range(3)]

    async def stand(number: int) -> None:
        async with stand_in_line(lines, "a.test"):
            served.append(number)
            await leave[number].wait()

    async def let_others_work() -> None:
        for _ in range(9):
            await asyncio.sleep(0)

    callers = [asyncio.create_task(stand(number)) for number in (0, 1)]
    await let_others_work()
    leave[0].set()
    await let_others_work()
    callers.append(asyncio.create_task(stand(2)))
    await let_others_work()
    assert served == [0, 1], "the third stands behind the second"
    leave[1].set()
    leave[2].set()
    await asyncio.gather(*callers)
    assert (served, lines) == ([0, 1, 2], {})


async def test_all_who_ask_at_once_are_served_in_their_order_at_the_rate() -> None:
    clock, served = FakeClock(), list[tuple[int, float]]()
    pacer, start = RateLimiter(clock, burst=2, rate=4.0), clock.monotonic()

    async def take(number: int) -> None:
        await pacer.wait("a.test")
        served.append((number, clock.monotonic() - start))

    await asyncio.gather(*(take(n) for n in range(5)))
    assert served == [(0, 0.0), (1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75)]


async def test_hosts_do_not_wait_for_each_other() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=1, rate=1.0)
    for host in ("a.test", "b.test", "c.test"):
        await pacer.wait(host)
    assert clock.slept == []


async def test_a_quiet_host_has_its_burst_again() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=2, rate=1.0)
    for _ in range(2):
        await pacer.wait("a.test")
    clock.advance(2.0)
    for _ in range(2):
        await pacer.wait("a.test")
    assert clock.slept == []


async def test_idle_hosts_are_forgotten_once_there_are_too_many() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=1, rate=1.0, max_keys=3)
    remembered = []
    for n in range(5):
        await pacer.wait(f"{n}.test")
        remembered.append(tuple(pacer._full_at))
        clock.advance(1.0)  # exactly when the host is free again
    assert remembered == [
        ("0.test",),
        ("0.test", "1.test"),
        ("0.test", "1.test", "2.test"),
        ("3.test",),
        ("3.test", "4.test"),
    ]
    assert clock.slept == []


async def test_a_busy_host_is_remembered_however_many_there_are() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=8, rate=4.0, max_keys=1)
    for _ in range(8):
        await pacer.wait("busy.test")
    for n in range(3):
        clock.advance(0.5)
        await pacer.wait(f"{n}.test")
    assert tuple(pacer._full_at) == ("busy.test", "2.test")
    assert clock.slept == []


async def test_the_pace_of_a_busy_host_survives_the_forgetting_of_others() -> None:
    clock = FakeClock()
    pacer = RateLimiter(clock, burst=1, rate=0.1, max_keys=1)
    for host in ("busy.test", "other.test", "busy.test"):
        await pacer.wait(host)
    assert clock.slept == [10.0]


def test_a_token_that_is_not_there_is_not_taken_and_its_time_is_told() -> None:
    clock = FakeClock()
    limiter = RateLimiter(clock, burst=2, rate=0.5)
    assert [limiter.try_take("a") for _ in range(4)] == [0.0, 0.0, 2.0, 2.0]
    clock.advance(2.0)
    assert [limiter.try_take("a") for _ in range(2)] == [0.0, 2.0]


def test_with_a_hard_cap_the_key_not_seen_for_longest_is_forgotten_and_starts_anew() -> None:
    clock = FakeClock()
    limiter = RateLimiter(clock, burst=1, rate=0.1, max_keys=2, evicts=True)
    assert [limiter.try_take(key) for key in ("a", "b", "a", "c")] == [0.0, 0.0, 10.0, 0.0]
    assert tuple(limiter._full_at) == ("a", "c")
    assert [limiter.try_take(key) for key in ("a", "b")] == [10.0, 0.0]
