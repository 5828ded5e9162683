"""Runs in Postgres beyond the contract: what a claim hands on, when a lease is given back, and who hears of new facts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nexi.errors import RunTakenError, StoreError
from nexi.events import ModelAsked, RunFinished, RunStarted
from nexi.runs.log_format import check_run_id
from nexi.team.postgres.commits import FactBatch
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People, Quotas
from nexi.team.postgres.runs import QUEUE_NOTICE, QUOTA_STOP, PostgresRuns, pick_run
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage
from tests.raising import has_code

STARTED = RunStarted("why?", "m", "scripted")
ASKED = ModelAsked(1, "answer", "scripted", 12)
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)


@pytest.fixture
def runs(database: Database, make_person: Callable[..., str]) -> PostgresRuns:
    return PostgresRuns(database, make_person(), FakeClock())


async def let_others_work() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0)


# who writes


async def test_a_submitted_run_waits_with_all_that_it_was_asked_for(runs: PostgresRuns) -> None:
    run_id = runs.submit("why is it \x00blue?", "research", {"pages": 3})
    assert (check_run_id(run_id), len(run_id), runs.is_running(run_id)) == (run_id, 32, True)
    claim = runs.claim(run_id)
    assert (claim.question, claim.mode, claim.request) == ("why is it blue?", "research", {"pages": 3})
    assert (claim.read.facts, await claim.log.append(STARTED)) == ([], 1)
    await claim.log.close()
    with pytest.raises(AttributeError):
        claim.mode = "search"  # type: ignore[misc]


def test_two_claims_of_one_person_are_never_decided_at_once(database: Database, make_person: Callable[..., str]) -> None:
    person = make_person()
    runs = PostgresRuns(database, person, FakeClock())
    waiting = (
        "select count(*) from pg_locks where locktype = 'advisory' and not granted "
        "and database = (select oid from pg_database where datname = current_database())"
    )
    with ThreadPoolExecutor(1) as thread:
        with database.transaction() as other_claim:
            other_claim.execute("select pg_advisory_xact_lock(hashtextextended(%s::uuid::text, 0))", (person,))
            claim = thread.submit(runs.claim, runs.submit("why?", "search", {}))
            while not (waits := database.fetch(waiting) == [(1,)]) and not claim.done():
                continue
            assert waits
        assert claim.result().question == "why?"


async def test_a_run_that_its_writer_left_waits_again_when_it_is_resubmitted(runs: PostgresRuns) -> None:
    log = runs.create()
    await log.append(STARTED)
    await log.close()
    runs.resubmit(log.run_id)
    assert runs.is_running(log.run_id)
    claim = runs.claim(log.run_id)
    assert (claim.question, claim.mode, claim.request, claim.read.facts) == ("why?", "search", {}, [(1, STARTED)])
    await claim.log.close()
    with pytest.raises(StoreError, check=has_code("no_such_run")):
        runs.resubmit("0" * 32)


async def test_a_writer_is_lost_until_it_gives_its_run_back(runs: PostgresRuns, database: Database) -> None:
    log = runs.create()
    await log.append(STARTED)
    losses = [runs.count_losses(log.run_id)]
    database.fetch("update runs set lease_until = now() - interval '1 s' where run = %(run)s", {"run": log.run_id})
    second = runs.claim(log.run_id).log
    losses.append(runs.count_losses(log.run_id))
    await second.close()
    losses.append(runs.count_losses(log.run_id))
    assert losses == [1, 2, 1]
    await log.close()


@pytest.mark.parametrize(
    ("is_claimed", "error", "expected"),
    [
        (False, StoreError("away"), StoreError),
        (True, StoreError("away"), RunTakenError),  # others may go on with it
        (False, RunTakenError("taken"), RunTakenError),
        (True, RunTakenError("taken", cause="by one"), RunTakenError),
    ],
)
async def test_a_writer_that_cannot_keep_a_fact_has_lost_a_run_that_others_may_have(
    runs: PostgresRuns, database: Database, monkeypatch: pytest.MonkeyPatch,
    is_claimed: bool, error: StoreError, expected: type[StoreError],
) -> None:  # fmt: skip
    log = runs.claim(runs.submit("why?", "search", {})).log if is_claimed else runs.create()

    async def refuse(batch: FactBatch) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(database.committer, "commit", refuse)
        with pytest.raises(StoreError) as caught:
            await log.append(STARTED)
    assert (type(caught.value), caught.value is error) == (expected, type(error) is expected)
    with pytest.raises(StoreError) as again:
        await log.append(ASKED)
    assert again.value is caught.value
    await log.close()


# what its owner and her quota ask of it


@pytest.mark.parametrize(
    ("stop", "cancel", "is_over_quota", "expected"),
    [
        (False, False, False, (False, False, "")),
        (True, False, False, (True, False, "")),
        (False, True, False, (False, True, "")),
        (False, False, True, (True, False, QUOTA_STOP)),
        (True, False, True, (True, False, "")),
    ],
)
async def test_a_run_learns_why_it_is_to_stop_with_its_lease(
    runs: PostgresRuns, stop: bool, cancel: bool, is_over_quota: bool, expected: tuple[bool, bool, str]
) -> None:
    log = runs.create()
    assert (log.stop_requested(), log.is_cancel_requested, log.explain_stop()) == (False, False, "")
    log.on_renewed(stop=stop, cancel=cancel, is_over_quota=is_over_quota)
    assert (log.stop_requested(), log.is_cancel_requested, log.explain_stop()) == expected
    await log.close()


# closing


async def test_a_log_is_closed_after_its_last_commit_and_commits_follow_each_other(
    runs: PostgresRuns, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, commit, release = runs.create(), database.committer.commit, database.release
    gates, events = [asyncio.Event(), asyncio.Event()], []

    async def commit_late(batch: FactBatch) -> None:
        numbers = [row.number for row in batch.rows]
        events.append(f"begin {numbers}")
        await gates[numbers[0] - 1].wait()
        await commit(batch)
        events.append(f"end {numbers}")

    def note_release(run: Any) -> None:
        events.append("release")
        release(run)

    monkeypatch.setattr(database.committer, "commit", commit_late)
    monkeypatch.setattr(database, "release", note_release)
    appends = [asyncio.create_task(log.append(STARTED))]
    await until(lambda: events)
    appends += [asyncio.create_task(log.append(ASKED)) for _ in range(2)]
    await let_others_work()
    closing = asyncio.create_task(log.close())
    await let_others_work()
    assert events == ["begin [1]"]
    gates[0].set()
    await until(lambda: "begin [2, 3]" in events)
    await let_others_work()
    gates[1].set()
    await closing
    assert events == ["begin [1]", "end [1]", "begin [2, 3]", "end [2, 3]", "release"]
    assert await asyncio.gather(*appends) == [1, 2, 3]
    assert (len(runs.open_log(log.run_id).facts), runs.is_running(log.run_id)) == (3, False)


async def test_a_log_that_was_closed_takes_no_fact_and_has_no_lease_to_lose(runs: PostgresRuns, database: Database) -> None:
    log = runs.create()
    await log.append(STARTED)
    await log.close()
    with pytest.raises(ValueError, match="closed"):
        await log.append(ASKED)
    await database.in_thread(database._renew_leases)
    assert log.is_taken is False


async def test_a_run_that_has_ended_is_closed_without_its_database(
    runs: PostgresRuns, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = runs.create()
    await log.append(FINISHED)

    def refuse(*_: object, **__: object) -> None:
        raise StoreError("away")

    with monkeypatch.context() as away:
        away.setattr(database, "fetch", refuse)
        await log.close()


# texts


async def test_a_text_that_was_changed_in_the_database_is_not_handed_out(runs: PostgresRuns, database: Database) -> None:
    digest = await runs.pages.put("what was read \ud83c")
    texts = [await runs.pages.get(digest), await runs.pages.get("0" * 64)]
    database.fetch("update pages set body = 'another text' where digest = %(digest)s", {"digest": digest})
    assert [*texts, await runs.pages.get(digest)] == ["what was read \ud83c", None, None]


# workers


def test_the_next_run_is_that_of_the_person_with_the_fewest_and_lost_ones_come_first(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "lease_s", 0.0)  # the database has run for longer, so a writer without a lease is lost
    ada, bob, eve = (make_person(name) for name in ("Ada", "Bob", "Eve"))
    stores = {owner: PostgresRuns(database, owner, FakeClock()) for owner in (ada, bob, eve)}
    People(database).set_quotas(eve, Quotas(running=1))
    runs = {
        owner: [stores[owner].submit("why?", "search", {}) for _ in range(count)]
        for owner, count in ((ada, 6), (bob, 2), (eve, 2))
    }
    picks = [pick_run(database) for _ in range(5)]
    assert picks == [(runs[owner][n], owner) for owner, n in ((ada, 0), (bob, 0), (eve, 0), (ada, 1), (bob, 1))]
    assert pick_run(database, is_lost=True) is None
    lost = {"run": runs[ada][0]}
    database.fetch("update runs set state = 'running', lease_until = now(), queued_at = now() where run = %(run)s", lost)
    assert pick_run(database, is_lost=True) == (runs[ada][0], ada)
    assert [pick_run(database) for _ in range(5)] == [
        *((run_id, ada) for run_id in runs[ada][2:]),
        None,
    ]  # Eve may have one at once


async def test_a_worker_waits_until_it_is_told_that_there_is_a_run_or_room(database: Database) -> None:
    waiting = asyncio.create_task(database.wait_for_notice(QUEUE_NOTICE, 120.0))
    await let_others_work()
    assert not waiting.done()
    database.wake_waiters(QUEUE_NOTICE)
    await asyncio.wait_for(waiting, 120.0)
    waiting = asyncio.create_task(database.wait_for_notice(QUEUE_NOTICE, 600.0))
    async with asyncio.timeout(120):
        while not waiting.done():  # it may not listen yet
            database.announce(QUEUE_NOTICE)
            await asyncio.sleep(0)


# followers


async def test_a_follower_waits_until_it_is_woken(runs: PostgresRuns, database: Database) -> None:
    waiting = asyncio.create_task(runs.wait_for_facts("0" * 32, 1, 120.0))
    await let_others_work()
    assert not waiting.done()
    database.wake_waiters("0" * 32)
    await asyncio.wait_for(waiting, 120.0)


async def test_a_follower_is_told_of_new_facts(runs: PostgresRuns) -> None:
    log = runs.create()
    await log.append(STARTED)
    waiting = asyncio.create_task(runs.wait_for_facts(log.run_id, 1, 600.0))
    async with asyncio.timeout(120):
        while not waiting.done():  # it may not listen yet
            await log.append(ASKED)
    await log.close()
