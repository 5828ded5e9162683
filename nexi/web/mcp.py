"""MCP inside `nexi serve`: `/mcp`, begun by the first request to it, so that a server nobody asks over MCP starts without it.

The guard of this package stands in front, so the endpoint wants no token of its own. Below is `nexi.mcp_server`, which says
what to install where its library is missing.
"""

from __future__ import annotations

import asyncio

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from nexi.app import Nexi

PATH = "/mcp"


class McpDoor:
    """The endpoint, and the task that owns its sessions."""

    def __init__(self, nexi: Nexi) -> None:
        self._nexi = nexi
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def routes(self) -> list[Route]:
        return [Route(PATH, endpoint=self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from nexi.mcp_server import HttpDoor

        if self._owner is None:
            self._door = HttpDoor(self._nexi, guarded=True)
            self._ready = asyncio.Event()
            self._owner = asyncio.create_task(self._own())
        await self._ready.wait()
        await self._door.app(scope, receive, send)

    async def _own(self) -> None:
        """A session group must be left by the task that entered it."""
        async with self._door.running():
            self._ready.set()
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._owner:
            await asyncio.wait([self._owner])
