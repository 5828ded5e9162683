"""Changes in a folder, as the operating system tells of them: inotify on Linux, and a look every two seconds elsewhere.

A kernel that gives no watch (a limit reached, a network drive of another machine) is made up for by looking.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nexi.ports import Clock

LOOK_S = 2.0
LOOK_ANYWAY_S = 60.0  # with a watch: a network drive does not tell what other machines write
SETTLE_S = 0.2  # a program saves a file in several steps
# Written and closed, moved in or out, made, deleted, attributes: of the files of a folder.
MASK = 0x00000008 | 0x00000040 | 0x00000080 | 0x00000100 | 0x00000200 | 0x00000004


class FolderEvents:
    """A block in which changes below a folder can be waited for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = asyncio.Event()
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._descriptor = -1

    def __enter__(self) -> FolderEvents:
        if self._libc:
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor >= 0:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read_events)
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def watch(self, folders: Iterable[Path]) -> None:
        """Watch these folders as well; one that is watched already stays so."""
        for folder in folders:
            if self._descriptor < 0 or self._libc is None:
                return
            if self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), MASK) < 0 and folder.is_dir():
                self._close()

    async def wait(self) -> None:
        """Wait until something may have changed."""
        if self._descriptor < 0:
            await self._clock.sleep(LOOK_S)
            return
        tasks = [asyncio.ensure_future(work) for work in (self._changed.wait(), self._clock.sleep(LOOK_ANYWAY_S))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._changed.is_set():
            await self._clock.sleep(SETTLE_S)
            self._changed.clear()

    def _read_events(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._descriptor, 65_536):
                self._changed.set()

    def _close(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1
