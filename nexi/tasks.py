"""Waiting for a task that must not be left behind.

Engines and the assembly use it where a cancellation would otherwise interrupt a step halfway: a fact that is only partly
committed, a tool that started and never finished. Pure asyncio; what the tasks do is not known here.
"""

from __future__ import annotations

import asyncio
from typing import Any


async def wait_uninterrupted(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended. A cancellation of the caller is postponed until its next await."""
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            was_cancelled = True
    caller = asyncio.current_task()
    if was_cancelled and caller:
        caller.uncancel()  # the request stays counted once, as `asyncio.timeout` and task groups expect
        caller.cancel()
