"""A page is fetched once, whoever waits for it."""

from __future__ import annotations

import asyncio

import pytest

from nexi.app import QuietEmit
from nexi.budget import Budget, Meter
from nexi.errors import FetchError
from nexi.reader import Reader
from nexi.runs.directory import MemoryPages
from nexi.runs.session import Session
from nexi.testing import FakeClock, FakeWeb
from nexi.types import FetchLimits, Page

URL = "https://moon.example/facts"


class Recovering(FakeWeb):
    """A web that fails while pages are read ahead, and has them afterwards."""

    def __init__(self, failures: int) -> None:
        super().__init__({URL: "# Moon\n\nIt is far."})
        self.failures = failures

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        if self.failures:
            self.failures -= 1
            self.fetched.append(url)
            await asyncio.sleep(0)
            raise FetchError("the site is overloaded", status=503)
        return await super().fetch(url, limits)


def reader_of(web: FakeWeb, tasks: asyncio.TaskGroup) -> Reader:
    return Reader(
        lambda: [web],
        limits=FetchLimits(),
        session=Session(),
        meter=Meter(Budget(max_pages=9), started=0.0),
        store=MemoryPages(),
        emit=QuietEmit(),
        clock=FakeClock(),
        tasks=tasks,
        ahead=lambda _: True,
    )


async def test_two_who_waited_for_a_page_that_failed_ahead_begin_it_anew_together() -> None:
    web = Recovering(1)
    async with asyncio.TaskGroup() as tasks:
        reader = reader_of(web, tasks)
        reader.prefetch([URL])
        pages = await asyncio.gather(reader.read(URL), reader.read(f"{URL}#part"))
    assert [page.text for page in pages] == ["# Moon\n\nIt is far."] * 2
    assert web.fetched == [URL, URL]


async def test_a_page_that_fails_again_fails_for_both() -> None:
    web = Recovering(9)
    async with asyncio.TaskGroup() as tasks:
        reader = reader_of(web, tasks)
        reader.prefetch([URL])
        results = await asyncio.gather(reader.read(URL), reader.read(URL), return_exceptions=True)
    assert [str(r) for r in results] == ["the site is overloaded"] * 2
    assert web.fetched == [URL, URL]


@pytest.mark.parametrize("readers", [1, 3])
async def test_a_page_that_is_asked_for_together_is_fetched_once(readers: int) -> None:
    web = Recovering(0)
    async with asyncio.TaskGroup() as tasks:
        reader = reader_of(web, tasks)
        await asyncio.gather(*(reader.read(URL) for _ in range(readers)))
    assert web.fetched == [URL]
