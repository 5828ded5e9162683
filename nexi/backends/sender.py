"""One shared way to ask a search service over HTTP, and what every such backend has in common.

A backend is a `BackendDialect`: a name and two pure functions, `request` and `parse`, tested with recorded answers. The URLs
here are the operator's word and pass no guard.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Protocol

import httpx2
from msgspec import Struct

from nexi import urls
from nexi.config import name_service
from nexi.errors import BackendError, ConfigError
from nexi.net.causes import PROXY_CODE, PROXY_LOGIN_STATUS, describe_proxy_fault, plain_cause, status_of_refusal
from nexi.net.trust import MACHINE, Trust, trust_nobody
from nexi.notices import Notice
from nexi.types import Hit, Query

__all__ = ["BackendRequest", "BackendResponse", "HttpBackend", "Sender"]

MAX_BODY = 5_000_000
KEY_TROUBLE = frozenset({"wrong_key", "quota", "rate_limit"})


class BackendRequest(Struct, frozen=True):
    url: str
    method: str = "GET"
    params: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    json: object = None
    timeout_s: float = 10.0


class BackendResponse(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes


class BackendDialect(Protocol):
    """How one service is asked and how its answers read. `parse` raises BackendError; an empty list is empty on purpose."""

    @property
    def name(self) -> str: ...

    def request(self, query: Query) -> BackendRequest: ...

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]: ...


class Sender:
    """Owns the connections of all HTTP backends; TLS settings are loaded when the first https request comes."""

    def __init__(self, *, user_agent: str, proxy: str = "", no_proxy: Sequence[str] = (), trust: Trust = MACHINE) -> None:
        self._user_agent, self._trust = user_agent, trust
        self._proxy, self._no_proxy = proxy, tuple(no_proxy)
        self._clients: dict[tuple[str, str], httpx2.AsyncClient] = {}  # by scheme and proxy
        self._opening = asyncio.Lock()

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        """The answer, whatever its status. Raises BackendError for what fails below HTTP."""
        try:
            url = urls.parse(request.url)
        except ValueError as error:
            raise _wrong_url(service, request.url, str(error)) from error
        if url.scheme not in urls.DEFAULT_PORTS:
            raise _wrong_url(service, request.url, "it is no http or https URL")
        proxy = "" if urls.bypasses_proxy(url, self._no_proxy) else self._proxy
        client = await self._client_for(url.scheme, proxy)
        try:
            async with asyncio.timeout(request.timeout_s):
                response = await self._send_once(client, request)
        except (httpx2.HTTPError, TimeoutError) as error:
            if proxy and not isinstance(_root_cause(error), ssl.SSLError):  # a certificate is that of the host behind it
                if isinstance(error, httpx2.ProxyError):
                    raise _proxy_error(proxy, url, status_of_refusal(str(error))) from error
                if isinstance(error, httpx2.ConnectError):
                    raise _proxy_error(proxy, url) from error
            raise _translate_error(service, request, error) from error
        if proxy and response.status == PROXY_LOGIN_STATUS:
            raise _proxy_error(proxy, url, response.status)
        return response

    async def aclose(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def _send_once(self, client: httpx2.AsyncClient, request: BackendRequest) -> BackendResponse:
        async with client.stream(
            request.method,
            request.url,
            params=list(request.params) or None,
            headers=dict(request.headers),
            json=request.json,
            # The deadline over the whole exchange is the caller's; connecting gives up before it, which closes the socket.
            timeout=httpx2.Timeout(None, connect=0.9 * request.timeout_s),
        ) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BODY:
                    break
            headers = {"date": format_datetime(datetime.now(UTC), usegmt=True), **response.headers}
            return BackendResponse(response.status_code, headers, bytes(body[:MAX_BODY]))

    async def _client_for(self, scheme: str, proxy: str) -> httpx2.AsyncClient:
        async with self._opening:
            if (scheme, proxy) not in self._clients:
                self._clients[scheme, proxy] = httpx2.AsyncClient(
                    verify=await _load_certificates(scheme, self._trust),
                    trust_env=False,  # proxies and certificates are the configuration's
                    proxy=proxy or None,
                    follow_redirects=False,  # one is an answer of its own: a login, or a service that has moved
                    headers={"User-Agent": self._user_agent, "Accept-Encoding": "gzip, deflate"},
                )
            return self._clients[scheme, proxy]


class HttpBackend:
    """A dialect on a sender: the SearchBackend port."""

    # With several keys there is one dialect for each: a key that is refused, spent or limited gives way to the next, and the
    # one that worked is asked first from then on.

    def __init__(self, dialect: BackendDialect, sender: Sender, *, spares: Sequence[BackendDialect] = ()) -> None:
        self._dialects, self._sender = (dialect, *spares), sender
        self._current = 0
        self.name = dialect.name
        self.filters = frozenset[str](getattr(dialect, "filters", ()))
        self.interval_s = float(getattr(dialect, "interval_s", 0.0))

    async def search(self, query: Query) -> list[Hit]:
        first, count = self._current, len(self._dialects)
        for turn in range(count):
            index = (first + turn) % count
            try:
                hits = await self._ask_dialect(self._dialects[index], query)
            except BackendError as error:
                if error.code in KEY_TROUBLE and turn < count - 1:
                    continue
                if error.code in KEY_TROUBLE and count > 1:
                    error.cause = f"none of the {count} keys is accepted; the last: {error.cause}"
                raise
            self._current = index
            return hits
        raise AssertionError("a backend has at least one dialect")

    async def _ask_dialect(self, dialect: BackendDialect, query: Query) -> list[Hit]:
        response = await self._sender.send(self.name, dialect.request(query))
        return dialect.parse(response.status, response.headers, response.body)[: query.count]


async def _load_certificates(scheme: str, trust: Trust) -> ssl.SSLContext:
    """Certificates are loaded off the event loop, and only where TLS is spoken."""
    if scheme != "https":
        return trust_nobody()
    try:
        return await asyncio.to_thread(lambda: trust.context() or httpx2.create_ssl_context(trust_env=False))
    except ConfigError as error:
        raise BackendError(str(error), code="tls", cause=error.cause, fix=error.fix) from error


def _proxy_error(proxy: str, url: urls.Url, status: int = 0) -> BackendError:
    fault = describe_proxy_fault(proxy, url.host, status)
    return BackendError(fault.message, code=PROXY_CODE, cause=fault.cause, fix=fault.fix)


def _translate_error(service: str, request: BackendRequest, error: Exception) -> BackendError:
    cause = plain_cause(urls.hide_userinfo(str(error))) or type(error).__name__
    where = urls.hide_userinfo(request.url.partition("?")[0])
    setting, service = "jina_timeout" if service == "jina" else "search_timeout", name_service(service)
    if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
        message = Notice("service.timeout", "{service} did not answer in time", service=service)
        delay, fix = f"{where} took more than {request.timeout_s:g} s", f"try again, or raise {setting} in the config"
        return BackendError(message, code="timeout", cause=delay, fix=fix, retryable=True)
    match _root_cause(error):
        case ssl.SSLError():
            message = Notice("service.certificate", "{service} has no valid certificate", service=service)
            fix = f"check that {where} speaks https with a certificate this machine trusts (SSL_CERT_FILE)"
            return BackendError(message, code="tls", cause=cause, fix=fix)
        case socket.gaierror():
            message = Notice("service.unreachable", "{service} cannot be reached", service=service)
            cause = Notice("network.host_name", "the name of its host cannot be resolved")
            return BackendError(message, code="dns", cause=cause, fix=f"check the network, and the host in {where}")
        case ConnectionRefusedError():
            message = Notice("service.refused", "{service} refused the connection", service=service)
            cause = Notice("service.not_listening", "nothing listens at {where}", where=where)
            fix = Notice("fix.start_service", "start the service, or correct its URL")
            return BackendError(message, code="refused", cause=cause, fix=fix)
    message = Notice("service.broken", "the connection to {service} failed", service=service)
    return BackendError(message, code="network", cause=cause, fix=Notice("fix.network", "check the network"), retryable=True)


def _root_cause(error: BaseException) -> BaseException:
    """The operating system's own error beneath the libraries' wrapping; of several tries, the first."""
    while True:
        inner: Any = error.__cause__ or error.__context__
        if isinstance(error, BaseExceptionGroup):
            inner = error.exceptions[0]
        if inner is None or isinstance(error, (ssl.SSLError, socket.gaierror, ConnectionRefusedError)):
            return error
        error = inner


def _wrong_url(service: str, url: str, cause: str) -> BackendError:
    fix = f"correct {urls.hide_userinfo(url)[:200]!r} in the configuration"
    return BackendError(f"the URL of {service} cannot be used", code="wrong_url", cause=urls.hide_userinfo(cause), fix=fix)
