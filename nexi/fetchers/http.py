"""The fetcher that reads the web itself: one URL in, one Page out, or a FetchError that says why not.

`guard` decides what may be connected to, `transport` sends one request and reads its body under a cap, `obstacles` and the
rate limiter keep manners, and `nexi.extract` makes text of the bytes. This file is the order of these steps. A cache that holds
an old copy passes it in, and gets it back when the site says that nothing changed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

import nexi
from nexi import urls
from nexi.errors import FetchError
from nexi.extract import Extracted, page_of
from nexi.fetchers import obstacles
from nexi.fetchers.guard import AddressGuard, Resolver, resolve_host
from nexi.fetchers.obstacles import Robots, RobotsFile
from nexi.fetchers.transport import Body, Transport, TransportAnswer, accepted_encodings, read_body
from nexi.formats import canonical_type, extract, find_format, is_readable, media_type, refuse_format, sniff_type, type_of_name
from nexi.net.limits import RateLimiter
from nexi.net.retry import RetryPolicy, call_with_retries
from nexi.net.trust import MACHINE, Trust
from nexi.ports import Clock, MakePacing, Pacing
from nexi.tasks import pause_timeout
from nexi.types import FetchLimits, Page, PictureFile
from nexi.urls import Url

ROBOTS_TOKEN = "nexi"  # noqa: S105 - the name robots.txt files know us by
DEFAULT_USER_AGENT = f"nexi/{nexi.__version__} (self-hosted answer engine)"
ROBOTS_LIMITS = FetchLimits(max_bytes=512_000, timeout_s=5.0)
PICTURE_LIMITS = FetchLimits(max_bytes=3_000_000, timeout_s=10.0, max_redirects=3)
PICTURE_TYPES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/avif": re.compile(rb"....ftypavi[fs]", re.DOTALL),
}
RETRIES = RetryPolicy(max_retries=1, patience_s=5.0)
HOPELESS_FACTOR = 10  # a page announced this many times over the limit is not worth its beginning

NO_TYPE = ("application/octet-stream", "binary/octet-stream", "application/x-pdf", "application/zip")
MAX_VALIDATOR = 500

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class _Download(Struct, frozen=True):
    """A successful answer, read."""

    url: Url
    content_type: str
    body: Body
    etag: str = ""
    modified: str = ""
    redirects: int = 0


class HttpFetcher:
    name = "http"
    conditional = True  # `fetch` takes an old copy

    def __init__(
        self,
        *,
        guard: AddressGuard,
        clock: Clock,
        user_agent: str = DEFAULT_USER_AGENT,
        respect_robots: bool = True,
        proxy: str = "",
        no_proxy: Sequence[str] = (),
        per_host_burst: int = 8,
        per_host_rate: float = 4.0,
        make_pacing: MakePacing | None = None,
        resolve: Resolver = resolve_host,
        trust: Trust = MACHINE,
        transport: Transport | None = None,
        ocr_languages: str = "",
    ) -> None:
        self._guard, self._clock, self._ocr_languages = guard, clock, ocr_languages
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,application/json;q=0.9,"
            "application/pdf;q=0.8,application/xml;q=0.8,*/*;q=0.5",
            "Accept-Language": "en,*;q=0.5",
            "Accept-Encoding": accepted_encodings(),
        }
        self._transport = transport or Transport(guard, proxy=proxy, no_proxy=no_proxy, resolve=resolve, trust=trust)
        self._pacer: Pacing = RateLimiter(clock, burst=per_host_burst, rate=per_host_rate)
        if make_pacing:
            self._pacer = make_pacing("host", per_host_burst, per_host_rate)
        self._robots = Robots(self._robots_file, clock=clock, user_agent=ROBOTS_TOKEN) if respect_robots else None

    async def fetch(self, url: str, limits: FetchLimits, old_copy: Page | None = None) -> Page:
        """One page; `old_copy`, stamped anew, when the site says that it is still the same."""
        try:
            async with asyncio.timeout(limits.timeout_s) as timer:
                download = await self._download_plainly(url, limits, old_copy, timer)
                if download is None and old_copy:
                    return replace(old_copy, fetched_at=self._clock.now().isoformat())
                assert download is not None  # noqa: S101 - only a page with an old copy can be unchanged
                data, kind = download.body.data, media_type(download.content_type)
                if find_format(kind):  # a document is read in a process of its own
                    from nexi.fetchers.apart import read_apart

                    content = await read_apart(
                        data, kind, limits.max_chars, origin="web", languages=self._ocr_languages, whose=id(self), timer=timer
                    )
                else:
                    notes, href = limits.cites_notes, download.url.href
                    content = await asyncio.to_thread(extract, data, download.content_type, href, cites_notes=notes)
        except TimeoutError as error:
            cause, fix = f"it was not read within {limits.timeout_s:g} s", "try another page"
            raise FetchError(f"{url[:200]} took too long", reason="timeout", cause=cause, fix=fix) from error
        return self._build_page(url, download, content, limits)

    async def fetch_picture(self, url: str) -> PictureFile:
        """A picture in one of the usual formats, of a bounded size; by the same guard, manners and limits as a page."""
        accept = {"Accept": ", ".join(PICTURE_TYPES)}
        if (reply := await self._get_file(url, PICTURE_LIMITS, accept, is_paced=True)) is None:
            raise FetchError(f"{url[:200]} redirects too often", cause=f"more than {PICTURE_LIMITS.max_redirects} times")
        place, answer, body = reply
        obstacles.check_status(answer.status, answer.headers, place)
        if body.truncated:
            raise _too_large(place, f"at most {PICTURE_LIMITS.max_bytes:,} bytes of a picture are read")
        # A whole picture; SVG is a document with scripts and links, so it is none.
        for kind, start in PICTURE_TYPES.items():
            if start.match(body.data):
                return PictureFile(kind, body.data)
        cause = f"it is none of {', '.join(PICTURE_TYPES)}"
        raise FetchError(f"{place.href[:200]} is no picture", reason="content_type", cause=cause)

    async def admit(self, url: Url) -> None:
        """Returns when the site may be asked for a page: robots.txt allows it, and its turn has come."""
        await self._allowed_by_robots(url)
        await self._pacer.wait(url.host)

    async def aclose(self) -> None:
        if self._robots:
            await self._robots.aclose()
        await self._transport.aclose()

    async def _download_plainly(
        self, url: str, limits: FetchLimits, old_copy: Page | None, timer: asyncio.Timeout
    ) -> _Download | None:
        """By the plain endpoint of a page where it has one; the page itself where that one does not know it."""
        if plain := _find_plain_form(self._guard.check_url(url)):
            try:
                return await self._download(plain, limits, old_copy, timer)
            except FetchError as error:
                if error.status != 404:
                    raise
        return await self._download(url, limits, old_copy, timer)

    async def _download(self, url: str, limits: FetchLimits, old_copy: Page | None, timer: asyncio.Timeout) -> _Download | None:
        """Follow redirects by hand: each target is parsed, checked and paced like a URL of its own."""
        current, visits = self._guard.check_url(url), set[str]()
        while True:
            visits.add(current.href)
            await self._allowed_by_robots(current)
            validators: dict[str, str] = {}
            if old_copy and old_copy.final_url == current.href:
                validators = {"If-None-Match": old_copy.etag, "If-Modified-Since": old_copy.modified}
                validators = {k: value for k, value in validators.items() if value and value.isascii() and value.isprintable()}
            request = partial(self._send_request, current, limits, validators, timer)
            answer = await call_with_retries(request, RETRIES, self._clock)
            if not isinstance(answer, str):
                return replace(answer, redirects=len(visits) - 1) if answer else None
            current = self._guard.check_url(answer)
            if current.href in visits:
                raise FetchError(f"{url[:200]} redirects in a circle", cause=f"it comes back to {current.href[:200]}")
            if len(visits) > limits.max_redirects:
                raise FetchError(f"{url[:200]} redirects too often", cause=f"more than {limits.max_redirects} times")

    async def _allowed_by_robots(self, url: Url) -> None:
        if self._robots and not await self._robots.is_allowed(url):
            fix = "choose another page, or set respect_robots to false if you have the site's permission"
            cause = "the site's robots.txt forbids it"
            raise FetchError(f"{url.href[:200]} is not read", reason="robots", cause=cause, fix=fix)

    async def _send_request(
        self, url: Url, limits: FetchLimits, validators: dict[str, str], timer: asyncio.Timeout
    ) -> _Download | str | None:
        """One request: what was read, the URL it redirects to, or None for what has not changed."""
        with pause_timeout(timer):  # the pace is ours, so the site is not blamed for it
            await self._pacer.wait(url.host)
        async with self._transport.ask(url, {**self._headers, **validators}) as answer:
            if target := _redirect_target(answer, url):
                return target
            if answer.status == 304 and validators:
                return None
            obstacles.check_status(answer.status, answer.headers, url)
            header_type = answer.headers.get("content-type", "")
            # What the name in the URL stands for, where the server says nothing of use, as it often does of documents.
            kind, name_type = media_type(header_type), type_of_name(url.path)
            is_vague = kind in (*NO_TYPE, "") or (kind == "text/plain" and is_readable(name_type))
            expected_type = name_type or kind if is_vague else header_type
            # A document that cannot be cut is read to its end or not at all.
            form = find_format(kind := canonical_type(expected_type))
            is_whole = bool(form and form.whole and limits.accepts(kind))
            most = limits.max_pdf_bytes if is_whole else limits.max_bytes
            length = answer.headers.get("content-length", "")
            if length.isdecimal() and int(length[:30]) > most * HOPELESS_FACTOR:
                raise _too_large(url, f"it has {int(length[:30]):,} bytes, at most {most:,} are read")
            if header_type and not is_whole:
                _check_type(expected_type, url, limits)
            body = await read_body(answer.chunks, answer.headers.get("content-encoding", ""), most)
        content_type = _settled_type(header_type, body.data, url)
        _check_type(content_type, url, limits)
        if (form := find_format(media_type(content_type))) and form.whole and body.truncated:
            raise _too_large(url, f"{form.name}: more than {most:,} bytes are not read")
        return _Download(url, content_type, body, answer.headers.get("etag", ""), answer.headers.get("last-modified", ""))

    async def _robots_file(self, url: str) -> RobotsFile:
        """Not paced: it is one request per origin, and pages are waiting for it."""
        if (reply := await self._get_file(url, ROBOTS_LIMITS, {}, is_paced=False)) is None:
            return RobotsFile(404)  # RFC 9309: too many redirects count as no file
        _, answer, body = reply
        return RobotsFile(answer.status, body.data.decode("utf-8", "replace").removeprefix("\ufeff"))

    async def _get_file(
        self, url: str, limits: FetchLimits, headers: Mapping[str, str], *, is_paced: bool
    ) -> tuple[Url, TransportAnswer, Body] | None:
        """A file that is no page, whose body is read where it is there; None for too many redirects."""
        target = url
        try:
            async with asyncio.timeout(limits.timeout_s):
                for _ in range(limits.max_redirects + 1):
                    current = self._guard.check_url(target)
                    if is_paced:
                        await self.admit(current)
                    async with self._transport.ask(current, {**self._headers, **headers}) as answer:
                        if target := _redirect_target(answer, current):
                            continue
                        if not 200 <= answer.status < 300:
                            return current, answer, Body(b"")
                        encoding = answer.headers.get("content-encoding", "")
                        return current, answer, await read_body(answer.chunks, encoding, limits.max_bytes)
        except TimeoutError as error:
            raise FetchError(f"{url[:200]} took too long", reason="timeout") from error
        return None

    def _build_page(self, url: str, download: _Download, content: Extracted, limits: FetchLimits) -> Page:
        obstacles.check_obstacles(url, download.url.href, download.body.data, content)
        is_page = media_type(download.content_type) in ("text/html", "application/xhtml+xml")  # dated when it was sent
        if download.modified and not (is_page or content.published or content.updated):
            from nexi.text.dates import normalise_date

            content = replace(content, updated=normalise_date(download.modified))
        return page_of(
            url,
            content,
            max_chars=limits.max_chars,
            final_url=download.url.href,
            content_type=media_type(download.content_type),
            downloaded_bytes=download.body.received,
            truncated=download.body.truncated,
            fetched_at=self._clock.now().isoformat(),
            fetcher=self.name,
            etag=download.etag[:MAX_VALIDATOR],
            modified=download.modified[:MAX_VALIDATOR],
            redirects=download.redirects,
        )


def _find_plain_form(url: Url) -> str:
    """The URL of the file itself for a page of GitHub that shows one, else "": issues and the like have their text in HTML."""
    parts = [part for part in url.path.split("/") if part]
    if url.host in ("github.com", "www.github.com") and len(parts) > 4 and parts[2] in ("blob", "raw", "blame"):
        owner, project, _, *rest = parts
        return f"https://raw.githubusercontent.com/{owner}/{project}/{'/'.join(rest)}"
    if url.host == "gist.github.com" and len(parts) == 2:
        return f"https://gist.githubusercontent.com/{parts[0]}/{parts[1]}/raw"
    return ""


def _settled_type(header_type: str, data: bytes, url: Url) -> str:
    """What the server said, except where it said nothing of use or the bytes are those of a document."""
    kind, data_type, name_format = media_type(header_type), sniff_type(data), find_format(type_of_name(url.path))
    if find_format(data_type) and data_type != "application/zip":
        return data_type
    if name_format and name_format.is_text and data_type == "text/plain" and kind in (*NO_TYPE, "text/plain", ""):
        return name_format.types[0]
    if kind in (*NO_TYPE, ""):
        return data_type
    return canonical_type(kind) if find_format(kind) else header_type


def _redirect_target(answer: TransportAnswer, url: Url) -> str:
    location = answer.headers.get("location", "")
    if answer.status not in _REDIRECTS or not location:
        return ""
    try:
        with suppress(UnicodeDecodeError):  # a header is read as latin-1 and is often raw UTF-8
            location = location.encode("latin-1").decode()
        return urls.join(url.href, location)
    except ValueError as error:
        raise FetchError(f"{url.href[:200]} redirects to what is no URL", cause=str(error)) from error


def _too_large(url: Url, cause: str) -> FetchError:
    return FetchError(f"{url.href[:200]} is too large", reason="too_large", cause=cause, fix="try another page")


def _check_type(content_type: str, url: Url, limits: FetchLimits) -> None:
    kind = media_type(content_type)
    if not is_readable(kind):
        raise refuse_format(kind, url.href)
    if not limits.accepts(kind):
        cause, fix = f"its type is {kind}, which this request does not allow", "allow the type, or choose another page"
        raise FetchError(f"{url.href[:200]} is not read", reason="content_type", cause=cause, content_type=kind, fix=fix)
