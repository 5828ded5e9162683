"""The fetcher that reads the web itself: one URL in, one Page out, or a FetchError that says why not.

Above sits whoever holds the ContentFetcher port; below, `guard` decides what may be connected to, `transport` sends one
request, `body` reads under a cap, `robots` and `pacing` keep manners, and `nexi.extract` makes text of the bytes. This
file is the order of these steps, what a status means, and nothing else: no retries beyond one, no cache, no fallback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import nexi
from nexi import urls
from nexi.errors import FetchError
from nexi.extract import Extracted, extract, media_type, sniff
from nexi.fetchers.body import ACCEPTED_ENCODINGS, Body, read_body
from nexi.fetchers.guard import Guard, Resolver, resolve_host
from nexi.fetchers.pacing import Pacer
from nexi.fetchers.robots import MAX_BYTES as MAX_ROBOTS_BYTES
from nexi.fetchers.robots import Robots, RobotsFile
from nexi.fetchers.transport import Answer, ConnectionLostError, Transport
from nexi.ports import Clock
from nexi.types import FetchLimits, Page
from nexi.urls import Url

ROBOTS_TOKEN = "nexi"  # noqa: S105 - the name robots.txt files know us by
DEFAULT_USER_AGENT = f"nexi/{nexi.__version__} (self-hosted answer engine)"
ROBOTS_LIMITS = FetchLimits(max_bytes=MAX_ROBOTS_BYTES, timeout_s=5.0)
RETRY_AFTER_S = 0.5
HOPELESS_FACTOR = 10  # a page announced this many times over the limit is not worth its beginning

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BLOCKED = {
    401: "the page wants a login",
    403: "the site refuses automated readers or wants a login",
    407: "a proxy wants a login",
    429: "the site limits how often it may be asked",
    451: "the page is withheld for legal reasons",
    503: "the site is overloaded or refuses automated readers",
}


@dataclass(frozen=True, slots=True)
class _Download:
    """A successful answer, read."""

    url: Url
    content_type: str
    body: Body


class HttpFetcher:
    name = "http"

    def __init__(
        self,
        *,
        guard: Guard,
        clock: Clock,
        user_agent: str = DEFAULT_USER_AGENT,
        respect_robots: bool = True,
        proxy: str = "",
        no_proxy: Sequence[str] = (),
        per_host_burst: int = 8,
        per_host_rate: float = 4.0,
        resolve: Resolver = resolve_host,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,application/json;q=0.9,application/xml;q=0.8,*/*;q=0.5",
            "Accept-Language": "en,*;q=0.5",
            "Accept-Encoding": ACCEPTED_ENCODINGS,
        }
        self._transport = Transport(guard, proxy=proxy, no_proxy=no_proxy, resolve=resolve)
        self._pacer = Pacer(clock, burst=per_host_burst, rate=per_host_rate)
        self._robots = Robots(self._robots_file, clock=clock, user_agent=ROBOTS_TOKEN) if respect_robots else None

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        try:
            async with asyncio.timeout(limits.timeout_s):
                download = await self._download(url, limits)
                extracted = await asyncio.to_thread(extract, download.body.data, download.content_type, download.url.href)
        except TimeoutError as error:
            raise FetchError(
                f"{url[:200]} took too long",
                reason="timeout",
                cause=f"it was not read within {limits.timeout_s:g} s",
                fix="try another page",
            ) from error
        return self._page(url, download, extracted, limits)

    async def aclose(self) -> None:
        if self._robots:
            await self._robots.aclose()
        await self._transport.aclose()

    async def _download(self, url: str, limits: FetchLimits) -> _Download:
        """Follow redirects by hand: each target is parsed, checked and paced like a URL of its own."""
        current, seen = self._guard.check_url(url), set[str]()
        while True:
            seen.add(current.href)
            await self._allowed_by_robots(current)
            got = await self._get_with_retry(current, limits)
            if isinstance(got, _Download):
                return got
            current = self._guard.check_url(got)
            if current.href in seen:
                raise FetchError(f"{url[:200]} redirects in a circle", cause=f"it comes back to {current.href[:200]}")
            if len(seen) > limits.max_redirects:
                raise FetchError(f"{url[:200]} redirects too often", cause=f"more than {limits.max_redirects} times")

    async def _allowed_by_robots(self, url: Url) -> None:
        if self._robots and not await self._robots.allows(url):
            raise FetchError(
                f"{url.href[:200]} is not read",
                reason="robots",
                cause="the site's robots.txt forbids it",
                fix="choose another page, or set respect_robots to false if you have the site's permission",
            )

    async def _get_with_retry(self, url: Url, limits: FetchLimits) -> _Download | str:
        try:
            return await self._get(url, limits)
        except FetchError as error:
            if not (isinstance(error, ConnectionLostError) or error.status >= 500):
                raise
        await self._clock.sleep(RETRY_AFTER_S)
        return await self._get(url, limits)

    async def _get(self, url: Url, limits: FetchLimits) -> _Download | str:
        """One request: what was read, or the URL it redirects to."""
        await self._pacer.wait(url.host)
        async with self._transport.get(url, self._headers) as answer:
            if target := _redirect_target(answer, url):
                return target
            _check_status(answer, url)
            _check_length(answer, url, limits)
            content_type = answer.headers.get("content-type", "")
            if content_type:
                _check_type(content_type, url, limits)
            body = await read_body(answer.chunks, answer.headers.get("content-encoding", ""), limits.max_bytes)
        if not content_type:
            content_type = sniff(body.data)
            _check_type(content_type, url, limits)
        return _Download(url, content_type, body)

    async def _robots_file(self, url: str) -> RobotsFile:
        """Not paced: it is one request per origin, and pages are waiting for it."""
        try:
            async with asyncio.timeout(ROBOTS_LIMITS.timeout_s):
                return await self._follow_robots(url)
        except TimeoutError as error:
            raise FetchError(f"{url[:200]} took too long", reason="timeout") from error

    async def _follow_robots(self, url: str) -> RobotsFile:
        for _ in range(ROBOTS_LIMITS.max_redirects + 1):
            current = self._guard.check_url(url)
            async with self._transport.get(current, self._headers) as answer:
                if target := _redirect_target(answer, current):
                    url = target
                    continue
                if not 200 <= answer.status < 300:
                    return RobotsFile(answer.status)
                encoding = answer.headers.get("content-encoding", "")
                body = await read_body(answer.chunks, encoding, ROBOTS_LIMITS.max_bytes)
                return RobotsFile(answer.status, body.data.decode("utf-8", "replace").removeprefix("\ufeff"))
        return RobotsFile(404)  # RFC 9309: too many redirects count as no file

    def _page(self, url: str, download: _Download, extracted: Extracted, limits: FetchLimits) -> Page:
        if not extracted.text.strip():
            raise FetchError(
                f"{url[:200]} has no text",
                cause="it is empty, or a script would write it",
                fix="try another page, or a fetcher that runs scripts",
            )
        page = Page(
            url=url,
            text=extracted.text,
            title=extracted.title,
            final_url=download.url.href,
            content_type=media_type(download.content_type),
            language=extracted.language,
            author=extracted.author,
            published=extracted.published,
            description=extracted.description,
            links=extracted.links,
            downloaded_bytes=download.body.received,
            truncated=download.body.truncated,
            fetched_at=self._clock.now().isoformat(),
            fetcher=self.name,
        )
        if len(page.text) <= limits.max_chars:
            return page
        return replace(page, text=_cut(page.text, limits.max_chars), truncated=True)


def _redirect_target(answer: Answer, url: Url) -> str:
    location = answer.headers.get("location", "")
    if answer.status not in _REDIRECTS or not location:
        return ""
    try:
        return urls.join(url.href, _utf8_or_latin1(location))
    except ValueError as error:
        raise FetchError(f"{url.href[:200]} redirects to what is no URL", cause=str(error)) from error


def _utf8_or_latin1(header: str) -> str:
    """A header that was read as latin-1 and is often raw UTF-8."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


