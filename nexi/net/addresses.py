"""Which addresses are this machine's own. Names are not looked up: only `localhost` and its subdomains count as names."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

MIN_TOKEN_CHARS = 16  # for a server beyond this machine: a client may try 600 a minute


def is_loopback_host(host: str) -> bool:
    """Whether a host, as a name or an address, can only be this machine."""
    name = host.strip("[]").rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def is_address(host: str) -> bool:
    """Whether a host is an IP address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback_url(url: str) -> bool:
    """Whether a URL leads to this machine."""
    try:
        return is_loopback_host(urlsplit(url).hostname or "")
    except ValueError:
        return False
