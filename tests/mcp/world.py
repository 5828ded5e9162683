"""A nexi for MCP clients: a loopback web, the built-in model, and doors to it in this process, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from nexi.app import Nexi
from nexi.config import Config
from nexi.mcp import create_server
from nexi.types import Hit, Query
from tests.children import CHILD_PATH

QUESTION = "How far is the Moon from Earth on average?"
ANSWER = "The Moon is 384,400 km from Earth on average. [1]"


def config_for(web: str, home: Path, **values: Any) -> Config:
    given = {"model": "extractive", "searxng_url": web, "allow_private": web.removeprefix("http://"), "knowledge": False}
    return Config(**{**given, "home": home, **values})


@asynccontextmanager
async def inside(config: Config, **ports: Any) -> AsyncIterator[tuple[Client, Nexi]]:
    """A client and its server in one process."""
    async with Nexi(config, **ports) as nexi, Client(create_server(nexi)) as client:
        yield client, nexi


def command(web: str, home: Path, *arguments: str, **env: str) -> StdioServerParameters:
    """The server as a client starts it."""
    known = {"NEXI_HOME": str(home), "SEARXNG_URL": web, "NEXI_ALLOW_PRIVATE": web.removeprefix("http://")}
    inherited = {name: os.environ[name] for name in ("PATH", "COVERAGE_PROCESS_START") if name in os.environ}
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "nexi.mcp_server_cli", *arguments],
        env={**inherited, **known, "PYTHONPATH": CHILD_PATH, "NEXI_MODEL": "extractive", **env},
    )


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """An ASGI app on a free loopback port; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


class Gate:
    """A search backend that answers when it is told to."""

    name = "gate"
    filters: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def search(self, query: Query) -> list[Hit]:
        self.asked.set()
        await self.open.wait()
        return []


async def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for something another task or process does."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


def text_of(result: Any) -> str:
    (block,) = result.content
    return str(block.text)
