"""robots.txt is asked for once, shared, and forgotten in time."""

from __future__ import annotations

import asyncio

import pytest

from nexi import urls
from nexi.errors import FetchError
from nexi.fetchers.obstacles import KEPT_AFTER_FAILURE_S, KEPT_S, Robots, RobotsFile
from nexi.testing import FakeClock

PAGE = urls.parse("https://a.test/private/x")


class Files:
    """Scripted robots files; counts how often it is asked."""

    def __init__(self, *answers: RobotsFile | FetchError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, url: str) -> RobotsFile:
        self.asked.append(url)
        answer = self.answers.pop(0)
        if isinstance(answer, FetchError):
            raise answer
        return answer


def robots(files: Files, clock: FakeClock | None = None) -> Robots:
    return Robots(files, clock=clock or FakeClock(), user_agent="nexi")


@pytest.mark.parametrize(
    ("file", "allowed"),
    [
        (RobotsFile(200, "User-agent: *\nDisallow: /private"), False),
        (RobotsFile(200, "User-agent: *\nDisallow: /private\n\nUser-agent: nexi\nAllow: /"), True),
        (RobotsFile(200, "User-agent: other\nDisallow: /"), True),
        (RobotsFile(200, "<html>not a robots file</html>"), True),
        (RobotsFile(200, ""), True),
        (RobotsFile(404), True),
        (RobotsFile(401), True),
        (RobotsFile(500), False),
        (RobotsFile(503), False),
    ],
)
async def test_the_answer_decides(file: RobotsFile, allowed: bool) -> None:
    assert await robots(Files(file)).is_allowed(PAGE) is allowed


async def test_a_site_that_does_not_answer_is_tried() -> None:
    assert await robots(Files(FetchError("down"))).is_allowed(PAGE)


async def test_one_origin_is_asked_once_for_many_pages() -> None:
    files = Files(RobotsFile(404))
    rules = robots(files)
    assert await asyncio.gather(*(rules.is_allowed(PAGE) for _ in range(5))) == [True] * 5
    assert files.asked == ["https://a.test/robots.txt"]


async def test_other_ports_and_schemes_are_other_origins() -> None:
    files = Files(RobotsFile(404), RobotsFile(404), RobotsFile(404))
    rules = robots(files)
    for url in ("https://a.test/", "http://a.test/", "https://a.test:8443/"):
        await rules.is_allowed(urls.parse(url))
    assert files.asked == ["https://a.test/robots.txt", "http://a.test/robots.txt", "https://a.test:8443/robots.txt"]


@pytest.mark.parametrize(
    ("first", "kept"),
    [(RobotsFile(404), KEPT_S), (RobotsFile(500), KEPT_AFTER_FAILURE_S), (FetchError("x"), KEPT_AFTER_FAILURE_S)],
)
async def test_good_answers_are_kept_for_a_day_and_failures_for_a_minute(first: RobotsFile | FetchError, kept: float) -> None:
    files, clock = Files(first, RobotsFile(404)), FakeClock()
    rules = robots(files, clock)
    await rules.is_allowed(PAGE)
    clock.advance(kept - 1)
    await rules.is_allowed(PAGE)
    assert len(files.asked) == 1
    clock.advance(2)
    await rules.is_allowed(PAGE)
    assert len(files.asked) == 2


async def test_a_page_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(url: str) -> RobotsFile:
        arrived.set()
        await go.wait()
        return RobotsFile(404)

    rules = Robots(slow, clock=FakeClock(), user_agent="nexi")
    first, second = asyncio.create_task(rules.is_allowed(PAGE)), asyncio.create_task(rules.is_allowed(PAGE))
    await arrived.wait()
    first.cancel()
    go.set()
    assert await second


async def test_closing_ends_what_is_still_being_read() -> None:
    arrived = asyncio.Event()

    async def never(url: str) -> RobotsFile:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    rules = Robots(never, clock=FakeClock(), user_agent="nexi")
    waiting = asyncio.create_task(rules.is_allowed(PAGE))
    await arrived.wait()
    await rules.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
