"""Worker: `nexi work`, which runs the questions of a team server and goes on with runs whose worker is lost.

Above is the command; below are `Team` and the queue in its database. A run that another worker has taken over is dropped at
once and writes nothing more. On a signal it takes nothing new, gives its runs some time, and leaves the rest to others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nexi.app.assembly import Nexi
from nexi.app.hosting import RESUMED, RunRegistry
from nexi.app.request import request_of_run
from nexi.app.run import Run, RunOpening
from nexi.errors import NexiError, StoreError
from nexi.events import Event, ModelReplied, RunFailed, RunStarted
from nexi.tasks import cancel_until_ended
from nexi.team.assembly import Team
from nexi.team.limits import DEFAULT_DRAIN_S, DEFAULT_WORKER_RUNS, MAX_LOSSES, MAX_LOST_FACTOR
from nexi.team.postgres.limits import forget_idle_limits
from nexi.team.postgres.runs import QUEUE_NOTICE, ClaimedRun, PostgresRunLog, pick_run, prune_expired
from nexi.types import StopReason, Usage

log = logging.getLogger("nexi.work")
LOOK_EVERY_S = 0.5
FORGET_TURNS = 60
PRUNE_TURNS = 7_200  # an hour
WATCH_EVERY_S = 0.2


class TeamWorker:
    """The runs of one worker process."""

    def __init__(
        self,
        team: Team,
        *,
        max_runs: int = DEFAULT_WORKER_RUNS,
        drain_s: float = DEFAULT_DRAIN_S,
        observe: Callable[[Event, str], None] = lambda event, mode: None,
    ) -> None:
        """`observe` is shown every event of every run, with its mode."""
        self._team, self._max_runs, self._drain_s = team, max_runs, drain_s
        self._registry = RunRegistry(max_runs=max_runs, max_ended=0, observe=observe, watch=_watch)
        self._picked: set[str] = set()
        self.draining = False

    @property
    def active(self) -> int:
        """How many runs are in progress here."""
        return len(self._registry.active_ids)

    async def work(self, stopping: asyncio.Event) -> None:
        """Run questions until `stopping` is set, then drain."""
        tasks = [asyncio.create_task(self._take_runs()), asyncio.create_task(self._do_chores())]
        await stopping.wait()
        self.draining = True
        await cancel_until_ended(tasks)
        await self._registry.drain(self._drain_s)  # what does not end in time is left to other workers
        await self._registry.close()

    async def _take_runs(self) -> None:
        """Begin what the queue has for as long as there is room, then wait for more of either."""
        while True:
            try:
                while self._registry.active < self._max_runs * MAX_LOST_FACTOR:
                    run = await asyncio.to_thread(pick_run, self._team.database, is_lost=self._registry.is_full)
                    if run is None:
                        break
                    self._begin(*run)
            except StoreError as error:
                log.warning("the queue was interrupted", extra={"why": str(error)})
            await self._team.database.wait_for_notice(QUEUE_NOTICE, LOOK_EVERY_S)

    def _begin(self, run_id: str, owner: str) -> None:
        def end(_: object) -> None:
            self._picked.discard(run_id)
            self._team.database.wake_waiters(QUEUE_NOTICE)

        if run_id not in self._picked:
            self._picked.add(run_id)
            self._registry.spawn(self._run_or_resume(run_id, owner)).add_done_callback(end)

    async def _do_chores(self) -> None:
        turn, database, config = 0, self._team.database, self._team.config
        while True:
            try:
                await self._team.submit_due()
                if turn % FORGET_TURNS == 0:
                    await database.in_thread(forget_idle_limits, database)
                if turn % PRUNE_TURNS == PRUNE_TURNS - 1:
                    await database.in_thread(prune_expired, database, config.runs_keep_days, config.pages_max_mb)
            except Exception as error:  # noqa: BLE001 - the edge of a background task: the next turn tries again
                log.warning("chores failed", extra={"why": str(error)})
            turn += 1
            await asyncio.sleep(LOOK_EVERY_S)

    async def _run_or_resume(self, run_id: str, owner: str) -> None:
        try:
            async with self._team.use_nexi(owner) as nexi:
                if opening := await self._open(nexi, run_id, owner):
                    await self._registry.drive(opening)
        except NexiError as error:
            log.info("run not taken", extra={"run": run_id, "why": str(error), "code": error.code})
        except Exception:
            log.exception("a run failed", extra={"run": run_id})

    async def _open(self, nexi: Nexi, run_id: str, owner: str) -> RunOpening | None:
        """The run to enter, new or where its log ends. Raises StoreError where it is somebody else's, or over."""
        runs = self._team.state_of(owner).runs
        read = await asyncio.to_thread(runs.open_log, run_id)
        is_hopeless = await asyncio.to_thread(runs.count_losses, run_id) >= MAX_LOSSES
        if not is_hopeless and read.facts:
            return nexi.resume(run_id, changes=RESUMED)
        claimed = await asyncio.to_thread(runs.claim, run_id)
        if is_hopeless:
            error = StoreError(
                "the run was given up",
                cause=f"{MAX_LOSSES} workers were lost one after the other before it got any further",
                fix="ask again; the logs of the workers say more",
                code="given_up",
            )
            await _end_run(claimed, error)
            return None
        if claimed.read.facts:
            await claimed.log.close()
            return nexi.resume(run_id, changes=RESUMED)
        try:
            started = RunStarted(claimed.question, "", "", claimed.mode, request=claimed.request)
            return nexi.run(request_of_run(started), log=claimed.log)
        except NexiError as refusal:  # a request that cannot be used ends its run, or it would come back for ever
            await _end_run(claimed, refusal)
            return None


async def _watch(run: Run) -> None:
    """Drop a run that was taken over, and end one that its owner cancelled."""
    while isinstance(run.emit.log, PostgresRunLog):
        if run.emit.log.is_taken:
            log.warning("run taken over", extra={"run": run.id})
            run.suspend()
        if run.emit.log.is_taken or run.emit.log.is_cancel_requested:
            return run.abort()
        await asyncio.sleep(WATCH_EVERY_S)
    return None


async def _end_run(claimed: ClaimedRun, error: NexiError) -> None:
    """End a run that does not go on, with what it has used until now."""
    replies = [fact for _, fact in claimed.read.facts if isinstance(fact, ModelReplied)]
    usage = sum((reply.usage for reply in replies), Usage())
    reason, seconds = StopReason.API_ERROR, claimed.read.seconds
    await claimed.log.append(RunFailed(error.code, error.message, error.cause, error.fix, reason, len(replies), usage, seconds))
    await claimed.log.close()
