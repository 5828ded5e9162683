"""Connections that lie: open, and silent for ever, as after a lost network. What waits on them gives up and goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nexi.app import RunRequest
from nexi.errors import StoreError
from nexi.events import RunFinished, RunStarted
from nexi.team.assembly import Team
from nexi.team.limits import MAX_REQUEST_S
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.postgres.runs import PostgresRuns
from nexi.testing import FakeClock
from rig.silent_proxy import SilentProxy, running_proxy
from tests.team.test_worker import make_team, wait_for_end, working  # noqa: F401 - make_team is a fixture
from tests.team.world import QUESTION

pytestmark = pytest.mark.long

WAIT_S = 1.0


@pytest.fixture
def proxy(postgres: Any) -> Iterator[SilentProxy]:
    with running_proxy(postgres.url) as opened:
        yield opened


def test_a_statement_on_a_silent_connection_is_tried_again_on_another(proxy: SilentProxy) -> None:
    database = Database(proxy.url, wait_s=WAIT_S).open()
    with database.transaction(), database.transaction(), database.transaction():
        pass  # so that several connections are open
    proxy.silence()
    assert [database.fetch("select 1") for _ in range(4)] == [[(1,)]] * 4
    database.close()


def test_a_frozen_database_is_an_error_and_no_hang(proxy: SilentProxy) -> None:
    database = Database(proxy.url, wait_s=WAIT_S).open()
    proxy.silence(new_ones_too=True)
    with pytest.raises(StoreError, match="cannot be reached: Postgres does not answer"):
        database.fetch("select 1", patience_s=0.0)
    with pytest.raises(StoreError, match="cannot be reached: Postgres does not answer"):
        People(database, patience_s=0.0).find_by_token("nexi_unknown")
    closing = threading.Thread(target=database.close, daemon=True)
    closing.start()
    closing.join(timeout=120)
    assert not closing.is_alive()


def test_a_transaction_on_a_silent_connection_is_an_error_and_no_hang(proxy: SilentProxy) -> None:
    database = Database(proxy.url, wait_s=WAIT_S).open()

    def change() -> None:
        with database.transaction() as transaction:
            proxy.silence()
            transaction.execute("select 1")

    with pytest.raises(StoreError, match="cannot be reached: Postgres does not answer"):
        change()
    database.close()


def test_while_the_database_is_silent_one_request_waits_for_it_and_the_others_are_refused(proxy: SilentProxy) -> None:
    database = Database(proxy.url, retry_s=MAX_REQUEST_S).open()
    proxy.silence(new_ones_too=True)
    refused: list[str] = []

    def ask() -> None:
        try:
            database.fetch("select 1")
        except StoreError as error:
            refused.append(error.code)

    ask()
    waiting = threading.Thread(target=ask, daemon=True)
    waiting.start()
    while not database.is_probed:
        time.sleep(0.01)
    ask()
    assert (refused, waiting.is_alive()) == (["database"] * 2, True)
    waiting.join()
    proxy.silence()  # those that are open; new ones pass
    while True:
        with suppress(StoreError):
            assert database.fetch("select 1") == [(1,)]
            break
    assert [database.fetch("select 1") for _ in range(2)] == [[(1,)]] * 2
    database.close()


async def test_a_writer_on_a_silent_connection_commits_on_another_and_keeps_its_lease(
    proxy: SilentProxy, make_person: Callable[..., str]
) -> None:
    owner, database = make_person(), Database(proxy.url, wait_s=WAIT_S, lease_s=60.0).open()
    log = PostgresRuns(database, owner, FakeClock()).create()
    await log.append(RunStarted(QUESTION, "m", "scripted"))
    proxy.silence()
    async with asyncio.timeout(120):
        assert await log.append(RunStarted(QUESTION, "m", "scripted")) == 2
        await log.close()
    await asyncio.to_thread(database.close)


async def test_a_process_that_cannot_renew_its_leases_is_not_ready(
    proxy: SilentProxy,
    make_team: Callable[..., Team],  # noqa: F811
    make_person: Callable[..., str],
) -> None:
    owner, team = make_person(), make_team(url=proxy.url, lease_s=1.0)
    log = team.state_of(owner).runs.create()
    await log.append(RunStarted(QUESTION, "m", "scripted"))
    assert await team.find_trouble() == ""
    proxy.silence(new_ones_too=True)
    async with asyncio.timeout(120):
        while await team.find_trouble() != "leases are not renewed":
            await asyncio.sleep(0.05)
    proxy.silence()  # those that are open; new ones pass, so that it can be closed
    await team.close()


async def test_a_worker_whose_connections_fell_silent_takes_runs_again(
    proxy: SilentProxy,
    make_team: Callable[..., Team],  # noqa: F811
    make_person: Callable[..., str],
    database: Database,
    tmp_path: Path,
) -> None:
    owner, team = make_person(), make_team(url=proxy.url)
    async with working(team):
        run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_end(team, owner, run_id)
        proxy.silence()
        run_id = await asyncio.to_thread(
            PostgresRuns(database, owner, FakeClock()).submit, QUESTION, "search", {"question": QUESTION, "door": "http"}
        )
        facts = await wait_for_end(team, owner, run_id)
    assert isinstance(facts[-1], RunFinished)
