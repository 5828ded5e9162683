"""What a block leaves behind: tasks, sockets and child processes that were not there before it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
MAX_WAIT_S = 60.0  # only a leak takes so long, on however busy a machine


def descriptors() -> set[str]:
    """What is open: sockets and pipes by their number in the kernel. Empty where the system does not show it."""
    found = set()
    for link in list(DESCRIPTORS.iterdir()) if DESCRIPTORS.exists() else ():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(("socket:", "pipe:")):
            found.add(target)
    return found


@asynccontextmanager
async def no_leaks() -> AsyncIterator[None]:
    """Every task and descriptor of the block is gone soon after it ends."""
    tasks, before = asyncio.all_tasks(), descriptors()
    yield
    async with asyncio.timeout(MAX_WAIT_S):
        while asyncio.all_tasks() - tasks or descriptors() - before:
            gc.collect()
            await asyncio.sleep(0.005)
