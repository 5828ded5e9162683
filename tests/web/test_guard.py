"""What every request must pass: Host and Origin, token, rate, size and pace; and what no response may hold."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import re
from collections.abc import AsyncGenerator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.routing import Route

from nexi.app import SystemClock
from nexi.config import Config
from nexi.errors import ConfigError
from nexi.net.addresses import is_loopback_host
from nexi.testing import FakeClock
from nexi.types import Principal
from nexi.web import list_error_shapes
from nexi.web.guard import GuardRules, RequestGuard
from nexi.web.operations import Metrics
from nexi.web.payload import EventStream, Problem, Shape, own_shape
from nexi.web.server import ServerOptions, SlowClientTimeoutProtocol, configure_logging, require_token
from tests.raising import has_code
from tests.web.world import MANY, QUESTION, GatedWeb, serving

SHAPES = list_error_shapes()

PATHS = [("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/v1/runs"), ("POST", "/v1/search")]
PATHS += [("GET", "/searxng/search?q=x"), ("POST", "/tavily/search"), ("POST", "/openwebui/search"), ("GET", "/metrics")]
TOKEN = "a-long-random-token"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "a b", "", "user@localhost"]
)
async def test_a_name_of_another_site_is_refused_at_every_path(tmp_path: Path, host: str) -> None:
    async with serving(tmp_path) as served:
        for method, path in PATHS:
            reply = await served.client.request(method, path, headers={"host": host})
            assert (path, reply.status_code) == (path, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "nexi.localhost", "localhost."])
async def test_names_of_this_machine_are_taken(tmp_path: Path, host: str) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.get("/v1/models", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    ("rules", "host", "status"),
    [
        (GuardRules(bound="0.0.0.0"), "192.168.1.5:8000", 200),
        (GuardRules(bound="0.0.0.0"), "nexi:8000", 200),
        (GuardRules(bound="0.0.0.0"), "evil.example", 421),
        (GuardRules(bound="0.0.0.0", hosts=("nexi.example",)), "nexi.example", 200),
        (GuardRules(hosts=("nexi.example",)), "nexi.example", 200),
        (GuardRules(), "192.168.1.5", 421),
        (GuardRules(), "nexi", 421),
    ],
)
async def test_beyond_this_machine_addresses_plain_names_and_named_hosts_are_taken(
    tmp_path: Path, rules: GuardRules, host: str, status: int
) -> None:
    async with serving(tmp_path, rules=rules) as served:
        assert (await served.client.get("/healthz", headers={"host": host})).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
async def test_pages_of_other_origins_may_not_use_it_and_get_no_permission(tmp_path: Path, headers: dict[str, str]) -> None:
    async with serving(tmp_path) as served:
        for method, path in PATHS:
            reply = await served.client.request(method, path, headers=headers)
            assert (path, reply.status_code) == (path, 403)
            assert not [name for name in reply.headers if name.startswith("access-control")]
        preflight = await served.client.options("/v1/runs", headers={**headers, "access-control-request-method": "POST"})
        assert preflight.status_code in (403, 405)


async def test_its_own_page_may_use_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        headers = {"origin": served.base, "sec-fetch-site": "same-origin"}
        assert (await served.client.get("/v1/models", headers=headers)).status_code == 200


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"user:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"authorization": "Basic !!"}, 401),
        ({"authorization": basic("wrong")}, 401),
        ({"x-api-key": "wrong"}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer  {TOKEN}"}, 200),
        ({"authorization": basic(TOKEN)}, 200),
        ({"x-api-key": TOKEN}, 200),
    ],
)
async def test_with_a_token_only_those_who_send_it_are_served(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        reply = await served.client.get("/v1/models", headers=headers)
        assert reply.status_code == status
        assert TOKEN not in reply.text
        assert (await served.client.get("/healthz")).status_code == 200


async def test_a_missing_token_is_told_in_the_shape_of_each_contract(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        for method, path in PATHS:
            reply = await served.client.request(method, path)
            assert (path, reply.status_code, reply.headers["www-authenticate"]) == (path, 401, 'Bearer realm="nexi"')
            shape = next((s for prefix, s in SHAPES.items() if path.startswith(prefix)), own_shape)
            assert set(reply.json()) == set(shape_keys(shape))


def shape_keys(shape: object) -> set[str]:
    from nexi.web.payload import Problem

    return set(shape(Problem(401, "x", "y")))  # type: ignore[operator]


async def test_a_client_that_asks_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(per_minute=0.01, burst=5)) as served:
        names = [{"x-forwarded-for": f"10.0.0.{n}", "forwarded": f"for=10.0.0.{n}", "x-real-ip": "::1"} for n in range(20)]
        replies = [await served.client.get("/v1/models", headers=claimed) for claimed in names]  # which change nothing
        assert [r.status_code for r in replies[:5]] == [200] * 5
        refused = [r for r in replies if r.status_code == 429]
        assert len(refused) == 15
        assert {0 < int(r.headers["retry-after"]) <= 6_000 for r in refused} == {True}
        assert refused[0].json()["error"]["type"] == "rate_limit_error"
        assert (await served.client.get("/healthz")).text == "ok\n"  # a supervisor on the same machine restarts nothing


async def test_too_many_open_requests_are_refused(tmp_path: Path) -> None:
    rules = GuardRules(per_minute=1e6, burst=1e6, most_requests=2)
    async with serving(tmp_path, rules=rules, web=GatedWeb(is_open=False)) as served:
        body = {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
        waiting = [asyncio.create_task(served.client.post("/v1/chat/completions", json=body)) for _ in range(2)]
        await served.web.asked.wait()
        while served.app.state.host.active < 2:
            await asyncio.sleep(0.01)
        reply = await served.client.get("/v1/models")
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        served.web.gate.set()
        assert [(await task).status_code for task in waiting] == [200, 200]


async def test_ten_times_too_much_is_refused_with_a_time_to_come_back_and_what_was_taken_ends_well(tmp_path: Path) -> None:
    """Runs and completions, whole and streamed, all at once, where two runs have room."""
    chat = {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
    asked = [
        ("/v1/runs", {"question": QUESTION}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", {**chat, "stream": True}),
    ]
    rules = GuardRules(per_minute=1, burst=18)
    async with serving(tmp_path, rules=rules, web=GatedWeb(is_open=False), most_runs=2) as served:
        sending = [asyncio.create_task(served.client.post(path, json=body)) for path, body in asked * 7]
        await served.web.asked.wait()
        while sum(task.done() for task in sending) < len(sending) - 2:
            await asyncio.sleep(0.01)
        served.web.gate.set()
        replies = [await task for task in sending]
        refused = [reply for reply in replies if reply.status_code in (429, 503)]
        assert len(refused) >= len(sending) - 2
        assert {int(reply.headers["retry-after"]) > 0 for reply in refused} == {True}
        assert {"error"} == {name for reply in refused for name in reply.json()}
        assert {reply.status_code for reply in replies} - {200, 202} == {429, 503}
        while served.app.state.host.active:
            await asyncio.sleep(0.01)
        runs = served.app.state.nexi.runs().list_runs()
        assert [run.state for run in runs] == ["finished"] * 2


async def test_a_body_that_is_too_large_is_refused_whether_its_length_is_told_or_not(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for path in ("/v1/runs", "/v1/chat/completions", "/tavily/search"):
            assert await raw(served.base, head(path, "Content-Length: 10000000")) == 413
            chunk = b"186A0\r\n" + b" " * 100_000 + b"\r\n"
            assert await raw(served.base, head(path, "Transfer-Encoding: chunked") + chunk * 30) == 413
        assert (await served.client.get("/healthz")).status_code == 200


async def test_two_ways_to_say_where_a_body_ends_are_refused_and_the_connection_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        sent = head("/v1/runs", "Content-Length: 4", "Transfer-Encoding: chunked") + b"0\r\n\r\n"
        assert await raw(served.base, sent) == 400
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.base.rpartition(":")[2]))
        writer.write(sent + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 300)).count(b"HTTP/1.1 ") == 1
        writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\nX-Other: 1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Other: 1\r\n 2\r\n\r\n",
    ],
    ids=["bare LF", "one bare LF", "folded"],
)
async def test_a_head_that_a_proxy_may_read_otherwise_is_refused_alone_and_behind_another(tmp_path: Path, head: bytes) -> None:
    first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n\n a"
    async with serving(tmp_path) as served:
        assert await raw(served.base, head) == 400
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.base.rpartition(":")[2]))
        writer.write(first + head)
        replies = await asyncio.wait_for(reader.read(), 300)
        assert re.findall(rb"HTTP/1.1 (\d+)", replies) == [b"200", b"400"]
        writer.close()


async def test_a_head_that_is_too_large_is_refused_also_when_it_comes_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for size, status in ((30_000, 200), (33_000, 431), (60_000, 431)):
            sent = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * size + b"\r\n\r\n"
            assert (size, await raw(served.base, sent)) == (size, status)


async def test_a_body_that_does_not_come_in_time_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(body_s=0.05)) as served:
        assert await raw(served.base, head("/v1/runs", "Content-Length: 10") + b"{") == 408


async def test_connections_beyond_those_of_one_client_are_refused_in_the_shape_of_each_contract(tmp_path: Path) -> None:
    limited = type("Limited", (SlowClientTimeoutProtocol,), {"max_client_connections": 2})
    async with serving(tmp_path, protocol=limited) as served:
        port = int(served.base.rpartition(":")[2])
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        while len(served.server.server_state.connections) < 2:
            await asyncio.sleep(0.001)
        for method, path in PATHS:
            reply = await served.client.request(method, path, json={} if method == "POST" else None)
            assert (path, reply.status_code, reply.headers["retry-after"]) == (path, 503, "1")
            problem = Problem(503, "overloaded", "too many connections are open", "ask again soon", 1)
            assert reply.json() == shape_of(path)(problem)
        assert (await served.client.get("/healthz")).status_code == 200
        for _, writer in held:
            writer.close()


async def test_a_client_with_many_half_open_requests_has_less_time_for_the_next(tmp_path: Path) -> None:
    limited = type("Limited", (SlowClientTimeoutProtocol,), {"max_client_half_open": 2, "head_timeout_s": 600.0})
    async with serving(tmp_path, protocol=limited) as served:
        port = int(served.base.rpartition(":")[2])
        patient = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        while len(served.server.server_state.connections) < 2:
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""  # closed by the server
        assert [reader.at_eof() for reader, _ in patient] == [False, False]
        for one in (writer, *(writer for _, writer in patient)):
            one.close()


def shape_of(path: str) -> Shape:
    return next((SHAPES[prefix] for prefix in sorted(SHAPES, key=len, reverse=True) if path.startswith(prefix)), own_shape)


def with_timeouts(*, head_s: float = 20.0, stall_s: float = 60.0) -> type[SlowClientTimeoutProtocol]:
    return type("Impatient", (SlowClientTimeoutProtocol,), {"head_timeout_s": head_s, "stall_timeout_s": stall_s})


async def test_a_head_that_does_not_come_in_time_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, protocol=with_timeouts(head_s=0.05)) as served:
        assert await raw(served.base, b"GET /healthz HTTP/1.1\r\nHost: ") == 0


async def test_a_later_head_that_does_not_come_in_time_ends_the_connection_too(tmp_path: Path) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    protocol = with_timeouts(head_s=600.0)
    async with serving(tmp_path, protocol=protocol) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(served.base.rpartition(":")[2]))
        for _ in range(2):
            writer.write(whole)
            assert b"ok\n" in await asyncio.wait_for(reader.readuntil(b"ok\n"), 300)
        protocol.head_timeout_s = 0.05
        writer.write(whole[:20])
        assert await asyncio.wait_for(reader.read(), 300) == b""
        writer.close()


async def test_a_client_that_stops_reading_is_let_go(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def flood(request: Request) -> EventStream:
        async def frames() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield b"x" * 1_000_000
                    await asyncio.sleep(0)
            finally:
                ended.set()

        return EventStream(frames())

    async with serving(tmp_path, more=[Route("/flood", flood)], protocol=with_timeouts(stall_s=0.05)) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", int(served.base.rpartition(":")[2]))
        bearer = served.client.headers["authorization"].encode()
        writer.write(b"GET /flood HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + bearer + b"\r\n\r\n")
        await asyncio.wait_for(ended.wait(), 300)
        assert (await served.client.get("/healthz")).status_code == 200
        writer.close()


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/chat/completions", "/tavily/search", "/openwebui/load"])
async def test_a_packed_body_is_refused_in_words(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as served:
        packed = gzip.compress(b'{"question": "x"}')
        reply = await served.client.post(path, content=packed, headers={"content-encoding": "gzip"})
        assert reply.status_code == 415
        assert "not unpacked here" in reply.text


async def test_a_head_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert await raw(served.base, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000) == 400


def head(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


async def raw(base: str, sent: bytes) -> int:
    """The status of what comes back for these bytes; 0 when the connection ends without a word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))
    try:
        writer.write(sent)
        line = await asyncio.wait_for(reader.readline(), 300)
    finally:
        writer.close()
    return int(line.split()[1]) if line else 0


