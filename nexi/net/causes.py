"""Why a connection failed, in words for people: by what the system or a library says, or at the operator's HTTP proxy. Pure.

Above sit the adapters of search services, pages and models; below nothing. A proxy that cannot be used is named itself: who
stands behind it has not been asked.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Struct

from nexi.notices import Notice

PROXY_CODE = "proxy"
PROXY_LOGIN_STATUS = 407

_UNKNOWN_NAME = re.compile(
    r"name or service not known|nodename nor servname|name resolution|getaddrinfo failed|no address", re.I
)
_NO_LISTENER = re.compile(r"connection refused|all connection attempts failed|actively refused", re.IGNORECASE)
_CODES = re.compile(r"^\[[^\]]*\]\s*|\s*\(_ssl\.c:\d+\)")  # such as [Errno 111], [SSL: WRONG_VERSION_NUMBER]


def plain_cause(words: str) -> str:
    """The same cause without error numbers, and in plain English where it is a common one."""
    if _UNKNOWN_NAME.search(words):
        return Notice("network.own_name", "its name cannot be resolved")
    if _NO_LISTENER.search(words):
        return Notice("network.no_listener", "nothing answers at that address")
    return _CODES.sub("", words).strip() or words


class ProxyFault(Struct, frozen=True):
    """What happened, why, and what fixes it."""

    message: str
    cause: str
    fix: str


def describe_proxy_fault(proxy: str, host: str, status: int = 0) -> ProxyFault:
    """The fault of a proxy that was asked for a host: with a status it refused, without one it could not be reached."""
    place = urlsplit(proxy if "://" in proxy else f"http://{proxy}").netloc.rpartition("@")[2]  # without name and password
    if status == PROXY_LOGIN_STATUS:
        return ProxyFault(
            Notice("proxy.login", "the proxy {proxy} requires a login", proxy=place),
            cause=f"HTTP {status}: it does not accept the user name and password in HTTP_PROXY, or there are none",
            fix=f"set HTTP_PROXY and HTTPS_PROXY to http://USER:PASSWORD@{place}",
        )
    if status:
        return ProxyFault(
            Notice("proxy.refused", "the proxy {proxy} refused the connection", proxy=place),
            cause=f"HTTP {status} for {host}",
            fix=f"ask its operator to allow {host}, or add {host} to NO_PROXY if it can be reached directly",
        )
    return ProxyFault(
        Notice("proxy.unreachable", "the proxy {proxy} cannot be reached", proxy=place),
        cause=Notice("network.no_listener", "nothing answers at that address"),
        fix="start it, correct HTTP_PROXY and HTTPS_PROXY, or unset them if there is no proxy",
    )


def status_of_refusal(words: str) -> int:
    """The status with which a proxy refused a tunnel, as the library's error begins with it; 0 where it has none."""
    status = re.match(r"(\d{3})\b", words)
    return int(status[1]) if status else 0
