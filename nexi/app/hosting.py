"""Hosting: the runs that live in a process, with or without a listener.

A run of the HTTP API goes on when its client leaves; it is left open in its log when its server ends, and resumed when one
starts. A run of any other door ends with its server. The lock of a run log decides between processes that share a home. Many
readers follow the feed of a run, each from where it left off; how a reader is reached is for the doors.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from nexi.app.assembly import Nexi
from nexi.app.request import RunRequest
from nexi.app.run import Run, RunOpening, RunResult, error_of, result_of
from nexi.errors import NexiError
from nexi.events import MAX_LOSSES, Event, Fact, RunFailed, RunStarted, encode, find_end, is_fact
from nexi.ports import RunStore
from nexi.runs.log_format import SCHEMA, DamagedLogError, LogHeader, LogState, ReadLog, state_of
from nexi.runs.session import Session
from nexi.tasks import wait_uninterrupted
from nexi.types import StopReason

if TYPE_CHECKING:
    from nexi.app.research_state import ResearchState

log = logging.getLogger("nexi.hosting")
DOOR = "http"
RESUMED = RunRequest("", door=DOOR)
MAX_RUNS = 8
MAX_ENDED_RUNS = 64
POLL_S = 0.5
MAX_DELTAS = 20_000  # a reader that comes later still finds them; beyond this only facts are kept
PACE_S = 0.05  # no eye sees the difference
READERS_AT_PACE = 10  # more readers get fewer and larger batches, so that however many there are, they cost a run little
_MARK = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class Mark(Struct, frozen=True):
    """A place in a feed: after so many facts, and so many deltas since the last of them. A fact has its number in the run log
    as its id; a delta after fact 7 has 7.1, 7.2 and so on."""

    fact: int = 0
    delta: int = 0

    def __str__(self) -> str:
        return f"{self.fact}.{self.delta}" if self.delta else str(self.fact)


class FeedItem(Struct, frozen=True, dict=True):
    """One event and its place."""

    mark: Mark
    event: Event

    @cached_property
    def frame(self) -> bytes:
        """The event as a server-sent event: JSON in ASCII, so that no text can break the frame."""
        data = json.dumps(encode(self.event), separators=(",", ":"))
        return f"id: {self.mark}\nevent: {self.event.kind}\ndata: {data}\n\n".encode("ascii")


def mark_of(text: str) -> Mark | None:
    """The place a Last-Event-ID names; None for what is no such id."""
    match = _MARK.fullmatch(text.strip())
    return Mark(int(match[1]), int(match[2] or 0)) if match else None


class Feed:
    """The events of one run, as far as it has come. One writer, any number of readers, one event loop. Facts can be read again
    from the log when the feed is gone; deltas live as long as the feed."""

    def __init__(self, before: Iterable[Fact] = (), *, pace_s: float = PACE_S) -> None:
        self._pace_s = pace_s
        self._items: list[FeedItem] = []
        self._after: list[int] = [0]  # by number of facts: the index of the first item after them
        self._deltas = 0
        self._here = Mark()
        self._changed = asyncio.Event()  # at once, for who follows each event
        self._due = asyncio.Event()  # now and then, for who takes them in batches
        self._bell: asyncio.TimerHandle | None = None
        self._rung = 0.0
        self._readers = 0
        self.has_ended = False
        for fact in before:
            self.put(fact)

    @property
    def fact_count(self) -> int:
        return self._here.fact

    def put(self, event: Event) -> None:
        fact = is_fact(event)
        if not fact:
            self._deltas += 1
            if self._deltas > MAX_DELTAS:
                return
        self._here = Mark(self._here.fact + 1) if fact else Mark(self._here.fact, self._here.delta + 1)
        self._items.append(FeedItem(self._here, event))
        if fact:
            self._after.append(len(self._items))
        self._wake_readers()
        if self._readers:
            self._set_bell()

    def end(self) -> None:
        """Nothing more will come."""
        self.has_ended = True
        self._wake_readers()
        self._ring_bell()

    async def follow(self, mark: Mark = Mark(), *, beat_s: float = 15.0) -> AsyncIterator[FeedItem | None]:  # noqa: B008
        """Every item after the mark, without gap or repeat, until the end; None when nothing came for a while."""
        index = self._index_after(mark)
        while True:
            while index < len(self._items):
                yield self._items[index]
                index += 1
            if self.has_ended:
                return
            if not await _is_set_within(self._changed, beat_s):
                yield None

    async def frames(self, mark: Mark = Mark(), *, beat_s: float = 15.0) -> AsyncGenerator[bytes, None]:  # noqa: B008
        """The same as server-sent events. Each is written once, however many read it, and what comes together goes together."""
        index = self._index_after(mark)
        self._readers += 1
        try:
            if self._readers > READERS_AT_PACE and not self.has_ended:
                self._set_bell()
                await self._due.wait()  # one of many begins with the next batch
            while not (self.has_ended and index == len(self._items)):
                due = self._due  # of now: what comes while a batch is on its way rings for the next
                if index < len(self._items):
                    batch, index = self._items[index:], len(self._items)
                    yield b"".join(item.frame for item in batch)
                if not self.has_ended and not await _is_set_within(due, beat_s):
                    yield b": still here\n\n"
        finally:
            self._readers -= 1

    def _set_bell(self) -> None:
        if self._bell is None:
            pace = self._pace_s * max(1.0, self._readers / READERS_AT_PACE)
            self._bell = asyncio.get_running_loop().call_at(self._rung + pace, self._ring_bell)

    def _ring_bell(self) -> None:
        """The next batch is due, for all readers at once."""
        if self._bell:
            self._bell.cancel()
        self._bell, self._rung = None, asyncio.get_running_loop().time()
        self._due.set()
        self._due = asyncio.Event()

    def _index_after(self, mark: Mark) -> int:
        if mark.fact >= len(self._after):
            return len(self._items)
        first = self._after[mark.fact]
        following = self._after[mark.fact + 1] - 1 if mark.fact + 1 < len(self._after) else len(self._items)
        return min(first + mark.delta, following)

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


class HostedRun:
    """One run in this process, and its feed."""

    def __init__(self, run: Run, created: str, task: asyncio.Task[Any]) -> None:
        self.run, self.id, self.created, self.task = run, run.id, created, task
        self.feed = Feed(run.recorded.facts if run.recorded.log else ())

    def as_log(self) -> ReadLog:
        """What its log holds, or would if it could be kept."""
        return ReadLog(LogHeader(SCHEMA, self.id, self.created, ""), list(enumerate(self.run.facts, 1)))

    async def wait(self, timeout_s: float | None = None) -> None:
        await asyncio.wait([self.task], timeout=timeout_s)

    async def wait_for_result(self) -> RunResult:
        """The result of the run. Raises its error."""
        await self.wait()
        return self.run.result()

    async def cancel(self) -> None:
        """End it now, and wait until its log is closed."""
        if not self.task.done():
            self.task.cancel()
            await self.wait()


class RunSnapshot(Struct, frozen=True):
    """A run as it stands, wherever it is."""

    log: ReadLog
    state: LogState

    @property
    def id(self) -> str:
        return self.log.header.run

    @property
    def created(self) -> str:
        return self.log.header.created

    @property
    def facts(self) -> tuple[Fact, ...]:
        return self.log.bare_facts

    @property
    def start_fact(self) -> RunStarted:
        first = self.log.facts[0][1] if self.log.facts else None
        return first if isinstance(first, RunStarted) else RunStarted("", "", "")

    @property
    def research_state(self) -> ResearchState:
        from nexi.app.research_state import fold

        return fold(self.facts if self.start_fact.mode == "research" else ())

    def failure(self) -> NexiError | None:
        """Why it failed; what a person stopped did not fail."""
        end = find_end(self.facts)
        return error_of(end) if isinstance(end, RunFailed) and end.stop is not StopReason.CANCELLED else None

    def result(self) -> RunResult | None:
        return result_of(self.id, self.facts) if self.state == "finished" else None


class RunRegistry:
    """The runs of one process: how many there may be, who follows them, and how they end with it."""

    def __init__(
        self,
        *,
        max_runs: int = MAX_RUNS,
        max_ended: int = MAX_ENDED_RUNS,
        observe: Callable[[Event, str], None] = lambda event, mode: None,
        watch: Callable[[Run], Coroutine[Any, Any, None]],
    ) -> None:
        """`observe` is shown every event of every run, with its mode; `watch` is at work beside each run, and may abort it."""
        self.draining = False
        self._max_runs, self._max_ended, self._observe, self._watch = max_runs, max_ended, observe, watch
        self._tasks: set[asyncio.Task[None]] = set()  # of runs, also of those that are being opened
        self._active: dict[str, HostedRun] = {}
        self._ended: OrderedDict[str, HostedRun] = OrderedDict()
        self._room = asyncio.Event()

    @property
    def active(self) -> int:
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        return self.active >= self._max_runs

    @property
    def active_ids(self) -> list[str]:
        return list(self._active)

    def get(self, run_id: str) -> HostedRun | None:
        """A run of this process that is under way, or ended a short while ago."""
        return self._active.get(run_id) or self._ended.get(run_id)

    def get_active(self, run_id: str) -> HostedRun | None:
        return self._active.get(run_id)

    def forget(self, run_id: str) -> None:
        self._ended.pop(run_id, None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that is to open and `drive` a run, and takes its place from now on."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._room.set())
        return task

    async def begin(self, opening: RunOpening, created: str) -> HostedRun:
        """Drive a run in a task of its own; its first fact is in its log when this returns. Raises what keeps it from that."""
        ready: asyncio.Future[HostedRun] = asyncio.get_running_loop().create_future()
        self.spawn(self._drive_alone(opening, created, ready))
        return await asyncio.shield(ready)

    async def _drive_alone(self, opening: RunOpening, created: str, ready: asyncio.Future[HostedRun]) -> None:
        try:
            await self.drive(opening, created, ready)
        except asyncio.CancelledError:
            ready.cancel()
        except Exception as error:
            if ready.done():
                log.exception("a run failed", extra={"run": ready.result().id})
            else:
                ready.set_exception(error)

    async def drive(self, opening: RunOpening, created: str = "", ready: asyncio.Future[HostedRun] | None = None) -> None:
        """A run from its first fact to its last, in the task of the caller. Raises what is not in its facts as its end."""
        hosted: HostedRun | None = None

        def publish(event: Event) -> None:
            if hosted:
                hosted.feed.put(event)
                self._observe(event, hosted.run.mode)
                if ready and hosted.feed.fact_count and not ready.done():
                    ready.set_result(hosted)  # not before: a log without its first fact cannot be resumed after a kill

        try:
            async with opening as run:
                task = cast("asyncio.Task[Any]", asyncio.current_task())
                hosted = self._active[run.id] = HostedRun(run, created, task)
                watching = asyncio.create_task(self._watch(run))
                try:
                    await run.drive(publish)
                finally:
                    watching.cancel()
        except asyncio.CancelledError:
            log.info("run cancelled", extra={"run": hosted.id if hosted else ""})
            raise
        else:
            if ready and not ready.done():
                ready.set_result(hosted)
        finally:
            if hosted:
                for fact in hosted.run.facts[hosted.feed.fact_count :]:
                    publish(fact)
                hosted.feed.end()
                del self._active[hosted.id]
                self._ended[hosted.id] = hosted
                while len(self._ended) > self._max_ended:
                    self._ended.popitem(last=False)

    async def drain(self, patience_s: float) -> None:
        """Take nothing new, give what is under way some time, and leave open in their logs the runs that are resumed."""
        self.draining = True
        if self._tasks and patience_s > 0:
            await asyncio.wait(self._tasks, timeout=patience_s)
        runs = list(self._active.values())
        for hosted in runs:
            if hosted.run.request.door == DOOR:
                hosted.run.suspend()
                log.info("run left open", extra={"run": hosted.id})
            hosted.task.cancel()
        for hosted in runs:
            await wait_uninterrupted(hosted.task)

    async def close(self) -> None:
        opening = self._tasks - {hosted.task for hosted in self._active.values()}
        for task in opening:
            task.cancel()
        await self.drain(0)
        for task in opening:
            await wait_uninterrupted(task)


class _QueuedRun(Struct, frozen=True):
    """A run that a worker of a team server does, as the one who asked for it gets it back."""

    id: str
    created: str


class _RunQueue(Protocol):
    """Where a team server leaves runs for its workers."""

    async def submit(self, request: RunRequest) -> str: ...

    async def resubmit(self, run_id: str) -> None: ...


class _RunMetrics(Protocol):
    """Counts what runs do."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...

    def observe(self, event: Event, mode: str = "search") -> None: ...


