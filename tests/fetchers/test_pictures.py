"""Pictures of pages: what a page declares, what is fetched of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.errors import FetchError
from nexi.fetchers.cache import CachedFetcher, PageCache
from nexi.fetchers.http import PICTURE_LIMITS
from nexi.formats import extract
from nexi.testing import FakeClock
from nexi.types import Picture, PictureFile
from tests.fetchers.site import page, response
from tests.fetchers.test_http import LIMITS, fetching

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 40


def picture_of(head: str) -> Picture | None:
    html = f"<html><head><title>T</title>{head}</head><body><main><p>Words of a page.</p></main></body></html>"
    return extract(html.encode(), "text/html; charset=utf-8", "https://moon.example/a/page").picture


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('<meta property="og:image" content="/m.png">', Picture("https://moon.example/m.png")),
        (
            '<meta property="og:image" content="m.png"><meta property="og:image:alt" content="A map">'
            '<link rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/">',
            Picture("https://moon.example/a/m.png", "A map", "CC BY-SA 4.0"),
        ),
        (
            '<meta property="og:image" content="https://cdn.example/m.jpg"><meta name="dc.rights" content="© The Moon">',
            Picture("https://cdn.example/m.jpg", "", "© The Moon"),
        ),
        ('<meta property="og:image" content="data:image/png;base64,AAAA">', None),
        ('<meta property="og:image" content="file:///etc/passwd">', None),
        ('<meta property="og:image" content="">', None),
        ("", None),
    ],
)
def test_a_page_declares_its_picture_and_its_licence(head: str, expected: Picture | None) -> None:
    assert picture_of(head) == expected


async def test_a_picture_comes_through_redirects_with_the_type_of_its_bytes() -> None:
    moved = response(status=302, location="/b")
    async with fetching({"/a": moved, "/b": response(PNG, content_type="text/html")}) as (fetcher, site):
        assert await fetcher.fetch_picture(site.url("/a")) == PictureFile("image/png", PNG)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", "content_type"),
        (b"<html>no picture</html>", "content_type"),
        (PNG + b"x" * PICTURE_LIMITS.max_bytes, "too_large"),
    ],
)
async def test_what_is_no_picture_or_too_large_is_refused(body: bytes, reason: str) -> None:
    async with fetching({"/a": response(body, content_type="image/png")}) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch_picture(site.url("/a"))
    assert caught.value.reason == reason


async def test_a_private_address_is_refused_also_behind_a_redirect() -> None:
    moved = response(status=302, location="http://127.0.0.2:1/secret.png")
    async with fetching({"/a": moved}) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch_picture(site.url("/a"))
    assert caught.value.reason == "blocked"


async def test_a_site_that_forbids_its_pictures_to_robots_is_not_asked_for_them() -> None:
    robots = response("User-agent: *\nDisallow: /img/", content_type="text/plain")
    async with fetching({"/robots.txt": robots, "/img/a.png": response(PNG)}) as (fetcher, site):
        with pytest.raises(FetchError) as caught:
            await fetcher.fetch_picture(site.url("/img/a.png"))
    assert caught.value.reason == "robots"


async def test_the_picture_of_a_page_is_kept_in_the_cache(tmp_path: Path) -> None:
    html = page("Words of a page.", "Title</title><meta property='og:image' content='/m.png'><title>")
    async with fetching({"/": html}) as (fetcher, site):
        cached = CachedFetcher(fetcher, PageCache(tmp_path, clock=FakeClock(), ttl_s=60))
        first, second = await cached.fetch(site.url(), LIMITS), await cached.fetch(site.url(), LIMITS)
    assert first.picture == second.picture == Picture(site.url("/m.png"))
