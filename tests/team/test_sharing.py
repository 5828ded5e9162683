"""Sharing: a run is read by those its owner names, at every door that shows it, and changed by nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.team.web import routes as team_routes
from nexi.web import list_contracts, page
from tests.team.test_knowledge import ask_local
from tests.team.test_ownership import WORD, ask_as_ada, send
from tests.team.world import ServedTeam, ask, serving_team

READING = {
    ("GET", "/v1/runs/{id}"),
    ("GET", "/v1/runs/{id}/events"),
    ("GET", "/v1/runs/{id}/result"),
    ("GET", "/page/runs/{id}"),
    ("GET", "/page/runs/{id}/passage"),
    ("GET", "/page/runs/{id}/export"),
    ("GET", "/page/runs/{id}/thread"),
    ("GET", "/page/runs/{id}/timeline"),
}


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team
        for table in ("shares", "knowledge_shares", "knowledge_answers"):
            team.team.database.fetch(f"delete from {table}")  # noqa: S608  # what is for the whole team is for the people of other tests too


def routes_of_a_run() -> set[tuple[str, str]]:
    documented = (*list_contracts(), team_routes.CONTRACT)
    routes = [*page.ROUTES, *(route for contract in documented for route in contract.routes)]
    return {(method, route.path) for route in routes if "{id}" in route.path for method in route.methods or ()}


async def set_audience(client: httpx2.AsyncClient, run_id: str, **audience: Any) -> Any:
    reply = await client.put(f"/v1/runs/{run_id}/shares", json=audience)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def statuses_of(client: httpx2.AsyncClient, run_id: str) -> dict[tuple[str, str], int]:
    return {row: (await send(client, *row, run_id)).status_code for row in READING}


async def test_a_run_is_read_by_those_it_is_shared_with_and_by_nobody_else(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    grace, eve = make_person("Grace H."), make_person("Eve")
    async with served.client_of(str(owner)) as ada, served.client_of(grace) as reader, served.client_of(eve) as other:
        assert await set_audience(ada, run_id, people=[grace]) == {"team": False, "people": ["Grace H."]}
        assert await statuses_of(reader, run_id) == dict.fromkeys(READING, 200)
        assert await statuses_of(other, run_id) == dict.fromkeys(READING, 404)
        shared = (await reader.get("/v1/shared-runs")).json()["runs"]
        assert [(run["id"], run["owner"], WORD in run["question"], run["state"]) for run in shared] == [
            (run_id, "Ada", True, "finished")
        ]
        assert (await other.get("/v1/shared-runs")).json() == (await ada.get("/v1/shared-runs")).json() == {"runs": []}
        assert await set_audience(ada, run_id, team=True) == {"team": True, "people": []}
        assert await statuses_of(other, run_id) == dict.fromkeys(READING, 200)
        assert await set_audience(ada, run_id) == {"team": False, "people": []}
        assert await statuses_of(reader, run_id) == dict.fromkeys(READING, 404)


async def test_whoever_reads_a_shared_run_cannot_change_it(served: ServedTeam, make_person: Callable[..., str]) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    changing = {
        ("DELETE", "/v1/runs/{id}"),
        ("POST", "/v1/runs/{id}/stop"),
        ("DELETE", "/page/history/{id}"),
        ("POST", "/page/runs/{id}/share"),
        ("DELETE", "/page/runs/{id}/share"),
        ("GET", "/v1/runs/{id}/shares"),
        ("PUT", "/v1/runs/{id}/shares"),
    }
    assert changing | READING <= routes_of_a_run()
    async with served.client_of(str(owner)) as ada, served.client_of(make_person("Eve")) as reader:
        await set_audience(ada, run_id, team=True)
        assert {row: (await send(reader, *row, run_id)).status_code for row in changing} == dict.fromkeys(changing, 404)
        assert (await send(reader, "POST", "/v1/runs/{id}/cancel", run_id)).status_code == 409  # she sees that it has ended
        assert (await reader.get("/v1/runs")).json() == {"runs": []}
        assert (await ada.get(f"/v1/runs/{run_id}/shares")).json() == {"team": True, "people": []}


async def test_the_button_of_the_page_shares_with_the_team_and_takes_it_back(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    async with served.client_of(str(owner)) as ada, served.client_of(make_person("Eve")) as reader:
        assert (await ada.get("/page/form")).json()["share"] is True
        assert (await ada.post(f"/page/runs/{run_id}/share")).json() == {"path": f"/runs/{run_id}"}
        views = [(await each.get(f"/page/runs/{run_id}")).json() for each in (ada, reader)]
        assert [(view["shared"], view["of_another"], WORD in view["question"]) for view in views] == [
            (True, False, True),
            (False, True, True),
        ]
        assert (await ada.delete(f"/page/runs/{run_id}/share")).status_code == 204
        assert (await reader.get(f"/page/runs/{run_id}")).status_code == 404


async def test_a_name_that_is_nobodys_shares_nothing(served: ServedTeam, make_person: Callable[..., str]) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    async with served.client_of(str(owner)) as ada:
        refused = await ada.put(f"/v1/runs/{run_id}/shares", json={"people": ["Nobody At All"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        assert (await ada.put(f"/v1/runs/{run_id}/shares", json={"everybody": True})).status_code == 400
        assert (await ada.get(f"/v1/runs/{run_id}/shares")).json() == {"team": False, "people": []}


async def test_a_run_that_was_shared_goes_with_its_owner_and_a_reader_goes_without_it(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    grace, bob = make_person("Grace"), make_person("Bob")
    async with served.client_of(str(owner)) as ada, served.client_of(bob) as reader:
        await set_audience(ada, run_id, people=[grace, bob])
        served.people.remove(grace)
        assert (await ada.get(f"/v1/runs/{run_id}/shares")).json()["people"] == ["Bob"]
        served.people.remove(str(owner))
        assert (await reader.get(f"/v1/runs/{run_id}")).status_code == 404
        assert (await reader.get("/v1/shared-runs")).json() == {"runs": []}


async def answer_offer(client: httpx2.AsyncClient, owner: Any, accepted: bool) -> httpx2.Response:
    return await client.put(f"/v1/shared-knowledge/{owner}", json={"accepted": accepted})


async def test_a_knowledge_base_is_searched_by_those_it_is_shared_with_and_changed_by_none_of_them(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    grace, eve = make_person("Grace K."), make_person("Eve")

    async def found_by(client: httpx2.AsyncClient) -> tuple[bool, bool]:
        listed = (await client.get("/page/knowledge?q=xylophone")).json()["sources"]
        return bool(listed), WORD in str((await client.get("/page/knowledge/find?q=xylophone")).json()["hits"])

    async with served.client_of(str(owner)) as ada, served.client_of(grace) as reader, served.client_of(eve) as other:
        assert (await ada.get("/v1/knowledge/shares")).json() == {"team": False, "people": []}
        assert [await found_by(client) for client in (reader, other)] == [(False, False)] * 2
        shared = await ada.put("/v1/knowledge/shares", json={"people": ["Grace K."]})
        assert (shared.status_code, shared.json()) == (200, {"team": False, "people": ["Grace K."]})
        assert [await found_by(client) for client in (reader, other)] == [(False, False), (False, False)]
        offer = {"owner": str(owner), "name": "Ada", "state": "offered"}
        assert (await reader.get("/v1/shared-knowledge")).json() == {"people": [], "offers": [offer]}
        assert (await other.get("/v1/shared-knowledge")).json() == {"people": [], "offers": []}
        assert (await answer_offer(other, owner, True)).status_code == 404
        accepted = await answer_offer(reader, owner, True)
        assert accepted.json() == {"people": ["Ada"], "offers": [{**offer, "state": "accepted"}]}
        assert [await found_by(client) for client in (reader, other)] == [(True, True), (False, False)]
        muted = await answer_offer(reader, owner, False)
        assert muted.json() == {"people": [], "offers": [{**offer, "state": "muted"}]}
        assert await found_by(reader) == (False, False)
        await answer_offer(reader, owner, True)
        (source,) = (await reader.get("/page/knowledge?q=xylophone")).json()["sources"]
        (own,) = (await ada.get("/page/knowledge?q=xylophone")).json()["sources"]
        assert (source["owner"], own["owner"]) == ("Ada", "")
        assert (await reader.post("/page/knowledge/forget", json={"urls": [source["url"]]})).status_code == 404
        assert (await ada.put("/v1/knowledge/shares", json={"team": True})).json() == {"team": True, "people": []}
        assert [await found_by(client) for client in (reader, other)] == [(True, True), (False, False)]
        await answer_offer(other, owner, True)
        assert await found_by(other) == (True, True)
        assert (await ada.put("/v1/knowledge/shares", json={})).json() == {"team": False, "people": []}
        assert [await found_by(client) for client in (ada, reader, other)] == [(True, True), (False, False), (False, False)]
        refused = await ada.put("/v1/knowledge/shares", json={"people": ["Nobody At All"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
    actions = [row[2] for row in served.people.read_audit(7)]
    assert actions[:3] == ["share_knowledge", "accept_knowledge", "share_knowledge"]
    assert actions.count("mute_knowledge") == 1


async def titles_of_local_answer(client: httpx2.AsyncClient) -> list[str]:
    run_id = await ask(client, f"Where is the {WORD}?", options={"only_local": True})
    return [source["title"] for source in (await client.get(f"/page/runs/{run_id}")).json()["sources"]]


async def test_an_answer_names_the_owner_of_each_shared_source_and_has_none_of_a_muted_one(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    eve = make_person("Eve")
    async with served.client_of(str(owner)) as ada, served.client_of(eve) as reader:
        await ada.put("/v1/knowledge/shares", json={"team": True})
        await answer_offer(reader, owner, True)
        assert await titles_of_local_answer(reader) == ["xylophone.txt (shared by Ada)"]
        assert await titles_of_local_answer(ada) == ["xylophone.txt"]
        await answer_offer(reader, owner, False)
    assert "cellar" not in await ask_local(served, eve, f"Where is the {WORD} now?")


async def test_a_question_from_the_knowledge_base_alone_reads_what_others_share(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    eve = make_person("Eve")
    async with served.client_of(str(owner)) as ada:
        assert "cellar" not in await ask_local(served, eve, f"Where is the {WORD}?")
        await ada.put("/v1/knowledge/shares", json={"people": [eve]})
        assert "cellar" not in await ask_local(served, eve, f"Where is the {WORD}?")
        async with served.client_of(eve) as reader:
            await answer_offer(reader, owner, True)
        assert "cellar" in await ask_local(served, eve, f"Where is the {WORD}?")
