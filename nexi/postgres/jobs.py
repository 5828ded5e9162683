"""Jobs: which worker tries which run next, by procrastinate over the same database.

The worker above does the work; below is procrastinate, which is loaded here alone. A job is only a hint to go on with a run:
the claim of the run decides who may write it, so a job that is lost or comes twice does no harm. `sweep` finds runs whose
writer is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from nexi.postgres.database import Database
from nexi.tasks import cancel_until_ended, wait_uninterrupted

__all__ = ["JobQueue", "RunJob"]

log = logging.getLogger("nexi.work")
QUEUE = "runs"
LOST_QUEUE = "lost"  # of runs whose writer is gone: they do not wait behind new ones
TASK = "nexi.run"
HEARTBEAT_S, STALLED_S = 2.0, 10.0
_REQUEUE_LOST_S, _REQUEUE_WAITING_S = 1.0, 30.0
_MORE_LOST = 2  # times as many lost runs as new ones, so that they find room when several workers are lost at once

RunJob = Callable[[str, str], Awaitable[None]]  # of a run's id and its owner


class JobQueue:
    """The queue of one process: servers add jobs, workers do them."""

    def __init__(self, database: Database) -> None:
        import procrastinate

        self._database = database
        self._library = procrastinate
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=database.url, min_size=1, max_size=6))
        self._handle: RunJob | None = None
        self._app.task(name=TASK, queue=QUEUE)(self._do_job)

    async def open(self) -> None:
        await self._app.open_async()

    async def close(self) -> None:
        await self._app.close_async()

    async def add(self, run_id: str, owner: str, *, is_lost: bool = False) -> None:
        """Ask the workers to go on with a run; nothing happens where one is asked already."""
        queue = LOST_QUEUE if is_lost else QUEUE  # each with its own lock: a job behind many others holds no lost run up
        job = self._app.configure_task(TASK, queue=queue, queueing_lock=f"{queue} {run_id}")
        try:
            await job.defer_async(run_id=run_id, owner=owner)
        except self._library.exceptions.AlreadyEnqueued:
            return

    async def _do_job(self, run_id: str, owner: str) -> None:
        if self._handle:
            await self._handle(run_id, owner)

    async def work(self, handle: RunJob, *, concurrency: int) -> None:
        """Do jobs until cancelled, at most so many at once, and twice as many whose writer was lost."""
        self._handle = handle
        tasks = [
            asyncio.create_task(self._work_queue(queue, most))
            for queue, most in ((QUEUE, concurrency), (LOST_QUEUE, concurrency * _MORE_LOST))
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            ending = asyncio.ensure_future(cancel_until_ended(tasks))  # the library swallows one while it connects
            await wait_uninterrupted(ending)

    async def _work_queue(self, queue: str, concurrency: int) -> None:
        """A connection that breaks ends the library's worker, so it is started again."""
        while True:
            try:
                await self._app.run_worker_async(
                    queues=[queue],
                    concurrency=concurrency,
                    install_signal_handlers=False,
                    delete_jobs="always",
                    fetch_job_polling_interval=1.0,
                    shutdown_graceful_timeout=0.1,
                    update_heartbeat_interval=HEARTBEAT_S,
                    stalled_worker_timeout=STALLED_S,
                )
            except (self._library.exceptions.ProcrastinateException, OSError, AssertionError) as error:
                log.warning("the queue was interrupted", extra={"why": str(error)})
            await asyncio.sleep(0.5)

    async def sweep(self) -> None:
        """Queue every run whose writer is lost, or that waits with no job. Raises StoreError."""
        for run_id, owner, state in await self._database.in_thread(self._find_lost):
            await self.add(run_id, str(owner), is_lost=state == "running")

    def _find_lost(self) -> list[tuple[Any, ...]]:
        """A database that has just started waits for the writers that are still alive."""
        return self._database.fetch(
            "update runs set queued_at = now() where is_queued and state in ('waiting', 'running') "
            "and (lease_until is null or lease_until < now()) "
            "and queued_at < now() - make_interval(secs => case state when 'waiting' then %(waiting)s else %(lost)s end) "
            "and pg_postmaster_start_time() < now() - make_interval(secs => %(lease)s) returning run, owner, state",
            {"waiting": _REQUEUE_WAITING_S, "lost": _REQUEUE_LOST_S, "lease": self._database.lease_s},
        )

    async def forget_stalled(self) -> None:
        """Delete the jobs of workers that are gone; their runs are found by `sweep`."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_S):
            await manager.finish_job(job, status=self._library.jobs.Status.FAILED, delete_job=True)
