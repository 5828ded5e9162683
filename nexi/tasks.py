"""Waiting for a task that must not be left behind: a cancellation would interrupt a step halfway, such as committing a fact."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nexi.errors import NexiError
from nexi.types import StopReason

T = TypeVar("T")
CANCEL_AGAIN_S = 0.5


async def wait_uninterrupted(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended. A cancellation of the caller is postponed until its next await."""
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            was_cancelled = True
    caller = asyncio.current_task()
    if was_cancelled and caller:
        caller.uncancel()  # the request stays counted once, as `asyncio.timeout` and task groups expect
        caller.cancel()


class FairPlaces:
    """A few places at once, handed out in turns: each who waits for some gets one before anybody gets a second."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def acquire(self, whose: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(whose, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it had its turn already
            raise

    def release(self) -> None:
        while self._queues:
            whose = next(iter(self._queues))
            queue = self._queues.pop(whose)
            turn = queue.popleft()
            if queue:
                self._queues[whose] = queue  # at the end: the others come first
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


@contextmanager
def pause_timeout(timer: asyncio.Timeout) -> Iterator[None]:
    """Stop the time of `asyncio.timeout` inside the block, where a caller waits for what its limit is not about."""
    expires_at, loop = timer.when(), asyncio.get_running_loop()
    if expires_at is None or timer.expired():
        yield
        return
    remaining_s = expires_at - loop.time()
    timer.reschedule(None)
    try:
        yield
    finally:
        timer.reschedule(loop.time() + remaining_s)


def start_task(tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start work in a group that other code owns. A group that is ending cancels its caller, as it cancels its other tasks."""
    # TaskGroup.create_task raises RuntimeError there and leaves the coroutine open, which Python reports as never awaited
    try:
        return tasks.create_task(work, name=name)
    except RuntimeError as error:
        work.close()
        raise asyncio.CancelledError(str(error)) from error


async def run_in_group(work: Callable[[asyncio.TaskGroup], Awaitable[T]]) -> T:
    """Do work that owns a task group. Its NexiError comes out as itself: raised inside the group, it would be bundled."""
    async with asyncio.TaskGroup() as tasks:
        outcome = await catch_error(work(tasks))
    return raise_error(outcome)


async def gather_all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of several pieces of work, in their order. One that fails cancels the others."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


async def run_unless_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T | StopReason:
    """Return the work's result, or CANCELLED as soon as `stop` is set, once the work has ended."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else StopReason.CANCELLED
    except BaseExceptionGroup as bundle:
        # a NexiError that is alone in the exception group of a task group is raised by itself
        if len(bundle.exceptions) == 1 and isinstance(error := bundle.exceptions[0], NexiError):
            raise error from None
        raise
    finally:
        stopping.cancel()
        task.cancel()
        await wait_uninterrupted(task)
        if not task.cancelled():
            task.exception()  # work that was stopped may fail as it ends: nobody asks why, and asyncio would report it as lost


async def catch_error(work: Awaitable[T]) -> T | NexiError:
    """The result of work, or its NexiError as a value, for a caller who has to clean up in both cases."""
    try:
        return await work
    except NexiError as error:
        return error


def raise_error(outcome: T | NexiError) -> T:
    """The result that `catch_error` gave. Raises its NexiError."""
    if isinstance(outcome, NexiError):
        raise outcome
    return outcome


async def cancel_until_ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, again and again while one lives on: a library may swallow a cancellation."""
    running_tasks = {task for task in tasks if not task.done()}
    while running_tasks:
        for task in running_tasks:
            task.cancel()
        _, running_tasks = await asyncio.wait(running_tasks, timeout=CANCEL_AGAIN_S)