def _check_status(answer: Answer, url: Url) -> None:
    status = answer.status
    if status in _BLOCKED:
        raise FetchError(
            f"{url.href[:200]} could not be read",
            reason="blocked",
            cause=f"{_BLOCKED[status]} (HTTP {status})",
            fix="try another page",
            status=status,
        )
    if status in (404, 410):
        raise FetchError(
            f"{url.href[:200]} does not exist", cause=f"HTTP {status}", fix="search for its new place", status=status
        )
    if not 200 <= status < 300 or status in (204, 205):
        raise FetchError(
            f"{url.href[:200]} could not be read", cause=f"HTTP {status}", fix="try again later or another page", status=status
        )


def _check_length(answer: Answer, url: Url, limits: FetchLimits) -> None:
    length = answer.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.max_bytes * HOPELESS_FACTOR:
        raise FetchError(
            f"{url.href[:200]} is too large",
            reason="too_large",
            cause=f"it has {int(length):,} bytes, at most {limits.max_bytes:,} are read",
            fix="try another page",
        )


def _check_type(content_type: str, url: Url, limits: FetchLimits) -> None:
    kind = media_type(content_type)
    accepted = kind in limits.content_types or (
        kind.startswith("application/")
        and any(kind.endswith(f"+{base}") and f"application/{base}" in limits.content_types for base in ("json", "xml"))
    )
    if not accepted:
        raise FetchError(
            f"{url.href[:200]} is no text page",
            reason="content_type",
            cause=f"its type is {kind or 'unknown'}",
            fix="try a page in HTML or plain text",
        )


def _cut(text: str, max_chars: int) -> str:
    """The beginning of a text, ended at a line where one is near."""
    cut = text[:max_chars]
    line_end = cut.rfind("\n")
    return cut[:line_end] if line_end > max_chars * 0.9 else cut
