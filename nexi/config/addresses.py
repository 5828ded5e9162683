"""Addresses and keys in settings: their parts, the site a key belongs to, and what of them may be shown.

Of settings only the names of known key owners are known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from nexi.config.names import KEY_HOSTS


def split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def site(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what a key belongs to."""
    parts = split(url)
    if parts is None:
        return ("", url, None)
    return (parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme))


def key_owner(base_url: str) -> str:
    """The provider this address is known to be, reached safely; else nothing."""
    scheme, host, port = site(base_url)
    return KEY_HOSTS.get(host, "") if (scheme, port) == ("https", 443) else ""


def searxng_base(url: str) -> str:
    """The instance behind an address that others write with its path and query (`.../search?q=<query>`)."""
    return url.split("?", 1)[0].rstrip("/").removesuffix("/search").rstrip("/")


def proxy_address(proxy: str) -> str:
    """Proxies are often named without a scheme."""
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


ADDRESS_FORMS = {"searxng_url": searxng_base, "http_proxy": proxy_address, "https_proxy": proxy_address}


def without_password(url: str) -> str:
    parts = split(url)
    if parts is None:
        return "…"
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc=f"…@{parts.netloc.rpartition('@')[2]}").geturl()


def mask(key: str) -> str:
    """Enough of a key to tell which one it is."""
    if not key:
        return ""
    return f"{key[:3]}…{key[-2:]}" if len(key) >= 12 else "set"


def masked_role(part: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(part)
    if "api_key" in shown:
        shown["api_key"] = mask(shown["api_key"])
    if "base_url" in shown:
        shown["base_url"] = without_password(shown["base_url"])
    return shown
