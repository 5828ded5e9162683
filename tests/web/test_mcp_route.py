"""MCP inside the server: behind its guard, begun by the first request."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexi import web
from nexi.app import Nexi
from nexi.errors import ConfigError
from nexi.web.guard import GuardRules
from tests.web.world import serving

if TYPE_CHECKING:
    from nexi.mcp import HttpDoor

pytest.importorskip("mcp")
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


async def test_mcp_answers_behind_the_guard(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token="t0ken")) as served:
        assert (await served.client.post("/mcp", json=HELLO, headers=HEADERS)).status_code == 401
        reply = await served.client.post("/mcp", json=HELLO, headers={**HEADERS, "authorization": "Bearer t0ken"})
        assert reply.status_code == 200
        assert '"serverInfo"' in reply.text


async def test_others_are_served_while_its_library_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading, loaded = threading.Event(), threading.Event()
    make = web._build_mcp_door

    def slow(nexi: Nexi) -> HttpDoor:
        loading.set()
        assert loaded.wait(300)
        return make(nexi)

    monkeypatch.setattr(web, "_build_mcp_door", slow)
    async with serving(tmp_path) as served:
        asking = [asyncio.create_task(served.client.post("/mcp", json=HELLO, headers=HEADERS)) for _ in range(3)]
        await asyncio.to_thread(loading.wait, 20)
        assert (await served.client.get("/v1/models")).status_code == 200
        loaded.set()
        assert [(await task).status_code for task in asking] == [200] * 3


async def test_without_its_library_every_request_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Nexi) -> HttpDoor:
        raise ConfigError("the MCP server cannot start", cause="it is not installed", fix="pip install 'nexi[mcp]'")

    monkeypatch.setattr(web, "_build_mcp_door", missing)
    async with serving(tmp_path) as served:
        for _ in range(2):
            reply = await served.client.post("/mcp", json=HELLO, headers=HEADERS)
            assert (reply.status_code, reply.json()["error"]["fix"]) == (503, "pip install 'nexi[mcp]'")
