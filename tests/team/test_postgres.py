"""The database of a team server: who may write a run, what survives a restart, and how the schema goes forward."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from nexi.errors import ConfigError, RunTakenError, StoreError
from nexi.events import Fact, ModelAsked, ModelReplied, RunFinished, RunStarted
from nexi.team.postgres import database as database_module
from nexi.team.postgres.commits import FactBatch
from nexi.team.postgres.database import Database, list_migrations
from nexi.team.postgres.runs import PostgresRuns
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage

STARTED = RunStarted("why?", "m", "scripted")
ASKED = ModelAsked(1, "answer", "scripted", 12)
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)


def lapse(database: Database, run_id: str) -> None:
    """The lease of a run runs out, as after a worker stalled."""
    database.fetch("update runs set lease_until = now() - interval '1 s' where run = %(run)s", {"run": run_id})


async def test_a_writer_that_lost_its_run_adds_nothing(
    database: Database, postgres: Any, make_person: Callable[..., str]
) -> None:
    owner, other = make_person(), Database(postgres.url).open()
    slow, quick = PostgresRuns(database, owner, FakeClock()), PostgresRuns(other, owner, FakeClock())
    old = slow.create()
    await old.append(STARTED)
    lapse(database, old.run_id)
    read, new = quick.reopen(old.run_id)
    assert len(read.facts) == 1
    for _ in range(2):
        with pytest.raises(RunTakenError, match="taken over"):
            await old.append(ASKED)
    assert [await new.append(ASKED), await new.append(FINISHED)] == [2, 3]
    assert slow.open_log(old.run_id).facts == [(1, STARTED), (2, ASKED), (3, FINISHED)]
    await old.close()
    await new.close()
    other.close()


async def test_one_run_that_was_taken_does_not_hold_others_up(database: Database, make_person: Callable[..., str]) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    logs = [runs.create() for _ in range(5)]
    for log in logs:
        await log.append(STARTED)
    database.fetch("update runs set epoch = epoch + 1 where run = %(run)s", {"run": logs[2].run_id})
    kept = await asyncio.gather(*(log.append(ASKED) for log in logs), return_exceptions=True)
    assert [n if isinstance(n, int) else type(n) for n in kept] == [2, 2, RunTakenError, 2, 2]
    for log in logs:
        await log.close()


async def test_a_stalled_writer_learns_from_its_lease_that_its_run_was_taken(
    database: Database, make_person: Callable[..., str]
) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    log = runs.create()
    await log.append(STARTED)
    database.fetch("update runs set epoch = epoch + 1, holder = 'another' where run = %(run)s", {"run": log.run_id})
    async with asyncio.timeout(120):
        while not log.is_taken:
            await asyncio.sleep(0.05)
    await log.close()


async def test_the_lease_of_a_run_that_was_reopened_is_renewed_too(database: Database, make_person: Callable[..., str]) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    log = runs.create()
    await log.append(STARTED)
    await log.close()
    _, again = runs.reopen(log.run_id)
    database.fetch("update runs set epoch = epoch + 1, holder = 'another' where run = %(run)s", {"run": log.run_id})
    await database.in_thread(database._renew_leases)
    assert again.is_taken
    await again.close()


async def test_the_seconds_of_a_run_go_on_where_it_was_left(database: Database, make_person: Callable[..., str]) -> None:
    clock = FakeClock()
    runs = PostgresRuns(database, make_person(), clock)
    log = runs.create()
    await log.append(STARTED)
    clock.advance(5)
    await log.append(ASKED)
    await log.close()
    clock.advance(1000)  # nobody works
    _, log = runs.reopen(log.run_id)
    clock.advance(2)
    await log.append(FINISHED)
    assert (runs.open_log(log.run_id).elapsed, log.explain_stop()) == ([0.0, 5.0, 7.0], "")
    await log.close()


async def test_a_run_whose_end_is_committed_while_leases_are_renewed_was_not_taken(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    log, commit = runs.create(), database.committer.commit
    await log.append(STARTED)

    async def commit_late(batch: FactBatch) -> None:
        await commit(batch)
        await database.in_thread(database._renew_leases)  # before the writer is told of its commit

    monkeypatch.setattr(database.committer, "commit", commit_late)
    assert (await log.append(FINISHED), log.is_taken) == (2, False)
    await log.close()


async def test_a_commit_whose_confirmation_was_lost_is_not_made_twice(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    facts: list[Fact] = [STARTED, ASKED, FINISHED]
    log, fetch = runs.create(), database.fetch

    def fetch_twice(statement: str, values: Any = None, **options: Any) -> Any:
        if "insert into facts" in statement:
            fetch(statement, values, **options)  # it was committed, and the connection broke
        return fetch(statement, values, **options)

    monkeypatch.setattr(database, "fetch", fetch_twice)
    assert [await log.append(fact) for fact in facts] == [1, 2, 3]
    assert [fact for _, fact in runs.open_log(log.run_id).facts] == facts
    await log.close()


async def test_an_unexpected_error_while_facts_are_kept_reaches_their_writer_and_those_of_others_are_kept(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = PostgresRuns(database, make_person(), FakeClock())
    log, other = runs.create(), runs.create()
    await log.append(STARTED)
    with monkeypatch.context() as broken:
        broken.setattr(database.committer, "_write", lambda batches: [][1])
        with pytest.raises(StoreError, match="The steps of a run could not be kept") as caught:
            await log.append(ASKED)
    assert caught.value.cause == "IndexError: list index out of range"
    assert await other.append(STARTED) == 1
    await log.close()
    await other.close()


async def test_facts_survive_a_restart_of_the_database(postgres: Any, make_person: Callable[..., str]) -> None:
    mine = Database(postgres.url, lease_s=60).open()
    runs = PostgresRuns(mine, make_person(), FakeClock())
    log = runs.create()
    await log.append(STARTED)
    await asyncio.to_thread(postgres.stop)
    waiting = asyncio.create_task(log.append(ASKED))
    await asyncio.to_thread(postgres.start)
    assert [await waiting, await log.append(FINISHED)] == [2, 3]
    assert len(runs.open_log(log.run_id).facts) == 3
    await log.close()
    mine.close()


async def test_what_a_run_costs_is_counted_with_its_facts(database: Database, make_person: Callable[..., str]) -> None:
    owner = make_person()
    log = PostgresRuns(database, owner, FakeClock()).create()
    await log.append(STARTED)
    replied = ModelReplied(1, "yes", (), Usage(100, 20, 0, 0.5), "stop", 0.1)
    await log.append(replied)
    await log.append(replied)
    await log.close()
    spent = database.fetch("select runs, tokens, cost from usage where owner = %(owner)s", {"owner": owner})
    assert spent == [(0, 240, 1.0)]  # the run itself was counted where it was admitted


def add_chunk(database: Database, number: int) -> None:
    """A chunk without a vector, as every version of the schema has kept it."""
    database.fetch(
        "with body as (insert into bodies (collection, digest, fingerprint, chunks, words, bytes, length, terms, title_counts, "
        "text_counts) select id, %(number)s::text, '', 1, 1, 1, 1, '{}', '{}', '{}' from collections returning id, collection) "
        "insert into chunks select id * 65536, collection, id, false, '', 1, '{}', '{}', '{}' from body",
        {"number": number},
    )


def test_a_database_goes_forward_from_the_first_step_and_never_back(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Database(postgres.url).open()
    admin.fetch("create database steps")
    admin.close()
    steps = list_migrations()
    for count in range(1, len(steps) + 1):
        monkeypatch.setattr(database_module, "list_migrations", lambda count=count: steps[:count])
        opened = Database(postgres.url_of("steps")).open()
        assert opened.fetch("select step from schema_steps order by step") == [(number,) for number, _ in steps[:count]]
        opened.fetch("insert into people (name) values ('Ada')")
        if opened.fetch("select to_regclass('chunks') is not null") == [(True,)] and count < len(steps):
            add_chunk(opened, count)
        opened.close()
    opened = Database(postgres.url_of("steps")).open()
    before_the_table = [number for number, _ in steps].index(31) - [number for number, _ in steps].index(20)
    assert opened.fetch("select count(*) from unembedded") == [(before_the_table,)]
    indexes = {name for (name,) in opened.fetch("select indexname from pg_indexes where schemaname = 'public'")}
    assert {"unembedded_by_collection", "knowledge_shares_by_person", "schedules_by_owner"} <= indexes
    policies = {name for (name,) in opened.fetch("select policyname from pg_policies where tablename = 'chunk_vectors'")}
    assert policies == {"readable_vectors", "own_vectors"}
    opened.close()
    monkeypatch.setattr(database_module, "list_migrations", lambda: [(0, "select 1")])
    threads = set(threading.enumerate())
    with pytest.raises(ConfigError, match="newer nexi"):
        Database(postgres.url_of("steps")).open()
    assert set(threading.enumerate()) <= threads  # it keeps no connection to a database that it does not use


def test_a_database_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ConfigError, match="cannot be used") as refused:
        Database("postgresql://nobody@127.0.0.1:9/none?connect_timeout=1", patience_s=0.5).open()
    assert "NEXI_DATABASE_URL" in refused.value.fix


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (
            'connection failed: connection to server at "10.0.0.1", port 5432 failed: Connection refused',
            "nothing answers at 10.0.0.1:5432",
        ),
        (
            'connection failed: connection to server at "10.0.0.1", port 5432 failed: '
            'FATAL:  password authentication failed for user "nexi"',
            'password authentication failed for user "nexi"',
        ),
        ("failed to resolve host 'db': [Errno -2] Name or service not known", "the host db has no address"),
        ("connection timeout expired", "connection timeout expired"),
    ],
)
def test_why_there_is_no_connection_is_said_without_the_words_around_it(words: str, cause: str) -> None:
    assert database_module.find_connection_cause(words) == cause


def test_a_read_only_database_is_said_so(postgres: Any) -> None:
    url = f"{postgres.url}&options=-c%20default_transaction_read_only%3Don"
    opened = Database(postgres.url).open()
    opened.close()
    with pytest.raises((ConfigError, StoreError), match="read-only"):
        Database(url).open()
