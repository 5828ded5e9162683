"""The log of a run, `runs/<id>/log.jsonl`, written under a lock that is held for life; in memory where the disk refuses."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from nexi import events, files
from nexi.events import Fact
from nexi.ports import Clock
from nexi.runs.log_format import encode_fact, new_run_id


class FileRunLog:
    """A run's log, open for writing. Made by RunDirectory. `worked` are the seconds that earlier writers of it have worked."""

    def __init__(self, path: Path, fd: int, clock: Clock, *, count: int = 0, worked: float = 0.0) -> None:
        self.path, self._fd, self._clock = path, fd, clock
        self._began = clock.monotonic() - worked
        self._count, self._end = count, os.fstat(fd).st_size
        self._torn = self._ended = self._closed = self._named = False
        self._flushing: _Flush | None = None  # under way
        self._next: _Flush | None = None  # begins when that has ended; who comes meanwhile shares it

    @property
    def run_id(self) -> str:
        return self.path.parent.name

    async def append(self, fact: Fact) -> int:
        """Commit a fact; what costs money or ends the run is on the disk when this returns. Facts at once share a flush."""
        if self._closed:
            raise ValueError(f"the log of run {self.run_id} is closed")
        if self._ended:
            raise ValueError(f"run {self.run_id} has ended: nothing may follow its terminal fact")
        elapsed = max(0.0, self._clock.monotonic() - self._began)
        line = encode_fact(self._count + 1, self._clock.now(), elapsed, fact)
        self._write_line(line)
        self._count += 1
        number, self._ended = self._count, isinstance(fact, events.TERMINAL)
        if not isinstance(fact, events.DURABLE):
            return number
        if self._next is None:
            self._next = _Flush(number, self._end - len(line))
            self._next.task = asyncio.ensure_future(self._flush_to_disk(self._next, self._flushing))
        flush = self._next
        # A cancelled caller leaves the line in place: it was written, and its number is taken. Unlike awaiting the task, a
        # cancelled wait leaves the flush alone.
        await asyncio.wait([flush.task])
        if flush.failure:
            raise files.store_error(f"Could not flush the log of run {self.run_id}", self.path, flush.failure)
        return number

    def stop_requested(self) -> bool:
        return (self.path.parent / "stop").exists()

    def explain_stop(self) -> str:
        return ""

    async def close(self) -> None:
        """Give up the file and its lock. Closing twice is harmless."""
        while flush := self._next or self._flushing:
            await asyncio.wait([flush.task])
        if not self._closed:
            self._closed = True
            os.close(self._fd)

    def _write_line(self, line: bytes) -> None:
        with files.translate_os_errors(f"Could not write the log of run {self.run_id}", self.path):
            self._cut_torn_line()
            self._torn = True
            try:
                files.write_all(self._fd, line)
            except OSError:
                with suppress(OSError):  # the next append tries again before it writes
                    self._cut_torn_line()
                raise
        self._torn = False
        self._end += len(line)

    def _cut_torn_line(self) -> None:
        """Cut a torn line off; a number is only ever written once."""
        if self._torn:
            os.ftruncate(self._fd, self._end)

    async def _flush_to_disk(self, mine: _Flush, before: _Flush | None) -> None:
        if before:
            await asyncio.wait([before.task])
        self._flushing, self._next = mine, None
        try:
            if before and before.failure:
                mine.failure = before.failure  # what was to be flushed went with the lines before it
                return
            await asyncio.get_running_loop().run_in_executor(None, self._sync_now)
        except OSError as error:
            mine.failure = error
            # facts whose flush failed were refused to their callers, so they are not in the log either
            self._count, self._end = mine.number - 1, mine.start
            self._ended = False
            self._torn = True
            with suppress(OSError):
                self._cut_torn_line()
        finally:
            self._flushing = None

    def _sync_now(self) -> None:
        os.fsync(self._fd)
        if not self._named:
            files.sync_directory(self.path.parent)
            files.sync_directory(self.path.parent.parent)
            self._named = True


class _Flush:
    """One wait for the disk: from the fact `number`, whose line begins at the byte `start`, to the last that was written."""

    def __init__(self, number: int, start: int) -> None:
        self.number = number
        self.start = start
        self.failure: OSError | None = None
        self.task: asyncio.Future[None]


class MemoryRunLog:
    """A log that lasts as long as the process: for a disk that is full or read-only. `after` continues another's numbers."""

    def __init__(self, run_id: str = "", *, after: int = 0) -> None:
        self.run_id = run_id or new_run_id()
        self._after = after
        self.facts: list[Fact] = []

    async def append(self, fact: Fact) -> int:
        if self.facts and isinstance(self.facts[-1], events.TERMINAL):
            raise ValueError(f"run {self.run_id} has ended: nothing may follow its terminal fact")
        self.facts.append(fact)
        return self._after + len(self.facts)

    def stop_requested(self) -> bool:
        return False

    def explain_stop(self) -> str:
        return ""

    async def close(self) -> None:
        return