class RunHost(RunRegistry):
    """Every run of one server. With a `queue`, runs that outlive their request are left to workers."""

    def __init__(
        self,
        nexi: Nexi,
        metrics: _RunMetrics | None = None,
        *,
        max_runs: int = MAX_RUNS,
        max_ended: int = MAX_ENDED_RUNS,
        queue: _RunQueue | None = None,
    ) -> None:
        observe = metrics.observe if metrics else lambda event, mode: None
        super().__init__(max_runs=max_runs, max_ended=max_ended, observe=observe, watch=self._watch_for_cancel)
        self.nexi, self.metrics, self._queue = nexi, metrics, queue
        self._left: dict[str, str] | None = None  # runs to resume, with their times; None until they are known
        self._resuming: asyncio.Task[None] | None = None

    def will_resume(self, run_id: str) -> bool:
        """Whether an unfinished run, left by an earlier server, may still be resumed by this one."""
        return not self.draining and (self._left is None or run_id in self._left)

    # starting

    async def start(self, request: RunRequest, session: Session | None = None) -> HostedRun:
        """Begin a run; its first fact is in its log when this returns. Raises NexiError, with the code busy without room."""
        self._require_room()
        log.debug("question", extra={"question": request.question, "mode": request.mode})
        self._count_start(request)
        return await self.begin(self.nexi.run(request, session=session), self._now())

    async def submit(self, request: RunRequest) -> HostedRun | _QueuedRun:
        """Begin a run that goes on when its client leaves: here, or in a worker. Raises NexiError."""
        if self._queue is None or request.holds_plan:  # a plan is settled where its run is
            return await self.start(request)
        if self.draining:
            self._require_room()
        self.nexi.check_request(request)
        if request.continues:
            await asyncio.to_thread(self.nexi.runs().open_log, request.continues)  # somebody else's is refused here already
        request = await self.nexi.admit(request, is_queued=True)
        self._count_start(request)
        return _QueuedRun(await self._queue.submit(request), self._now())

    async def resume(self, run_id: str) -> HostedRun | _QueuedRun:
        """Go on with a run of this home, within the limits it was asked with. Raises NexiError."""
        self._require_room()
        read = await asyncio.to_thread(self.nexi.runs().open_log, run_id)
        if self._queue and not read.has_ended:
            await self._queue.resubmit(run_id)
            return _QueuedRun(run_id, read.header.created)
        self.forget(run_id)
        created = self._now() if read.has_ended else read.header.created
        return await self.begin(self.nexi.resume(run_id, changes=RESUMED), created)

    def _require_room(self) -> None:
        if self.draining or self.is_full:
            raise NexiError("the server has all the runs it can carry", fix="ask again soon", code="busy")

    def _count_start(self, request: RunRequest) -> None:
        if self.metrics:
            self.metrics.count("nexi_runs_started_total", mode=request.mode)

    def _now(self) -> str:
        return self.nexi.clock.now().isoformat(timespec="milliseconds")

    # runs of this process and of others

    async def open_log(self, run_id: str) -> ReadLog:
        """The log of a run; its facts as this process has them, where the log could not be kept. Raises StoreError."""
        try:
            return await asyncio.to_thread(self.nexi.runs().open_log, run_id)
        except NexiError:
            if (hosted := self.get(run_id)) is None:
                raise
            return hosted.as_log()

    async def snapshot_of(self, run_id: str, *, reads_damaged: bool = False) -> RunSnapshot:
        """A run as it stands: by its facts while it is here, else by its log. Raises StoreError."""
        if hosted := self.get_active(run_id):
            return RunSnapshot(hosted.as_log(), "running")
        is_running = await asyncio.to_thread(self.nexi.runs().is_running, run_id)  # it may end before its log is read
        try:
            read = await self.open_log(run_id)
        except DamagedLogError as error:
            if not (reads_damaged and error.readable):
                raise
            read = error.readable
        return RunSnapshot(read, state_of(read.bare_facts, is_running=is_running))

    async def stop(self, run_id: str) -> bool:
        """Ask a run, here or in another process, for its answer now; False where it is not running. Raises StoreError."""
        if hosted := self.get_active(run_id):
            hosted.run.stop()
            return True
        return await asyncio.to_thread(self.nexi.runs().request_stop, run_id)

    # the life of the server

    def open(self, *, resumes: bool = True) -> None:
        """Take runs, and resume those that an earlier server left."""
        self.draining = False
        if not resumes or self._queue:
            self._left = {}  # a queue has them for the workers
        else:
            self._resuming = asyncio.create_task(self._resume_left_runs())

    async def _resume_left_runs(self) -> None:
        runs: dict[str, str] = {}
        try:
            runs = await asyncio.to_thread(_find_left_runs, self.nexi.runs())
        finally:
            self._left = runs
        for run_id, created in list(runs.items()):
            try:
                while self.is_full and not self.draining:
                    self._room.clear()
                    await self._room.wait()
                read = await asyncio.to_thread(self.nexi.runs().open_log, run_id)
                if not (self.draining or read.has_ended):  # another server may have been faster
                    log.info("run resumed", extra={"run": run_id})
                    await self.begin(self.nexi.resume(run_id, changes=RESUMED), created)
            except NexiError as error:
                log.warning("run not resumed", extra={"run": run_id, "why": str(error), "code": error.code})
            finally:
                del runs[run_id]

    async def _watch_for_cancel(self, run: Run) -> None:
        """Another process of the same home asks with a file that a run of ours be cancelled."""
        runs = self.nexi.runs()
        while True:
            await asyncio.sleep(POLL_S)
            if await asyncio.to_thread(runs.is_cancel_requested, run.id):
                return run.abort()

    async def close(self) -> None:
        if self._resuming:
            self._resuming.cancel()
            await wait_uninterrupted(self._resuming)
        await super().close()


def _find_left_runs(runs: RunStore) -> dict[str, str]:
    """The ids of the runs that a server began, left open and may go on with, and the times at which they began."""
    times = {}
    for summary in runs.list_runs(state="unfinished"):
        try:
            read = runs.open_log(summary.id)
        except NexiError as error:
            log.warning("run not resumed", extra={"run": summary.id, "why": str(error), "code": error.code})
            continue
        started = RunSnapshot(read, "unfinished").start_fact
        if started.settings.get("door") == DOOR and read.resumes_without_progress < MAX_LOSSES:
            times[summary.id] = read.header.created
    return times
