"""MCP inside `nexi serve`: `/mcp`, begun by the first request to it, so that a server without MCP clients starts without it.

The guard stands in front, so the endpoint wants no token of its own. Below, `nexi.mcp` says how to install its library.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from nexi.app import Nexi

if TYPE_CHECKING:
    from nexi.mcp import HttpDoor


class McpDoor:
    """The endpoint, and the task that owns its sessions."""

    def __init__(self, nexi: Nexi) -> None:
        self._nexi = nexi
        self._door: HttpDoor | None = None
        self._making = asyncio.Lock()
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Its library takes a moment to load, in which others are served. Raises ConfigError where it is missing."""
        async with self._making:  # two first requests make one door
            if self._door is None:
                door, running = await asyncio.to_thread(_build_door, self._nexi), asyncio.Event()
                self._owner = asyncio.create_task(self._run_session_group(door, running))
                await running.wait()
                self._door = door
        await self._door.app(scope, receive, send)

    async def _run_session_group(self, door: HttpDoor, running: asyncio.Event) -> None:
        """A session group must be left by the task that entered it."""
        async with door.run_sessions():
            running.set()
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._owner:
            await asyncio.wait([self._owner])


def _build_door(nexi: Nexi) -> HttpDoor:
    from nexi.mcp import HttpDoor

    return HttpDoor(nexi, guarded=True)
