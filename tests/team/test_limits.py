"""What the machines of a team agree on: the pace of requests, resting search services, model calls, and schedules."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nexi import cli
from nexi.app import SystemClock
from nexi.app.factory import _LimitedModel
from nexi.config import Config
from nexi.errors import BackendError, NexiError
from nexi.fetchers import Settings
from nexi.net.suspensions import FileBreaker
from nexi.ports import Breaker
from nexi.team.assembly import Team
from nexi.team.postgres.database import Database
from nexi.team.postgres.limits import PostgresBreaker, PostgresConcurrency, PostgresPacing
from nexi.team.postgres.schedules import Schedules
from nexi.testing import FakeClock, ScriptedLLM, answering
from nexi.web.guard import GuardRules
from tests.team.world import QUESTION, serving_team


def test_two_processes_keep_the_allowed_rate_together(postgres: Any, database: Database) -> None:
    burst, rate, turns_each = 2.0, 10.0, 10
    words = [sys.executable, "-m", "tests.team.paced_process", postgres.url, str(burst), str(rate), str(turns_each)]
    both = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    shares = []
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        out, _ = process.communicate(timeout=300)
        shares.append([float(line) for line in out.split()])
    turns = sorted(shares[0] + shares[1])
    allowed = burst + rate * (turns[-1] - turns[0]) + 1  # one may be printed a moment late
    assert list(map(len, shares)) == [turns_each] * 2
    assert len(turns) <= allowed


async def test_a_burst_is_free_and_then_each_waits_for_its_turn(database: Database) -> None:
    clock = FakeClock()
    pacing = PostgresPacing(database, clock, "burst", burst=3, rate=0.1)
    for _ in range(3):
        await pacing.wait("a.example")
    assert clock.slept == []
    await pacing.wait("b.example")
    assert clock.slept == []
    await pacing.wait("a.example")
    assert clock.slept == [pytest.approx(10.0, abs=1.0)]


async def test_callers_that_give_up_leave_no_debt_behind_for_the_next(database: Database) -> None:
    pacings = [PostgresPacing(database, SystemClock(), "debt", burst=2, rate=0.01) for _ in range(3)]  # of three people
    waiting = [asyncio.create_task(pacings[number % 3].wait("a.example")) for number in range(60)]
    async with asyncio.timeout(120):
        while sum(task.done() for task in waiting) < 2:
            await asyncio.sleep(0.01)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert sum(not task.cancelled() for task in waiting) == 2
    assert await pacings[0].try_take("a.example") <= 200.0  # 100 s for each token, and one that was being reserved
    assert database.lines == {}


async def test_people_take_turns_at_a_service_however_many_searches_one_of_them_has(database: Database) -> None:
    order: list[str] = []

    class TellingClock(FakeClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(0)

    async def search(pacing: PostgresPacing, person: str) -> None:
        await pacing.wait("searxng")
        order.append(person)

    pacings = {
        person: PostgresPacing(database, TellingClock(), "turns", burst=1, rate=1000, person=person)
        for person in ("Ada", "Bob")
    }
    async with asyncio.TaskGroup() as group:
        for person in ["Ada"] * 9 + ["Bob"] * 3:
            group.create_task(search(pacings[person], person))
    assert order == ["Ada", "Bob"] * 3 + ["Ada"] * 6
    assert database.lines == {}


async def test_without_its_database_a_process_keeps_the_pace_by_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexi.errors import StoreError

    def fail(*_: Any) -> Any:
        raise StoreError("The database refused")

    monkeypatch.setattr(database, "fetch", fail)
    clock = FakeClock()
    pacing = PostgresPacing(database, clock, "alone", burst=1, rate=0.5)
    await pacing.wait("a.example")
    await pacing.wait("a.example")
    assert clock.slept == [pytest.approx(2.0)]
    assert await pacing.try_take("a.example") > 0


@pytest.fixture(params=["file", "postgres"])
def make_breaker(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Breaker]:
    if request.param == "file":
        return lambda marks: FileBreaker(tmp_path / "backends.json", clock=FakeClock(), marks=marks)
    database, person = request.getfixturevalue("database"), request.getfixturevalue("make_person")()
    return lambda marks: PostgresBreaker(database, {name: f"{mark} {person}" for name, mark in marks.items()})


async def test_a_search_service_that_rests_rests_for_every_process(make_breaker: Callable[..., Breaker]) -> None:
    one, other = make_breaker({"brave": "key 1"}), make_breaker({"brave": "key 1"})
    assert await one.admit("brave") is None
    await one.record_failure("brave", BackendError("too many", code="rate_limit", retry_after=60))
    suspension = await other.admit("brave")
    assert suspension is not None
    assert suspension.code == "rate_limit"
    assert await make_breaker({"brave": "key 2"}).admit("brave") is None
    await other.record_success("brave")
    assert await one.admit("brave") is None


async def test_of_those_who_ask_after_a_rest_one_tries(database: Database, make_person: Callable[..., str]) -> None:
    mark = make_person()
    breakers = [PostgresBreaker(database, {"brave": mark}) for _ in range(4)]
    await breakers[0].record_failure("brave", BackendError("slow", code="timeout"))
    database.fetch(
        "update suspensions set state = jsonb_set(jsonb_set(state::jsonb, '{since}', '0'), '{until}', '1')::json "
        "where mark = %(mark)s",
        {"mark": mark},
    )
    admitted = await asyncio.gather(*(breaker.admit("brave") for breaker in breakers))
    assert sum(state is None for state in admitted) == 1


async def test_a_model_server_is_asked_at_most_so_often_at_once(
    database: Database, postgres: Any, make_person: Callable[..., str]
) -> None:
    other, server = Database(postgres.url).open(), make_person()
    limits = [PostgresConcurrency(d, FakeClock(), server, 2) for d in (database, other)]
    most = active = 0

    async def call(limit: PostgresConcurrency) -> None:
        nonlocal most, active
        async with limit.acquire():
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.02)
            active -= 1

    await asyncio.gather(*(call(limit) for limit in limits * 6))
    assert most == 2
    database.fetch(
        "update model_slots set holder = 'lost', until = now() + interval '0.2 s' where server = %(s)s", {"s": server}
    )
    async with asyncio.timeout(120):
        await call(limits[0])  # the slots of a process that is lost come back
    model = _LimitedModel(ScriptedLLM(answering("yes")), limits[0])
    assert await model.complete([], max_tokens=5) == answering("yes")
    other.close()


async def test_the_clients_of_a_team_pace_and_rest_together(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    config = Config(
        home=tmp_path,
        model="m",
        base_url="http://127.0.0.1:9/v1",
        database_url=postgres.url,
        searxng_url="http://127.0.0.1:9",
        team_max_model_calls=3,
    )
    team = Team(config, Database(postgres.url).open())
    ports = team.build_nexi(make_person()).ports
    try:
        assert isinstance(ports.breaker(), PostgresBreaker)
        settings: Settings = ports._fetcher_settings("http")
        assert settings.make_pacing
        assert isinstance(settings.make_pacing("host", 8, 4), PostgresPacing)
        assert isinstance(ports.llm("answer"), _LimitedModel)
    finally:
        team.database.close()


async def test_one_person_has_one_rate_on_all_servers(postgres: Any, tmp_path: Path, make_person: Callable[..., str]) -> None:
    rules, ada, eve = GuardRules(per_minute=1, burst=4), make_person("Ada"), make_person("Eve")
    async with (
        serving_team(postgres.url, tmp_path / "one", rules=rules) as one,
        serving_team(postgres.url, tmp_path / "two", rules=rules) as two,
        one.client_of(ada) as first,
        two.client_of(ada) as second,
        two.client_of(eve) as other,
    ):
        statuses = [(await client.get("/v1/runs")).status_code for client in (first, second, first, second, first, second)]
        refused = await second.get("/v1/runs")
        assert statuses == [200, 200, 200, 200, 429, 429]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert (await other.get("/v1/runs")).status_code == 200


async def test_a_scheduled_question_is_asked_once_by_two_workers(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    ada = make_person("Ada")
    async with serving_team(postgres.url, tmp_path / "one") as one, serving_team(postgres.url, tmp_path / "two") as two:
        first = datetime.now(UTC) - timedelta(hours=50)
        number = await asyncio.to_thread(one.team.add_schedule, ada, QUESTION, timedelta(days=1), first)
        async with one.client_of(ada) as client, asyncio.timeout(120):
            while not (runs := (await client.get("/v1/runs")).json()["runs"]) or runs[0]["state"] == "running":
                await asyncio.sleep(0.05)
            for _ in range(5):
                await asyncio.gather(one.team.submit_due(), two.team.submit_due())
            runs = (await client.get("/v1/runs")).json()["runs"]
        assert [(run["question"], run["state"]) for run in runs] == [(QUESTION, "finished")]
        (schedule,) = [s for s in Schedules(one.team.database, one.team.clock).list_all() if s.id == number]
        assert (schedule.next_at, schedule.last_run) == (first + timedelta(days=3), runs[0]["id"])


def test_schedules_are_kept_by_command(
    postgres: Any, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_person: Callable[..., str]
) -> None:
    monkeypatch.setenv("NEXI_DATABASE_URL", postgres.url)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    ada = make_person("Ada")
    run = lambda *words: CliRunner().invoke(cli.main, ["admin", "schedules", *words])  # noqa: E731
    added = run("add", ada, "What is new?", "--every", "week", "--at", "2099-01-01 07:00")
    number = added.stdout.strip()
    assert added.exit_code == 0, added.output
    assert f"{number}  Ada  every week  next 2099-01-01 07:00\n" in run().stdout
    assert (run("rm", number).exit_code, run("rm", number).exit_code) == (0, 1)
    with pytest.raises(NexiError, match="no schedule"):
        Schedules(database, FakeClock()).remove(int(number))
