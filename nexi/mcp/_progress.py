"""Following work from inside a tool call: progress to the client, and an end when the client cancels.

Above are the tools; below are a run's events and the SDK's request. What an event means to a person is `output.status`'s word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import Context

from nexi.events import Event
from nexi.mcp._views import replace_surrogates
from nexi.output.status import detail_of, progress_of, status_of
from nexi.text.controls import clean_line

T = TypeVar("T")
MESSAGE_CHARS = 300


class ProgressReporter:
    """Progress of one tool call. The count only rises, as the protocol asks; a client that left is told no more."""

    def __init__(self, ctx: Context[Any, Any], *, verbose: bool = False) -> None:
        self._ctx, self._verbose = ctx, verbose
        self._count, self._gone = 0.0, False
        self.lines: list[str] = []

    async def handle_event(self, event: Event) -> None:
        """Tell of an event what a person waiting would like to know."""
        text = detail_of(event)[0] if self._verbose else (progress_of(event) or status_of(event))
        line = replace_surrogates(clean_line(text)[:MESSAGE_CHARS])
        if not line or line == (self.lines[-1] if self.lines else ""):
            return
        self.lines.append(line)
        await self.report_progress(self._count + 1, None, line)

    async def report_progress(self, progress: float, total: float | None, message: str) -> None:
        if self._gone or progress <= self._count:
            return
        self._count = progress
        try:
            await self._ctx.report_progress(progress, total, message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._gone = True


async def run_cancellable_once(work: Coroutine[Any, Any, T]) -> T:
    """Work in a task of its own, cancelled once and awaited when the request is cancelled.

    The SDK cancels a handler again and again until it is gone, which would tear the clean-up of a run.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
