"""Old runs go only after a notice that was shown, never because a clock jumped, and kept ones stay."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nexi.app.stored_runs import RetentionNotice
from nexi.runs.directory import RunDirectory
from nexi.testing import FakeClock
from tests.test_runlog import FINISHED, STARTED, age_pages, fetched, write

DAY = 86_400


class Home:
    def __init__(self, path: Path) -> None:
        ids = (f"{number:06x}" for number in itertools.count(1))
        self.clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
        self.runs = RunDirectory(path / "runs", path / "pages", self.clock, new_id=lambda: next(ids))
        self.notice = RetentionNotice(path / "state" / "retention.json", self.runs, self.clock)

    async def ask(self) -> str:
        return await write(self.runs, STARTED, FINISHED)

    def tidy(self) -> list[str]:
        """A day's cleanup; the ids that are left."""
        self.notice.tidy(30, 1000)
        return sorted(run.id for run in self.runs.list_runs())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_an_old_run_goes_a_week_after_its_notice_was_shown_and_not_before(home: Home) -> None:
    old = await home.ask()
    home.clock.advance(20 * DAY)
    middle = await home.ask()
    home.clock.advance(11 * DAY)
    new = await home.ask()
    assert home.tidy() == [old, middle, new]
    home.clock.advance(10 * DAY)
    assert home.tidy() == [old, middle, new], "the notice was not shown yet"
    message = home.notice.take_message(30)
    assert message.startswith("1 old run will be deleted after 2026-04-18 (runs_keep_days is 30); nexi runs tidy --dry-run")
    assert home.notice.take_message(30) == ""
    home.clock.advance(6 * DAY)
    assert home.tidy() == [old, middle, new]
    home.clock.advance(1.1 * DAY)
    assert home.tidy() == [middle, new]


async def test_a_run_goes_exactly_a_week_after_its_notice_and_is_not_announced_again(home: Home) -> None:
    await home.ask()
    home.clock.advance(20 * DAY)
    young = await home.ask()
    home.clock.advance(11 * DAY)
    home.tidy()
    home.notice.take_message(30)
    home.clock.advance(7 * DAY)
    assert (home.tidy(), home.notice.take_message(30)) == ([young], "")


async def test_what_is_due_when_a_notice_is_shown_is_in_it_and_what_comes_later_waits_for_the_next(home: Home) -> None:
    first = await home.ask()
    home.clock.advance(20 * DAY)
    second = await home.ask()
    home.clock.advance(11 * DAY)
    third = await home.ask()
    assert home.tidy() == [first, second, third]
    home.clock.advance(20 * DAY)
    home.tidy()
    assert home.notice.take_message(30).startswith("2 old runs will be deleted after 2026-04-28")
    home.clock.advance(11 * DAY)
    assert home.tidy() == [third]
    assert home.notice.take_message(30).startswith("1 old run will be deleted after 2026-05-09")


@pytest.mark.parametrize(
    "notice",
    [
        '{"runs": ["000001"], "shown": "long ago"}',
        '{"runs": ["000001"], "shown": "2020-01-01T00:00:00"}',
        '{"runs": "000001", "shown": "2020-01-01T00:00:00+00:00"}',
        '["000001"]',
        "",
    ],
)
async def test_a_notice_that_was_damaged_deletes_nothing(home: Home, tmp_path: Path, notice: str) -> None:
    old = await home.ask()
    home.clock.advance(20 * DAY)
    young = await home.ask()
    home.clock.advance(11 * DAY)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "retention.json").write_text(notice)
    assert home.tidy() == [old, young]
    assert home.notice.take_message(30).startswith("1 old run will be deleted after"), "it is shown again"


async def test_a_clock_that_jumped_deletes_and_announces_nothing(home: Home) -> None:
    first = await home.ask()
    home.clock.advance(400 * DAY)
    jumped = await home.ask()
    assert home.tidy() == [first, jumped]
    assert home.notice.take_message(30) == ""
    home.clock.advance(-400 * DAY)
    assert home.tidy() == [first, jumped], "a run from the future"
    assert home.notice.take_message(30) == ""


async def test_a_kept_run_stays_with_its_pages_until_that_is_undone(home: Home) -> None:
    digest = await home.runs.pages.put("evidence")
    kept = await write(home.runs, STARTED, fetched(digest), FINISHED)
    home.clock.advance(40 * DAY)
    await home.ask()
    home.runs.keep(kept)
    age_pages(home.runs, home.clock, 2)
    assert (home.runs.find_expired(30, 1000), home.runs.prune(30, 1000).runs) == ([], ())
    assert await home.runs.pages.get(digest) == "evidence"
    home.runs.keep(kept, is_kept=False)
    assert home.runs.prune(30, 1000).runs == (kept,)


async def test_a_size_limit_announces_first_too(home: Home) -> None:
    ids = [await home.ask() for _ in range(3)]
    home.clock.advance(2 * 3600)
    home.notice.tidy(30, 0)
    assert sorted(run.id for run in home.runs.list_runs()) == ids
    assert home.notice.take_message(30).startswith("3 old runs will be deleted")


async def test_only_named_runs_are_removed_and_pages_of_the_others_stay(home: Home) -> None:
    digest = await home.runs.pages.put("shared")
    first, second = [await write(home.runs, STARTED, fetched(digest), FINISHED) for _ in range(2)]
    home.clock.advance(40 * DAY)
    age_pages(home.runs, home.clock, 2)
    assert home.runs.prune(30, 1000, only=[first]).runs == (first,)
    assert ([run.id for run in home.runs.list_runs()], await home.runs.pages.get(digest)) == ([second], "shared")
