"""Waiting to the end: a cancellation is put off, never lost and never doubled."""

from __future__ import annotations

import asyncio
import gc

import pytest

from nexi.errors import LLMError
from nexi.tasks import FairPlaces, cancel_until_ended, pause_timeout, run_unless_stopped, start_task, wait_uninterrupted
from nexi.types import StopReason


async def pass_turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_task_is_waited_for_although_the_caller_is_cancelled_twice() -> None:
    gate, done = asyncio.Event(), list[str]()

    async def step() -> None:
        await gate.wait()
        done.append("step")

    async def caller() -> None:
        await wait_uninterrupted(asyncio.ensure_future(step()))
        done.append("after")
        await asyncio.sleep(0)
        done.append("never")

    task = asyncio.ensure_future(caller())
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert (done, task.done()) == ([], False)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["step", "after"]


async def test_a_task_that_has_ended_is_not_waited_for() -> None:
    steps: list[str] = []

    async def count_turns() -> None:
        for n in range(3):
            steps.append(f"turn {n}")
            await asyncio.sleep(0)

    ended = asyncio.get_running_loop().create_future()
    ended.set_result(None)
    other = asyncio.ensure_future(count_turns())
    await wait_uninterrupted(ended)
    assert steps == []  # the caller went on at once: no other task had a turn
    await other


async def test_what_the_task_raised_stays_in_the_task() -> None:
    async def fail() -> None:
        raise ValueError("no")

    task = asyncio.ensure_future(fail())
    await wait_uninterrupted(task)
    with pytest.raises(ValueError, match="no"):
        task.result()


async def test_a_timeout_around_it_is_still_a_timeout() -> None:
    async def caller() -> None:
        inner = asyncio.ensure_future(pass_turns(9))
        async with asyncio.timeout(0):
            await wait_uninterrupted(inner)
            await asyncio.sleep(0)
        raise AssertionError("not reached")

    with pytest.raises(TimeoutError):
        await caller()


async def test_a_group_that_is_cancelled_meanwhile_ends_as_cancelled() -> None:
    ended: list[str] = []

    async def child() -> None:
        await wait_uninterrupted(asyncio.ensure_future(pass_turns(9)))
        ended.append("child")

    async def parent() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    task = asyncio.ensure_future(parent())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["child"]


async def test_work_offered_to_a_group_that_is_ending_is_closed_and_its_caller_is_cancelled() -> None:
    offered = list[str]()

    async def step() -> None:
        offered.append("never")

    async def offer_late(tasks: asyncio.TaskGroup) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(asyncio.CancelledError):
                start_task(tasks, step(), name="late")
            offered.append("refused")

    async def fail() -> None:
        raise ValueError

    async def run_both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(offer_late(tasks))
            tasks.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await run_both()
    gc.collect()
    assert offered == ["refused"]


async def test_a_timeout_that_is_paused_does_not_end_the_wait_and_has_its_time_afterwards() -> None:
    async with asyncio.timeout(3600) as timer:
        expires_at = timer.when()
        with pause_timeout(timer):
            assert timer.when() is None
            await asyncio.sleep(0)
        assert expires_at is not None
        assert expires_at <= (timer.when() or 0.0) < expires_at + 60


async def test_a_paused_block_can_be_cancelled_and_a_timeout_without_a_limit_has_nothing_to_pause() -> None:
    async def wait_paused() -> None:
        async with asyncio.timeout(3600) as timer:
            with pause_timeout(timer):
                await asyncio.Event().wait()

    task = asyncio.create_task(wait_paused())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(None) as timer:
        with pause_timeout(timer):
            pass
        assert timer.when() is None


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    swallowed = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed.append(True)
                if len(swallowed) == 2:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await cancel_until_ended([task])
    assert (task.cancelled(), len(swallowed)) == (True, 2)


async def test_stopped_work_has_ended_when_the_stop_is_returned() -> None:
    stop, ends = asyncio.Event(), list[str]()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append("cleaned up")
        return "never"

    running = asyncio.ensure_future(run_unless_stopped(work(), stop))
    await pass_turns(2)
    stop.set()
    assert (await running, ends) == (StopReason.CANCELLED, ["cleaned up"])


async def test_work_that_fails_while_it_is_stopped_is_not_reported_as_lost() -> None:
    reports: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    stop = asyncio.Event()

    async def fail_as_it_ends() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LLMError("the connection broke") from None

    running = asyncio.ensure_future(run_unless_stopped(fail_as_it_ends(), stop))
    await pass_turns(2)
    stop.set()
    assert await running is StopReason.CANCELLED
    del running
    gc.collect()
    assert reports == []


async def test_work_that_ends_first_gives_its_result_or_its_own_error() -> None:
    async def fail_in_group() -> str:
        async with asyncio.TaskGroup():
            raise LLMError("gone")

    assert await run_unless_stopped(asyncio.sleep(0, "done"), asyncio.Event()) == "done"
    with pytest.raises(LLMError):
        await run_unless_stopped(fail_in_group(), asyncio.Event())


async def test_a_place_that_was_given_to_somebody_who_left_goes_to_the_next() -> None:
    places = FairPlaces(1)
    await places.acquire("ada")
    leaving, gone, staying = (asyncio.create_task(places.acquire(whose)) for whose in ("bob", "carol", "dora"))
    await asyncio.sleep(0)
    gone.cancel()
    places.release()  # bob's turn, of which he has not heard yet
    leaving.cancel()
    await asyncio.wait({leaving, gone, staying})
    assert [task.cancelled() for task in (leaving, gone, staying)] == [True, True, False]
    places.release()
    await places.acquire("ada")
