"""The boundary between strangers' URLs and our network: which addresses a page may be fetched from.

`forbidden_reason` is the rule about addresses, `AddressGuard` adds the operator's exceptions, and `GuardedBackend` enforces
both at the only place where it cannot be talked around: in the connect call, on the literal address that is then connected to.
A name is resolved once and the answer is pinned, so redirects, rebinding and odd spellings all end here. Endpoints the
operator configured do not pass through it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import httpcore2
import msgspec

from nexi import urls
from nexi.errors import ConfigError, FetchError
from nexi.net.addresses import is_address
from nexi.urls import Url

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

ATTEMPT_S = 3.0  # an address that does not answer must not keep the next one waiting for the whole deadline
ALLOW_FIX = "add the host, host:port or network to allow_private (NEXI_ALLOW_PRIVATE) if its pages may be read"

METADATA = "cloud metadata"


class _AddressTable(msgspec.Struct, frozen=True):
    """Networks by what they are, the first that has an address counting, and ports on which other protocols listen that could
    be made to read an HTTP request as theirs."""

    networks: dict[str, tuple[str, ...]]
    ports: frozenset[int]


_TABLE = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_AddressTable)
_RULES: tuple[tuple[str, Network], ...] = tuple(
    (name, ipaddress.ip_network(network)) for name, networks in _TABLE.networks.items() for network in networks
)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the third quarter of an address of any network, before an IPv4 address


def forbidden_reason(address: str) -> str:
    """Why pages may not come from this address, or "" when they may."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(ip, ipaddress.IPv6Address) and ip.scope_id:
        return "link-local"
    for name, network in _RULES:
        if ip in network:
            return name
    if int(ip) >> 32 & 0xFFFF_FFFF in _ISATAP:
        return "ISATAP"
    return "" if ip.version == 4 or ip in _GLOBAL_UNICAST else "reserved"


class AddressGuard:
    """The address rule with the operator's exceptions: exact hosts, `host:port`, and networks in CIDR form."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._networks: list[Network] = []
        self._hosts: set[tuple[str, int | None]] = set()
        for entry in (entry.strip().lower() for entry in allow if entry.strip()):
            try:
                if "/" in entry:
                    self._networks.append(ipaddress.ip_network(entry, strict=False))
                else:
                    self._hosts.add(_parse_host(entry))
            except ValueError as error:
                cause = "it is neither a host, a host:port nor a network"
                fix = "write it like wiki.lan, 127.0.0.1:8080 or 10.0.0.0/8"
                message = f"allow_private has an entry that cannot be used: {entry!r}"
                raise ConfigError(message, cause=cause, fix=fix) from error

    def check_url(self, url: str) -> Url:
        """The parsed URL, or FetchError("blocked") for what can be refused before any name is looked up."""
        try:
            page = urls.parse(url)
        except ValueError as error:
            fix = "use a full address that starts with https://"
            raise FetchError("this cannot be fetched", reason="blocked", cause=str(error), fix=fix) from error
        if page.scheme not in urls.DEFAULT_PORTS:
            raise _blocked_error(page.href, f"only http and https are fetched, not {page.scheme}", "use an http(s) URL")
        if page.userinfo:
            raise _blocked_error(page.origin, "it carries a user name or password", "use the URL without credentials")
        if page.port in _TABLE.ports and not self._is_allowed_name(page.host, page.port, with_port=True):
            raise _blocked_error(page.href, f"port {page.port} belongs to another protocol", ALLOW_FIX)
        if is_address(page.host):
            self.usable_addresses(page.host, page.port, [page.host])
        return page

    def usable_addresses(self, host: str, port: int, addresses: Iterable[str]) -> list[str]:
        """Those of a host's addresses that may be connected to; FetchError("blocked") when none may."""
        candidates = list(addresses)
        if self._is_allowed_name(host, port):
            return candidates
        reasons: dict[str, str] = {}
        for address in candidates:
            reasons[address] = forbidden_reason(address)
            with suppress(ValueError):  # of what is no address, which no network has
                ip = ipaddress.ip_address(address)
                if any(ip in network for network in self._networks):
                    reasons[address] = ""
        usable = [address for address, reason in reasons.items() if not reason]
        if not usable:
            cause = ", ".join(f"{address} is {reason}" for address, reason in reasons.items()) or "the name has no address"
            name = host if port in urls.DEFAULT_PORTS.values() else f"{host}:{port}"
            how = f"if its pages may be read: nexi config add allow_private {name}"
            raise _blocked_error(host, cause, ALLOW_FIX if METADATA in reasons.values() else how)
        return usable

    def check_all(self, host: str, port: int, addresses: Iterable[str]) -> None:
        """Refuse a host with any forbidden address: for a proxy, which picks the address itself."""
        for address in addresses:
            self.usable_addresses(host, port, [address])

    def _is_allowed_name(self, host: str, port: int, *, with_port: bool = False) -> bool:
        return (host, port) in self._hosts or (not with_port and (host, None) in self._hosts)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves once, checks, and connects to the literal address that was checked."""

    def __init__(
        self, guard: AddressGuard, *, resolve: Resolver | None = None, inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._guard, self._resolve = guard, resolve or resolve_host
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        resolved = [host] if is_address(host) else await self._resolve(host, port)
        *firsts, last = self._guard.usable_addresses(host, port, resolved)
        for address in firsts:
            try:
                return _GuardedStream(await self._inner.connect_tcp(address, port, ATTEMPT_S, local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return _GuardedStream(await self._inner.connect_tcp(last, port, timeout, local_address, socket_options))

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore2's
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise _blocked_error(path, "a page never comes from a local socket", "use an http(s) URL")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _GuardedStream(httpcore2.AsyncNetworkStream):
    """The connection as it is, except that a handshake or a write that is cancelled closes it: httpcore2 would leave a socket
    open, or go on over HTTP/2 after half a frame."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore2's signature
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore2's signature
        try:
            await self._inner.write(buffer, timeout)
        except asyncio.CancelledError:
            await self._inner.aclose()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
    ) -> httpcore2.AsyncNetworkStream:
        try:
            return _GuardedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))
        except asyncio.CancelledError:
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


async def resolve_host(host: str, port: int) -> list[str]:
    """All addresses of a name, in the system's order of preference; FetchError when it has none."""
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        cause, fix = "its name cannot be resolved", "check the spelling and the network"
        raise FetchError(f"the host {host} was not found", reason="error", cause=cause, fix=fix) from error
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def _parse_host(entry: str) -> tuple[str, int | None]:
    """A host exception as the parser spells hosts: no brackets, the shortest form of an address. None is any port."""
    bare_ipv6 = entry.count(":") > 1 and not entry.startswith("[")
    url = urls.parse(f"http://[{entry}]" if bare_ipv6 else f"http://{entry}")
    if url.target != "/" or url.userinfo:
        raise ValueError("more than a host and a port")
    has_port = not bare_ipv6 and entry.rpartition(":")[2].isdecimal() and not entry.endswith("]")
    return url.host, url.port if has_port else None


def _blocked_error(what: str, cause: str, fix: str) -> FetchError:
    return FetchError(f"{what[:200]} is not fetched", reason="blocked", cause=cause, fix=fix)
