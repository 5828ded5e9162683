"""The only way out for a browser: a proxy on loopback that connects to what the guard allows and to nothing else.

Above sits `nexi.fetchers.browser`, which tells Chromium to use no other way; below, the guard. A page that runs scripts
can ask for any address by any means (frames, fetch, sockets, redirects), so the rule stands where every one of them must
pass: a name is resolved here, once, checked, and the checked address is connected to. It knows no pages and reads no
bodies; it counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from nexi.errors import FetchError
from nexi.fetchers.guard import Guard, Resolver, is_literal
from nexi.urls import Url

MAX_HEAD = 65_536
HEAD_S = 10.0
CONNECT_S = 10.0
MAX_CONNECTIONS = 64
MAX_BYTES = 16_000_000  # of one connection; what is longer is cut
PIECE = 65_536
LOOPBACK = "127.0.0.1"
MAX_REFUSALS = 4_096
_HOP = (b"proxy-", b"connection:", b"keep-alive:")


@dataclass(frozen=True, slots=True)
class Asked:
    """The first line of a request to a proxy, understood and allowed by its looks."""

    url: Url
    tunnel: bool
    head: bytes


class Gateway:
    """Serves inside `async with gateway.open()`. `refusals` are what it let nobody reach, and why, in order."""

    def __init__(self, guard: Guard, resolve: Resolver) -> None:
        self._guard = guard
        self._resolve = resolve
        self._busy: set[asyncio.Task[None]] = set()
        self._seats = asyncio.Semaphore(MAX_CONNECTIONS)
        self.port = 0
        self.closed_ports: set[int] = set()  # doors of our own on loopback, which no exception opens
        self.refusals: list[tuple[str, FetchError]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        server = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=MAX_HEAD)
        self.port = server.sockets[0].getsockname()[1]
        self.closed_ports.add(self.port)
        try:
            yield self
        finally:
            server.close()
            for task in self._busy:
                task.cancel()
            await asyncio.gather(*self._busy, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._seats:
                await self._pass_on(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side left, or said nothing that could be answered
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            asked = understood(head, self._guard)
            far_reader, far_writer = await self._connected(asked.url)
        except FetchError as error:
            self._note(head, error)
            return await _answer(writer, b"403 Forbidden")
        except (OSError, TimeoutError):
            return await _answer(writer, b"502 Bad Gateway")
        try:
            if asked.tunnel:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                far_writer.write(asked.head)
                writer.write(one_answer(await far_reader.readuntil(b"\r\n\r\n")))
            await _both_ways((reader, far_writer), (far_reader, writer))
        finally:
            far_writer.close()

    async def _connected(self, url: Url) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        resolved = [url.host] if is_literal(url.host) else await self._resolve(url.host, url.port)
        addresses = self._guard.usable(url.host, url.port, resolved)
        if url.port in self.closed_ports:
            raise FetchError(f"{url.host} is not fetched", reason="blocked", cause="this port belongs to nexi's own browser")
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(address, url.port, limit=MAX_HEAD)
        raise ConnectionRefusedError(url.host)

    def _note(self, head: bytes, error: FetchError) -> None:
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append((_place(head), error))


def understood(head: bytes, guard: Guard) -> Asked:
    """What a request to a proxy asks for. Raises FetchError for what may not be asked for."""
    line, _, rest = head.partition(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3:
        raise FetchError("this is no request", reason="blocked", cause="its first line has no three words")
    method, target, version = words
    if method == b"CONNECT":
        return Asked(guard.check_url(f"https://{_text(target)}/"), True, b"")
    url = guard.check_url(_text(target))
    return Asked(url, False, _closing(b" ".join((method, url.target.encode("latin-1", "replace"), version)), rest))


def one_answer(head: bytes) -> bytes:
    """The head of an answer, which says that no second request may follow: it could be meant for another host."""
    line, _, rest = head.partition(b"\r\n")
    return _closing(line, rest)


def _closing(line: bytes, rest: bytes) -> bytes:
    kept = [part for part in rest.split(b"\r\n") if part and not part.lower().startswith(_HOP)]
    return b"\r\n".join([line, *kept, b"Connection: close", b"", b""])


def _text(target: bytes) -> str:
    return target.decode("latin-1")


def _place(head: bytes) -> str:
    """What was asked for, as a browser names it: host:port of a tunnel, else a URL."""
    return _text(head.split(b" ", 2)[1] if head.count(b" ") > 1 else head)[:500]


async def _answer(writer: asyncio.StreamWriter, status: bytes) -> None:
    writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def _both_ways(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    async with asyncio.TaskGroup() as group:
        for reader, writer in ways:
            group.create_task(_copied(reader, writer, [other for _, other in ways]))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: Sequence[asyncio.StreamWriter]) -> None:
    """Until either side ends or the bound is reached; then both connections are closed."""
    with suppress(OSError):
        left = MAX_BYTES
        while left > 0 and (piece := await reader.read(min(PIECE, left))):
            left -= len(piece)
            writer.write(piece)
            await writer.drain()
    for end in both:
        end.close()
