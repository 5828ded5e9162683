"""Hosting: runs that live in the server, whoever listens.

A run that was asked for over HTTP goes on when its client leaves; it is left open in its log when the server ends, and taken
up again when one starts. A run that answers a request which waits for it ends with that request. Above are `runs` and
`openai`; below are `Nexi` and the run log, whose lock decides between servers that share a home.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from nexi.app import AS_CONFIGURED, Nexi, Run, RunResult, SearchOptions
from nexi.app.options import options_from
from nexi.errors import NexiError, StoreError
from nexi.events import Event, RunResumed, RunStarted
from nexi.runs.log_format import ReadLog
from nexi.runs.session import Session
from nexi.values import frozen
from nexi.web.feeds import Feed
from nexi.web.metrics import Metrics
from nexi.web.problems import refused

log = logging.getLogger("nexi.web")
DOOR = "http"
MOST_RUNS = 8
KEPT = 64
MOST_RESUMES = 3  # a run that ends the server each time is left alone
POLL_S = 0.5


@frozen
class Order:
    """What a client asks for."""

    mode: str
    question: str
    options: SearchOptions = AS_CONFIGURED
    depth: int = 0
    held: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)


class Hosted:
    """One run in this server, and its feed."""

    def __init__(self, run: Run, created: str = "") -> None:
        self.run = run
        self.feed = Feed(run.past.facts if run.past.log else ())
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self.created = created or run.nexi.clock.now().isoformat(timespec="milliseconds")

    @property
    def id(self) -> str:
        return self.run.id

    async def ended(self) -> RunResult:
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


class RunHost:
    """Every run of one server."""

    def __init__(self, nexi: Nexi, metrics: Metrics, *, most: int = MOST_RUNS) -> None:
        self.nexi, self.metrics, self.draining = nexi, metrics, False
        self._most = most
        self._active: dict[str, Hosted] = {}
        self._kept: OrderedDict[str, Hosted] = OrderedDict()
        self._room = asyncio.Event()
        self._starting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def active(self) -> int:
        return len(self._active) + self._starting

    @property
    def is_full(self) -> bool:
        return self.active >= self._most

    def get(self, run_id: str) -> Hosted | None:
        """A run of this server that is under way, or ended a short while ago."""
        return self._active.get(run_id) or self._kept.get(run_id)

    def is_active(self, run_id: str) -> bool:
        return run_id in self._active

    async def start(self, order: Order, session: Session | None = None) -> Hosted:
        """Begin a run; it has its id and its log when this returns. Raises Refused when there is no room."""
        self._require_room()
        log.debug("question", extra={"question": order.question, "mode": order.mode})
        self.metrics.count("nexi_runs_started_total", mode=order.mode)
        return await self._begin(lambda: self._made(order, session))

    def _require_room(self) -> None:
        if self.draining or self.is_full:
            raise refused(503, "busy", "the server has all the runs it can carry", fix="ask again soon", retry_after=5)

    async def resume(self, run_id: str) -> Hosted:
        """Go on with a run of this home, within the limits it was asked with. Raises Refused or StoreError."""
        self._require_room()
        read = await asyncio.to_thread(self.nexi.runs().open_log, run_id)
        run = await self.nexi.resume(run_id, options=_asked(read))
        self.forget(run_id)
        return await self._begin(lambda: run, read.header.created if run.past.log else "")

    def _made(self, order: Order, session: Session | None) -> Run:
        if order.mode == "research":
            depth, held = order.depth, order.held
            return self.nexi.research(order.question, depth=depth, options=order.options, session=session, held=held)
        if order.mode == "agentic":
            return self.nexi.agentic(order.question, options=order.options, **order.asked)
        return self.nexi.search(order.question, options=order.options, session=session)

    async def _begin(self, make: Callable[[], Run], created: str = "") -> Hosted:
        hosted = Hosted(make(), created)
        self._starting += 1
        hosted.task = self._spawn(self._conduct(hosted))
        try:
            await asyncio.shield(hosted.begun)
        finally:
            self._starting -= 1
        return hosted

    async def _conduct(self, hosted: Hosted) -> None:
        """A run from its first fact to its last. Its own faults are in its facts; what escapes them ends here."""
        run, feed = hosted.run, hosted.feed
        try:
            async with run:
                self._active[run.id] = hosted
                hosted.begun.set_result(None)
                async for event in run:
                    self._tell(hosted, event)
        except asyncio.CancelledError:
            log.info("run broken off", extra={"run": run.id})
        except Exception as error:
            log.exception("a run broke", extra={"run": run.id})
            if not hosted.begun.done():
                hosted.begun.set_exception(error)
        finally:
            for fact in run.facts[feed.facts :] if run.id else ():
                self._tell(hosted, fact)
            feed.end()
            self._retire(hosted)

    def _tell(self, hosted: Hosted, event: Event) -> None:
        hosted.feed.put(event)
        self.metrics.observe(event, hosted.run.mode)

    def _retire(self, hosted: Hosted) -> None:
        self._active.pop(hosted.id, None)
        self._kept[hosted.id] = hosted
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self._room.set()

    def forget(self, run_id: str) -> None:
        self._kept.pop(run_id, None)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # the life of the server

    def open(self) -> None:
        """Take up the runs an earlier server left, and listen for what other processes ask."""
        self._spawn(self._take_up())
        self._spawn(self._watch())

    async def _take_up(self) -> None:
        runs = self.nexi.runs()
        for summary in await asyncio.to_thread(runs.list_runs):
            if summary.state != "unfinished":
                continue
            try:
                read = await asyncio.to_thread(runs.open_log, summary.id)
                if options := _left_open(read):
                    await self._resume(summary.id, options, read.header.created)
            except NexiError as error:
                log.warning("run not taken up", extra={"run": summary.id, "why": str(error), "code": error.code})

    async def _resume(self, run_id: str, options: SearchOptions, created: str) -> None:
        while self.is_full and not self.draining:
            self._room.clear()
            await self._room.wait()
        if not self.draining:
            run = await self.nexi.resume(run_id, options=options)
            log.info("run taken up", extra={"run": run_id})
            await self._begin(lambda: run, created)

    async def _watch(self) -> None:
        """Another server of the same home asks with a file that a run of ours be cancelled."""
        while not self.draining:
            await asyncio.sleep(POLL_S)
            for hosted in list(self._active.values()):
                if self._wish(hosted.id).exists():
                    await hosted.cancel()

    def request_cancel(self, run_id: str) -> None:
        """Ask the process that has this run to cancel it. Raises StoreError."""
        try:
            self._wish(run_id).touch(mode=0o600)
        except OSError as error:
            raise StoreError(f"Could not ask for the end of run {run_id}", cause=str(error), fix="try again") from error

    def _wish(self, run_id: str) -> Path:
        return self.nexi.config.runs_dir / run_id / "cancel"

    async def drain(self, patience_s: float) -> None:
        """Take nothing new, give what is under way some time, and leave the rest open in its log."""
        self.draining = True
        tasks = [h.task for h in self._active.values() if h.task]
        if tasks and patience_s > 0:
            await asyncio.wait(tasks, timeout=patience_s)
        for hosted in list(self._active.values()):
            if hosted.run.options.door == DOOR:
                hosted.run.suspend()
                log.info("run left open", extra={"run": hosted.id})
            await hosted.cancel()

    async def close(self) -> None:
        await self.drain(0)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _left_open(read: ReadLog) -> SearchOptions | None:
    """How to go on with a run that a server began; None for a run that is not ours to take up."""
    first = read.facts[0][1] if read.facts else None
    if not isinstance(first, RunStarted) or first.settings.get("door") != DOOR:
        return None
    if sum(isinstance(fact, RunResumed) for _, fact in read.facts) >= MOST_RESUMES:
        return None
    return _asked(read)


def _asked(read: ReadLog) -> SearchOptions:
    """The limits a run was begun with, as far as its log says."""
    first = read.facts[0][1] if read.facts else None
    asked = first.settings.get("asked") if isinstance(first, RunStarted) else None
    return options_from(asked if isinstance(asked, dict) else {}, DOOR)
