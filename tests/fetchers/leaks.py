"""What a block leaves behind: tasks, sockets and child processes that were not there before it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
SETTLING_S = 2.0


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
    """Every task and descriptor of the block is gone when it ends, once the loop has run what was already due."""
    tasks, before = asyncio.all_tasks(), descriptors()
    yield
    async with asyncio.timeout(SETTLING_S):
        while asyncio.all_tasks() - tasks or descriptors() - before:
            gc.collect()
            await asyncio.sleep(0)
