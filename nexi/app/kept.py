"""KeptPages: where the pages of a run go while it reads, so that a later run knows them.

A run owns one. It costs nothing until the first page: the store is opened then, behind the run, and a bounded queue keeps
reading from ever waiting for it. What is stored how is `local.Keeper`'s and `knowledge`'s matter.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nexi.ports import Emit
from nexi.types import Page

if TYPE_CHECKING:
    from nexi.app.clients import Clients
    from nexi.knowledge.indexing import IndexQueue

DRAIN_S = 2.0  # what a run waits at its end for pages that are not stored yet


class KeptPages:
    def __init__(self, nexi: Clients, emit: Emit, tasks: asyncio.TaskGroup, *, keeps: bool) -> None:
        self._nexi = nexi
        self._emit = emit
        self._tasks = tasks
        self._keeps = keeps
        self._queue: IndexQueue | None = None

    def keep(self, page: Page) -> None:
        """Take a page for later; never waits."""
        if self._keeps:
            self._queue = self._queue or self._opened()
            self._queue.offer(page)

    async def close(self, *, hurried: bool = False) -> None:
        """Store what is waiting, but not for long, and not at all for somebody who wants to leave."""
        if self._queue:
            await self._queue.drain(0 if hurried else DRAIN_S)

    def _opened(self) -> IndexQueue:
        from nexi.app.local import Keeper
        from nexi.knowledge.indexing import IndexQueue

        return IndexQueue(Keeper(self._nexi.knowledge(), self._emit), tasks=self._tasks, emit=self._emit)
