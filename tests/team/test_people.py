"""People of a team server: tokens, sessions, scopes, quotas, administrators, and what is left when somebody goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexi.errors import NexiError, StoreError
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People, Quotas
from nexi.types import Principal
from tests.team.world import QUESTION, ServedTeam, ask, serving_team


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


@pytest.fixture
def people(database: Database) -> People:
    database.fetch("delete from people")  # a name is given once
    return People(database)


def test_a_token_stands_for_its_person_until_it_is_revoked(people: People, database: Database) -> None:
    ada = people.add("Ada")
    secret = people.add_token(ada, "laptop")
    assert people.find_by_token(secret) == Principal(ada, "Ada", "user", ("read", "ask"))
    assert (secret[:5], len(secret) >= 48) == ("nexi_", True)
    kept = database.fetch("select row_to_json(tokens)::text from tokens where person = %(ada)s", {"ada": ada})
    assert secret[5:] not in kept[0][0]
    (token,) = people.list_tokens(ada)
    assert (token.name, token.last_used is not None) == ("laptop", True)
    assert (people.revoke_token(token.id), people.find_by_token(secret)) == (True, None)


@pytest.mark.parametrize("secret", ["", "nexi_", "x" * 10_000, "\x00", "' or 1=1 --", "\ud83c"])
def test_what_is_no_token_stands_for_nobody(people: People, secret: str) -> None:
    assert (people.find_by_token(secret), people.find_by_session(secret), people.use_link(secret)) == (None, None, None)


def test_an_expired_token_and_one_of_a_disabled_person_are_refused(people: People) -> None:
    ada = people.add("Ada")
    old, good, session = people.add_token(ada, "old", days=-1), people.add_token(ada, "new"), people.begin_session(ada)
    assert (people.find_by_token(old), people.find_by_token(good) is not None) == (None, True)
    people.change(ada, is_disabled=True)
    assert (people.find_by_token(good), people.find_by_session(session)) == (None, None)


def test_a_session_ends_when_it_is_idle_or_old_or_left(people: People, database: Database) -> None:
    ada = people.add("Ada")
    sessions = [people.begin_session(ada) for _ in range(3)]
    assert [people.find_by_session(s) is not None for s in sessions] == [True, True, True]
    people.end_session(sessions[0])
    database.fetch("update sessions set used = now() - interval '13 hours' where person = %(ada)s", {"ada": ada})
    assert [people.find_by_session(s) for s in sessions] == [None, None, None]
    fresh = people.begin_session(ada)
    database.fetch("update sessions set created = now() - interval '8 days' where person = %(ada)s", {"ada": ada})
    assert people.find_by_session(fresh) is None


def test_a_link_signs_in_once(people: People) -> None:
    ada = people.add("Ada")
    link = people.add_link(ada)
    assert (people.use_link(link), people.use_link(link)) == (ada, None)


def test_an_identity_is_its_issuer_and_subject_and_never_its_address(people: People) -> None:
    ada = people.sign_in("https://id.example", "1", "Ada", "ada@example.org")
    assert people.sign_in("https://id.example", "1", "Ada L.", "new@example.org") == ada
    assert people.sign_in("https://id.example", "2", "Eve", "ada@example.org") != ada
    assert people.sign_in("https://other.example", "1", "Eve", "ada@example.org") != ada


def test_names_of_people_who_sign_in_are_told_apart_and_hide_nothing(people: People) -> None:
    (name,) = people.find_names([people.sign_in("https://id.example", "n1", "Grace N.", "grace@one.example")]).values()
    (same,) = people.find_names([people.sign_in("https://id.example", "n2", "Grace N.", "grace@two.example")]).values()
    (turned,) = people.find_names(
        [people.sign_in("https://id.example", "n3", "Yvonne\u202e\x1b[31m", "eve@one.example")]
    ).values()
    assert (name, same, turned) == ("Grace N.", "Grace N. (grace@two.example)", "Yvonne")
    someone = people.find("Grace N.")
    (posing,) = people.find_names([people.sign_in("https://id.example", "n4", someone, "mallory@one.example")]).values()
    assert posing == f"{someone} (mallory@one.example)"
    assert people.find(someone) == someone


def test_a_name_that_somebody_has_is_not_given_twice(people: People) -> None:
    people.add("Ada of the names")
    for name in ("Ada of the names", "ada OF the names", people.find("Ada of the names")):
        with pytest.raises(NexiError, match=f"there is already a person named {name}"):
            people.add(name)


def test_of_several_who_ask_for_a_name_at_once_one_gets_it(people: People) -> None:
    def sign_in(number: int) -> str:
        person = people.sign_in("https://id.example", f"twin{number}", "Twin", f"{number}@x.example")
        return people.find_names([person])[person]

    def add(_: int) -> str:
        with suppress(NexiError):
            people.add("Twin")
            return "Twin"
        return ""

    with ThreadPoolExecutor(8) as threads:
        added, signed_in = threads.map(add, range(4)), threads.map(sign_in, range(4))
        names = [name for name in (*added, *signed_in) if name]
    assert (names.count("Twin"), len(set(names))) == (1, len(names))


def test_the_audit_log_is_only_added_to(people: People, database: Database) -> None:
    people.record(None, "add_user", "somebody")
    for change in ("delete from audit", "update audit set action = 'x'", "truncate audit"):
        with pytest.raises(StoreError, match="only added to"):
            database.fetch(change)
    assert people.read_audit(1)[0][2:4] == ("add_user", "somebody")


async def test_a_token_that_may_only_read_asks_nothing(served: ServedTeam, make_person: Callable[..., str]) -> None:
    async with served.client_of(make_person(), scopes=("read",)) as client:
        listed, asked = await client.get("/v1/runs"), await client.post("/v1/runs", json={"question": QUESTION})
    assert (listed.status_code, asked.status_code, asked.json()["error"]["code"]) == (200, 403, "scope_missing")


async def test_a_session_is_as_good_as_a_token(served: ServedTeam, make_person: Callable[..., str]) -> None:
    secret = served.people.begin_session(make_person())
    async with served.client() as client:
        client.headers["cookie"] = f"__Host-nexi={secret}"
        assert (await client.get("/v1/runs")).status_code == 200
        foreign = await client.post("/v1/runs", json={"question": QUESTION}, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        served.people.end_session(secret)
        assert (await client.get("/v1/runs")).status_code == 401


async def test_numbers_of_the_server_are_for_administrators(served: ServedTeam, make_person: Callable[..., str]) -> None:
    async with served.client_of(make_person()) as user, served.client_of(make_person(role="administrator")) as chief:
        statuses = [(await client.get("/metrics")).status_code for client in (user, chief)]
        doctor = await user.post("/page/doctor")
        settings = [(await client.post("/page/settings", json={"model": "x"})).status_code for client in (user, chief)]
        shown = (await user.get("/page/settings")).status_code
    assert (statuses, doctor.status_code, settings, shown) == ([403, 200], 403, [403, 403], 403)


async def test_a_quota_that_is_reached_refuses_the_next_run_at_every_door(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    person = make_person()
    served.people.set_quotas(person, Quotas(runs_per_day=1))
    async with served.client_of(person) as client:
        await ask(client)
        chat = {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
        refused = [
            await client.post("/v1/runs", json={"question": QUESTION}),
            await client.post("/v1/chat/completions", json=chat),
        ]
    assert [reply.status_code for reply in refused] == [429, 429]
    assert refused[0].json()["error"]["code"] == "quota_reached"
    assert served.people.usage_of(person).runs == 1


def test_a_run_may_use_what_is_left_of_the_quotas(
    database: Database, people: People, make_person: Callable[..., str], served_state: Callable[[str], Any]
) -> None:
    person = make_person()
    people.set_quotas(person, Quotas(tokens_per_day=1000, cost_per_day=2.0))
    database.fetch("insert into usage values (%(p)s, (now() at time zone 'utc')::date, 3, 400, 0.5)", {"p": person})
    left = served_state(person).take_run()
    assert (left.tokens, left.cost) == (600, 1.5)
    database.fetch("update usage set tokens = 1000 where owner = %(p)s", {"p": person})
    with pytest.raises(NexiError, match="quota of tokens a day: 1000 of 1000 are used"):
        served_state(person).take_run()


@pytest.fixture
def served_state(database: Database) -> Callable[[str], Any]:
    from nexi.stores.pgvector.store import PgvectorStore
    from nexi.team.postgres.state import PostgresState
    from nexi.testing import FakeClock

    return lambda person: PostgresState(database, person, FakeClock(), partial(PgvectorStore, database))


async def test_a_person_can_take_everything_along_and_leave_nothing(
    served: ServedTeam, database: Database, make_person: Callable[..., str]
) -> None:
    person = make_person()
    async with served.client_of(person) as client:
        run_id = await ask(client)
        exported = await asyncio.to_thread(served.people.export, person)
        assert any("384,400 km" in text for text in exported["pages"].values())
        assert (list(exported["runs"]), [entry["id"] for entry in exported["history"]]) == ([run_id], [run_id])
        assert json.loads(exported["runs"][run_id][0])["run"] == run_id
        assert json.loads(json.dumps(exported)) == exported
        served.people.remove(person)
        assert (await client.get("/v1/runs")).status_code == 401
    tables = ("runs", "history", "usage")
    left = [database.fetch(f"select count(*) from {table} where owner = %(p)s", {"p": person})[0][0] for table in tables]  # noqa: S608
    assert left == [0, 0, 0]


async def test_a_server_without_its_database_is_not_ready(served: ServedTeam, postgres: Any) -> None:
    async with served.client() as client:
        assert (await client.get("/readyz")).text == "ready\n"
        postgres.stop()
        try:
            assert (await client.get("/readyz")).status_code == 503
        finally:
            postgres.start()
