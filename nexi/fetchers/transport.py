"""One request over the network, with nothing added to it, and the body of its answer under a cap.

URLs come parsed by `nexi.urls` and are not parsed a second time; no cookies, no redirects, no environment. HTTP/2 is spoken
with sites that offer it, where h2 is installed; a site that breaks it is asked by HTTP/1.1 from then on. Behind a proxy an
address cannot be pinned: there the guard checks what the name resolves to here.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore2
from msgspec import Struct

from nexi import urls
from nexi.errors import ConfigError, FetchError
from nexi.fetchers.guard import AddressGuard, GuardedBackend, Resolver, resolve_host
from nexi.net.addresses import is_address
from nexi.net.causes import PROXY_LOGIN_STATUS, describe_proxy_fault, status_of_refusal
from nexi.net.trust import MACHINE, Trust
from nexi.urls import Url

CONNECT_S = 10.0
KEEPALIVE_S = 30.0
MAX_CONNECTIONS = 64
MAX_REMEMBERED = 1_024
CANCEL_TIMEOUT_S = 0.5  # a site that does not take the cancellation within this loses the connection
CANCELLED = 8  # the error code CANCEL of RFC 9113
MAX_MEMBERS = 64
ZSTD_WINDOW = 8_388_608  # what RFC 9659 lets a server ask of a client
ZSTD_PIECE = 256  # four bytes can stand for 128 KB, and the library does not bound what comes out of one call

_GZIP = 16 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS

if HAS_HTTP2 := find_spec("h2") is not None:
    # httpcore2 has imported it already: this costs nothing.
    from h2.events import ConnectionTerminated, DataReceived, StreamReset
    from h2.exceptions import H2Error

    _HTTP2_FAILURES: tuple[type[Exception], ...] = (H2Error, httpcore2.ConnectionNotAvailable)
else:
    _HTTP2_FAILURES = ()


class TransportAnswer(Struct, frozen=True):
    """Status and headers of a response, and its body as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport:
    """Owns the connections. The TLS settings are loaded when the first https URL comes: they cost as much as a page."""

    def __init__(
        self,
        guard: AddressGuard,
        *,
        proxy: str = "",
        no_proxy: Sequence[str] = (),
        resolve: Resolver = resolve_host,
        trust: Trust = MACHINE,
        speaks_http2: bool = HAS_HTTP2,
        cancel_timeout_s: float = CANCEL_TIMEOUT_S,
    ) -> None:
        self._guard, self._resolve, self._trust = guard, resolve, trust
        self._speaks_http2, self._cancel_timeout_s = speaks_http2, cancel_timeout_s
        self._proxy = proxy_of(proxy) if proxy else None
        self._proxy_url, self._no_proxy = proxy, tuple(no_proxy)
        # Each way to a site has connections of its own: by its scheme, through a proxy or not, over HTTP/2 or not.
        self._pools: dict[tuple[str, bool, bool], httpcore2.AsyncConnectionPool] = {}
        self._without_http2: set[str] = set()
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def ask(self, url: Url, headers: Mapping[str, str], body: bytes | None = None) -> AsyncIterator[TransportAnswer]:
        """The answer to one GET, or to one POST of a body; leaving the block early closes the connection. Raises FetchError."""
        by_proxy = self._proxy is not None and not urls.bypasses_proxy(url, self._no_proxy)
        if by_proxy:
            await check_resolved(url, self._guard, self._resolve)
        request = httpcore2.Request(
            "GET" if body is None else "POST",
            httpcore2.URL(scheme=url.scheme, host=url.host, port=url.explicit_port, target=url.target),
            headers=[("Host", url.authority), *headers.items()],
            content=body,
            extensions={"timeout": {"connect": CONNECT_S}},
        )
        by_http2 = self._speaks_http2 and url.scheme == "https" and url.origin not in self._without_http2
        try:
            response = await self._send_request(request, (url.scheme, by_proxy, by_http2))
            try:
                if by_proxy and response.status == PROXY_LOGIN_STATUS:
                    raise _proxy_error(self._proxy_url, url, response.status)
                yield TransportAnswer(response.status, _fold_headers(response.headers), response.aiter_stream())
            finally:
                if response.extensions.get("http_version") == b"HTTP/2":
                    await _cancel_response(response, self._cancel_timeout_s)
                else:
                    await response.aclose()
        except _FAILURES as error:
            if by_http2 and _describe_http2_error(error):
                if len(self._without_http2) >= MAX_REMEMBERED:
                    self._without_http2.clear()
                self._without_http2.add(url.origin)
            raise _translate_error(error, url, self._proxy_url if by_proxy else "") from error

    async def aclose(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    async def _send_request(self, request: httpcore2.Request, way: tuple[str, bool, bool]) -> httpcore2.Response:
        scheme, by_proxy, by_http2 = way
        try:
            async with self._opening:
                if way not in self._pools:
                    make_default = partial(httpcore2.default_ssl_context, _trust_env=False)
                    is_tls = scheme == "https"
                    self._pools[way] = httpcore2.AsyncConnectionPool(
                        ssl_context=await asyncio.to_thread(load_certificates, self._trust, make_default) if is_tls else None,
                        proxy=self._proxy if by_proxy else None,
                        max_connections=MAX_CONNECTIONS,
                        keepalive_expiry=KEEPALIVE_S,
                        http2=by_http2,
                        network_backend=None if by_proxy else GuardedBackend(self._guard, resolve=self._resolve),
                    )
            return await self._pools[way].handle_async_request(request)
        except ValueError as error:  # over HTTP/2 a status is not checked to be a number
            raise httpcore2.RemoteProtocolError(str(error)) from error


async def _cancel_response(response: httpcore2.Response, timeout_s: float) -> None:
    """Cancel what is still to come of an answer over HTTP/2, and close it."""
    # A page that is left early costs HTTP/1.1 its connection. Here other pages share it, so the one stream is cancelled and
    # what came of it is given back to the flow control; httpcore2 does neither, and after a few large pages such a connection
    # would stand still. This reaches into its objects, and closes the connection where they are not as it knows them.
    try:
        async with asyncio.timeout(timeout_s):
            stream: Any = response.stream
            body = stream._stream
            connection, number = body._connection, body._stream_id
            unread = [event for event in connection._events.get(number, ()) if isinstance(event, DataReceived)]
            state = connection._h2_state
            try:
                state.acknowledge_received_data(sum(event.flow_controlled_length or 0 for event in unread), number)
                state.reset_stream(number, CANCELLED)
            except _HTTP2_FAILURES:
                pass  # it has ended, or the connection has
            else:
                await connection._write_outgoing_data(body._request)
    except (AttributeError, TimeoutError, httpcore2.NetworkError, httpcore2.ProtocolError):
        await response.extensions["network_stream"].aclose()
    await response.aclose()


async def check_resolved(url: Url, guard: AddressGuard, resolve: Resolver) -> None:
    """Check what a name stands for here before another machine, which picks the address, is asked for it. Raises FetchError."""
    try:
        addresses = [url.host] if is_address(url.host) else await resolve(url.host, url.port)
    except (OSError, FetchError):
        addresses = []  # a name that only the other machine can resolve is its to judge
    guard.check_all(url.host, url.port, addresses)


def load_certificates(trust: Trust, make_default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """The TLS settings of the operator, else a library's own. Raises FetchError."""
    try:
        return trust.context() or make_default()
    except ConfigError as error:
        raise FetchError(str(error), cause=error.cause, fix=error.fix) from error


_FAILURES: tuple[type[Exception], ...] = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    *_HTTP2_FAILURES,
)


def _translate_error(error: Exception, url: Url, proxy: str) -> FetchError:
    if isinstance(error, httpcore2.ProxyError):
        return _proxy_error(proxy, url, status_of_refusal(str(error)))
    cause = _describe_http2_error(error) or str(error) or type(error).__name__
    if isinstance(error, httpcore2.TimeoutException):
        return FetchError(f"{url.host} did not answer", reason="timeout", cause=cause, fix="try again later or another page")
    if any(isinstance(inner, ssl.SSLError) for inner in (error.__cause__, *error.args)):
        return FetchError(f"{url.host} has no valid certificate", cause=cause, fix="use another page, or fix its certificate")
    if proxy and isinstance(error, httpcore2.ConnectError):
        return _proxy_error(proxy, url)
    fix = "try again later or another page"
    return FetchError(f"the connection to {url.host} failed", cause=cause, fix=fix, retryable=True)


def _describe_http2_error(error: Exception) -> str:
    """What went wrong over HTTP/2, which httpcore2 leaves unsaid, in words; "" for what has nothing to do with it."""
    if not HAS_HTTP2:
        return ""
    event = error.args[0] if error.args else None
    if isinstance(event, StreamReset | ConnectionTerminated):
        deed = "broke the answer off" if isinstance(event, StreamReset) else "ended the connection"
        return f"the site {deed} (HTTP/2 {getattr(event.error_code, 'name', event.error_code)})"
    if isinstance(error, _HTTP2_FAILURES) or isinstance(event, H2Error):
        return f"the site does not keep to HTTP/2 ({type(event if isinstance(event, H2Error) else error).__name__})"
    return ""


def _proxy_error(proxy: str, url: Url, status: int = 0) -> FetchError:
    fault = describe_proxy_fault(proxy, url.host, status)
    return FetchError(fault.message, cause=fault.cause, fix=fault.fix)


def _fold_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; repeated ones are joined as the standard says."""
    texts: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        texts[key] = f"{texts[key]}, {text}" if key in texts else text
    return texts


def proxy_of(proxy: str) -> httpcore2.Proxy:
    """The operator's proxy. Raises ConfigError."""
    text = proxy if "://" in proxy else f"http://{proxy}"
    try:
        url, login = urls.parse(text), urlsplit(text)
        is_web_url = url.scheme in urls.DEFAULT_PORTS
    except ValueError:
        is_web_url = False
    if not is_web_url:
        cause, fix = "it is no http or https URL", "write it like http://proxy.example:3128"
        raise ConfigError("the proxy cannot be used", cause=cause, fix=fix)
    auth = (unquote(login.username or ""), unquote(login.password or "")) if url.userinfo else None
    return httpcore2.Proxy(httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target="/"), auth=auth)


