"""A crawl goes level by level, within its limits, and only along the links that its rules allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nexi.apis.search.crawl import CrawlRequest, compile_pattern, crawl_site, map_site
from nexi.errors import FetchError, QuestionError
from nexi.types import Page

HOME = "https://docs.example/"
LINKS = {
    HOME: (
        "https://docs.example/guide",
        "https://docs.example/api#top",
        "https://www.docs.example/blog",
        "https://other.example/",
    ),
    "https://docs.example/guide": ("https://docs.example/guide/one", HOME, "https://docs.example/api"),
    "https://docs.example/api": ("https://docs.example/api/v1", "mailto:a@b.example"),
    "https://www.docs.example/blog": (),
    "https://other.example/": ("https://other.example/far",),
    "https://docs.example/guide/one": (),
    "https://docs.example/api/v1": (),
    "https://other.example/far": (),
}


class Site:
    """Pages by URL; records the levels it was asked for."""

    def __init__(self) -> None:
        self.levels: list[list[str]] = []

    async def __call__(self, urls: Sequence[str]) -> list[Page | FetchError]:
        self.levels.append(list(urls))
        return [Page(url, "text", links=LINKS[url]) if url in LINKS else FetchError("gone", status=404) for url in urls]


async def crawl(**limits: Any) -> tuple[list[str], Site]:
    site = Site()
    return [found.url for found in await crawl_site(CrawlRequest(HOME, **limits), site)], site


async def test_one_level_is_the_page_and_its_links() -> None:
    urls, _ = await crawl()
    assert urls == [HOME, "https://docs.example/guide", "https://docs.example/api", *LINKS[HOME][2:]]


async def test_deeper_levels_follow_links_once_and_none_of_other_sites() -> None:
    urls, site = await crawl(max_depth=3)
    assert len(urls) == len(set(urls)) == 7
    assert "https://other.example/far" not in urls
    assert site.levels[2] == ["https://docs.example/guide/one", "https://docs.example/api/v1"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"limit": 2}, [HOME, "https://docs.example/guide"]),
        ({"limit": 1}, [HOME]),
        ({"max_breadth": 1, "max_depth": 2}, [HOME, "https://docs.example/guide", "https://docs.example/guide/one"]),
        ({"allow_external": False, "exclude_paths": ("^/api",)}, [HOME, "https://docs.example/guide", LINKS[HOME][2]]),
        (
            {"select_paths": ("/guide.*",), "max_depth": 2},
            [HOME, "https://docs.example/guide", "https://docs.example/guide/one"],
        ),
        ({"select_domains": (r"^docs\.example$",)}, [HOME, "https://docs.example/guide", "https://docs.example/api"]),
        ({"exclude_domains": ("example",)}, [HOME]),
    ],
)
async def test_limits_and_patterns_say_which_pages_are_read(limits: dict[str, Any], expected: list[str]) -> None:
    assert (await crawl(**limits))[0] == expected


async def test_a_map_lists_the_last_level_without_reading_it() -> None:
    site = Site()
    urls = await map_site(CrawlRequest(HOME, max_depth=2, allow_external=False), site)
    assert site.levels == [[HOME], ["https://docs.example/guide", "https://docs.example/api", "https://www.docs.example/blog"]]
    assert urls == [HOME, *site.levels[1], "https://docs.example/guide/one", "https://docs.example/api/v1"]
    assert await map_site(CrawlRequest(HOME, limit=2), Site()) == [HOME, "https://docs.example/guide"]


async def test_a_first_page_that_cannot_be_read_ends_it() -> None:
    with pytest.raises(FetchError, match="gone"):
        await crawl_site(CrawlRequest("https://gone.example/"), Site())
    with pytest.raises(FetchError, match="gone"):
        await map_site(CrawlRequest("https://gone.example/"), Site())


@pytest.mark.parametrize("text", ["(", "(a+)+$", ".*.*.*x", "a" * 201, "(a|b)*"])
def test_patterns_that_could_take_long_are_refused(text: str) -> None:
    with pytest.raises(QuestionError):
        compile_pattern(text)
