"""The site of an address, for eyes."""

from __future__ import annotations


def site_of(url: str) -> str:
    """The host without `www.`; the address itself where it has none."""
    from nexi.urls import host_of

    try:
        return host_of(url).removeprefix("www.") or url
    except ValueError:
        return url
