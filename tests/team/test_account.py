"""One's own account: what is kept of a person can be taken along and deleted whole, whatever tables there are."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexi.team.postgres.database import Database
from nexi.team.postgres.people import Quotas
from nexi.team.web.account import AccountDoor
from nexi.team.web.administration import AdministrationDoor
from nexi.types import RunAudience, Space
from tests.team.world import ServedTeam, ask, serving_team

EXPORTED = {  # each table that names a person, and where its rows are in the export
    "runs": "runs",
    "history": "history",
    "usage": "usage",
    "identities": "identities",
    "tokens": "tokens",
    "sessions": "sessions",
    "quotas": "quotas",
    "page_owners": "pages",
    "shares": "shares",
    "knowledge_shares": "knowledge_shares",
    "knowledge_answers": "knowledge_answers",
    "schedules": "schedules",
    "spaces": "spaces",
    "space_shares": "space_shares",
    "collections": "sources",
    "sign_in_links": "",  # a secret that works once
    "admissions": "",  # lasts for seconds
    "storage": "",  # the sum of what is exported
}


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


def columns_that_name_people(database: Database) -> list[tuple[str, str]]:
    """Table and column of every foreign key to people."""
    return [
        (table, column)
        for table, column in database.fetch(
            "select conrelid::regclass::text, attname from pg_constraint join pg_attribute on attrelid = conrelid "
            "and attnum = conkey[1] where contype = 'f' and confrelid = 'people'::regclass order by 1, 2"
        )
    ]


async def fill_account(served: ServedTeam, person: str, other: str) -> str:
    """Something of hers in every table; the id of her run."""
    people, database = served.people, served.team.database
    async with served.client_of(person) as client:
        run_id = await ask(client)
        taken = await client.post("/page/files?name=cellar.txt", content=b"The xylophone is in the cellar. " * 20)
        assert taken.status_code == 200, taken.text
    people.set_quotas(person, Quotas(runs_per_day=50))
    people.begin_session(person)
    people.add_link(person)
    served.team.state_of(person).sharing.set_audience(run_id, RunAudience(people=(other,)))
    served.team.state_of(person).knowledge_sharing.set_audience(RunAudience(people=(other,)))
    served.team.state_of(other).knowledge_sharing.set_audience(RunAudience(people=(person,)))
    served.team.state_of(person).knowledge_sharing.answer_offer(other, is_accepted=True)
    served.team.state_of(person).spaces.add(Space("lease"))
    served.team.state_of(person).space_sharing.set_audience("lease", RunAudience(people=(other,)))
    served.team.add_schedule(person, "What is new?", timedelta(days=1), datetime.now(UTC) + timedelta(days=1))
    database.fetch(
        "insert into identities values ('https://id.example', %(p)s::text, %(p)s::uuid, 'ada@example.org')", {"p": person}
    )
    database.fetch("insert into admissions (owner) values (%(p)s)", {"p": person})
    return run_id


async def test_every_table_that_names_a_person_is_exported_and_emptied(
    served: ServedTeam, database: Database, make_person: Callable[..., str]
) -> None:
    person, other = make_person("Ada"), make_person("Grace")
    columns = columns_that_name_people(database)
    assert {table for table, _ in columns} == set(EXPORTED)
    run_id = await fill_account(served, person, other)
    texts = {digest for (digest,) in database.fetch("select digest from page_owners where owner = %(p)s", {"p": person})}
    async with served.client_of(person) as client:
        reply = await client.get("/account/export")
        exported = reply.json()
        assert "attachment" in reply.headers["content-disposition"]
        empty = [name for name in EXPORTED.values() if name and not exported[name]]
        assert (empty, list(exported["runs"]), exported["person"][0]["name"]) == ([], [run_id], "Ada")
        assert "xylophone" in json.dumps(exported["sources"])
        assert set(exported["pages"]) == texts
        assert "digest" not in exported["tokens"][0] | exported["sessions"][0]
        left = await client.request("DELETE", "/account", json={"name": "Ada"})
        assert left.status_code == 204
        assert (await client.get("/account")).status_code == 401
    counts = {
        (table, column): database.fetch(f'select count(*) from {table} where "{column}" = %(p)s', {"p": person})[0][0]  # noqa: S608
        for table, column in columns
    }
    assert counts == dict.fromkeys(columns, 0)
    assert database.fetch("select count(*) from facts where run = %(run)s", {"run": run_id}) == [(0,)]
    assert not (served.team.config.for_person(person).personal_dir).exists()


async def test_what_somebody_else_has_read_too_stays(served: ServedTeam, make_person: Callable[..., str]) -> None:
    ada, grace = make_person("Ada"), make_person("Grace")
    pages = [served.team.state_of(person).runs.pages for person in (ada, grace)]
    shared, own = f"Both have read this: {ada}", f"One has read this: {ada}"
    both = [await store.put(shared) for store in pages]
    alone = await pages[0].put(own)
    served.team.remove_person(ada)
    kept = served.team.database.fetch("select digest from pages where digest = any(%(d)s)", {"d": [both[0], alone]})
    assert (kept, await pages[1].get(both[1])) == ([(both[1],)], shared)


async def test_leaving_wants_ones_own_name_and_another_administrator(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    make_person("Member")
    chief = make_person("Chief", role="administrator")
    async with served.client_of(chief) as client:
        wrong = await client.request("DELETE", "/account", json={"name": "Somebody"})
        last = await client.request("DELETE", "/account", json={"name": "Chief"})
        make_person("Deputy", role="administrator")
        done = await client.request("DELETE", "/account", json={"name": "Chief"})
    codes = [reply.json()["error"]["code"] for reply in (wrong, last)]
    assert ([wrong.status_code, last.status_code, done.status_code], codes) == (
        [400, 409, 204],
        ["not_confirmed", "last_administrator"],
    )


async def test_a_token_that_may_only_read_cannot_delete_an_account(served: ServedTeam, make_person: Callable[..., str]) -> None:
    async with served.client_of(make_person("Ada"), scopes=("read",)) as client:
        assert (await client.request("DELETE", "/account", json={"name": "Ada"})).status_code == 403
        assert (await client.get("/account")).json()["name"] == "Ada"


async def test_the_list_of_everybody_is_for_administrators_and_shows_no_question(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    name = "Ada <script>"
    person = make_person(name)
    served.people.set_quotas(person, Quotas(runs_per_day=7))
    async with served.client_of(person) as user, served.client_of(make_person(role="administrator")) as chief:
        run_id = await ask(user, "How far is the Moon from Earth on average? xylophone")
        refused, shown = await user.get("/admin"), await chief.get("/admin")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_an_administrator")
    assert (shown.status_code, "Ada &lt;script&gt;" in shown.text, "<script" in shown.text) == (200, True, False)
    row = "<tr><td>Ada &lt;script&gt;<td>user<td>runs: 1 of 7<br>"
    assert (row in shown.text, run_id in shown.text, "xylophone" in shown.text) == (True, True, False)


async def test_a_person_makes_lists_and_revokes_her_own_tokens(served: ServedTeam, make_person: Callable[..., str]) -> None:
    async with served.client_of(make_person("Ada")) as ada, served.client_of(make_person("Eve")) as eve:
        made = await ada.post("/account/tokens", json={"name": "laptop", "days": 30, "read_only": True})
        assert (made.status_code, made.json()["name"], made.headers["cache-control"]) == (201, "laptop", "no-store")
        async with served.client(made.json()["token"]) as laptop:
            assert (await laptop.get("/account")).json()["name"] == "Ada"
            assert (await laptop.post("/account/tokens", json={"name": "wider"})).status_code == 403
            tokens = (await laptop.get("/account/tokens")).json()["tokens"]
            assert [(t["name"], t["scopes"], bool(t["expires"])) for t in tokens] == [
                ("test", ["read", "ask"], False),
                ("laptop", ["read"], True),
            ]
            assert made.json()["token"] not in str(tokens)
            path = f"/account/tokens/{tokens[1]['id']}"
            assert [t["name"] for t in (await eve.get("/account/tokens")).json()["tokens"]] == ["test"]
            assert ((await eve.delete(path)).status_code, (await laptop.get("/account")).status_code) == (404, 200)
            assert ((await ada.delete(path)).status_code, (await laptop.get("/account")).status_code) == (204, 401)
        assert (await ada.delete(path)).status_code == 404
        assert (await ada.post("/account/tokens", json={"name": "x", "scopes": ["admin"]})).status_code == 400
    assert [row[2] for row in served.people.read_audit(2)] == ["revoke_token", "add_token"]


async def test_every_route_of_the_account_wants_to_know_who_asks(served: ServedTeam) -> None:
    doors = (AccountDoor(served.team, served.people), AdministrationDoor(served.team, served.people))
    routes = [route for door in doors for route in door.routes()]
    async with served.client() as nobody:
        statuses = {
            (method, route.path): (await nobody.request(method, route.path, json={"name": "Ada"})).status_code
            for route in routes
            for method in (route.methods or set()) - {"HEAD"}
        }
    assert len(statuses) == 9
    assert set(statuses.values()) == {401}


async def test_a_person_sees_what_administrators_did_with_the_account(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    ada, chief = make_person("Ada"), make_person("Chief", role="administrator")
    async with served.client_of(chief) as client:
        made = await client.post("/admin", data={"action": "add_link", "person": ada}, headers={"origin": "https://127.0.0.1"})
    path = re.search(r"/login/link/\S+?(?=<)", made.text)
    assert path
    async with served.client() as anybody:
        used = await anybody.post(path[0], headers={"origin": "https://127.0.0.1"})
    async with served.client_of(ada) as client, served.client_of(chief) as other:
        access = (await client.get("/account/access")).json()["access"]
        of_chief = (await other.get("/account/access")).json()
    assert used.status_code == 303
    assert [(one["action"], one["by"], one["address"]) for one in access] == [
        ("sign_in_by_link", "", "127.0.0.1"),
        ("link_made_by", "Chief", ""),
    ]
    assert of_chief == {"access": []}
    log = [(person, action, subject) for _, person, action, subject, _ in served.people.read_audit(3)]
    assert log == [(ada, "sign_in_by_link", ""), (chief, "add_link", ada), (ada, "link_made_by", "Chief")]