async def test_what_fails_inside_is_told_without_a_traceback_and_logged_with_one(tmp_path: Path) -> None:
    heard = StringIO()
    configure_logging("info", ["sk-canary"], heard)

    async def broken(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("sk-canary must not be seen")

    class Host:
        draining = False

    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    guard = RequestGuard(broken, rules=MANY, metrics=Metrics(), clock=FakeClock(), shapes=SHAPES, host=Host())  # type: ignore[arg-type]
    scope = {"type": "http", "path": "/v1/models", "method": "GET", "headers": [(b"host", b"localhost")], "client": None}
    await guard(scope, receive, send)  # type: ignore[arg-type]
    body = json.loads(bytes(sent[1]["body"]))  # type: ignore[call-overload]
    assert (sent[0]["status"], body["error"]["type"]) == (500, "server_error")
    assert "canary" not in json.dumps(body)
    assert "Traceback" in heard.getvalue()
    assert "canary" not in heard.getvalue()


def test_logs_hold_questions_only_at_debug() -> None:
    for level, seen in (("info", False), ("debug", True)):
        heard = StringIO()
        configure_logging(level, [], heard)
        logging.getLogger("nexi.web").debug("question", extra={"question": "who am I"})
        assert ("who am I" in heard.getvalue()) is seen


@pytest.fixture(autouse=True)
def logging_as_it_was() -> object:
    root, ours = logging.getLogger(), logging.getLogger("nexi")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "nas", "", "127.0.0.1.evil")),
    ],
)
def test_it_listens_beyond_this_machine_only_with_a_token(tmp_path: Path, host: str, own: bool) -> None:
    assert is_loopback_host(host) is own
    config = Config(home=tmp_path)
    if own:
        require_token(config, ServerOptions(host=host))
    else:
        with pytest.raises(ConfigError, check=has_code("config", "NEXI_TOKEN")):
            require_token(config, ServerOptions(host=host))
    require_token(config, ServerOptions(host=host, token="t" * 16))
    require_token(config.override(token="t" * 16), ServerOptions(host=host))
    for short in (ServerOptions(host=host, token="t" * 15), ServerOptions(host=host, token="tokA")):
        if own:
            require_token(config, short)
        else:
            with pytest.raises(ConfigError, check=has_code("config", "NEXI_TOKEN", len(short.token))):
                require_token(config, short)


