"""SearXNG is asked for as many pages as a query needs, and no more."""

from __future__ import annotations

import pytest

from nexi.backends.searxng import MAX_PAGES, PagedSearxng, Searxng
from nexi.errors import BackendError
from nexi.types import Hit, Query


class Instance:
    """Pages of hits by number; a page beyond them is empty, and one may fail."""

    def __init__(self, *sizes: int, fails_at: int = 0) -> None:
        self.sizes, self.fails_at = sizes, fails_at
        self.asked: list[int] = []

    def page(self, number: int) -> Page:
        return Page(self, number)


class Page:
    name = "searxng"
    filters = frozenset({"site"})

    def __init__(self, instance: Instance, number: int) -> None:
        self.instance, self.number = instance, number

    async def search(self, query: Query) -> list[Hit]:
        self.instance.asked.append(self.number)
        if self.number == self.instance.fails_at:
            raise BackendError("the instance is tired", code="rate_limited")
        first = sum(self.instance.sizes[: self.number - 1])
        size = self.instance.sizes[self.number - 1] if self.number <= len(self.instance.sizes) else 0
        return [Hit(f"https://a.example/{n}") for n in range(first, first + size)]


@pytest.mark.parametrize(
    ("instance", "count", "found", "asked"),
    [
        (Instance(10, 10, 10), 10, 10, [1]),
        (Instance(7, 10), 10, 7, [1]),
        (Instance(10, 10, 10), 25, 25, [1, 2, 3]),
        (Instance(10, 10, 10), 20, 20, [1, 2]),
        (Instance(10, 4), 30, 14, [1, 2, 3]),
        (Instance(0, 10), 30, 0, [1]),
        (Instance(10, 10, 10, fails_at=2), 30, 10, [1, 2]),
        (Instance(*[10] * 30), 500, MAX_PAGES * 10, list(range(1, MAX_PAGES + 1))),
    ],
)
async def test_pages_are_asked_for_until_there_is_enough(instance: Instance, count: int, found: int, asked: list[int]) -> None:
    hits = await PagedSearxng(instance.page).search(Query("q", count=count))
    assert (len(hits), instance.asked) == (found, asked)
    assert len({hit.url for hit in hits}) == found


async def test_a_first_page_that_fails_is_the_failure_of_the_backend() -> None:
    with pytest.raises(BackendError, match="tired"):
        await PagedSearxng(Instance(10, fails_at=1).page).search(Query("q", count=30))


async def test_an_instance_that_repeats_its_first_page_is_left() -> None:
    class Repeating(Page):
        async def search(self, query: Query) -> list[Hit]:
            self.instance.asked.append(self.number)
            return [Hit("https://a.example/0")]

    instance = Instance()
    hits = await PagedSearxng(lambda number: Repeating(instance, number)).search(Query("q", count=30))
    assert (hits, instance.asked) == ([Hit("https://a.example/0")], [1, 2])


def test_the_page_is_in_the_request() -> None:
    params = [dict(Searxng("http://searx.example", page=page).request(Query("q")).params)["pageno"] for page in (1, 3)]
    assert params == ["1", "3"]
