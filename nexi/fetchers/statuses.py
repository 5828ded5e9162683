"""What the status of a page's answer means, for every fetcher that sees one.

Above sit the fetchers; below nothing but `obstacles`, which reads the headers of a refusal. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from nexi.errors import FetchError
from nexi.fetchers import obstacles
from nexi.net.retry import retry_after
from nexi.notices import Notice
from nexi.urls import Url

_BLOCKED = {
    401: "the page requires a login",
    403: "the site refuses automated readers or requires a login",
    407: "a proxy requires a login",
    429: "the site limits how often it may be asked",
    451: "the page is withheld for legal reasons",
    503: "the site is overloaded or refuses automated readers",
}
_FIXES = {401: obstacles.LOGIN_FIX, 429: "wait, or try another page", 451: "try another page"}


def check_status(status: int, headers: Mapping[str, str], url: Url) -> None:
    """FetchError for a status that is no page."""
    if status in _BLOCKED:
        raise FetchError(
            f"{url.href[:200]} could not be read",
            reason="blocked",
            cause=f"{obstacles.named_by(headers) or _BLOCKED[status]} (HTTP {status})",
            fix=_FIXES.get(status, obstacles.BROWSER_FIX),
            status=status,
            retry_after=retry_after(headers),
        )
    if status in (404, 410):
        raise FetchError(
            f"{url.href[:200]} does not exist",
            cause=f"HTTP {status}",
            fix=Notice("fix.new_address", "ask in other words, or search for its new address"),
            status=status,
        )
    if not 200 <= status < 300 or status in (204, 205):
        raise FetchError(
            f"{url.href[:200]} could not be read", cause=f"HTTP {status}", fix="try again later or another page", status=status
        )
