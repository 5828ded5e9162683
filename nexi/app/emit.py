"""Emit: facts are committed to the run log first and published after; deltas are only published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nexi.errors import RunTakenError, StoreError
from nexi.events import Delta, Event, Fact, StatusDelta, Warned
from nexi.notices import Notice, join_sentences
from nexi.ports import Emit, RunLog
from nexi.runs.log import MemoryRunLog
from nexi.runs.recording import CommittedFacts
from nexi.tasks import wait_uninterrupted


class QuietEmit:
    """For work outside a run or behind it: nothing is logged or shown, but warnings go to `warn` and statuses to `show`."""

    def __init__(self, *, warn: Emit | None = None, show: Callable[[str], None] | None = None) -> None:
        self._warn, self._show = warn, show

    async def __call__(self, fact: Fact) -> None:
        if self._warn and isinstance(fact, Warned):
            await self._warn(fact)

    def delta(self, delta: Delta) -> None:
        if self._show and isinstance(delta, StatusDelta):
            self._show(delta.text)


class RunEmit:
    """Commits facts whole, then hands events to the door; if the log cannot be written, it warns and goes on in memory. What
    repeats the facts of a run that is resumed (`before`) is not written twice."""

    def __init__(self, log: RunLog, publish: Callable[[Event], None], before: Sequence[Fact] = ()) -> None:
        self.log = log
        self.facts: list[Fact] = list(before)
        self._committed = CommittedFacts(before)
        self._causes = {fact.cause for fact in before if isinstance(fact, Warned) and fact.cause}
        self._publish = publish
        self._last: asyncio.Future[None] | None = None
        self.is_sealed = False  # then nothing more is committed: the log stays as it is, so that the run can be resumed

    async def __call__(self, fact: Fact) -> None:
        if isinstance(fact, Warned) and self._is_known(fact.cause):
            return
        commit = self._last = asyncio.ensure_future(self._commit_after(self._last, fact))
        await wait_uninterrupted(commit)
        commit.result()

    def delta(self, delta: Delta) -> None:
        self._publish(delta)

    def _is_known(self, cause: str) -> bool:
        """Whether a warning had this cause before: a full disk is one warning, not one for each page and file."""
        is_known = bool(cause) and cause in self._causes
        self._causes.add(cause)
        return is_known

    async def _commit_after(self, before: asyncio.Future[None] | None, fact: Fact) -> None:
        """Written at once and in order, so that facts which come together share a flush; shown when those before it were."""
        if self.is_sealed or self._committed.consume(fact):
            return await _wait_for(before)
        log, trouble = self.log, None
        try:
            await log.append(fact)
        except RunTakenError:
            self.is_sealed = True  # whoever has the run now writes what follows
            raise
        except StoreError as error:
            trouble = error
        await _wait_for(before)
        if trouble and self.log is log:  # switch to memory once, with a warning; queued facts follow
            self.log = MemoryRunLog(log.run_id, after=len(self.facts))
            await log.close()
            warning = warn_of_lost_log(trouble)
            if not self._is_known(warning.cause):
                await self.log.append(warning)
                self._publish_fact(warning)
        if trouble:
            await self.log.append(fact)
        self._publish_fact(fact)
        return None

    def _publish_fact(self, fact: Fact) -> None:
        self.facts.append(fact)
        self._publish(fact)


def warn_of_lost_log(error: StoreError) -> Warned:
    """What the user is told of a run whose log is in memory alone."""
    message = Notice("run.not_kept", "this run is not kept: {error}", error=str(error))
    return Warned("log_not_kept", join_sentences(message, error.fix), cause=error.fix)


async def _wait_for(before: asyncio.Future[None] | None) -> None:
    if before and not before.done():
        await asyncio.wait([before])
