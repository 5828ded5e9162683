"""The fetcher that reads pages with a browser on this machine: crawl4ai on an installed Chromium, for pages that scripts write.

robots.txt, pacing, statuses and obstacles are those of the fetcher `http`; `browser` reaches only what the guard allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from nexi.errors import FetchError
from nexi.extract import page_of
from nexi.fetchers import obstacles
from nexi.fetchers.browser import PageRenderer, RenderedPage
from nexi.fetchers.guard import AddressGuard
from nexi.formats import extract, media_type
from nexi.ports import Clock
from nexi.tasks import pause_timeout
from nexi.types import FetchLimits, Page
from nexi.urls import Url

NAME = "crawl4ai"
TYPES = ("text/html", "application/xhtml+xml", "text/plain", "")
Admit: TypeAlias = Callable[[Url], Awaitable[None]]
Close: TypeAlias = Callable[[], Awaitable[None]]


class Crawl4aiFetcher:
    """The ContentFetcher port over a browser. `admit` returns when the site may be asked, or says why it may not."""

    name = NAME

    def __init__(
        self, browser: PageRenderer, *, guard: AddressGuard, clock: Clock, admit: Admit, close: Close | None = None
    ) -> None:
        self._browser, self._guard, self._clock = browser, guard, clock
        self._admit, self._close = admit, close

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        target = self._guard.check_url(url)
        try:
            async with asyncio.timeout(limits.timeout_s) as timer:
                with pause_timeout(timer):
                    await self._admit(target)
                document = await self._browser.render(target.href, limits.timeout_s)
                final = self._guard.check_url(document.url)
                if final.origin != target.origin:
                    with pause_timeout(timer):
                        await self._admit(final)
                obstacles.check_status(document.status, {}, final)
                kind = media_type(document.content_type)
                if kind not in TYPES:
                    message, cause = f"{final.href[:200]} is no page for a browser", f"its type is {kind}"
                    fix = "put http before crawl4ai in content_fetcher"
                    raise FetchError(message, reason="content_type", cause=cause, fix=fix)
                return await self._build_page(url, document, limits)
        except TimeoutError as error:
            cause = f"it was not read within {limits.timeout_s:g} s"
            fix = "try again, a browser takes some seconds to start; or try another page"
            raise FetchError(f"{url[:200]} took too long", reason="timeout", cause=cause, fix=fix) from error

    async def aclose(self) -> None:
        await self._browser.aclose()
        if self._close:
            await self._close()

    async def _build_page(self, url: str, document: RenderedPage, limits: FetchLimits) -> Page:
        data = document.html.encode("utf-8", "replace")
        content = await asyncio.to_thread(extract, data[: limits.max_bytes], "text/html; charset=utf-8", document.url)
        obstacles.check_obstacles(url, document.url, data, content, is_rendered=True)
        return page_of(
            url,
            content,
            max_chars=limits.max_chars,
            final_url=document.url,
            content_type="text/html",
            downloaded_bytes=len(data),
            truncated=document.cut or len(data) > limits.max_bytes,
            fetched_at=self._clock.now().isoformat(),
            fetcher=self.name,
        )
