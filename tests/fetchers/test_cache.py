"""Pages are kept for a day: found again at once, asked for again when old, and nothing broken is ever served."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import asdict

from nexi.errors import FetchError
from nexi.fetchers import Settings, create_fetcher
from nexi.fetchers.cache import KEPT_EXPIRED_S, TTL_S, CachedFetcher, PageCache, cache_key
from nexi.fetchers.guard import AddressGuard
from nexi.fetchers.http import HttpFetcher
from nexi.testing import FakeClock
from nexi.types import FetchLimits, Page
from tests.fetchers.site import Answer, page, response, serving
from tests.raising import has_code

LIMITS = FetchLimits()
URL = "https://tea.example/a"
WHOLE = Page(
    *(URL, "Tee \ud800\n中", "T", URL, "text/html", "de", "A", "2026", "d", (URL,), 9, False, "then", "counting", "e", "m"),
    site="s",
    headings=("Tee", "Wasser"),
    code_languages=("sh",),
    redirects=1,
)


class Counting:
    """A fetcher that gives what it is told to and counts."""

    name = "counting"

    def __init__(self, result: Page | FetchError = WHOLE) -> None:
        self.result = result
        self.asked: list[str] = []
        self.closed = False

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        self.asked.append(url)
        if isinstance(self.result, FetchError):
            raise self.result
        return self.result

    async def aclose(self) -> None:
        self.closed = True


def cached(folder: Path, inner: Counting, clock: FakeClock | None = None) -> CachedFetcher:
    return CachedFetcher(inner, PageCache(folder, clock=clock or FakeClock()))


async def test_a_page_is_read_once_and_comes_back_whole_under_the_spelling_that_was_asked(tmp_path: Path) -> None:
    inner = Counting()
    first = await cached(tmp_path, inner).fetch(URL, LIMITS)
    again = await cached(tmp_path, inner).fetch(f"{URL}?utm_source=x#part", LIMITS)
    assert (first, inner.asked) == (WHOLE, [URL])
    assert again == Page(f"{URL}?utm_source=x#part", *list(asdict(WHOLE).values())[1:])


def test_the_key_is_the_sha1_of_engine_and_normal_url() -> None:
    assert cache_key("http", "HTTP://Tea.example:80/a#b") == hashlib.sha1(b"http:http://tea.example/a").hexdigest()  # noqa: S324


async def test_files_are_private(tmp_path: Path) -> None:
    await cached(tmp_path / "pages", Counting()).fetch(URL, LIMITS)
    (file,) = (tmp_path / "pages").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_page_past_its_time_is_read_again(tmp_path: Path) -> None:
    inner, clock = Counting(), FakeClock()
    fetcher = cached(tmp_path, inner, clock)
    for seconds in (0, TTL_S - 1, 2):
        clock.advance(seconds)
        await fetcher.fetch(URL, LIMITS)
    assert len(inner.asked) == 2


@pytest.mark.parametrize("result", [FetchError("no", reason="timeout"), Page(URL, "  \n")])
async def test_failures_and_empty_pages_are_not_kept(tmp_path: Path, result: Page | FetchError) -> None:
    inner = Counting(result)
    fetcher = cached(tmp_path, inner)
    for _ in range(2):
        with suppress(FetchError):
            await fetcher.fetch(URL, LIMITS)
    assert (len(inner.asked), list(tmp_path.iterdir())) == (2, [])


async def test_other_limits_are_honoured(tmp_path: Path) -> None:
    inner = Counting()
    fetcher = cached(tmp_path, inner)
    await fetcher.fetch(URL, LIMITS)
    await fetcher.fetch(URL, FetchLimits(max_chars=2))
    await fetcher.fetch(URL, FetchLimits(content_types=("text/plain",)))
    await fetcher.fetch(URL, FetchLimits(max_bytes=8))
    assert len(inner.asked) == 4
    await fetcher.fetch(URL, FetchLimits(max_chars=7, content_types=("text/html",), max_bytes=9, max_redirects=1))
    assert len(inner.asked) == 4


async def test_a_kept_page_behind_redirects_and_a_kept_document_keep_to_their_own_limits(tmp_path: Path) -> None:
    inner = Counting(Page(URL, "text", content_type="application/pdf", downloaded_bytes=5_000_000, redirects=3))
    fetcher = cached(tmp_path, inner)
    await fetcher.fetch(URL, LIMITS)
    await fetcher.fetch(URL, FetchLimits(max_redirects=3, max_bytes=1))
    assert len(inner.asked) == 1
    await fetcher.fetch(URL, FetchLimits(max_redirects=2))
    await fetcher.fetch(URL, FetchLimits(max_pdf_bytes=4_999_999))
    assert len(inner.asked) == 3


async def test_a_page_cut_by_small_limits_is_not_kept(tmp_path: Path) -> None:
    inner = Counting(Page(URL, "ab", truncated=True))
    fetcher = cached(tmp_path, inner)
    await fetcher.fetch(URL, FetchLimits(max_chars=2))
    await fetcher.fetch(URL, LIMITS)
    await fetcher.fetch(URL, LIMITS)
    assert len(inner.asked) == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]\nx", b"nonsense\nx", b'{"length": 1, "url": "u", "new": 1}\nx', b"\xff\n"])
async def test_a_damaged_file_is_read_anew(tmp_path: Path, damage: bytes) -> None:
    inner = Counting()
    fetcher = cached(tmp_path, inner)
    await fetcher.fetch(URL, LIMITS)
    next(tmp_path.iterdir()).write_bytes(damage)
    assert await fetcher.fetch(URL, LIMITS) == WHOLE
    assert (len(inner.asked), await fetcher.fetch(URL, LIMITS)) == (2, WHOLE)


async def test_a_disk_that_fails_costs_only_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    fetcher = cached(tmp_path / "file", Counting())
    assert await fetcher.fetch(URL, LIMITS) == WHOLE
    assert PageCache(tmp_path / "file", clock=FakeClock()).sweep() == 0


async def test_sweeping_drops_the_old_and_clearing_drops_all(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = PageCache(tmp_path, clock=clock)
    for n, age in enumerate((0, TTL_S + 1, TTL_S + KEPT_EXPIRED_S + 1)):
        cache.put(str(n), WHOLE)
        stamp = clock.now().timestamp() - age
        os.utime(tmp_path / f"{n}.page", (stamp, stamp))
    (tmp_path / "other").write_text("not ours")
    assert (cache.sweep(), sorted(p.name for p in tmp_path.iterdir())) == (1, ["0.page", "1.page", "other"])
    assert (cache.clear(), [p.name for p in tmp_path.iterdir()]) == (2, ["other"])


async def test_a_cache_that_keeps_nothing_expired_drops_it_at_the_next_sweep(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = PageCache(tmp_path, clock=clock, ttl_s=5, keep_expired_s=0)
    cache.put("a", WHOLE)
    clock.advance(4)
    assert cache.sweep() == 0
    clock.advance(2)
    assert (cache.sweep(), list(tmp_path.iterdir())) == (1, [])


async def test_the_oldest_go_beyond_the_size(tmp_path: Path) -> None:
    clock = FakeClock()
    cache = PageCache(tmp_path, clock=clock)
    for n in range(3):
        cache.put(str(n), WHOLE)
        clock.advance(1)
    size = (tmp_path / "0.page").stat().st_size
    full = PageCache(tmp_path, clock=clock, max_bytes=2 * size)
    assert (full.sweep(), sorted(p.name for p in tmp_path.iterdir())) == (1, ["1.page", "2.page"])


async def test_a_url_the_guard_refuses_is_not_served_from_the_cache(tmp_path: Path) -> None:
    url = "http://127.0.0.1/a"
    PageCache(tmp_path, clock=FakeClock()).put(cache_key("http", url), WHOLE)
    fetcher = create_fetcher("http", Settings(clock=FakeClock(), cache_folder=tmp_path))
    with pytest.raises(FetchError, check=has_code("blocked", "127.0.0.1")):
        await fetcher.fetch(url, LIMITS)
    allowed = create_fetcher("http", Settings(clock=FakeClock(), cache_folder=tmp_path, allow_private=("127.0.0.1",)))
    assert (await allowed.fetch(url, LIMITS)).text == WHOLE.text


async def test_closing_closes_what_is_inside(tmp_path: Path) -> None:
    inner = Counting()
    await cached(tmp_path, inner).aclose()
    assert inner.closed


async def test_an_old_page_is_asked_for_with_what_the_site_said_of_it(tmp_path: Path) -> None:
    first = page("Tea")
    tagged = first.replace(b"\r\n\r\n", b'\r\nETag: "one"\r\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\n\r\n', 1)
    answers: dict[str, Answer] = {"/": [tagged, response(status=304, content_type=""), page("Coffee")]}
    clock = FakeClock()
    async with serving(answers) as site:
        http = HttpFetcher(guard=AddressGuard(["127.0.0.1"]), clock=clock, respect_robots=False)
        fetcher = CachedFetcher(http, PageCache(tmp_path, clock=clock))
        texts = []
        for _ in range(3):
            texts.append((await fetcher.fetch(site.url(), LIMITS)).text)
            assert await fetcher.fetch(site.url(), LIMITS)
            clock.advance(TTL_S + 1)
        await fetcher.aclose()
        asked = [(h.get("if-none-match"), h.get("if-modified-since")) for _, h in site.requests]
    known = ('"one"', "Fri, 02 Jan 2026 03:04:05 GMT")
    assert (texts, asked) == (["Tea", "Tea", "Coffee"], [(None, None), known, known])


async def test_many_readers_and_writers_of_one_page_never_see_a_part_of_it(tmp_path: Path) -> None:
    fetchers = [cached(tmp_path, Counting()) for _ in range(16)]
    pages = await asyncio.gather(*(fetcher.fetch(URL, LIMITS) for fetcher in fetchers for _ in range(4)))
    assert set(pages) == {WHOLE}
