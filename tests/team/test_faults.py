"""What a team server does when things around it are wrong: a removed person, a database that is away, slow or read-only, clocks
that differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evals.doors import Doors, Fuzzer, Judge
from nexi.errors import StoreError
from nexi.events import ModelAsked, RunFinished, RunStarted
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.postgres.runs import PostgresRuns
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage
from tests.team.test_postgres import lapse
from tests.team.world import QUESTION, ServedTeam, ask, serving_team

pytestmark = pytest.mark.long

STARTED = RunStarted(QUESTION, "m", "scripted")
ASKED = ModelAsked(1, "answer", "scripted", 12)
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)
SKEW_S = 600.0
DATABASE_AWAY = {
    "code": "database",
    "message": "The database of this server cannot be reached: Postgres does not answer",
    "fix": "Try again soon; if it stays, an administrator must start Postgres.",
}


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


async def test_nothing_of_a_removed_person_opens_any_door(served: ServedTeam, make_person: Callable[..., str]) -> None:
    person = make_person()
    token, session = served.people.add_token(person, "laptop"), served.people.begin_session(person)
    link = served.people.add_link(person)
    async with served.client(token) as client, served.client() as browser:
        run_id = await ask(client)
        browser.headers["cookie"] = f"__Host-nexi={session}"
        before = [(await each.get(f"/v1/runs/{run_id}")).status_code for each in (client, browser)]
        served.people.remove(person)
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        after = [
            (await client.get(f"/v1/runs/{run_id}")).status_code,
            (await client.get(f"/v1/runs/{run_id}/events")).status_code,
            (await client.post("/v1/runs", json={"question": QUESTION})).status_code,
            (await client.post("/mcp", json=listing)).status_code,
            (await browser.get("/account/export")).status_code,
            (await browser.post(f"/login/link/{link}")).status_code,
        ]
    assert (before, after) == ([200, 200], [401, 401, 401, 401, 401, 400])


async def test_made_up_requests_at_the_doors_of_a_team_find_no_fault(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    judge, fuzzer = Judge(), Fuzzer(Doors(served.app), seed=1)
    async with served.client(served.people.add_token(make_person(), "laptop")) as client:
        for _ in range(150):
            method, path, more = fuzzer.next_request()
            await judge.send(client, method, path, **more)
    assert [status for status in judge.statuses if status >= 500] == []


async def test_while_the_database_is_away_requests_say_so_soon_and_all_is_well_afterwards(
    served: ServedTeam, postgres: Any, make_person: Callable[..., str]
) -> None:
    async with served.client_of(make_person()) as client:
        assert (await client.get("/v1/runs")).status_code == 200
        await asyncio.to_thread(postgres.stop)
        try:
            async with asyncio.timeout(120):
                refused = [await client.get("/v1/runs"), await client.post("/v1/runs", json={"question": QUESTION})]
            alive = (await client.get("/healthz")).status_code
        finally:
            await asyncio.to_thread(postgres.start)
        assert [(reply.status_code, reply.json()["error"]) for reply in refused] == [(503, DATABASE_AWAY)] * 2
        assert (refused[0].headers["retry-after"], alive) == ("5", 200)
        async with asyncio.timeout(120):
            while (await client.get("/v1/runs")).status_code != 200:
                await asyncio.sleep(0.1)


def test_a_database_that_is_too_slow_is_given_up(postgres: Any, database: Database, make_person: Callable[..., str]) -> None:
    slow = Database(postgres.url, statement_s=0.2).open()
    people, person = People(slow, patience_s=0.3), make_person()
    secret = people.add_token(person, "laptop")
    with database.transaction() as connection:
        connection.execute("lock table tokens in access exclusive mode")
        with pytest.raises(StoreError, match="statement timeout") as refused:
            people.find_by_token(secret)
    assert refused.value.code == "database"
    found = people.find_by_token(secret)
    assert (found is not None and found.person) == person
    slow.close()


@contextmanager
def read_only(database: Database) -> Iterator[None]:
    """The database refuses every change for a while, as a replica does."""
    change = "alter database postgres set default_transaction_read_only = on"
    database.fetch(change)
    database.fetch(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'postgres'"
    )
    try:
        yield
    finally:
        with database.transaction() as connection:
            connection.execute("set local transaction read write")
            connection.execute("alter database postgres reset default_transaction_read_only")
        database.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'postgres'"
        )


async def test_a_read_only_database_is_read_and_asking_says_why_not(
    served: ServedTeam, postgres: Any, make_person: Callable[..., str]
) -> None:
    person = make_person()
    secret, admin = served.people.begin_session(person), Database(postgres.url, max_connections=1).open()
    async with served.client_of(person) as client, served.client() as browser:
        run_id = await ask(client)
        browser.headers["cookie"] = f"__Host-nexi={secret}"
        with read_only(admin):
            shown = [(await each.get(f"/v1/runs/{run_id}/result")).status_code for each in (client, browser)]
            asked = await client.post("/v1/runs", json={"question": QUESTION})
        assert shown == [200, 200]
        error = asked.json()["error"]
        assert (asked.status_code, error["code"], "read-only" in error["message"]) == (503, "database", True)
        await ask(client)
    admin.close()


async def test_clocks_that_differ_by_minutes_change_nothing_about_who_may_write(
    database: Database, postgres: Any, make_person: Callable[..., str]
) -> None:
    owner, other = make_person(), Database(postgres.url).open()
    ahead, behind = FakeClock(), FakeClock()
    ahead.advance(SKEW_S)
    early, late = PostgresRuns(database, owner, ahead), PostgresRuns(other, owner, behind)
    log = early.create()
    await log.append(STARTED)
    with pytest.raises(StoreError, match="running"):
        late.reopen(log.run_id)
    ahead.advance(SKEW_S)
    await log.append(ASKED)
    lapse(database, log.run_id)
    read, resumed = late.reopen(log.run_id)
    behind.advance(1.0)
    await resumed.append(FINISHED)
    ended = early.open_log(log.run_id)
    assert ([fact for _, fact in ended.facts], read.seconds, ended.seconds) == ([STARTED, ASKED, FINISHED], SKEW_S, SKEW_S + 1)
    (summary,) = early.list_runs()
    assert summary.state == "finished"
    await log.close()
    await resumed.close()
    other.close()


def test_tokens_sessions_and_links_go_by_the_clock_of_the_database(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    people, person = People(database), make_person()
    token, session, link = people.add_token(person, "day", days=1), people.begin_session(person), people.add_link(person)
    later = time.time() + 30 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert people.find_by_token(token) is not None
    assert people.find_by_session(session) is not None
    assert people.use_link(link) == person


def test_a_full_disk_is_an_error_at_once(database: Database) -> None:
    database.fetch("create sequence if not exists attempts")
    before = database.fetch("select nextval('attempts')")[0][0]
    with pytest.raises(StoreError, match="could not extend file: No space left on device"):
        database.fetch(
            "do $$ begin perform nextval('attempts'); "
            "raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$"
        )
    assert database.fetch("select nextval('attempts')")[0][0] == before + 2
    database.fetch("drop sequence attempts")
