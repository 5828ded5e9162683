"""Pages that were read once, kept on disk for a day around any fetcher.

A page is one file, named by the sha1 of fetcher and normal URL: a line of JSON that says what the page says of itself, then
its text. Its age is the file's mtime, so that sweeping opens nothing. Only pages with text are kept, failures never. A page
past its time is asked for again with what the site said of it (ETag, Last-Modified) where the fetcher can. A disk that fails
costs the cache and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from nexi import urls
from nexi.files import make_private_directory, replace_file
from nexi.formats import find_format
from nexi.ports import Clock, ContentFetcher
from nexi.types import FetchLimits, Page

TTL_S = 86_400.0
KEPT_EXPIRED_S = 7 * 86_400.0  # an old copy can still save a download
MAX_BYTES = 256_000_000
SUFFIX = ".page"


class PageCache:
    """The folder. Every method may be called from any thread and any process."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        ttl_s: float = TTL_S,
        keep_expired_s: float = KEPT_EXPIRED_S,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._folder, self._clock = folder, clock
        self._ttl_s, self._keep_expired_s, self._max_bytes = ttl_s, keep_expired_s, max_bytes

    def get(self, key: str) -> tuple[Page | None, bool]:
        """What is kept under a key, and whether it is fresh; None for what is not there or cannot be read."""
        try:
            with (self._folder / f"{key}{SUFFIX}").open("rb") as file:
                age = self._now() - os.fstat(file.fileno()).st_mtime
                about, text = json.loads(file.readline()), file.read()
            if about.pop("length") != len(text):  # the file is not whole
                return None, False
            page = msgspec.convert({**about, "text": text.decode("utf-8", "surrogatepass")}, Page)
        # ValidationError for a file that another version wrote
        except (OSError, ValueError, TypeError, KeyError, AttributeError, msgspec.ValidationError):
            return None, False
        return page, 0 <= age < self._ttl_s

    def put(self, key: str, page: Page) -> None:
        path = self._folder / f"{key}{SUFFIX}"
        about = {name: value for name, value in asdict(page).items() if value and name != "text"}
        text = page.text.encode("utf-8", "surrogatepass")
        try:
            make_private_directory(self._folder)
            replace_file(path, json.dumps({**about, "length": len(text)}, default=asdict).encode() + b"\n" + text)
            os.utime(path, (self._now(), self._now()))
        except OSError:
            return

    def sweep(self) -> int:
        """Forget what is long past its time, and the oldest beyond the size; says how many went."""
        oldest = self._now() - self._ttl_s - self._keep_expired_s
        removals = size = 0
        for mtime, length, path in sorted(self._list_files(), reverse=True):
            size += length
            if mtime < oldest or size > self._max_bytes:
                removals += _remove_file(path)
        return removals

    def clear(self) -> int:
        """Forget everything; says how many pages went."""
        return sum(_remove_file(path) for _, _, path in self._list_files())

    def _list_files(self) -> list[tuple[float, int, Path]]:
        try:
            with os.scandir(self._folder) as entries:
                files = [(entry.stat(), Path(entry.path)) for entry in entries if entry.name.endswith((SUFFIX, ".tmp"))]
        except OSError:
            return []
        return [(stat.st_mtime, stat.st_size, path) for stat, path in files]

    def _now(self) -> float:
        return self._clock.now().timestamp()


class CachedFetcher:
    """A fetcher that looks into the cache first. `check` refuses a URL before that, as the fetcher itself would."""

    def __init__(self, inner: ContentFetcher, cache: PageCache, *, check: Callable[[str], object] | None = None) -> None:
        self._inner: Any = inner
        self._cache, self._check, self.name = cache, check, inner.name

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        if self._check:
            self._check(url)
        try:
            key = "" if limits.cites_notes else cache_key(self.name, url)
        except ValueError:
            key = ""
        old, is_fresh = await asyncio.to_thread(self._cache.get, key) if key else (None, False)
        if old and not _fits_limits(old, limits):
            old = None
        if old and is_fresh:
            return replace(old, url=url)
        # A copy past its time is shown to a fetcher that can ask the site whether it still holds.
        can_ask = old and (old.etag or old.modified) and getattr(self._inner, "conditional", False)
        page: Page = await self._inner.fetch(url, limits, *([replace(old, url=url)] if old and can_ask else []))
        # A page cut by limits smaller than usual would disappoint the next reader.
        usual = FetchLimits()
        is_whole = not page.truncated or (limits.max_chars >= usual.max_chars and limits.max_bytes >= usual.max_bytes)
        if key and page.text.strip() and is_whole:
            await asyncio.to_thread(self._cache.put, key, page)
        return page

    async def aclose(self) -> None:
        if close := getattr(self._inner, "aclose", None):
            await close()


def cache_key(fetcher: str, url: str) -> str:
    """The name of a page in the cache; ValueError for what is no web URL."""
    return hashlib.sha1(f"{fetcher}:{urls.normal(url)}".encode(), usedforsecurity=False).hexdigest()


def _fits_limits(page: Page, limits: FetchLimits) -> bool:
    """Whether a kept page is what these limits would give: a page that cost more is fetched again, or refused."""
    form, usual = find_format(page.content_type), FetchLimits()
    most = limits.max_pdf_bytes if form and form.whole else limits.max_bytes
    was_cut_shorter = page.truncated and limits.max_chars > usual.max_chars and len(page.text) <= usual.max_chars
    return (
        not was_cut_shorter
        and len(page.text) <= limits.max_chars
        and page.downloaded_bytes <= most
        and page.redirects <= limits.max_redirects
        and (not page.content_type or limits.accepts(page.content_type))
    )


def _remove_file(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
