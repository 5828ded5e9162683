"""Research that goes on after the call that began it, and every run that a client may ask about.

Above are the tools and resources; below are `Nexi` and the run log. A run of this process is known by its facts, any other by
its log, so that a client may ask another server, or the same one after a restart. How a state is shown is not known here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from nexi.app import DamagedLogError, Nexi, Run, RunOpening, RunRequest, RunResult, RunSummary, error_of, result_of
from nexi.app.research_state import ResearchState, fold
from nexi.errors import NexiError, ResearchError, StoreError
from nexi.events import Fact, RunFailed, RunStarted, find_end
from nexi.runs.log_format import LogState, state_of
from nexi.types import StopReason

log = logging.getLogger("nexi.mcp")
AT_ONCE = 4
REMEMBERED = 20
LISTED = 20


class RunSnapshot(Struct, frozen=True):
    """A run as it stands: its facts, and whether somebody is at work on it."""

    id: str
    facts: tuple[Fact, ...]
    state: LogState
    created: str = ""

    @property
    def start_fact(self) -> RunStarted:
        first = self.facts[0] if self.facts else None
        return first if isinstance(first, RunStarted) else RunStarted("", "", "")

    @property
    def research_state(self) -> ResearchState:
        return fold(self.facts) if self.start_fact.mode == "research" else fold(())

    def failure(self) -> NexiError | None:
        """Why it failed; what a person stopped did not fail."""
        end = find_end(self.facts)
        return error_of(end) if isinstance(end, RunFailed) and end.stop is not StopReason.CANCELLED else None

    def result(self) -> RunResult | None:
        return result_of(self.id, self.facts) if self.state == "finished" else None


class ResearchRunRegistry:
    """Owns the research runs of one server; they end with it."""

    def __init__(self, nexi: Nexi) -> None:
        self.nexi = nexi
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._runs: dict[str, Run] = {}
        self._ended: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def accept_runs(self) -> AsyncIterator[None]:
        """While this block runs, research can be begun; leaving it cancels what still runs and waits for it."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                for task in list(self._tasks.values()):
                    task.cancel()

    async def begin(self, request: RunRequest) -> str:
        """Start a research run and return its id. Raises NexiError."""
        if self._group is None:
            raise ResearchError("no research can be started", cause="the server is shutting down", fix="start it again")
        if len(self._tasks) >= AT_ONCE:
            raise ResearchError(
                "no more research can be started now",
                cause=f"{len(self._tasks)} runs are running: {', '.join(self._tasks)}",
                fix="wait for one of them, or end one with nexi_research_cancel",
            )
        began: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._group.create_task(self._follow_run(self.nexi.run(request), began))
        return await asyncio.shield(began)

    async def _follow_run(self, opening: RunOpening, began: asyncio.Future[str]) -> None:
        run_id = ""
        try:
            async with opening as run:
                run_id = run.id
                self._register_run(run)
                began.set_result(run.id)
                async for _ in run:
                    pass
        except Exception as error:  # noqa: BLE001 - the edge of a background task: a fault in one run must not end the others
            if not began.done():
                began.set_exception(error)
            else:
                log.error("research %s broke: %s", run_id, type(error).__name__)  # noqa: TRY400 - no traceback on stderr
        finally:
            began.cancel()  # where the run never began
            if run_id in self._tasks:
                del self._tasks[run_id]
                self._ended[run_id].set()

    def _register_run(self, run: Run) -> None:
        task = asyncio.current_task()
        if task is None:
            raise ResearchError("research runs in a task")
        self._tasks[run.id], self._runs[run.id], self._ended[run.id] = task, run, asyncio.Event()
        for old in [known for known in self._runs if known not in self._tasks][: max(0, len(self._runs) - REMEMBERED)]:
            del self._runs[old], self._ended[old]

    async def wait_for_end(self, run_id: str, seconds: float) -> None:
        """Wait until a run has ended, but no longer than that; a run of another process is looked at once."""
        if run_id in self._ended and seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._ended[run_id].wait()
            except TimeoutError:
                return

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run of this server and wait for its clean-up; False when it is not one."""
        task = self._tasks.get(run_id)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def stop(self, run_id: str) -> bool:
        """Ask a run, here or in another process, to write its report from what it has. Raises StoreError."""
        if run_id in self._tasks:
            self._runs[run_id].stop()
            return True
        return await asyncio.to_thread(self.nexi.runs().request_stop, run_id)

    async def snapshot_of(self, run_id: str) -> RunSnapshot:
        """A run as it stands. Raises StoreError when there is none."""
        if run := self._runs.get(run_id):
            return RunSnapshot(run_id, run.facts, state_of(run.facts, is_running=run_id in self._tasks), self._today())
        return await asyncio.to_thread(self._read_snapshot, run_id)

    async def require_result(self, run_id: str) -> None:
        """Refuse a run that has no answer, with what can be done about it. Raises StoreError."""
        seen = await self.snapshot_of(run_id)
        if seen.result() is None:
            fix = "wait for it" if seen.state == "running" else f"resume it: nexi resume {run_id}"
            raise StoreError(f"run {run_id} has no answer", cause=f"it is {seen.state}", fix=fix)

    def _read_snapshot(self, run_id: str) -> RunSnapshot:
        runs = self.nexi.runs()
        try:
            log = runs.open_log(run_id)
        except DamagedLogError as error:
            if error.readable is None:
                raise
            log = error.readable
        facts = log.bare_facts
        return RunSnapshot(run_id, facts, state_of(facts, is_running=runs.is_running(run_id)), log.header.created)

    def _today(self) -> str:
        return self.nexi.clock.now().isoformat()

    async def latest_runs(self, count: int = LISTED) -> Sequence[RunSummary]:
        """Past runs, newest first; none where the folder cannot be read."""
        try:
            return await asyncio.to_thread(self.nexi.runs().list_runs, count)
        except (OSError, StoreError):
            return ()
