"""Jina's reader over a loopback stand-in that answers as it documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from nexi.app.factory import factory_for
from nexi.config import Config
from nexi.errors import FetchError
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.jina import JinaFetcher, _parse_reader
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Page
from rig import miniweb
from tests.raising import has_code

PAGE = {
    "url": "http://moon.test/facts",
    "title": "Moon",
    "html": "<html><body><p>The Moon is far away from us.</p></body></html>",
}


@pytest.fixture
async def reader() -> AsyncIterator[JinaFetcher]:
    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    with miniweb.serve(miniweb.Corpus([PAGE]), url_mode="original") as base:
        clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        made = JinaFetcher(guard=AddressGuard(), clock=clock, base_url=f"{base}/jina/r", resolve=public)
        yield made
        await made.aclose()


async def test_a_page_comes_with_its_title_and_source(reader: JinaFetcher) -> None:
    page = await reader.fetch("http://moon.test/facts", FetchLimits())
    assert page == Page(
        url="http://moon.test/facts",
        text="The Moon is far away from us.",
        title="Moon",
        final_url="http://moon.test/facts",
        content_type="text/markdown",
        downloaded_bytes=page.downloaded_bytes,
        fetched_at="2026-01-01T00:00:00+00:00",
        fetcher="jina",
    )


async def test_a_page_the_reader_does_not_have_is_an_error(reader: JinaFetcher) -> None:
    with pytest.raises(FetchError, check=has_code("error", 404)):
        await reader.fetch("http://moon.test/none", FetchLimits())


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd", "http://u:p@a.example/"]
)
async def test_a_url_the_guard_refuses_is_told_to_nobody(reader: JinaFetcher, url: str) -> None:
    with pytest.raises(FetchError) as caught:
        await reader.fetch(url, FetchLimits())
    assert caught.value.reason == "blocked"


@pytest.mark.parametrize("url", ["http://moon.test/a\x00b", "http://moon.test/a\x7fb", "http://moon.test/\x1b[31m"])
async def test_a_url_with_control_characters_is_refused(reader: JinaFetcher, url: str) -> None:
    with pytest.raises(FetchError) as caught:
        await reader.fetch(url, FetchLimits())
    assert caught.value.reason == "blocked"


async def test_a_private_name_is_told_to_nobody() -> None:
    async def private(host: str, port: int) -> list[str]:
        return ["10.0.0.7"]

    reader = JinaFetcher(guard=AddressGuard(), clock=FakeClock(), base_url="http://127.0.0.1:9", resolve=private)
    with pytest.raises(FetchError) as caught:
        await reader.fetch("http://intranet.example/", FetchLimits())
    assert caught.value.reason == "blocked"


def test_text_is_cut_at_the_limit_and_says_so() -> None:
    page = _parse_reader("https://a.example", "Title: T\n\nMarkdown Content:\n" + "x" * 50, FetchLimits(max_chars=10))
    assert (page.text, page.truncated) == ("x" * 10, True)


def test_an_empty_answer_is_an_error() -> None:
    with pytest.raises(FetchError, check=has_code("error")):
        _parse_reader("https://a.example", "Title: T\n\nMarkdown Content:\n  \n", FetchLimits())


def test_the_headings_and_code_languages_of_a_page_are_told() -> None:
    text = "Title: Tea\n\nMarkdown Content:\n# Tea\n\nHot.\n\n## Milk\n\n```sh\npour\n```\n"
    page = _parse_reader("https://tea.example/", text, FetchLimits())
    assert (page.headings, page.code_languages) == (("Tea", "Milk"), ("sh",))


async def test_its_own_timeout_takes_the_place_of_the_runs_limit() -> None:
    heads: list[bytes] = []
    left = asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        await reader.read()
        writer.close()
        left.set()

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    made = JinaFetcher(guard=AddressGuard(), clock=FakeClock(), base_url=base, resolve=public, timeout_s=1.25)
    with pytest.raises(FetchError, check=has_code("timeout", 1.25)):
        await made.fetch("http://moon.test/facts", FetchLimits(timeout_s=30.0))
    await made.aclose()
    await left.wait()
    server.close()
    assert b"x-timeout: 1\r\n" in heads[0].lower()


def test_the_setting_reaches_the_search_and_the_reader_and_nothing_else() -> None:
    ports = factory_for(Config(jina_timeout=45, search_timeout=9))
    assert [ports._backend_settings(name).timeout_s for name in ("jina", "wikipedia")] == [45, 9]
    assert [ports._fetcher_settings(name).timeout_s for name in ("jina", "http")] == [45, None]
