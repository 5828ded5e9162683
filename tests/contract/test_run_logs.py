"""What every run log promises: one suite over memory, files and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from nexi.events import Fact, ModelAsked, RunFailed, RunFinished, RunStarted, ToolFinished, ToolStarted, Warned
from nexi.ports import RunLog
from nexi.runs.directory import RunDirectory
from nexi.runs.log import MemoryRunLog
from nexi.runs.log_format import check_run_id
from nexi.team.postgres.runs import PostgresRuns
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage

STARTED = RunStarted("why?", "m", "scripted")
ASKED = ModelAsked(1, "answer", "scripted", 12)
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)
FAILED = RunFailed("server", "it failed", "", "", StopReason.API_ERROR, 1, Usage(), 0.5)
Opened: TypeAlias = "AsyncIterator[RunLog]"


@asynccontextmanager
async def memory(_: Path) -> Opened:
    yield MemoryRunLog()


@asynccontextmanager
async def on_disk(home: Path) -> Opened:
    log = RunDirectory(home / "runs", home / "pages", FakeClock()).create()
    try:
        yield log
    finally:
        await log.close()


@pytest.fixture(params=["memory", "files", "postgres"])
def opened(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    """How to open a new log of a kind, in a home."""
    if request.param != "postgres":
        return {"memory": memory, "files": on_disk}[request.param]
    database, person = request.getfixturevalue("database"), request.getfixturevalue("make_person")()

    @asynccontextmanager
    async def in_postgres(_: Path) -> Opened:
        log = PostgresRuns(database, person, FakeClock()).create()
        try:
            yield log
        finally:
            await log.close()

    return in_postgres


async def test_a_log_names_its_run(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        assert check_run_id(log.run_id) == log.run_id


async def test_two_logs_never_share_a_run(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        assert first.run_id != second.run_id


async def test_facts_are_numbered_from_one_without_holes(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    facts: list[Fact] = [STARTED, ASKED, ToolStarted("a", "web_search", "{}"), Warned("w", "careful"), FINISHED]
    async with opened(tmp_path) as log:
        assert [await log.append(fact) for fact in facts] == [1, 2, 3, 4, 5]


async def test_facts_appended_at_once_get_a_number_each(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        pairs = [(ToolStarted(str(i), "t", ""), ToolFinished(str(i), "t", True, "", 0.0)) for i in range(10)]
        numbers = await asyncio.gather(*[log.append(fact) for pair in pairs for fact in (*pair, ASKED)])
    assert sorted(numbers) == list(range(1, 31))


@pytest.mark.parametrize("end", [FINISHED, FAILED], ids=["finished", "failed"])
async def test_nothing_may_follow_a_terminal_fact(opened: Callable[[Path], Any], tmp_path: Path, end: Fact) -> None:
    async with opened(tmp_path) as log:
        assert [await log.append(STARTED), await log.append(end)] == [1, 2]
        for late in (Warned("w", "late"), FINISHED, FAILED):
            with pytest.raises(ValueError, match="ended"):
                await log.append(late)


async def test_nobody_asked_a_new_run_to_stop(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        assert log.stop_requested() is False


async def test_closing_twice_is_harmless(opened: Callable[[Path], Any], tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        numbers = [await log.append(STARTED), await log.append(ASKED)]
        assert [await log.close(), await log.close()] == [None, None]
    assert numbers == [1, 2]


async def test_memory_goes_on_with_the_numbers_of_the_log_it_replaces(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as broken:
        count = [await broken.append(fact) for fact in (STARTED, ASKED)][-1]
        log = MemoryRunLog(broken.run_id, after=count)
    assert (log.run_id, await log.append(FINISHED)) == (broken.run_id, 3)
