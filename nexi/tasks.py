"""Waiting for a task that must not be left behind.

Engines and the assembly use it where a cancellation would otherwise tear a step in two: a fact half committed, a tool that
started and never finished. Pure asyncio; what the tasks do is not known here.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def to_the_end(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended. A cancellation of the caller is put off: it learns of it at its next wait."""
    put_off = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            put_off = True
    caller = asyncio.current_task()
    if put_off and caller:
        caller.uncancel()  # the request stays counted once, as `asyncio.timeout` and task groups expect
        caller.cancel()
