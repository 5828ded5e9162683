"""PersonalPool: what a process keeps open for each person who is here, and closes for those who have left."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_OPEN = 64  # more only while that many are busy


class _OpenResource(Generic[T]):
    """A resource with the task that entered it, which alone may leave it."""

    def __init__(self, source: AbstractAsyncContextManager[T]) -> None:
        self.users = 0
        self.expiry: asyncio.TimerHandle | None = None  # of one that is idle
        self.closing = asyncio.Event()
        self.opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._hold(source))

    async def _hold(self, source: AbstractAsyncContextManager[T]) -> None:
        try:
            async with source as value:
                self.opened.set_result(value)
                await self.closing.wait()
        except Exception as error:
            if self.opened.done():
                raise
            self.opened.set_exception(error)

    @property
    def value(self) -> T:
        return self.opened.result()


class PersonalPool(Generic[T]):
    """Resources by person. One that is idle is closed after `max_idle_s`, and over `max_open` the one used least recently."""

    def __init__(
        self,
        open_resource: Callable[[str], AbstractAsyncContextManager[T]],
        *,
        max_open: int = MAX_OPEN,
        max_idle_s: float | None = None,
        is_busy: Callable[[T], bool] = lambda _: False,
    ) -> None:
        self._open_resource, self._max_open, self._is_busy = open_resource, max_open, is_busy
        self._max_idle_s = max_idle_s
        self._open: OrderedDict[str, _OpenResource[T]] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def values(self) -> list[T]:
        return [resource.value for resource in self._open.values()]

    @asynccontextmanager
    async def use(self, person: str) -> AsyncIterator[T]:
        """The resource of a person, which stays open for as long as the block. Raises what opening it raises."""
        async with self._opening:
            if person not in self._open:
                opening = _OpenResource(self._open_resource(person))
                try:
                    await asyncio.shield(opening.opened)
                except BaseException:  # also of a caller that left meanwhile
                    self._start_closing(opening)
                    raise
                self._open[person] = opening
            resource = self._open[person]
            resource.users += 1
        if resource.expiry:
            resource.expiry.cancel()
        self._open.move_to_end(person)
        self._close_idle()
        try:
            yield resource.value
        finally:
            resource.users -= 1
            if not resource.users:
                self._expire(person, resource)
            self._close_idle()

    def _expire(self, person: str, resource: _OpenResource[T]) -> None:
        """Close a resource after a while, unless it is used or busy until then."""
        if self._max_idle_s is not None:
            loop = asyncio.get_running_loop()
            resource.expiry = loop.call_later(self._max_idle_s, self._close_expired, person, resource)

    def _close_expired(self, person: str, resource: _OpenResource[T]) -> None:
        if self._open.get(person) is not resource or resource.users:
            return
        if self._is_busy(resource.value):
            self._expire(person, resource)
        else:
            self._start_closing(self._open.pop(person))

    def _close_idle(self) -> None:
        idle = (person for person, r in self._open.items() if not r.users and not self._is_busy(r.value))
        for person in [person for person, _ in zip(idle, range(len(self._open) - self._max_open), strict=False)]:
            self._start_closing(self._open.pop(person))

    def _start_closing(self, resource: _OpenResource[T]) -> None:
        resource.closing.set()
        if resource.expiry:
            resource.expiry.cancel()
        self._closing.add(resource.task)
        resource.task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close everything, and wait until it is closed."""
        while self._open:
            self._start_closing(self._open.popitem()[1])
        await asyncio.gather(*self._closing)
