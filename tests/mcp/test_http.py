"""Streamable HTTP on loopback: the official client, who is let in, and a client that leaves."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import nexi
from nexi.app import Nexi
from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.errors import ConfigError
from nexi.events import RunFailed
from nexi.mcp import HttpDoor
from nexi.mcp_server_cli import _run_http
from nexi.web.server import HEAD_BYTES, ServerOptions, SlowClientTimeoutProtocol, strict_config, uvicorn_config
from tests.mcp.world import ANSWER, QUESTION, Gate, config_for, listening, text_of, until

TOKEN = "a-long-secret-token-4711"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


KNOWN = {**ACCEPT, "authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def connected(url: str, token: str = TOKEN) -> AsyncIterator[Client]:
    """The official client with a token."""
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def door(web: str, home: Path, *, token: str = TOKEN, **ports: Any) -> AsyncIterator[tuple[str, Nexi]]:
    async with Nexi(config_for(web, home), **ports) as nexi, listening(HttpDoor(nexi, token=token).app) as address:
        yield f"{address}/mcp", nexi


async def test_a_client_lists_calls_and_hears_progress(web: str, tmp_path: Path) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with door(web, tmp_path) as (url, _), connected(url) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("nexi_search", {"query": QUESTION}, progress_callback=hear)
    assert "nexi_research" in names
    assert text_of(answer).startswith(ANSWER)
    assert told == sorted(set(told))
    assert len(told) > 3


async def test_research_goes_on_when_the_client_that_began_it_has_left(web: str, tmp_path: Path) -> None:
    async with door(web, tmp_path) as (url, _):
        async with connected(url) as client:
            run_id = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content["id"]
        async with connected(url) as another:
            report = await another.call_tool("nexi_research_result", {"run_id": run_id, "wait_s": 30})
    assert ANSWER in text_of(report)


async def test_cancelling_over_http_stops_the_run(web: str, tmp_path: Path) -> None:
    gate = Gate()
    async with door(web, tmp_path, backends=[gate]) as (url, nexi), connected(url) as client:
        call = asyncio.create_task(client.call_tool("nexi_search", {"query": QUESTION}))
        await gate.asked.wait()
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: [run.state for run in nexi.runs().list_runs()] == ["failed"])
        [run] = nexi.runs().list_runs()
        end = nexi.runs().open_log(run.id).facts[-1][1]
    assert (type(end), end.code) == (RunFailed, "cancelled")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:80"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
    ],
)
async def test_other_hosts_and_origins_are_refused(web: str, tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with door(web, tmp_path) as (url, _), httpx2.AsyncClient(timeout=120) as http:
        reply = await http.post(url, json=HELLO, headers={**KNOWN, **headers})
    assert reply.status_code == status


async def test_a_token_is_asked_for_and_told_how_to_send(web: str, tmp_path: Path) -> None:
    async with door(web, tmp_path, token=TOKEN) as (url, _), httpx2.AsyncClient(timeout=120) as http:
        wrong = [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"authorization": "Basic " + TOKEN}]
        refused = [await http.post(url, json=HELLO, headers={**ACCEPT, **headers}) for headers in wrong]
        welcome = await http.post(url, json=HELLO, headers={**ACCEPT, "authorization": f"bearer {TOKEN}"})
    assert [r.status_code for r in refused] == [401] * 4
    assert {r.headers["www-authenticate"] for r in refused} == {"Bearer"}
    assert "NEXI_TOKEN" in refused[0].json()["error"]["message"]
    assert TOKEN not in refused[1].text
    assert welcome.status_code == 200


async def test_without_a_token_of_its_own_the_door_wants_the_owners(web: str, tmp_path: Path) -> None:
    owner = OwnerToken(config_for(web, tmp_path).state_dir)
    async with door(web, tmp_path, token="") as (url, _), httpx2.AsyncClient(timeout=120) as http:
        first = owner.read()
        sent = ("x", "any word", "caf\u00e9", f"{first}x", first)
        for_old = [{**ACCEPT, "authorization": f"Bearer {token}".encode()} for token in sent]
        before = [(await http.post(url, json=HELLO, headers=headers)).status_code for headers in [ACCEPT, *for_old]]
        async with connected(url, first) as client:
            answer = await client.call_tool("nexi_search", {"query": QUESTION})
        owner.renew()
        refused = await http.post(url, json=HELLO, headers=for_old[-1])
    assert before == [401, 401, 401, 401, 401, 200]
    assert text_of(answer).startswith(ANSWER)
    assert (refused.status_code, "`nexi token`" in refused.json()["error"]["message"]) == (401, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "nexi.example"])
def test_off_loopback_a_token_is_needed(web: str, tmp_path: Path, host: str) -> None:
    nexi = Nexi(config_for(web, tmp_path))
    for short in ("", "t" * 15):
        with pytest.raises(ConfigError) as refused:
            HttpDoor(nexi, host=host, token=short)
        assert "NEXI_TOKEN" in refused.value.fix
    assert HttpDoor(nexi, host=host, token=TOKEN).app


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"jsonrpc":"2.0"}', b'{"a":' * 500, b"x" * 3_000_000],
    ids=["empty", "torn", "list", "null", "text", "bytes", "nothing", "deep", "large"],
)
async def test_bad_bodies_are_refused_with_a_client_error(web: str, tmp_path: Path, body: bytes) -> None:
    async with door(web, tmp_path) as (url, _), httpx2.AsyncClient(timeout=120) as http:
        reply = await http.post(url, content=body, headers={**KNOWN, "content-type": "application/json"})
    assert 400 <= reply.status_code < 500
    assert "Traceback" not in reply.text


@asynccontextmanager
async def running_command(web: str, home: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[tuple[int, str]]:
    """`nexi mcp http`: its port, and what it says."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = asyncio.create_task(_run_http(config_for(web, home, token=TOKEN), "127.0.0.1", port))
    said = ""
    async with asyncio.timeout(120):
        while "MCP at" not in said:
            await asyncio.sleep(0.01)
            said += capsys.readouterr().err
        yield port, said
    serving.cancel()
    await asyncio.wait([serving])


