"""Workers of a team server: they run what was asked, go on with what was left, and end what cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi, RunRequest
from nexi.app.team import Team
from nexi.app.worker import MAX_IDLE_CLAIMS, TeamWorker
from nexi.config import Config
from nexi.events import ModelReplied, RunFailed, RunFinished, RunResumed
from nexi.postgres.database import Database
from nexi.testing import FakeWeb
from rig.team_worker import ANSWER, PAGES, QUESTION, STEPS, make_model


@pytest.fixture
def make_team(postgres: Any, database: Database, make_config: Callable[..., Config]) -> Callable[..., Team]:
    """A process of a team server over a database that all of them share."""

    def make(step_s: float = 0.0, lease_s: float = 6.0, url: str = "") -> Team:
        mine = Database(url or postgres.url, lease_s=lease_s).open()
        web, model = FakeWeb(PAGES), make_model(mine, step_s, note=False)

        def make_nexi(config: Config, state: Any) -> Nexi:
            llms = {"answer": model, "extract": model, "judge": model}
            return Nexi(config, state=state, llms=llms, backends=(web,), fetchers=(web,))

        return Team(make_config(database_url=mine.url), mine, make_nexi=make_nexi)

    return make


@asynccontextmanager
async def working(team: Team, *, drain_s: float = 5.0) -> AsyncIterator[TeamWorker]:
    await team.open()
    worker, stopping = TeamWorker(team, drain_s=drain_s), asyncio.Event()
    task = asyncio.create_task(worker.work(stopping))
    try:
        yield worker
    finally:
        stopping.set()
        await task
        await team.close()


async def wait_for_end(team: Team, owner: str, run_id: str) -> list[Any]:
    async with asyncio.timeout(120):
        while True:
            read = await asyncio.to_thread(team.state_of(owner).runs.open_log, run_id)
            if read.has_ended:
                return [fact for _, fact in read.facts]
            await asyncio.sleep(0.05)


async def wait_for_facts(team: Team, owner: str, run_id: str, kind: type, count: int = 1) -> None:
    async with asyncio.timeout(120):
        while sum(isinstance(f, kind) for _, f in team.state_of(owner).runs.open_log(run_id).facts) < count:
            await asyncio.sleep(0.02)


async def test_a_worker_runs_what_a_server_was_asked(make_team: Callable[..., Team], make_person: Callable[..., str]) -> None:
    owner, team = make_person(), make_team()
    async with working(team):
        run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        facts = await wait_for_end(team, owner, run_id)
    assert isinstance(facts[-1], RunFinished)
    assert (facts[-1].answer, facts[0].query, len(run_id)) == (ANSWER, QUESTION, 32)
    assert [entry.id for entry in team_history(make_team(), owner)] == [run_id]


def team_history(team: Team, owner: str) -> list[Any]:
    entries = team.state_of(owner).history.read().entries
    team.database.close()
    return entries


async def test_a_run_that_a_worker_left_goes_on_in_another_and_nothing_is_asked_twice(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, first, second = make_person(), make_team(0.2), make_team()
    async with working(first, drain_s=0.0):
        run_id = await first.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(first, owner, run_id, ModelReplied, 2)
    async with working(second):
        facts = await wait_for_end(second, owner, run_id)
    assert sum(isinstance(fact, RunResumed) for fact in facts) == 1
    assert sum(isinstance(fact, ModelReplied) for fact in facts) == STEPS + 1
    assert facts[-1].answer == ANSWER


async def test_a_worker_that_lost_its_run_drops_it(make_team: Callable[..., Team], make_person: Callable[..., str]) -> None:
    owner, team = make_person(), make_team(0.3, lease_s=1.0)
    async with working(team) as worker:
        run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(team, owner, run_id, ModelReplied)
        team.database.fetch(
            "update runs set epoch = epoch + 1, holder = 'another', lease_until = 'infinity' where run = %(run)s",
            {"run": run_id},
        )
        async with asyncio.timeout(120):
            while worker._active:
                await asyncio.sleep(0.05)
        count = len(team.state_of(owner).runs.open_log(run_id).facts)
        assert not team.state_of(owner).runs.open_log(run_id).has_ended
    assert count >= 2


async def test_a_run_is_cancelled_by_its_owner(make_team: Callable[..., Team], make_person: Callable[..., str]) -> None:
    owner, team = make_person(), make_team(0.3, lease_s=1.0)
    async with working(team):
        run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(team, owner, run_id, ModelReplied)
        await asyncio.to_thread(team.state_of(owner).runs.request_cancel, run_id)
        facts = await wait_for_end(team, owner, run_id)
    assert isinstance(facts[-1], RunFailed)
    assert facts[-1].code == "cancelled"


async def test_a_run_that_loses_every_worker_without_progress_is_given_up(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, team = make_person(), make_team()
    await team.open()
    run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
    claims = {"run": run_id, "claims": MAX_IDLE_CLAIMS}
    team.database.fetch("update runs set epoch = %(claims)s, state = 'running' where run = %(run)s", claims)
    async with working(team):
        facts = await wait_for_end(team, owner, run_id)
    assert isinstance(facts[-1], RunFailed)
    assert facts[-1].code == "given_up"


async def test_a_run_that_gets_further_each_time_is_never_given_up(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, first, second = make_person(), make_team(0.2), make_team()
    async with working(first, drain_s=0.0):
        run_id = await first.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(first, owner, run_id, ModelReplied, 2)
    claims = {"run": run_id, "claims": 5 * MAX_IDLE_CLAIMS}
    second.database.fetch("update runs set epoch = %(claims)s where run = %(run)s", claims)
    second.database.fetch("update facts set epoch = %(claims)s where run = %(run)s", claims)  # each of them got further
    async with working(second):
        facts = await wait_for_end(second, owner, run_id)
    assert (type(facts[-1]), facts[-1].answer) == (RunFinished, ANSWER)


async def test_a_request_that_cannot_be_used_ends_its_run(
    make_team: Callable[..., Team], make_person: Callable[..., str], tmp_path: Path
) -> None:
    owner, team = make_person(), make_team()
    async with working(team):
        run_id = await team.queue_of(owner).submit(RunRequest(QUESTION, effort="enormous", door="http"))
        facts = await wait_for_end(team, owner, run_id)
    assert isinstance(facts[-1], RunFailed)
    assert facts[-1].code == "config"


async def test_a_run_goes_on_from_a_restored_dump(
    postgres: Any, make_config: Callable[..., Config], make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, first = make_person(), make_team(0.2)
    async with working(first, drain_s=0.0):
        run_id = await first.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(first, owner, run_id, ModelReplied, 2)
    dump = await asyncio.to_thread(postgres.dump, "postgres")
    admin = Database(postgres.url).open()
    admin.fetch("create database restored")
    admin.fetch("delete from runs where run = %(run)s", {"run": run_id})  # it is in the dump alone
    admin.close()
    await asyncio.to_thread(postgres.restore, dump, "restored")
    second = make_team(url=postgres.url_of("restored"))
    async with working(second):
        facts = await wait_for_end(second, owner, run_id)
    assert (facts[-1].answer, sum(isinstance(fact, ModelReplied) for fact in facts)) == (ANSWER, STEPS + 1)