async def test_one_person_cannot_hold_all_requests_that_a_server_has_open() -> None:
    leaving, opened, statuses = asyncio.Event(), [], []

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        opened.append(scope["state"]["principal"].person)
        await leaving.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def identify(headers: Any, scope: Any) -> Principal:
        return Principal(headers["x-api-key"], "", "user", ("read", "ask"))

    guard = RequestGuard(
        stream,
        rules=GuardRules(most_of_one=4),
        metrics=Metrics(),
        clock=SystemClock(),
        shapes={},
        host=SimpleNamespace(draining=False),
        identify=identify,
    )

    async def open_stream(person: str) -> None:
        transport = httpx2.ASGITransport(app=guard)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=300) as client:
            reply = await client.get("/v1/runs/x/events", headers={"x-api-key": person})
        statuses.append((person, reply.status_code, reply.json()["error"]["code"] if reply.content else ""))

    streams = [asyncio.create_task(open_stream(person)) for person in ["ada"] * 9 + ["bob"]]
    async with asyncio.timeout(120):
        while len(opened) + len(statuses) < len(streams):
            await asyncio.sleep(0)
        assert sorted(opened) == ["ada"] * 4 + ["bob"]
        assert statuses == [("ada", 429, "too_many_open")] * 5
        leaving.set()
        await asyncio.wait(streams)
        await open_stream("ada")
    assert sorted(statuses)[:5] == [("ada", 200, "")] * 5