async def test_the_command_serves_until_it_is_told_to_end(web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_command(web, tmp_path, capsys) as (port, said), httpx2.AsyncClient(timeout=120) as http:
        reply = await http.post(f"http://127.0.0.1:{port}/mcp", json=HELLO, headers=KNOWN)
    assert said == f"MCP at http://127.0.0.1:{port}/mcp, with the token\n"
    assert json.loads(reply.text.partition("data: ")[2])["result"]["serverInfo"]["name"] == "nexi"


@pytest.mark.parametrize(
    "head",
    [b"GET /mcp HTTP/1.1\nHost: localhost\n\n", b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Other: 1\r\n 2\r\n\r\n"],
    ids=["bare LF", "folded"],
)
async def test_the_command_refuses_a_head_that_a_proxy_may_read_otherwise(
    web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], head: bytes
) -> None:
    async with running_command(web, tmp_path, capsys) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        reply = await reader.read()
        writer.close()
    assert reply.startswith(b"HTTP/1.1 400 ")


def test_every_http_server_of_nexi_reads_requests_alike(tmp_path: Path) -> None:
    served = uvicorn_config(Config(home=tmp_path), ServerOptions())
    door = strict_config(None, drain_s=1.0, log_level="warning")
    assert {(c.http, c.ws, c.proxy_headers, c.h11_max_incomplete_event_size) for c in (served, door)} == {
        (SlowClientTimeoutProtocol, "none", False, HEAD_BYTES)
    }
    package = Path(nexi.__file__).parent
    assert [str(path.relative_to(package)) for path in package.rglob("*.py") if "uvicorn.Config(" in path.read_text()] == [
        "web/server.py"
    ]


async def test_a_web_server_mounts_the_door_under_a_guard_of_its_own(web: str, tmp_path: Path) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Route

    async with Nexi(config_for(web, tmp_path)) as nexi:
        mounted = HttpDoor(nexi, host="0.0.0.0", guarded=True)
        app = Starlette(routes=[Route("/mcp", endpoint=mounted.app)], lifespan=lambda _: mounted.run_sessions())
        async with listening(app) as address, Client(f"{address}/mcp") as client:
            found = await client.call_tool("nexi_find", {"query": "moon"})
    assert len(found.structured_content["hits"]) == 2


async def test_nexi_serve_offers_mcp_behind_its_own_guard(web: str, tmp_path: Path) -> None:
    from nexi.web import create_app

    async with (
        listening(create_app(config_for(web, tmp_path, token=TOKEN))) as address,
        httpx2.AsyncClient(timeout=120) as http,
    ):
        url = f"{address}/mcp"
        refused = await http.post(url, json=HELLO, headers=ACCEPT)
        evil = await http.post(url, json=HELLO, headers={**KNOWN, "host": "evil.example"})
        welcome = await http.post(url, json=HELLO, headers=KNOWN)
    assert (refused.status_code, evil.status_code >= 400, welcome.status_code) == (401, True, 200)
    assert json.loads(welcome.text.partition("data: ")[2])["result"]["serverInfo"]["name"] == "nexi"


async def test_an_official_client_uses_nexi_serve(web: str, tmp_path: Path) -> None:
    from nexi.web import create_app

    config = config_for(web, tmp_path)
    token = OwnerToken(config.state_dir).ensure()
    async with listening(create_app(config)) as address, connected(f"{address}/mcp", token) as client:
        answer = await client.call_tool("nexi_search", {"query": QUESTION})
    assert text_of(answer).startswith(ANSWER)
