"""PageIndexer: stores the pages a run reads in the knowledge base, so that later runs find them.

A run owns one. The store is opened with the first page, in the background, and a bounded queue keeps reading from ever
waiting for it. How a page is stored is the business of `local.BackgroundIndexer` and `knowledge`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nexi.types import Page

if TYPE_CHECKING:
    from nexi.app.gate import ModelGate
    from nexi.knowledge.indexing import IndexQueue

DRAIN_S = 2.0  # how long a run waits at its end for pages that are still queued


class PageIndexer:
    def __init__(self, gate: ModelGate, tasks: asyncio.TaskGroup, *, is_enabled: bool) -> None:
        self._gate = gate
        self._tasks = tasks
        self._is_enabled = is_enabled
        self._queue: IndexQueue | None = None

    def index_page(self, page: Page) -> None:
        """Queue a page; never waits."""
        if not self._is_enabled:
            return
        if self._queue is None:
            from nexi.app.local import BackgroundIndexer
            from nexi.knowledge.indexing import IndexQueue

            gate = self._gate.for_indexing()
            self._queue = IndexQueue(BackgroundIndexer(gate.ports.knowledge(), gate), tasks=self._tasks, emit=gate.emit)
        self._queue.offer(page)

    async def close(self, *, at_once: bool = False) -> None:
        """Store what is queued, but not for long, and not at all when the user stopped the run."""
        if self._queue:
            await self._queue.drain(0 if at_once else DRAIN_S)
