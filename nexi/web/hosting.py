"""Hosting: runs that live in the server, with or without a listener.

A run that was asked for over HTTP goes on when its client leaves; it is left open in its log when the server ends, and taken
up again when one starts. A run that answers a request which waits for it ends with that request. Above are `runs` and
`openai`; below are `Nexi` and the run log, whose lock decides between servers that share a home.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, Protocol

from msgspec import Struct

from nexi.app import Nexi, ReadLog, Run, RunOpening, RunRequest, RunResult, Session
from nexi.errors import NexiError
from nexi.events import Event, RunResumed, RunStarted
from nexi.ports import RunStore
from nexi.web.feeds import Feed
from nexi.web.metrics import Metrics
from nexi.web.problems import build_refusal

log = logging.getLogger("nexi.web")
DOOR = "http"
RESUMED_HERE = RunRequest("", door=DOOR)
MAX_RUNS = 8
MAX_ENDED_RUNS = 64
MAX_RESUMES = 3  # without any progress: a run that ends the server each time is left alone
POLL_S = 0.5


class HostedRun:
    """One run in this server, and its feed."""

    def __init__(self, run: Run, created: str) -> None:
        self.run, self.created = run, created
        self.feed = Feed(run.recorded.facts if run.recorded.log else ())
        self.task: asyncio.Task[Any] | None = None

    @property
    def id(self) -> str:
        return self.run.id

    async def wait_for_result(self) -> RunResult:
        """The result of the run. Raises its error."""
        if self.task:
            await asyncio.wait([self.task])
        return self.run.result()

    def stop(self) -> None:
        self.run.stop()

    async def cancel(self) -> None:
        """End it now, and wait until its log is closed."""
        if self.task and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])


class QueuedRun(Struct, frozen=True):
    """A run that a worker of a team server does, as the one who asked for it gets it back."""

    id: str
    created: str


class RunQueue(Protocol):
    """Where a team server leaves runs for its workers."""

    async def submit(self, request: RunRequest) -> str: ...

    async def resubmit(self, run_id: str) -> None: ...


class RunHost:
    """Every run of one server. With a `queue`, runs that outlive their request are left to workers."""

    def __init__(self, nexi: Nexi, metrics: Metrics, *, most: int = MAX_RUNS, queue: RunQueue | None = None) -> None:
        self.nexi, self.metrics, self.draining = nexi, metrics, False
        self._most, self._queue = most, queue
        self._active: dict[str, HostedRun] = {}
        self._kept: OrderedDict[str, HostedRun] = OrderedDict()
        self._left: dict[str, str] | None = None  # runs to resume, with their times; None until they are known
        self._room = asyncio.Event()
        self._starting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def active(self) -> int:
        return len(self._active) + self._starting

    @property
    def is_full(self) -> bool:
        return self.active >= self._most

    def get(self, run_id: str) -> HostedRun | None:
        """A run of this server that is under way, or ended a short while ago."""
        return self._active.get(run_id) or self._kept.get(run_id)

    def is_active(self, run_id: str) -> bool:
        return run_id in self._active

    def will_resume(self, run_id: str) -> bool:
        """Whether an unfinished run, left by an earlier server, may still be resumed by this one."""
        return not self.draining and (self._left is None or run_id in self._left)

    async def start(self, request: RunRequest, session: Session | None = None) -> HostedRun:
        """Begin a run; its first fact is in its log when this returns. Raises Refused when there is no room, or NexiError."""
        self._require_room()
        log.debug("question", extra={"question": request.question, "mode": request.mode})
        self.metrics.count("nexi_runs_started_total", mode=request.mode)
        return await self._begin_run(self.nexi.run(request, session=session))

    async def submit(self, request: RunRequest) -> HostedRun | QueuedRun:
        """Begin a run that goes on when its client leaves: here, or in a worker. Raises Refused or NexiError."""
        if self._queue is None or request.holds_plan:  # a plan is settled where its run is
            return await self.start(request)
        if self.draining:
            self._require_room()
        self.nexi.check_request(request)
        if request.continues:
            await asyncio.to_thread(self.nexi.runs().open_log, request.continues)  # somebody else's is refused here already
        request = await self.nexi.admit(request, is_queued=True)
        self.metrics.count("nexi_runs_started_total", mode=request.mode)
        return QueuedRun(await self._queue.submit(request), self.nexi.clock.now().isoformat(timespec="milliseconds"))

    def _require_room(self) -> None:
        if self.draining or self.is_full:
            raise build_refusal(503, "busy", "the server has all the runs it can carry", fix="ask again soon", retry_after=5)

    async def resume(self, run_id: str) -> HostedRun | QueuedRun:
        """Go on with a run of this home, within the limits it was asked with. Raises Refused or StoreError."""
        self._require_room()
        read = await asyncio.to_thread(self.nexi.runs().open_log, run_id)
        if self._queue and not read.has_ended:
            await self._queue.resubmit(run_id)
            return QueuedRun(run_id, read.header.created)
        self.forget(run_id)
        created = "" if read.has_ended else read.header.created
        return await self._begin_run(self.nexi.resume(run_id, changes=RESUMED_HERE), created)

    async def _begin_run(self, opening: RunOpening, created: str = "") -> HostedRun:
        begun: asyncio.Future[HostedRun] = asyncio.get_running_loop().create_future()
        self._starting += 1
        task = self._spawn_task(self._drive_run(opening, begun, created))
        try:
            hosted = await asyncio.shield(begun)
        finally:
            self._starting -= 1
        hosted.task = task
        return hosted

    async def _drive_run(self, opening: RunOpening, begun: asyncio.Future[HostedRun], created: str) -> None:
        """A run from its first fact to its last. Its own errors are in its facts; anything else ends here."""
        hosted: HostedRun | None = None
        try:
            async with opening as run:
                hosted = HostedRun(run, created or self.nexi.clock.now().isoformat(timespec="milliseconds"))
                hosted.task = asyncio.current_task()
                self._active[run.id] = hosted
                async for event in run:
                    self._publish_event(hosted, event)
                    if hosted.feed.fact_count and not begun.done():
                        begun.set_result(hosted)  # not before: a log without its first fact cannot be resumed after a kill
        except asyncio.CancelledError:
            log.info("run cancelled", extra={"run": hosted.id if hosted else ""})
            begun.cancel()
        except Exception as error:
            if not begun.done():
                begun.set_exception(error)
            else:
                log.exception("a run failed", extra={"run": hosted.id if hosted else ""})
        finally:
            if hosted:
                for fact in hosted.run.facts[hosted.feed.fact_count :]:
                    self._publish_event(hosted, fact)
                hosted.feed.end()
                self._archive_run(hosted)
                if not begun.done():
                    begun.set_result(hosted)

    def _publish_event(self, hosted: HostedRun, event: Event) -> None:
        hosted.feed.put(event)
        self.metrics.observe(event, hosted.run.mode)

    def _archive_run(self, hosted: HostedRun) -> None:
        self._active.pop(hosted.id, None)
        self._kept[hosted.id] = hosted
        while len(self._kept) > MAX_ENDED_RUNS:
            self._kept.popitem(last=False)
        self._room.set()

    def forget(self, run_id: str) -> None:
        self._kept.pop(run_id, None)

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # the life of the server

    def open(self) -> None:
        """Take up the runs an earlier server left, and listen for what other processes ask."""
        if self._queue:
            self._left = {}  # that is for the workers
        else:
            self._spawn_task(self._resume_left_runs())
        self._spawn_task(self._watch_cancel_files())

    async def _resume_left_runs(self) -> None:
        left: dict[str, str] = {}
        try:
            left = await asyncio.to_thread(_find_left_runs, self.nexi.runs())
        finally:
            self._left = left
        for run_id, created in list(left.items()):
            try:
                await self._resume_when_free(run_id, created)
            except NexiError as error:
                log.warning("run not resumed", extra={"run": run_id, "why": str(error), "code": error.code})
            finally:
                del left[run_id]

    async def _resume_when_free(self, run_id: str, created: str) -> None:
        while self.is_full and not self.draining:
            self._room.clear()
            await self._room.wait()
        has_ended = (
            await asyncio.to_thread(self.nexi.runs().open_log, run_id)
        ).has_ended  # another server may have been faster
        if not (self.draining or has_ended):
            log.info("run resumed", extra={"run": run_id})
            await self._begin_run(self.nexi.resume(run_id, changes=RESUMED_HERE), created)

    async def _watch_cancel_files(self) -> None:
        """Another server of the same home asks with a file that a run of ours be cancelled."""
        runs = self.nexi.runs()
        while not self.draining:
            await asyncio.sleep(POLL_S)
            for hosted in list(self._active.values()):
                if await asyncio.to_thread(runs.is_cancel_requested, hosted.id):
                    await hosted.cancel()

    async def drain(self, patience_s: float) -> None:
        """Take nothing new, give what is under way some time, and leave the rest open in its log."""
        self.draining = True
        tasks = [h.task for h in self._active.values() if h.task]
        if tasks and patience_s > 0:
            await asyncio.wait(tasks, timeout=patience_s)
        for hosted in list(self._active.values()):
            if hosted.run.request.door == DOOR:
                hosted.run.suspend()
                log.info("run left open", extra={"run": hosted.id})
            await hosted.cancel()

    async def close(self) -> None:
        await self.drain(0)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _find_left_runs(runs: RunStore) -> dict[str, str]:
    """The ids of the runs that a server began and left open, with the times at which they began."""
    left = {}
    for summary in runs.list_runs(state="unfinished"):
        try:
            if _was_left_open(read := runs.open_log(summary.id)):
                left[summary.id] = read.header.created
        except NexiError as error:
            log.warning("run not resumed", extra={"run": summary.id, "why": str(error), "code": error.code})
    return left


def _was_left_open(read: ReadLog) -> bool:
    """Whether a server began this run and may go on with it."""
    first = read.facts[0][1] if read.facts else None
    if not isinstance(first, RunStarted) or first.settings.get("door") != DOOR:
        return False
    resumes = sum(isinstance(fact, RunResumed) for number, fact in read.facts if number > read.last_progress)
    return resumes < MAX_RESUMES
