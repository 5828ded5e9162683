"""Spaces of a team: those whom the owner names read a space, ask in it and change nothing; its files are no door to others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.team.world import ServedTeam, ask, serving_team

LEASE = b"The rent of the flat is 812 euros a month. The notice period of the flat is three months. " * 5
DIARY = b"The diary says that the xylophone is kept in the cellar of the house in Bergen. " * 5
RENT = "What is the rent of the flat a month?"


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team
        team.team.database.fetch("delete from spaces")  # what is for the whole team is for the people of other tests too


async def add_flat(ada: httpx2.AsyncClient) -> None:
    made = await ada.post("/v1/spaces", json={"name": "flat", "instructions": "Quote.", "scope": "local", "effort": "s"})
    assert made.status_code == 201, made.text
    for name, data, query in (("lease.txt", LEASE, "&space=flat"), ("diary.txt", DIARY, "")):
        taken = await ada.post(f"/page/files?name={name}{query}", content=data)
        assert taken.status_code == 200, taken.text


async def result_of(client: httpx2.AsyncClient, question: str, space: str) -> str:
    run_id = await ask(client, question, space=space)
    return (await client.get(f"/v1/runs/{run_id}/result")).text


async def test_a_shared_space_is_asked_in_and_only_its_own_files_are_read(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    ada_id, grace_id = make_person("Ada"), make_person("Grace")
    async with served.client_of(ada_id) as ada, served.client_of(grace_id) as grace:
        await add_flat(ada)
        assert (await grace.get("/v1/spaces")).json() == {"spaces": []}
        assert (await grace.post("/v1/runs", json={"question": RENT, "space": "flat"})).status_code == 404
        shared = await ada.put("/v1/spaces/flat/shares", json={"people": ["Grace"]})
        assert shared.json() == {"team": False, "people": ["Grace"]}
        (space,) = (await grace.get("/v1/spaces")).json()["spaces"]
        assert (space["address"], space["owner"], space["instructions"]) == ("flat@Ada", "Ada", "Quote.")
        for address in ("flat", "flat@Ada", f"flat@{ada_id}"):
            assert "812 euros" in await result_of(grace, RENT, address)
        assert "812 euros" in await result_of(ada, RENT, "flat")
        sources = (await grace.get("/v1/spaces/flat@Ada/sources")).json()["sources"]
        assert [source["title"] for source in sources] == ["lease.txt"]
        run_id = (await grace.post("/v1/runs", json={"question": "Where is the xylophone kept?", "space": "flat"})).json()["id"]
        async with grace.stream("GET", f"/v1/runs/{run_id}/events") as events:
            assert "cellar" not in "".join([text async for text in events.aiter_text()])
        await ada.put("/v1/spaces/flat/shares", json={})
        assert (await grace.get("/v1/spaces/flat@Ada")).status_code == 404


async def test_whoever_may_ask_in_a_space_changes_nothing_in_it(served: ServedTeam, make_person: Callable[..., str]) -> None:
    async with served.client_of(make_person("Ada")) as ada, served.client_of(make_person("Eve")) as eve:
        await add_flat(ada)
        await ada.put("/v1/spaces/flat/shares", json={"team": True})
        refused = [
            await eve.patch("/v1/spaces/flat", json={"instructions": "Lie."}),
            await eve.delete("/v1/spaces/flat?files=delete"),
            await eve.post("/v1/spaces/flat/sources", json={"urls": ["https://moon.example/facts"]}),
            await eve.delete("/v1/spaces/flat/sources?url=x"),
            await eve.get("/v1/spaces/flat/shares"),
            await eve.put("/v1/spaces/flat/shares", json={"team": False}),
            await eve.post("/page/files?name=x.txt&space=flat", content=b"something of Eve's own, long enough"),
        ]
        assert [reply.status_code for reply in refused] == [403] * 7
        (space,) = (await ada.get("/v1/spaces")).json()["spaces"]
        assert (space["instructions"], (await ada.get("/v1/spaces/flat/shares")).json()["team"]) == ("Quote.", True)


async def test_a_run_in_a_shared_space_is_the_askers_own_and_counts_for_her(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    async with served.client_of(make_person("Ada")) as ada, served.client_of(make_person("Grace")) as grace:
        await add_flat(ada)
        await ada.put("/v1/spaces/flat/shares", json={"team": True})
        run_id = await ask(grace, RENT, space="flat")
        hers = (await grace.get("/v1/runs?space=flat@Ada")).json()["runs"]
        assert ([run["id"] for run in hers], (await ada.get(f"/v1/runs/{run_id}")).status_code) == ([run_id], 404)
        assert (await ada.get("/v1/runs")).json() == {"runs": []}


async def test_ones_own_space_comes_before_a_shared_one_of_the_same_name(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    async with served.client_of(make_person("Ada")) as ada, served.client_of(make_person("Grace")) as grace:
        await add_flat(ada)
        await ada.put("/v1/spaces/flat/shares", json={"team": True})
        await grace.post("/v1/spaces", json={"name": "flat", "instructions": "Mine."})
        assert (await grace.get("/v1/spaces/flat")).json()["instructions"] == "Mine."
        assert [space["address"] for space in (await grace.get("/v1/spaces")).json()["spaces"]] == ["flat", "flat@Ada"]


async def test_a_space_names_no_model_that_the_server_refuses(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    async with (
        serving_team(postgres.url, tmp_path, team_models=("small",)) as served,
        served.client_of(make_person("Ada")) as ada,
    ):
        await ada.post("/v1/spaces", json={"name": "big", "model": "huge"})
        reply = await ada.post("/v1/runs", json={"question": RENT, "space": "big"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "model_refused")
