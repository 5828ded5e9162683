"""What every fetcher promises: one suite over the fake, a seeds' plug-in, the http fetcher over a loopback web,
and crawl4ai over a browser that is a fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, get_args
from urllib.parse import urlsplit

import pytest

from nexi.app import SystemClock
from nexi.errors import FetchError, FetchReason
from nexi.fetchers import Settings, create_fetcher
from nexi.fetchers.browser import Crawl4aiFetcher, RenderedPage
from nexi.fetchers.guard import AddressGuard
from nexi.plugins import FetchPlugin
from nexi.ports import ContentFetcher
from nexi.testing import FakeWeb
from nexi.types import FetchLimits, content_digest
from nexi.urls import Url
from rig import miniweb
from tests.contract.pages import ADDRESSES, FACTS, HTML, TEXTS

LIMITS = FetchLimits(timeout_s=300.0)  # no test waits for it, however busy the machine is
Opened: TypeAlias = "AsyncIterator[tuple[ContentFetcher, Callable[[str], str]]]"


def as_it_is(url: str) -> str:
    return url


@asynccontextmanager
async def fake() -> Opened:
    yield FakeWeb(TEXTS), as_it_is


@asynccontextmanager
async def plug_in() -> Opened:
    class Plugin:
        async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
            if urls[0] not in TEXTS:
                return {"pages": [{"url": urls[0], "content": "", "error": "not found"}]}
            title = TEXTS[urls[0]].splitlines()[0].lstrip("# ")
            return {"pages": [{"url": urls[0], "title": title, "content": TEXTS[urls[0]]}]}

    yield FetchPlugin(Plugin()), as_it_is


@asynccontextmanager
async def http() -> Opened:
    with miniweb.serve(miniweb.Corpus(HTML)) as base:
        fetcher: Any = create_fetcher("http", Settings(clock=SystemClock(), allow_private=(urlsplit(base).netloc,)))
        try:
            yield fetcher, lambda url: url.replace("http:/", base, 1)
        finally:
            await fetcher.aclose()


class FakeBrowser:
    """Has the three pages as a browser would after their scripts ran; whatever else is asked for is a 404 with a text."""

    async def render(self, url: str, timeout_s: float) -> RenderedPage:
        pages = {page["url"]: page["html"] for page in HTML}
        return RenderedPage(url, html=pages[url]) if url in pages else RenderedPage(url, 404, html="<h1>Not here</h1>")

    async def aclose(self) -> None: ...


@asynccontextmanager
async def crawl4ai() -> Opened:
    async def admit(url: Url) -> None: ...

    yield Crawl4aiFetcher(FakeBrowser(), guard=AddressGuard(), clock=SystemClock(), admit=admit), as_it_is


every_fetcher = pytest.mark.parametrize("opened", [fake, plug_in, http, crawl4ai])


@every_fetcher
async def test_a_page_comes_with_its_address_title_text_and_fetcher(opened: Callable[[], Any]) -> None:
    async with opened() as (fetcher, place):
        url = place(ADDRESSES["moon"])
        page = await fetcher.fetch(url, LIMITS)
        assert (page.url, page.final_url or page.url, page.title) == (url, url, "Moon facts")
        assert FACTS["moon"][1] in page.text
        assert (page.fetcher, page.truncated) == (fetcher.name, False)


@every_fetcher
async def test_the_digest_is_that_of_the_text(opened: Callable[[], Any]) -> None:
    async with opened() as (fetcher, place):
        page = await fetcher.fetch(place(ADDRESSES["mars"]), LIMITS)
        assert page.digest == content_digest(page.text)


@every_fetcher
async def test_a_missing_page_is_a_fetch_error_with_a_reason(opened: Callable[[], Any]) -> None:
    async with opened() as (fetcher, place):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch(place("http://moon.test/gone"), LIMITS)
    assert caught.value.message
    assert caught.value.reason in get_args(FetchReason)


@every_fetcher
async def test_a_page_is_cut_at_the_limit_and_says_so(opened: Callable[[], Any]) -> None:
    async with opened() as (fetcher, place):
        page = await fetcher.fetch(place(ADDRESSES["moon"]), FetchLimits(max_chars=30, timeout_s=300.0))
    assert 0 < len(page.text) <= 30
    assert page.truncated


@every_fetcher
async def test_two_pages_may_be_fetched_one_after_the_other(opened: Callable[[], Any]) -> None:
    async with opened() as (fetcher, place):
        titles = [(await fetcher.fetch(place(ADDRESSES[name]), LIMITS)).title for name in ("moon", "venus")]
    assert titles == ["Moon facts", "Venus facts"]


async def test_a_plug_in_that_raises_is_a_fetch_error() -> None:
    class Plugin:
        async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
            raise ZeroDivisionError

    with pytest.raises(FetchError) as caught:
        await FetchPlugin(Plugin()).fetch(ADDRESSES["moon"], LIMITS)
    assert caught.value.reason in get_args(FetchReason)
