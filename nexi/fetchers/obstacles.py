"""What stands between us and a page: robots.txt, a status that is none, a challenge, a login, a script that writes the text.

Each is named with what would overcome it, and a page with enough text is never doubted. robots.txt is asked for once per
origin. As RFC 9309 has it, one that answers 4xx allows everything and one that answers 5xx forbids everything. Where the site
does not answer at all, the page is tried: it will fail by itself if the site is down.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.net.retry import retry_after
from nexi.notices import Notice
from nexi.ports import Clock
from nexi.urls import Url

ENOUGH_TEXT = 600  # characters; a page that has them is a page
BARE = 200
HEAD_BYTES = 200_000
KEPT_S = 86_400.0  # a robots.txt
KEPT_AFTER_FAILURE_S = 60.0
MAX_ORIGINS = 2_048

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


class RobotsFile(Struct, frozen=True):
    """The answer for /robots.txt: any status, and a text where there was one."""

    status: int
    text: str = ""


GetFile: TypeAlias = Callable[[str], Awaitable[RobotsFile]]
Rules: TypeAlias = Callable[[str, str], bool]  # whether a URL may be read by a program of this name


@dataclass(slots=True)
class _Entry:
    reading: asyncio.Task[Rules]
    expires: float


class Robots:
    """The rules of the origins met so far. Pages of one origin that ask at once share one request."""

    def __init__(self, get: GetFile, *, clock: Clock, user_agent: str) -> None:
        self._get, self._clock, self._user_agent = get, clock, user_agent
        self._entries: dict[str, _Entry] = {}

    async def is_allowed(self, url: Url) -> bool:
        entry = self._entries.get(url.origin)
        if entry is None or entry.expires <= self._clock.monotonic():
            if len(self._entries) >= MAX_ORIGINS:
                origins = [origin for origin, other in self._entries.items() if other.reading.done()]
                for origin in origins[: MAX_ORIGINS // 4]:
                    del self._entries[origin]
            entry = _Entry(asyncio.create_task(self._fetch_rules(url.origin)), self._clock.monotonic() + KEPT_S)
            self._entries[url.origin] = entry
        # Shielded: a page that is cancelled must not take the answer away from the others.
        rules = await asyncio.shield(entry.reading)
        return rules(url.href, self._user_agent)

    async def aclose(self) -> None:
        entries, self._entries = self._entries, {}
        for entry in entries.values():
            entry.reading.cancel()
        await asyncio.gather(*(entry.reading for entry in entries.values()), return_exceptions=True)

    async def _fetch_rules(self, origin: str) -> Rules:
        file: RobotsFile | None = None
        with suppress(FetchError):
            file = await self._get(f"{origin}/robots.txt")
        is_forbidden = file is not None and file.status >= 500
        if (file is None or is_forbidden) and (entry := self._entries.get(origin)):
            entry.expires = self._clock.monotonic() + KEPT_AFTER_FAILURE_S
        if file is None or not (200 <= file.status < 300 and file.text):
            return lambda _url, _name: not is_forbidden
        from protego import Protego

        rules: Rules = (await asyncio.to_thread(Protego.parse, file.text)).can_fetch
        return rules
