"""MCP inside the server: behind its guard, begun by the first request."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.web.guard import Rules
from tests.web.world import serving

pytest.importorskip("mcp")
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


async def test_mcp_answers_behind_the_guard(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=Rules(token="t0ken")) as served:
        assert (await served.client.post("/mcp", json=HELLO, headers=HEADERS)).status_code == 401
        reply = await served.client.post("/mcp", json=HELLO, headers={**HEADERS, "authorization": "Bearer t0ken"})
        assert reply.status_code == 200
        assert '"serverInfo"' in reply.text
