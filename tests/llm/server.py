"""A scripted endpoint on loopback: one canned answer or fault for each request, and a record of what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fetchers.site import stop_listening

OTHER_SERVERS = ("/api/tags", "/api/v0/models", "/props")  # what only a local server has: this is none, whatever the script


@dataclass(frozen=True)
class Canned:
    """What to send; `then` says how the connection ends."""

    status: int = 200
    chunks: tuple[bytes, ...] = ()
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    then: Literal["end", "abort", "hang", "refuse"] = "end"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Server:
    url: str
    script: list[Canned]
    asked: list[Asked] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.asked]


def data(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call_delta(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: object = None
) -> dict[str, Any]:
    piece: dict[str, Any] = {"function": {}}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    if name is not None:
        piece["function"]["name"] = name
    if arguments is not None:
        piece["function"]["arguments"] = arguments
    return delta(tool_calls=[piece])


USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


def sse(*events: object, done: bool = True, usage: bool = True, then: Literal["end", "abort", "hang"] = "end") -> Canned:
    chunks = [data(event) for event in events]
    if usage:
        chunks.append(data(USAGE))
    if done:
        chunks.append(b"data: [DONE]\n\n")
    return Canned(200, tuple(chunks), "text/event-stream", then=then)


def said(text: str, finish: str = "stop") -> Canned:
    return sse(delta(role="assistant", content=""), delta(content=text), delta(finish))


def plain(message: dict[str, Any], finish: str = "stop", **extra: object) -> Canned:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **extra}
    return Canned(200, (json.dumps(body).encode(),))


def refused(status: int, message: object = "no", *headers: tuple[str, str]) -> Canned:
    body = message if isinstance(message, dict) else {"error": {"message": message}}
    return Canned(status, (json.dumps(body).encode(),), headers=headers)


@asynccontextmanager
async def serving(script: Sequence[Canned]) -> AsyncIterator[Server]:
    """Serve the script; a request after its end is an answer 599."""
    server = Server("", list(script))
    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        task = asyncio.current_task()
        assert task is not None
        open_now[task] = writer
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await _one(server, reader, writer):
                pass
        writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        await stop_listening(listener)
        for writer in open_now.values():
            writer.close()
        await asyncio.gather(*open_now)
        for writer in open_now.values():
            with suppress(ConnectionError):
                await writer.wait_closed()
        await listener.wait_closed()


async def _one(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Answer one request; False when the connection is to end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ")
    if method == "GET" and path in OTHER_SERVERS:
        writer.write(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        return True
    server.asked.append(Asked(method, path, headers, json.loads(raw) if raw else {}))
    canned = server.script.pop(0) if server.script else Canned(599)
    if canned.then == "refuse":
        return False
    lines = [f"HTTP/1.1 {canned.status} X", f"content-type: {canned.content_type}", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in canned.headers]
    writer.write("\r\n".join((*lines, "", "")).encode())
    for chunk in canned.chunks:
        writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        await writer.drain()
    if canned.then == "hang":
        await reader.read()
        server.gone.set()
        return False
    if canned.then == "abort":
        writer.transport.abort()
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True