class Body(Struct, frozen=True):
    """`received` counts the bytes on the wire; `truncated` says that the cap was reached and the rest left unread."""

    data: bytes
    received: int = 0
    truncated: bool = False


async def read_body(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> Body:
    """The body, decoded, cut at `max_bytes` of either form. Raises FetchError for what cannot be decoded."""
    name = encoding.strip().lower()
    if name not in ("", "identity", "x-gzip", *accepted_encodings().split(", ")):
        raise _decoding_error(f"it is encoded as {name[:60]!r}, which was not offered")
    inflate = _DECODERS[name]()
    parts: list[bytes] = []
    size = received = 0
    async for chunk in chunks:
        received += len(chunk)
        try:
            # One compressed piece can hold a thousand times its size, so inflating itself is bounded and not only the sum. One
            # byte more than the cap tells a body that ends there from one that goes on.
            part = inflate.feed(chunk, max_bytes + 1 - size)
        except inflate.errors as error:
            raise _decoding_error(str(error)) from error
        parts.append(part)
        size += len(part)
        if size > max_bytes or received > max_bytes:
            return Body(b"".join(parts)[:max_bytes], received, truncated=True)
    if received and not inflate.is_complete:
        raise _decoding_error("the compressed body ends too early")
    return Body(b"".join(parts), received)


@cache
def accepted_encodings() -> str:
    """The value of Accept-Encoding: what can be undone here."""
    optional = [name for name, module in (("br", "brotli"), ("zstd", "zstandard")) if find_spec(module)]
    return ", ".join(["gzip", "deflate", *optional])


class _Decoder:
    """A body as it came; the others undo an encoding. `errors` are what `feed` raises besides FetchError."""

    errors: tuple[type[Exception], ...] = ()

    @property
    def is_complete(self) -> bool:
        return True

    def feed(self, chunk: bytes, room: int) -> bytes:
        return chunk[:room]


class _Inflater(_Decoder):
    errors = (zlib.error,)

    def __init__(self, wbits: int) -> None:
        self._wbits, self._zlib = wbits, zlib.decompressobj(wbits)
        self._fed, self._members = False, 1

    @property
    def is_complete(self) -> bool:
        return self._zlib.eof

    def feed(self, chunk: bytes, room: int) -> bytes:
        try:
            out = self._zlib.decompress(chunk, room)
        except zlib.error:
            # Servers send `deflate` with and without the zlib header; only the first bytes tell.
            if self._fed or self._wbits != zlib.MAX_WBITS:
                raise
            self._zlib = zlib.decompressobj(_RAW_DEFLATE)
            out = self._zlib.decompress(chunk, room)
        self._fed = True
        # gzip files may be several members one after the other; anything else after the last one is padding.
        is_gzip = self._wbits == _GZIP
        while is_gzip and len(out) < room and self._zlib.eof and self._zlib.unused_data.startswith(b"\x1f\x8b"):
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise _decoding_error(f"it has more than {MAX_MEMBERS} compressed parts")
            rest, self._zlib = self._zlib.unused_data, zlib.decompressobj(self._wbits)
            out += self._zlib.decompress(rest, room - len(out))
        return out


class _Brotli(_Decoder):
    def __init__(self) -> None:
        brotli: Any = import_module("brotli")
        self._brotli: Any = brotli.Decompressor()
        self.errors = (brotli.error,)

    @property
    def is_complete(self) -> bool:
        return bool(self._brotli.is_finished())

    def feed(self, chunk: bytes, room: int) -> bytes:
        out = bytearray()
        while True:
            out += self._brotli.process(chunk, output_buffer_limit=max(1, room - len(out)))
            chunk = b""
            if len(out) >= room or self.is_complete or self._brotli.can_accept_more_data():
                return bytes(out[:room])


class _Zstd(_Decoder):
    def __init__(self) -> None:
        zstandard: Any = import_module("zstandard")
        self._library: Any = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._frame = self._library.decompressobj()
        self.errors = (zstandard.ZstdError,)
        self._frames = 1

    @property
    def is_complete(self) -> bool:
        return bool(self._frame.eof)

    def feed(self, chunk: bytes, room: int) -> bytes:
        out = bytearray()
        for start in range(0, len(chunk), ZSTD_PIECE):
            piece = chunk[start : start + ZSTD_PIECE]
            while piece:  # a body may be several frames one after the other
                if self._frame.eof:
                    self._frames += 1
                    if self._frames > MAX_MEMBERS:
                        raise _decoding_error(f"it has more than {MAX_MEMBERS} compressed parts")
                    self._frame = self._library.decompressobj()
                out += self._frame.decompress(piece)
                piece = self._frame.unused_data if self._frame.eof else b""
            if len(out) >= room:
                break
        return bytes(out[:room])


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    **dict.fromkeys(("", "identity"), _Decoder),
    **dict.fromkeys(("gzip", "x-gzip"), partial(_Inflater, _GZIP)),
    "deflate": partial(_Inflater, zlib.MAX_WBITS),
    "br": _Brotli,
    "zstd": _Zstd,
}


def _decoding_error(cause: str) -> FetchError:
    return FetchError("the page could not be decoded", reason="error", cause=cause, fix="try another page")
