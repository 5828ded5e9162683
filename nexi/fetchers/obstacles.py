"""What stands between us and a page: a status that is none, a challenge, a login, a script that would write the text.

Pure: it names the obstacle with what would overcome it. A page with enough text is never doubted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.net.retry import retry_after
from nexi.notices import Notice
from nexi.urls import Url

ENOUGH_TEXT = 600  # characters; a page that has them is a page
BARE = 200
HEAD_BYTES = 200_000

BROWSER_FIX = (
    "try another page, or add a fetcher with a browser to content_fetcher: crawl4ai (nexi-engine[crawl4ai] and Chromium on this"
    " machine), or jina, which learns what you read"
)
OTHER_FIX = "try another page"
LOGIN_FIX = "try a public page; nexi never logs in"
_IS_CHALLENGE = "the site asks its visitors to prove that they are human"
_BLOCKED = {
    401: "the page requires a login",
    403: "the site refuses automated readers or requires a login",
    407: "a proxy requires a login",
    429: "the site limits how often it may be asked",
    451: "the page is withheld for legal reasons",
    503: "the site is overloaded or refuses automated readers",
}
_FIXES = {401: LOGIN_FIX, 429: "wait, or try another page", 451: OTHER_FIX}

_WORDS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, list[str]])
_CHALLENGE, _WANTS_SCRIPT = (re.compile("|".join(_WORDS[name]), re.IGNORECASE) for name in ("challenge", "wants_script"))
_CHALLENGE_CODE = re.compile("|".join(_WORDS["challenge_code"]).encode(), re.IGNORECASE)
_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
_APP_ROOT = re.compile(rb"<(?:div|main|app-root)[^>]{0,200}\bid=[\"']?(?:root|app|__next|__nuxt|___gatsby)\b|<app-root\b", re.I)
_PASSWORD = re.compile(rb"<input[^>]{0,300}\btype\s*=\s*[\"']?password", re.IGNORECASE)
_LOGIN_PATH = re.compile(r"[/.](?:log-?in|sign-?in|auth|sso|accounts?/login|oauth2?)(?:[/.?]|$)", re.IGNORECASE)


def check_status(status: int, headers: Mapping[str, str], url: Url) -> None:
    """FetchError for a status that is no page."""
    if status in _BLOCKED:
        obstacle = _BLOCKED[status]
        if "challenge" in headers.get("cf-mitigated", "") or "x-datadome" in headers:
            obstacle = _IS_CHALLENGE
        elif headers.get("www-authenticate"):
            obstacle = _BLOCKED[401]
        raise FetchError(
            f"{url.href[:200]} could not be read",
            reason="blocked",
            cause=f"{obstacle} (HTTP {status})",
            fix=_FIXES.get(status, BROWSER_FIX),
            status=status,
            retry_after=retry_after(headers),
        )
    if status in (404, 410):
        search_fix = Notice("fix.new_address", "ask in other words, or search for its new address")
        raise FetchError(f"{url.href[:200]} does not exist", cause=f"HTTP {status}", fix=search_fix, status=status)
    if not 200 <= status < 300 or status in (204, 205):
        retry_fix = "try again later or another page"
        raise FetchError(f"{url.href[:200]} could not be read", cause=f"HTTP {status}", fix=retry_fix, status=status)


def check_obstacles(url: str, final: str, data: bytes, content: Extracted, *, is_rendered: bool = False) -> None:
    """FetchError("blocked") for an obstacle in the page's place, FetchError("error") for a page with no text."""
    text = content.text.strip()
    if len(text) >= ENOUGH_TEXT:
        return
    head = data[:HEAD_BYTES]
    visible = f"{content.title}\n{text}"
    if _CHALLENGE.search(visible) or (len(text) < BARE and _CHALLENGE_CODE.search(head)):
        raise _obstacle_error(url, _IS_CHALLENGE, OTHER_FIX if is_rendered else BROWSER_FIX)
    if _PASSWORD.search(head) or (_LOGIN_PATH.search(final) and not _LOGIN_PATH.search(url)):
        raise _obstacle_error(url, _BLOCKED[401], LOGIN_FIX)
    # Of a page that a browser has rendered, scripts have written what they write.
    is_empty_app = _SCRIPT.search(head) and (not text or (len(text) < BARE // 4 and _APP_ROOT.search(head)))
    if not is_rendered and len(text) < BARE and (is_empty_app or _WANTS_SCRIPT.search(visible)):
        raise _obstacle_error(url, "a script would write its text (it needs JavaScript)", BROWSER_FIX)
    if not text:
        raise FetchError(f"{url[:200]} has no text", cause="it is empty", fix="try another page")


def _obstacle_error(url: str, cause: str, fix: str) -> FetchError:
    """The site did answer, which its status says: another fetcher may overcome what stands there."""
    return FetchError(f"{url[:200]} could not be read", reason="blocked", cause=cause, fix=fix, status=200)
