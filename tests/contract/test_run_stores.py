"""What every run store promises: one suite over files and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.errors import StoreError
from nexi.events import ModelAsked, RunFinished, RunStarted
from nexi.ports import RunStore
from nexi.runs.directory import RunDirectory
from nexi.team.postgres.runs import PostgresRuns
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage

STARTED = RunStarted("why is the sky \x00blue \ud83c?", "m", "scripted")
ASKED = ModelAsked(1, "answer", "scripted", 12)
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)


@pytest.fixture(params=["files", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], RunStore]:
    """How to make the store of another person."""
    if request.param == "files":
        folders = (tmp_path / str(number) for number in range(9))
        return lambda: RunDirectory((home := next(folders)) / "runs", home / "pages", FakeClock())
    database, make_person = request.getfixturevalue("database"), request.getfixturevalue("make_person")
    return lambda: PostgresRuns(database, make_person(), FakeClock())


@pytest.fixture
def store(make_store: Callable[[], RunStore]) -> RunStore:
    return make_store()


async def test_a_run_is_read_as_it_was_written(store: RunStore) -> None:
    log = store.create()
    for fact in (STARTED, ASKED):
        await log.append(fact)
    read = store.open_log(log.run_id)
    assert (read.facts, read.header.run, read.damage) == ([(1, STARTED), (2, ASKED)], log.run_id, "")
    assert store.is_running(log.run_id)
    await log.close()
    assert not store.is_running(log.run_id)


async def test_a_run_goes_on_in_its_log_after_its_writer_left_it(store: RunStore) -> None:
    first = store.create()
    await first.append(STARTED)
    await first.close()
    read, second = store.reopen(first.run_id)
    assert read.facts == [(1, STARTED)]
    assert [await second.append(ASKED), await second.append(FINISHED)] == [2, 3]
    await second.close()
    assert store.open_log(first.run_id).has_ended


async def test_a_run_has_one_writer(store: RunStore) -> None:
    log = store.create()
    await log.append(STARTED)
    with pytest.raises(StoreError, match="still running"):
        store.reopen(log.run_id)
    await log.append(FINISHED)
    await log.close()
    with pytest.raises(StoreError, match="has ended"):
        store.reopen(log.run_id)


async def test_runs_are_listed_newest_first_with_their_states(store: RunStore) -> None:
    states = {}
    for state, facts in (("finished", (STARTED, FINISHED)), ("unfinished", (STARTED,)), ("running", (STARTED, ASKED))):
        log = store.create()
        for fact in facts:
            await log.append(fact)
        if state != "running":
            await log.close()
        states[log.run_id] = state
    listed = store.list_runs()
    assert {run.id: run.state for run in listed} == states
    assert {(run.mode, run.query[:10], run.size > 0) for run in listed} == {("search", "why is the", True)}
    assert len(store.list_runs(2)) == 2
    await log.close()


async def test_runs_are_found_by_the_words_of_their_questions_and_by_their_ids(store: RunStore) -> None:
    ids = []
    for question in ("Why is the sky blue?", "Is the Moon far?", "why is the SEA salty?"):
        log = store.create()
        await log.append(RunStarted(question, "m", "scripted"))
        await log.close()
        ids.append(log.run_id)
    sky, moon, sea = ids
    finds = [{run.id for run in store.find_runs(text, 9)} for text in (" WHY  the ", "moon", "moon sky", "")]
    assert finds == [{sky, sea}, {moon}, set(), set(ids)]
    assert len(store.find_runs("why", 1)) == 1
    reads = [{run.id for run in store.read_summaries(named)} for named in ([sky, sea, "0" * len(sky)], [])]
    assert reads == [{sky, sea}, set()]


async def test_a_run_that_was_removed_is_unknown(store: RunStore) -> None:
    log = store.create()
    await log.append(STARTED)
    with pytest.raises(StoreError, match="still running"):
        store.remove(log.run_id)
    await log.close()
    assert store.has_run(log.run_id)
    store.remove(log.run_id)
    assert not store.has_run(log.run_id)
    for ask in (store.open_log, store.remove, store.reopen, store.request_stop):
        with pytest.raises(StoreError) as refused:
            ask(log.run_id)
        assert refused.value.code == "no_such_run"


async def test_the_runs_of_somebody_else_are_unknown(make_store: Callable[[], RunStore]) -> None:
    mine, theirs = make_store(), make_store()
    log = mine.create()
    await log.append(STARTED)
    for ask in (theirs.open_log, theirs.remove, theirs.reopen, theirs.request_stop):
        with pytest.raises(StoreError) as refused:
            ask(log.run_id)
        assert refused.value.code == "no_such_run"
    assert (theirs.list_runs(), theirs.has_run(log.run_id), theirs.is_running(log.run_id)) == ([], False, False)
    assert store_facts(mine, log.run_id) == 1
    await log.close()


def store_facts(store: RunStore, run_id: str) -> int:
    return len(store.open_log(run_id).facts)


async def test_a_run_learns_that_it_is_to_stop(store: RunStore) -> None:
    log = store.create()
    await log.append(STARTED)
    assert store.request_stop(log.run_id) is True
    async with asyncio.timeout(120):
        while not log.stop_requested():
            await asyncio.sleep(0.05)
    await log.close()
    assert store.request_stop(log.run_id) is False


async def test_a_cancelled_run_is_marked(store: RunStore) -> None:
    log = store.create()
    await log.append(STARTED)
    assert store.is_cancel_requested(log.run_id) is False
    store.request_cancel(log.run_id)
    assert store.is_cancel_requested(log.run_id) is True
    await log.close()


async def test_a_follower_is_woken_and_reads_what_is_new(store: RunStore) -> None:
    log = store.create()
    await log.append(STARTED)
    waiting = asyncio.create_task(store.wait_for_facts(log.run_id, 1, 120.0))
    await asyncio.sleep(0)
    await log.append(ASKED)
    await asyncio.wait_for(waiting, 120.0)
    assert store.open_log(log.run_id).facts[1:] == [(2, ASKED)]
    await log.close()


@pytest.mark.parametrize("run_id", ["", "../etc", "ABCDEF", "3fa9c", "g" * 32, "0" * 31])
def test_what_is_no_id_is_refused(store: RunStore, run_id: str) -> None:
    with pytest.raises(StoreError) as refused:
        store.open_log(run_id)
    assert (refused.value.code, store.has_run(run_id)) == ("bad_run_id", False)
