"""The only way out for a browser: a proxy on loopback that connects to what the guard allows and to nothing else.

A page that runs scripts can ask for any address by any means (frames, fetch, sockets, redirects), so the rule stands where
every one of them must pass: a name is resolved here, once, checked, and the checked address is connected to.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import httpcore2
from msgspec import Struct

from nexi import urls
from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard, Resolver
from nexi.fetchers.transport import check_resolved
from nexi.net.addresses import is_address
from nexi.urls import Url

MAX_HEAD = 65_536
HEAD_TIMEOUT_S = 10.0
CONNECT_S = 10.0
MAX_CONNECTIONS = 64
MAX_BYTES = 16_000_000  # of one connection; what is longer is cut
PIECE = 65_536
LOOPBACK = "127.0.0.1"
MAX_REFUSALS = 4_096
_HOP = (b"proxy-", b"connection:", b"keep-alive:")


class _ProxyRequest(Struct, frozen=True):
    """A request to a proxy, understood and allowed by its looks."""

    url: Url
    method: bytes = b"CONNECT"
    version: bytes = b"HTTP/1.1"
    rest: bytes = b""


class Gateway:
    """Serves inside `async with gateway.open()`. `refusals` are what it refused, and why, in order."""

    def __init__(
        self,
        guard: AddressGuard,
        resolve: Resolver,
        *,
        proxy: httpcore2.Proxy | None = None,
        no_proxy: Sequence[str] = (),
        head_timeout_s: float = HEAD_TIMEOUT_S,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._guard, self._resolve = guard, resolve
        self._proxy, self._no_proxy = proxy, tuple(no_proxy)
        self._head_timeout_s, self._max_bytes = head_timeout_s, max_bytes
        self._busy: set[asyncio.Task[None]] = set()
        self._seats = asyncio.Semaphore(MAX_CONNECTIONS)
        self.port = 0
        self.closed_ports: set[int] = set()  # doors of our own on loopback, which no exception opens
        self.refusals: list[tuple[str, FetchError]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve_client(reader, writer))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)

        server = await asyncio.start_server(accept, LOOPBACK, 0, limit=MAX_HEAD)
        self.port = server.sockets[0].getsockname()[1]
        self.closed_ports.add(self.port)
        try:
            yield self
        finally:
            server.close()
            for task in self._busy:
                task.cancel()
            await asyncio.gather(*self._busy, return_exceptions=True)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._seats:
                await self._pass_on(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side left, or said nothing that could be answered
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._head_timeout_s):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            request = _parse_proxy_request(head, self._guard)
            by_proxy = self._proxy is not None and not urls.bypasses_proxy(request.url, self._no_proxy)
            far_reader, far_writer = await (self._by_proxy(request) if by_proxy else self._connect_to(request.url))
        except FetchError as error:
            if len(self.refusals) < MAX_REFUSALS:
                # What was asked for, as a browser names it: host:port of a tunnel, else a URL.
                target = head.split(b" ", 2)[1] if head.count(b" ") > 1 else head
                self.refusals.append((target.decode("latin-1")[:500], error))
            return await _send_status(writer, b"403 Forbidden")
        except (OSError, TimeoutError):
            return await _send_status(writer, b"502 Bad Gateway")
        try:
            if request.method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                authorization = _proxy_authorization(self._proxy) if by_proxy else b""
                place = (request.url.href if by_proxy else request.url.target).encode("latin-1", "replace")
                line = b" ".join((request.method, place, request.version))
                far_writer.write(_rewrite_head(line, request.rest, authorization))
                # The head says that no second request may follow: it could be meant for another host.
                line, _, rest = (await far_reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
                writer.write(_rewrite_head(line, rest))
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy_stream(reader, far_writer, (far_writer, writer), self._max_bytes))
                group.create_task(_copy_stream(far_reader, writer, (far_writer, writer), self._max_bytes))
        finally:
            far_writer.close()

    async def _connect_to(self, url: Url) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        resolved = [url.host] if is_address(url.host) else await self._resolve(url.host, url.port)
        addresses = self._guard.usable_addresses(url.host, url.port, resolved)
        self._check_port(url)
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(address, url.port, limit=MAX_HEAD)
        raise ConnectionRefusedError(url.host)

    async def _by_proxy(self, request: _ProxyRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Through the operator's proxy, which picks the address: what the name resolves to here must be allowed."""
        assert self._proxy is not None  # noqa: S101 - who calls has looked
        url, proxy = request.url, self._proxy
        self._check_port(url)
        await check_resolved(url, self._guard, self._resolve)
        async with asyncio.timeout(CONNECT_S):
            port = proxy.url.port or (443 if proxy.url.scheme == b"https" else 80)
            ssl = True if proxy.url.scheme == b"https" else None
            reader, writer = await asyncio.open_connection(proxy.url.host.decode(), port, ssl=ssl, limit=MAX_HEAD)
            if request.method == b"CONNECT":
                place = f"[{url.host}]:{url.port}".encode() if ":" in url.host else f"{url.host}:{url.port}".encode()
                writer.write(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (place, place, _proxy_authorization(proxy)))
                if (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1:2] != [b"200"]:
                    writer.close()
                    raise ConnectionRefusedError(url.host)
        return reader, writer

    def _check_port(self, url: Url) -> None:
        if url.port in self.closed_ports:
            raise FetchError(f"{url.host} is not fetched", reason="blocked", cause="this port belongs to nexi's own browser")


def _parse_proxy_request(head: bytes, guard: AddressGuard) -> _ProxyRequest:
    """What a request to a proxy asks for. Raises FetchError for what may not be asked for."""
    line, _, rest = head.partition(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3:
        raise FetchError("this is no request", reason="blocked", cause="its first line has no three words")
    method, target, version = words[0], words[1].decode("latin-1"), words[2]
    if method == b"CONNECT":
        return _ProxyRequest(guard.check_url(f"https://{target}/"))
    return _ProxyRequest(guard.check_url(target), method, version, rest)


def _rewrite_head(line: bytes, rest: bytes, more: bytes = b"") -> bytes:
    headers = [part for part in rest.split(b"\r\n") if part and not part.lower().startswith(_HOP)]
    return b"\r\n".join([line, *headers, more + b"Connection: close", b"", b""])


def _proxy_authorization(proxy: httpcore2.Proxy | None) -> bytes:
    """The line by which a proxy knows the operator; "" without a name."""
    if proxy is None or not proxy.auth:
        return b""
    return b"Proxy-Authorization: Basic " + b64encode(b":".join(proxy.auth)) + b"\r\n"


async def _send_status(writer: asyncio.StreamWriter, status: bytes) -> None:
    writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()


async def _copy_stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: Sequence[asyncio.StreamWriter], max_bytes: int
) -> None:
    """Until either side ends or the bound is reached; then both connections are closed."""
    with suppress(OSError):
        room = max_bytes
        while room > 0 and (piece := await reader.read(min(PIECE, room))):
            room -= len(piece)
            writer.write(piece)
            await writer.drain()
    for end in both:
        end.close()
