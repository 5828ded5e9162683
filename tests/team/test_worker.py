"""Workers of a team server: they run what was asked, go on with what was left, and end what cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi, RunRequest
from nexi.config import Config
from nexi.events import ModelAsked, ModelReplied, RunFailed, RunFinished, RunResumed, RunStarted
from nexi.team.assembly import Team
from nexi.team.limits import MAX_LOSSES
from nexi.team.postgres.database import Database
from nexi.team.worker import TeamWorker
from nexi.testing import FakeWeb
from nexi.types import Usage
from rig.team_worker import ANSWER, PAGES, QUESTION, STEPS, make_model

pytestmark = pytest.mark.long


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
            while worker.active:
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
    log = team.state_of(owner).runs.create()
    await log.append(RunStarted(QUESTION, "m", "scripted"))
    for _ in range(2):
        await log.append(ModelReplied(1, "hm", (), Usage(600, 20, cost=0.25), "stop", 0.1))
    team.database.release(log)
    losses = {"run": log.run_id, "losses": MAX_LOSSES - 1}  # and the writer that has it now
    team.database.fetch(
        "update runs set losses = %(losses)s, lease_until = now(), is_queued = true, queued_at = now() where run = %(run)s",
        losses,
    )
    async with working(team):
        facts = await wait_for_end(team, owner, log.run_id)
    assert isinstance(facts[-1], RunFailed)
    assert (facts[-1].code, facts[-1].usage) == ("given_up", Usage(1_200, 40, cost=0.5))


async def test_a_run_whose_workers_are_drained_one_after_the_other_is_never_given_up(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, patient = make_person(), make_team()
    run_id = await patient.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
    for number in range(1, MAX_LOSSES + 2):
        async with working(make_team(60.0), drain_s=0.0):  # a call that takes longer than any of them stays
            await wait_for_facts(patient, owner, run_id, RunResumed if number > 1 else ModelAsked, max(1, number - 1))
    assert patient.state_of(owner).runs.count_losses(run_id) == 0
    async with working(patient):
        facts = await wait_for_end(patient, owner, run_id)
    assert (type(facts[-1]), facts[-1].answer) == (RunFinished, ANSWER)


async def test_one_question_does_not_wait_for_the_many_of_somebody_else(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    ada, bob, team = make_person("Ada"), make_person("Bob"), make_team()
    for _ in range(30):
        await team.queue_of(ada).submit(RunRequest(QUESTION, door="http"))
    run_id = await team.queue_of(bob).submit(RunRequest(QUESTION, door="http"))
    async with working(team):
        await wait_for_end(team, bob, run_id)
        count = "select count(*) from runs where owner = %(ada)s and state = 'waiting'"
        waiting = team.database.fetch(count, {"ada": ada})[0][0]
    assert waiting > 0


async def test_a_run_that_gets_further_each_time_is_never_given_up(
    make_team: Callable[..., Team], make_person: Callable[..., str]
) -> None:
    owner, first, second = make_person(), make_team(0.2), make_team()
    async with working(first, drain_s=0.0):
        run_id = await first.queue_of(owner).submit(RunRequest(QUESTION, door="http"))
        await wait_for_facts(first, owner, run_id, ModelReplied, 2)
    losses = {"run": run_id, "losses": MAX_LOSSES - 1}
    second.database.fetch("update runs set losses = %(losses)s where run = %(run)s", losses)
    async with working(second):
        facts = await wait_for_end(second, owner, run_id)
        assert second.database.fetch("select losses from runs where run = %(run)s", {"run": run_id}) == [(0,)]
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
