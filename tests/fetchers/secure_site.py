"""A web site on loopback that speaks HTTP/2 over TLS with the certificate beside this file, good for nothing else.

h2 keeps the protocol; what is sent on a stream is the test's. `raw` answers write any bytes they like instead.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from tests.fetchers.site import stop_listening

CERTIFICATE = Path(__file__).parent / "loopback.pem"
HTML = [(":status", "200"), ("content-type", "text/html")]
Answer: TypeAlias = "bytes | Callable[[Stream], Awaitable[None]]"


class Stream:
    """One request and the way back."""

    def __init__(self, connection: Connection, number: int, headers: dict[str, str]) -> None:
        self.connection = connection
        self.number = number
        self.headers = headers
        self.cancelled = asyncio.Event()

    async def begin(self, headers: list[tuple[str, str]] | None = None, *, end: bool = False) -> None:
        self.connection.state.send_headers(self.number, headers or HTML, end_stream=end)
        await self.connection.flush()

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """As much as the reader's windows let through, waiting for them."""
        while data or end:
            room = min(self._window(), self.connection.state.max_outbound_frame_size)
            if data and room <= 0:
                self.connection.room.clear()
                await self.connection.room.wait()
                continue
            piece, data = data[:room], data[room:]
            self.connection.state.send_data(self.number, piece, end_stream=end and not data)
            end = end and bool(data)
            await self.connection.flush()

    def _window(self) -> int:
        return int(self.connection.state.local_flow_control_window(self.number))


class Connection:
    def __init__(self, site: SecureSite, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.site, self.reader, self.writer = site, reader, writer
        self.state = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=False, header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        self.room = asyncio.Event()
        self.streams: dict[int, Stream] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    async def flush(self) -> None:
        self.writer.write(self.state.data_to_send())
        await self.writer.drain()
        await asyncio.sleep(0)  # a reader in the same loop gets its turn

    async def serve(self) -> None:
        try:
            self.state.initiate_connection()
            await self.flush()
            while data := await self.reader.read(65536):
                for event in self.state.receive_data(data):
                    self._handle(event)
                await self.flush()
        except (ConnectionError, asyncio.CancelledError, h2.exceptions.ProtocolError):
            pass
        finally:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            self.writer.close()

    def _handle(self, event: Any) -> None:
        self.room.set()
        if isinstance(event, h2.events.RequestReceived):
            stream = Stream(self, event.stream_id, dict(event.headers))
            self.streams[event.stream_id] = stream
            self.site.requests.append(stream.headers)
            self.tasks.add(asyncio.ensure_future(self._answer(stream)))
        elif isinstance(event, h2.events.StreamReset):
            self.site.resets.append(self.streams[event.stream_id].headers[":path"])
            self.streams[event.stream_id].cancelled.set()

    async def _answer(self, stream: Stream) -> None:
        answer = self.site.answers.get(stream.headers[":path"])
        try:
            if callable(answer):
                await answer(stream)
            elif answer is None:
                await stream.begin([(":status", "404")], end=True)
            else:
                await stream.begin()
                await stream.send(answer, end=True)
        except (h2.exceptions.ProtocolError, ConnectionError):
            pass  # the reader left


class SecureSite:
    """Answers by path over HTTP/2, or over HTTP/1.1 to whoever asks for that."""

    def __init__(self, answers: Mapping[str, Answer], protocols: Sequence[str] = ("h2", "http/1.1")) -> None:
        self.answers = dict(answers)
        self.protocols = list(protocols)
        self.requests: list[dict[str, str]] = []
        self.resets: list[str] = []
        self.older: list[str] = []
        self.connections = 0
        self.port = 0
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> list[str]:
        return [headers[":path"] for headers in self.requests]

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.port}{path}"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        newer = writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        serve = Connection(self, reader, writer).serve() if newer else self._older(reader, writer)
        self.tasks.add(asyncio.ensure_future(serve))

    async def _older(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while "http/1.1" in self.protocols and (head := await reader.readuntil(b"\r\n\r\n")):
                path = head.split(b" ")[1].decode()
                self.older.append(path)
                body = b"<p>By the older protocol.</p>"
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def secure_site(answers: Mapping[str, Answer], *, protocols: Sequence[str] = ("h2", "http/1.1")) -> AsyncIterator[Any]:
    """A site that is up inside the block."""
    site = SecureSite(answers, protocols)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    tls.set_alpn_protocols(site.protocols)
    server = await asyncio.start_server(site.accept, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        await stop_listening(server)
        for task in site.tasks:
            task.cancel()
        await asyncio.gather(*site.tasks, return_exceptions=True)
