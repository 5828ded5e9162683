"""Quotas: taken where a run is admitted, so that two requests at once never both have the last one; each with its own words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.app.request import RunLimits, RunRequest
from nexi.config import Config
from nexi.errors import NexiError, StoreError
from nexi.events import ModelReplied, RunFailed, RunFinished, RunStarted, Warned
from nexi.stores.pgvector.store import PgvectorStore
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People, Quotas
from nexi.team.postgres.runs import QUOTA_STOP, PostgresRuns
from nexi.team.postgres.state import PostgresState
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM
from nexi.types import Chunk, Hit, IndexedPage, Query, Reply, StoredSource, Usage
from tests.team.world import PAGES, QUESTION, ServedTeam, ask, serving_team

STARTED = RunStarted(QUESTION, "m", "scripted")
AT_ONCE = 8


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


def state_of(database: Database, owner: str) -> PostgresState:
    return PostgresState(database, owner, FakeClock(), partial(PgvectorStore, database))


def take_at_once(database: Database, owner: str, *, is_queued: bool = False) -> list[str]:
    """What becomes of several requests at the same moment."""

    def take(_: int) -> str:
        try:
            state_of(database, owner).take_run(is_queued=is_queued)
        except NexiError as error:
            return error.message
        return "let in"

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return sorted(threads.map(take, range(AT_ONCE)))


@pytest.mark.parametrize("is_queued", [False, True])
def test_requests_at_once_share_the_runs_of_the_day(
    database: Database, make_person: Callable[..., str], is_queued: bool
) -> None:
    person = make_person()
    People(database).set_quotas(person, Quotas(runs_per_day=3))
    refused = ["you have reached your quota of runs a day"] * (AT_ONCE - 3)
    assert take_at_once(database, person, is_queued=is_queued) == sorted(["let in"] * 3 + refused)
    assert People(database).usage_of(person).runs == 3


def test_requests_at_once_share_the_runs_that_may_run(database: Database, make_person: Callable[..., str]) -> None:
    person = make_person()
    People(database).set_quotas(person, Quotas(running=2))
    refused = ["you have reached your quota of runs at once"] * (AT_ONCE - 2)
    assert take_at_once(database, person) == sorted(["let in"] * 2 + refused)
    assert take_at_once(database, person, is_queued=True) == ["let in"] * AT_ONCE  # they wait for the others to end


def test_workers_at_once_begin_as_many_runs_as_may_run(
    database: Database, postgres: Any, make_person: Callable[..., str]
) -> None:
    person, other = make_person(), Database(postgres.url).open()
    People(database).set_quotas(person, Quotas(running=2))
    stores = [PostgresRuns(each, person, FakeClock()) for each in (database, other)]
    ids = [stores[0].submit(QUESTION, "search", {}) for _ in range(AT_ONCE)]

    def claim(index: int) -> str:
        try:
            stores[index % 2].claim(ids[index])
        except NexiError as error:
            return error.code
        return "claimed"

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert sorted(threads.map(claim, range(AT_ONCE))) == ["claimed"] * 2 + ["run_locked"] * (AT_ONCE - 2)
    other.close()


async def test_a_run_that_has_begun_is_counted_once(database: Database, make_person: Callable[..., str]) -> None:
    person = make_person()
    state = state_of(database, person)
    state.take_run()
    assert People(database).usage_of(person).running == 1
    log = state.runs.create()
    await log.append(STARTED)
    usage = People(database).usage_of(person)
    assert (usage.runs, usage.running) == (1, 1)
    await log.close()
    assert People(database).usage_of(person).running == 0


async def test_what_is_kept_counts_against_the_storage(database: Database, make_person: Callable[..., str]) -> None:
    person = make_person()
    state = state_of(database, person)
    People(database).set_quotas(person, Quotas(storage_bytes=2_000_000))
    state.take_run()
    await state.runs.pages.put(f"{person} " * 60_000)
    assert 2_000_000 < People(database).usage_of(person).storage_bytes < 2_500_000
    with pytest.raises(NexiError, match=r"you have reached your quota of storage: 2\.\d+ of 2 MB are used") as refused:
        state.take_run()
    assert (refused.value.code, "delete" in refused.value.fix) == ("quota_reached", True)


def indexed_page(name: str, size: int) -> IndexedPage:
    return IndexedPage(StoredSource(f"https://{name}.example/", name), (Chunk(f"{name} " * (size // (len(name) + 1))),))


async def test_knowledge_beyond_the_storage_is_refused_in_its_transaction(
    database: Database, make_person: Callable[..., str]
) -> None:
    person = make_person()
    store = state_of(database, person).knowledge
    People(database).set_quotas(person, Quotas(storage_bytes=1_000_000))
    await store.put([indexed_page("first", 600_000)])
    with pytest.raises(StoreError) as refused:
        await store.put([indexed_page("second", 300_000), indexed_page("third", 300_000)])
    assert (refused.value.code, str(refused.value), refused.value.fix) == (
        "quota_reached",
        "you have reached your quota of storage: 0.6 MB of 1.0 MB are used, and this needs 0.6 MB more",
        "delete runs or stored sources, or ask an administrator for more",
    )
    assert [source.title for source in await store.sources()] == ["first"]
    outcomes = await asyncio.gather(
        *(store.put([indexed_page(f"at-once-{n}", 300_000)]) for n in range(4)), return_exceptions=True
    )
    assert sorted(str(type(outcome).__name__) for outcome in outcomes) == ["NoneType", "StoreError", "StoreError", "StoreError"]
    await store.remove(["https://first.example/"])
    await store.put([indexed_page("second", 600_000)])
    assert People(database).usage_of(person).storage_bytes <= 1_000_000


async def test_an_upload_beyond_the_storage_is_refused_with_what_is_full_and_what_to_do(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    person = make_person()
    served.people.set_quotas(person, Quotas(storage_bytes=20_000))
    async with served.client_of(person) as client:
        taken = await client.post("/page/files?name=small.txt", content=b"The canteen opens at half past eleven. " * 50)
        refused = await client.post("/page/files?name=large.txt", content=b"The cellar is locked after nine. " * 3_000)
        known = (await client.get("/page/knowledge")).json()["sources"]
    assert (taken.status_code, refused.status_code, len(known)) == (200, 429, 1)
    error = refused.json()["error"]
    assert (error["code"], error["fix"]) == (
        "quota_reached",
        "delete runs or stored sources, or ask an administrator for more",
    )
    assert error["message"].startswith("you have reached your quota of storage: 2.1 kB of 20.0 kB are used, and this needs")
    assert not list((served.team.config.for_person(person).personal_dir / "state" / "dropped").iterdir())


async def test_a_run_whose_person_has_no_storage_left_answers_and_says_what_is_not_kept(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, mine = make_person(), Database(postgres.url).open()
    People(mine).set_quotas(person, Quotas(storage_bytes=100))
    web = FakeWeb(PAGES)
    config = Config(home=tmp_path, model="extractive", knowledge=True)
    nexi = Nexi(config, state=state_of(mine, person), backends=(web,), fetchers=(web,))
    async with asyncio.timeout(120), nexi, nexi.search(QUESTION) as run:
        facts = [fact async for fact in run]
    (warned,) = [fact.message for fact in facts if isinstance(fact, Warned) and fact.code == "not_indexed"]
    assert "you have reached your quota of storage" in warned
    assert isinstance(facts[-1], RunFinished)
    mine.close()


async def test_runs_that_began_together_stop_when_their_tokens_are_spent(
    postgres: Any, make_person: Callable[..., str]
) -> None:
    person, mine = make_person(), Database(postgres.url, lease_s=0.4).open()
    People(mine).set_quotas(person, Quotas(tokens_per_day=1_000))
    state = state_of(mine, person)
    assert [state.take_run().tokens for _ in range(2)] == [1_000, 1_000]
    logs = [state.runs.create() for _ in range(2)]
    for log in logs:
        await log.append(STARTED)
    assert [log.stop_requested() for log in logs] == [False, False]
    for log in logs:
        await log.append(ModelReplied(1, "yes", (), Usage(600, 0, 0, 0.0), "stop", 0.1))
    async with asyncio.timeout(120):
        while not all(log.stop_requested() for log in logs):
            await asyncio.sleep(0.05)
    assert {log.explain_stop() for log in logs} == {QUOTA_STOP}
    state.runs.request_stop(logs[0].run_id)
    async with asyncio.timeout(120):
        while logs[0].explain_stop():
            await asyncio.sleep(0.05)
    assert [log.explain_stop() for log in logs] == ["", QUOTA_STOP]
    for log in logs:
        await log.close()
    with pytest.raises(NexiError, match="quota of tokens a day: 1200 of 1000 are used"):
        state.take_run()
    mine.close()


async def test_a_run_for_which_too_little_of_the_quota_is_left_says_so_and_when_there_is_more(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, mine = make_person(), Database(postgres.url).open()
    People(mine).set_quotas(person, Quotas(tokens_per_day=20))
    nexi = Nexi(
        Config(home=tmp_path, model="scripted"),
        state=state_of(mine, person),
        backends=(FakeWeb(PAGES),),
        fetchers=(FakeWeb(PAGES),),
        llms=dict.fromkeys(("answer", "extract", "judge"), ScriptedLLM()),
    )
    async with asyncio.timeout(120), nexi, nexi.search(QUESTION) as run:
        failed = [fact async for fact in run][-1]
    assert isinstance(failed, RunFailed)
    assert (failed.cause, failed.fix) == (
        "your quota for today has 20 tokens left, too few for another model call before any page was read",
        "ask again after midnight UTC, when your quota is renewed, or ask an administrator for more",
    )
    mine.close()


async def test_a_quota_leaves_a_smaller_limit_of_the_config_alone(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, mine = make_person(), Database(postgres.url).open()
    People(mine).set_quotas(person, Quotas(tokens_per_day=1_000_000, cost_per_day=5.0))
    async with Nexi(Config(home=tmp_path, model="extractive", max_tokens=900), state=state_of(mine, person)) as nexi:
        limits = [
            (await nexi.admit(RunRequest(QUESTION, limits=given))).limits for given in (RunLimits(), RunLimits(max_cost=1.0))
        ]
    assert [(each.max_tokens, each.max_cost, each.is_quota) for each in limits] == [(900, 5.0, True), (900, 1.0, False)]
    mine.close()


class WaitingWeb(FakeWeb):
    """A web on which a search takes until the run is stopped, while another run of the same person spends the quota."""

    def __init__(self, database: Database, owner: str) -> None:
        super().__init__({})
        self._database, self._owner = database, owner

    async def search(self, query: Query) -> list[Hit]:
        self._database.fetch(
            "insert into usage (owner, day, tokens) values (%(owner)s, (now() at time zone 'utc')::date, 2000000) "
            "on conflict (owner, day) do update set tokens = 2000000",
            {"owner": self._owner},
        )
        await asyncio.Event().wait()
        return []


async def test_a_run_that_a_quota_stops_says_so_and_what_to_do(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, mine = make_person(), Database(postgres.url, lease_s=0.4).open()
    People(mine).set_quotas(person, Quotas(tokens_per_day=1_000_000))
    web = WaitingWeb(mine, person)
    nexi = Nexi(Config(home=tmp_path, model="extractive"), state=state_of(mine, person), backends=(web,), fetchers=(web,))
    async with asyncio.timeout(120), nexi, nexi.search(QUESTION) as run:
        facts = [fact async for fact in run]
    assert [fact.message for fact in facts if isinstance(fact, Warned) and fact.code == "quota_reached"] == [QUOTA_STOP]
    mine.close()


async def test_requests_at_once_over_http_get_what_is_left_and_the_words_for_it(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    person = make_person()
    served.people.set_quotas(person, Quotas(runs_per_day=2))
    async with served.client_of(person) as client:
        await ask(client)
        replies = await asyncio.gather(*(client.post("/v1/runs", json={"question": QUESTION}) for _ in range(4)))
        assert sorted(reply.status_code for reply in replies) == [202, 429, 429, 429]
        refused = next(reply.json()["error"] for reply in replies if reply.status_code == 429)
        assert (refused["code"], refused["message"]) == (
            "quota_reached",
            "you have reached your quota of runs a day: 2 of 2 are used",
        )


TITLE_TASK = "### Task:\nName this chat.\n<chat_history>\nUSER: How far is the Moon?\n</chat_history>"
TASK_BODIES = {
    "/v1/chat/completions": {"model": "nexi-m", "messages": [{"role": "user", "content": TITLE_TASK}]},
    "/v1/responses": {"model": "nexi-m", "input": TITLE_TASK},
    "/v1/completions": {"model": "nexi-m", "prompt": TITLE_TASK},
}


async def test_titles_and_suggestions_count_and_a_used_up_quota_refuses_them_over_http_before_the_model_is_asked(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, model = make_person(), ScriptedLLM(*[Reply('{"title": "The Moon"}', usage=Usage(40, 8))] * 9)
    llms = dict.fromkeys(("answer", "extract", "judge"), model)
    settings = {"model": "scripted", "base_url": "http://127.0.0.1:9/v1", "verify_judge": False}
    async with serving_team(postgres.url, tmp_path, llms=llms, **settings) as served, served.client_of(person) as client:
        run_id = await ask(client, options={"model": "extractive"})
        before = served.people.usage_of(person).tokens
        first = await client.post("/v1/chat/completions", json=TASK_BODIES["/v1/chat/completions"])
        used, asked_before = served.people.usage_of(person).tokens, len(model.requests)
        served.people.set_quotas(person, Quotas(tokens_per_day=used))
        refused = [await client.post(path, json=body) for path, body in TASK_BODIES.items()]
        refused.append(await client.get(f"/page/runs/{run_id}/suggestions"))
        after = served.people.usage_of(person).tokens
    assert (first.status_code, used - before, after) == (200, 48, used)
    assert [(reply.status_code, reply.json()["error"]["code"]) for reply in refused] == [(429, "quota_reached")] * 4
    assert {reply.json()["error"]["message"].partition(":")[0] for reply in refused} == {
        "you have reached your quota of tokens a day"
    }
    assert len(model.requests) == asked_before


async def test_a_request_that_is_refused_for_something_else_costs_nothing(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    person = make_person()
    async with served.client_of(person) as client:
        refused = [
            await client.post("/v1/runs", json={"question": "And Mars?", "continues": "0" * 32}),
            await client.post("/v1/runs", json={"question": ""}),
        ]
    assert [reply.status_code for reply in refused] == [404, 400]
    assert served.people.usage_of(person).runs == 0


async def test_people_ask_for_the_models_that_are_offered_and_a_refusal_costs_nothing(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person = make_person()
    async with (
        serving_team(postgres.url, tmp_path, team_models=("small", "extractive")) as served,
        served.client_of(person) as client,
    ):
        refused = await client.post("/v1/runs", json={"question": QUESTION, "options": {"model": "gpt-99-unpriced"}})
        runs = served.people.usage_of(person).runs
        await ask(client, options={"model": "extractive"})
    assert (refused.status_code, runs) == (403, 0)
    error = refused.json()["error"]
    assert (error["code"], error["message"], error["fix"]) == (
        "model_refused",
        "the model gpt-99-unpriced is not offered here",
        "use one of small, extractive, or leave it out",
    )


async def test_a_person_may_have_a_list_of_models_in_the_place_of_the_teams(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person, other = make_person(), make_person()
    async with (
        serving_team(postgres.url, tmp_path, team_models=("small",)) as served,
        served.client_of(person) as client,
        served.client_of(other) as plain,
    ):

        async def status_of(asking: Any, model: str) -> int:
            return (await asking.post("/v1/runs", json={"question": QUESTION, "options": {"model": model}})).status_code

        served.people.set_quotas(person, Quotas(models=("large",)))
        assert [await status_of(client, model) for model in ("large", "small")] == [202, 403]
        assert [await status_of(plain, model) for model in ("large", "small")] == [403, 202]
        served.people.set_quotas(person, Quotas(models=()))
        assert [await status_of(client, model) for model in ("large", "small")] == [403, 403]


async def test_a_model_of_unknown_price_elsewhere_is_refused_to_those_with_a_limit_of_dollars(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    person = make_person()
    settings = {"model": "gpt-99-unpriced", "base_url": "https://models.example/v1", "api_key": "none"}
    async with serving_team(postgres.url, tmp_path, **settings) as served, served.client_of(person) as client:
        served.people.set_quotas(person, Quotas(cost_per_day=0.5))
        run_id = (await client.post("/v1/runs", json={"question": QUESTION})).json()["id"]
        async with asyncio.timeout(120):
            while (status := (await client.get(f"/v1/runs/{run_id}")).json())["state"] == "running":
                await asyncio.sleep(0.05)
        facts = [fact for _, fact in served.team.state_of(person).runs.open_log(run_id).facts]
    assert status["state"] == "failed"
    assert [(fact.code, fact.message, fact.cause) for fact in facts if isinstance(fact, RunFailed)] == [
        ("config", "max_cost cannot be kept for gpt-99-unpriced", "its price is unknown")
    ]
