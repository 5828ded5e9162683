"""What a site's robots.txt says about a URL, asked once per origin.

As RFC 9309 has it: a file that answers 4xx allows everything, one that answers 5xx forbids everything. Where the site does not
answer at all, the page is tried: it will fail by itself if the site is down. Good answers are kept for a day, failures for a
minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from nexi.errors import FetchError
from nexi.ports import Clock
from nexi.urls import Url

KEPT_S = 86_400.0
KEPT_AFTER_FAILURE_S = 60.0
MAX_ORIGINS = 2_048
MAX_BYTES = 512_000


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
