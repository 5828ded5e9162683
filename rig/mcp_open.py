"""The real MCP server without its token, for the conformance suite, which cannot send one.

python -m rig.mcp_open PORT
"""

from __future__ import annotations

import asyncio
import sys

import uvicorn

from nexi.app import Nexi
from nexi.config import load_config
from nexi.mcp import create_server
from nexi.mcp.server import build_http_app


async def serve(port: int) -> None:
    async with Nexi(load_config()) as nexi:
        app = build_http_app(create_server(nexi), host="127.0.0.1")
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
