"""fault_proxy - a small asyncio proxy that stands in front of one server of the rig and spoils what passes.

One proxy, one place: a model, a search service, a web of pages. Requests are passed on until `after` of them were; from then
on `times` of them meet the fault, and later ones pass again. Everything is counted: requests, and connections still open.

  with proxies({"model": "http://127.0.0.1:8891"}) as at:   # a thread of its own
      at["model"].fault = Fault("reset", after=2)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import urlsplit

ALWAYS = 1_000_000
DRIP_S = 0.05
SETTLE_S = 0.02
LINGER_NOT = struct.pack("ii", 1, 0)  # close with a reset instead of a farewell

MALFORMED = {
    "malformed": b'{"choices": [{"index": 0, "message": {"content": "The Moo',
    "html": b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>",
    "empty": b"",
}
STREAMED = {
    "bad_call": b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x1","function":{"name":"web_search",'
    b'"arguments":"{\\"queries\\": [\\"moon\\""}},{"index":1,"id":"x2","function":{"name":"rm","arguments":"][}"}}]}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
    "bad_event": b'data: {"choices":[{"index":0,"delta":{"content":"The M\n\ndata: \xff\xfe}{\n\ndata: [DONE]\n\n',
    "error_event": b'data: {"error":{"message":"the engine fell over","type":"server_error"}}\n\ndata: [DONE]\n\n',
}


@dataclass(frozen=True)
class Fault:
    """What goes wrong, with which requests: after that many, so many times, only those whose first line has `match`."""

    kind: str = ""
    after: int = 0
    times: int = ALWAYS
    retry_after: str = ""
    match: str = ""


@dataclass
class FaultProxy:
    """Listens on a loopback port for one upstream."""

    upstream: str
    fault: Fault = Fault()
    url: str = ""
    received: int = 0  # requests in all
    requests: int = 0  # those since a fault was set that it is about
    spoiled: int = 0
    open: int = 0
    _listener: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._listener:
            self._listener.close()
        await asyncio.sleep(SETTLE_S)  # who was just accepted is not in the books yet
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.open += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._one(reader, writer)
        finally:
            self.open -= 1
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection: what a kept connection would hide is seen."""
        head, body = await _request(reader)
        self.received += 1
        spoil = self._spoils(head)
        before = HEAD_FAULTS.get(spoil)
        if before:
            return await before(self, reader, writer)
        answer = await self._fetched(head, body)
        after = BODY_FAULTS.get(spoil)
        if after:
            return await after(reader, writer, answer)
        writer.write(answer)
        return await writer.drain()

    def _spoils(self, head: bytes) -> str:
        fault = self.fault
        line = head.split(b"\r\n", 1)[0].decode("latin-1")
        if not fault.kind or fault.match not in line or _is_probe(line):
            return ""
        self.requests += 1
        number = self.requests - fault.after
        if not 1 <= number <= fault.times:
            return ""
        self.spoiled += 1
        return fault.kind

    async def _fetched(self, head: bytes, body: bytes) -> bytes:
        """The whole answer of the upstream, which is asked to close after it."""
        address = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
            writer.write(b"\r\n".join((*lines, b"Connection: close", b"", b"")) + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        first, rest = answer.split(b"\r\n", 1)
        return first + b"\r\n" + (rest if b"connection: close" in rest.lower() else b"Connection: close\r\n" + rest)


async def _request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head, await reader.readexactly(length)


def _is_probe(line: str) -> bool:
    """What is asked before a run begins: which models there are, how large their window is."""
    return not line.startswith("POST ") and any(p in line for p in ("/models", "/api/", "/props"))


# faults instead of an answer


async def _hang(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _reset(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    _abort(writer)


async def _refuse(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """From now on nobody listens here."""
    if proxy._listener:
        proxy._listener.close()
        proxy._listener = None
    _abort(writer)


def _status(status: int, body: bytes = b'{"error": {"message": "no"}}') -> Callable[..., Awaitable[None]]:
    async def answer(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wish = _retry_after(proxy.fault.retry_after)
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{wish}"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()

    return answer


def _retry_after(form: str) -> str:
    if form == "seconds":
        return "Retry-After: 1\r\n"
    if form == "date":
        return f"Retry-After: {format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)}\r\n"
    return "retry-after-ms: 300\r\n" if form == "milliseconds" else ""


def _instead(content_type: str, body: bytes) -> Callable[..., Awaitable[None]]:
    async def answer(proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return answer


HEAD_FAULTS: Mapping[str, Callable[..., Awaitable[None]]] = {
    "refused": _refuse,
    "hanging": _hang,
    "reset": _reset,
    "429": _status(429),
    "500": _status(500),
    "503": _status(503),
    "404": _status(404),
    **{name: _instead("application/json", body) for name, body in MALFORMED.items()},
    **{name: _instead("text/event-stream", body) for name, body in STREAMED.items()},
}


# faults within an answer


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    gone = asyncio.ensure_future(reader.read())
    try:
        for byte in answer:
            writer.write(bytes((byte,)))
            await writer.drain()
            if (await asyncio.wait({gone}, timeout=DRIP_S))[0]:
                return
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await gone


async def _truncate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(_half(answer))
    await writer.drain()


async def _reset_inside(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(_half(answer))
    await writer.drain()
    _abort(writer)


async def _hang_inside(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(_half(answer))
    await writer.drain()
    await reader.read()


BODY_FAULTS: Mapping[str, Callable[..., Awaitable[None]]] = {
    "dripping": _drip,
    "truncated": _truncate,
    "reset inside": _reset_inside,
    "hanging inside": _hang_inside,
}
KINDS = (*HEAD_FAULTS, *BODY_FAULTS)


def _half(answer: bytes) -> bytes:
    head, mark, body = answer.partition(b"\r\n\r\n")
    return head + mark + body[: len(body) // 2]


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
    writer.transport.abort()


@contextmanager
def proxies(upstreams: Mapping[str, str]) -> Iterator[dict[str, FaultProxy]]:
    """A proxy for each upstream, by name, in a thread of their own that ends with the block."""
    made = {name: FaultProxy(upstream) for name, upstream in upstreams.items()}
    ready, ended = threading.Event(), []

    async def run() -> None:
        over = asyncio.Event()
        for proxy in made.values():
            await proxy.start()
        ended.append((asyncio.get_running_loop(), over))
        ready.set()
        await over.wait()
        for proxy in made.values():
            await proxy.stop()

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="fault-proxy", daemon=True)
    thread.start()
    ready.wait(120)
    try:
        yield made
    finally:
        loop, over = ended[0]
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
