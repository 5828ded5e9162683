"""The site of a URL, for display."""

from __future__ import annotations


def site_of(url: str) -> str:
    """The host without `www.`; the URL itself if it has no host."""
    from nexi.urls import host_of

    try:
        return host_of(url).removeprefix("www.") or url
    except ValueError:
        return url
