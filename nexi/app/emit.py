"""Emit: facts are committed to the run log first and published after; deltas are only published.

Above sits `run`; below is any `RunLog`. Who listens is not known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nexi.errors import StoreError
from nexi.events import Delta, Event, Fact, Warned
from nexi.ports import RunLog
from nexi.recording import Committed
from nexi.runlog import MemoryRunLog
from nexi.tasks import to_the_end


class QuietEmit:
    """For work outside a run: nothing is logged and nobody listens."""

    async def __call__(self, fact: Fact) -> None:
        return None

    def delta(self, delta: Delta) -> None:
        return None


class RunEmit:
    """Commits facts whole, then hands events to the door. A log that cannot be written to is left, aloud, for memory.

    `before` are the facts of a run that is taken up again: they are in the log, and what repeats them is not written twice.
    """

    def __init__(self, log: RunLog, publish: Callable[[Event], None], before: Sequence[Fact] = ()) -> None:
        self.log = log
        self.facts: list[Fact] = list(before)
        self._committed = Committed(before)
        self._publish = publish
        self._order = asyncio.Lock()
        self._sealed = False

    def seal(self) -> None:
        """Commit nothing more: the log stays as it is, for whoever takes the run up."""
        self._sealed = True

    async def __call__(self, fact: Fact) -> None:
        commit = asyncio.ensure_future(self._commit_in_order(fact))
        await to_the_end(commit)
        commit.result()

    def delta(self, delta: Delta) -> None:
        self._publish(delta)

    async def _commit_in_order(self, fact: Fact) -> None:
        async with self._order:
            await self._commit(fact)

    async def _commit(self, fact: Fact) -> None:
        if self._sealed or self._committed.has(fact):
            return
        try:
            await self.log.append(fact)
        except StoreError as error:
            await self._leave_the_disk(error)
            await self.log.append(fact)
        self.facts.append(fact)
        self._publish(fact)

    async def _leave_the_disk(self, error: StoreError) -> None:
        broken, self.log = self.log, MemoryRunLog(self.log.run_id, after=len(self.facts))
        await broken.close()
        await self._commit(Warned("log_not_kept", f"this run is not kept: {error}. {error.fix}".strip()))
