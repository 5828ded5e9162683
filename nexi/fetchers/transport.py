"""One request over the network, with nothing added to it.

URLs come parsed by `nexi.urls` and are not parsed a second time; no cookies, no redirects, no decoding, no environment. HTTP/2
is spoken with sites that offer it, where h2 is installed; a site that breaks it is asked by HTTP/1.1 from then on. Behind a
proxy an address cannot be pinned: there the guard checks what the name resolves to here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import unquote, urlsplit

import httpcore2
from msgspec import Struct

from nexi import urls
from nexi.errors import ConfigError, FetchError
from nexi.fetchers import http2
from nexi.fetchers.guard import AddressGuard, GuardedBackend, Resolver, resolve_host
from nexi.net import proxies
from nexi.net.addresses import is_address
from nexi.net.trust import MACHINE, Trust
from nexi.urls import Url

CONNECT_S = 10.0
KEEPALIVE_S = 30.0
MAX_CONNECTIONS = 64
MAX_REMEMBERED = 1_024


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
        speaks_http2: bool = http2.installed,
        cancel_timeout_s: float = http2.CANCEL_TIMEOUT_S,
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
                if by_proxy and response.status == proxies.LOGIN_STATUS:
                    raise _proxy_error(self._proxy_url, url, response.status)
                yield TransportAnswer(response.status, _fold_headers(response.headers), response.aiter_stream())
            finally:
                if response.extensions.get("http_version") == b"HTTP/2":
                    await http2.cancel_response(response, self._cancel_timeout_s)
                else:
                    await response.aclose()
        except _FAILURES as error:
            if by_http2 and http2.describe_error(error):
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
    *http2.FAILURES,
)


def _translate_error(error: Exception, url: Url, proxy: str) -> FetchError:
    if isinstance(error, httpcore2.ProxyError):
        return _proxy_error(proxy, url, proxies.status_of_refusal(str(error)))
    cause = http2.describe_error(error) or str(error) or type(error).__name__
    if isinstance(error, httpcore2.TimeoutException):
        return FetchError(f"{url.host} did not answer", reason="timeout", cause=cause, fix="try again later or another page")
    if any(isinstance(inner, ssl.SSLError) for inner in (error.__cause__, *error.args)):
        return FetchError(f"{url.host} has no valid certificate", cause=cause, fix="use another page, or fix its certificate")
    if proxy and isinstance(error, httpcore2.ConnectError):
        return _proxy_error(proxy, url)
    fix = "try again later or another page"
    return FetchError(f"the connection to {url.host} failed", cause=cause, fix=fix, retryable=True)


def _proxy_error(proxy: str, url: Url, status: int = 0) -> FetchError:
    fault = proxies.describe_proxy_fault(proxy, url.host, status)
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
