"""The knowledge of a team: a person's own and the whole team's, in the database, through the doors and in workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nexi import cli
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.types import TEAM
from tests.conftest import REFUSED
from tests.team.world import ServedTeam, serving_team

TREASURE = "The xylophone is kept in the cellar of the house in Bergen, behind the third shelf. "


async def ask_local(served: ServedTeam, person: str, question: str) -> str:
    """Ask in a worker, from the knowledge base alone, and return the result."""
    async with served.client_of(person) as client:
        reply = await client.post("/v1/runs", json={"question": question, "options": {"only_local": True}})
        assert reply.status_code == 202, reply.text
        run_id = reply.json()["id"]
        while (await client.get(f"/v1/runs/{run_id}")).json()["state"] == "running":
            await asyncio.sleep(0.05)
        return (await client.get(f"/v1/runs/{run_id}/result")).text


async def store_text(served: ServedTeam, owner: str, tmp_path: Path, name: str, text: str) -> None:
    from nexi.app.intake import DocumentIndexing

    file = tmp_path / name
    file.write_text(text * 5)
    async with served.team.use_nexi(owner) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), on_step=lambda s: None, on_status=lambda t: None).take(str(file))


async def test_a_local_question_in_a_worker_reads_ones_own_and_the_teams_pages(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    async with serving_team(postgres.url, tmp_path / "home") as served:
        await store_text(served, ada, tmp_path, "xylophone.txt", TREASURE)
        await store_text(served, TEAM, tmp_path, "canteen.txt", "The canteen of the office opens at half past eleven. ")
        try:
            hers = await ask_local(served, ada, "Where is the xylophone kept?")
            shared = await ask_local(served, eve, "When does the canteen of the office open?")
            none = await ask_local(served, eve, "Where is the xylophone kept?")
        finally:
            store = served.team.state_of(TEAM).knowledge
            await store.remove([source.url for source in await store.sources()])
        assert "cellar" in hers
        assert "half past eleven" in shared
        assert "cellar" not in none
        assert not (tmp_path / "home" / "people" / ada / "knowledge.db").exists()


async def test_a_local_question_reaches_no_model_and_no_search_service_elsewhere(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    elsewhere = {
        "base_url": "http://192.0.2.7:8000/v1",
        "api_key": "sk-remote",
        "model": "remote",
        "searxng_url": "http://192.0.2.8",
    }
    ada = make_person("Ada")
    async with serving_team(postgres.url, tmp_path / "home", **elsewhere) as served:
        await store_text(served, ada, tmp_path, "xylophone.txt", TREASURE)
        REFUSED.clear()
        assert "cellar" in await ask_local(served, ada, "Where is the xylophone kept?")
    assert REFUSED == []


async def test_what_is_the_teams_is_listed_for_everybody_and_removed_by_nobody_else(
    postgres: Any, tmp_path: Path, make_person: Callable[..., str]
) -> None:
    async with serving_team(postgres.url, tmp_path / "home") as served:
        await store_text(served, TEAM, tmp_path, "canteen.txt", "The canteen of the office opens at half past eleven. ")
        store = served.team.state_of(TEAM).knowledge
        (source,) = await store.sources()
        try:
            async with served.client_of(make_person("Eve")) as eve:
                listed = (await eve.get("/page/knowledge")).json()["sources"]
                refused = await eve.post("/page/knowledge/forget", json={"urls": [source.url]})
            assert ([s["url"] for s in listed], refused.status_code) == ([source.url], 404)
        finally:
            assert await store.remove([source.url]) == 1


def test_an_administrator_keeps_the_shared_pages_by_command(
    postgres: Any, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_person: Callable[..., str]
) -> None:
    monkeypatch.setenv("NEXI_DATABASE_URL", postgres.url)
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    (tmp_path / "canteen.txt").write_text("The canteen of the office opens at half past eleven. " * 5)
    run = lambda *words: CliRunner().invoke(cli.main, ["admin", "knowledge", *words])  # noqa: E731
    added = run("add", str(tmp_path / "canteen.txt"))
    assert (added.exit_code, added.stdout) == (0, "1  stored\n")
    embedded = run("embed", "--again")
    assert (embedded.exit_code, embedded.stdout.endswith("passages embedded\n")) == (0, True)
    address = run().stdout.split()[0]
    assert address.endswith("canteen.txt")
    assert (run("rm", address).stdout, run("rm", address).exit_code != 0) == ("1  removed\n", True)
    assert [row[2] for row in People(database).read_audit(2)] == ["remove_knowledge", "add_knowledge"]


async def test_an_export_has_the_pages_of_a_person_and_deleting_her_deletes_them(
    database: Database, make_person: Callable[..., str]
) -> None:
    from nexi.stores.pgvector.store import PgvectorStore
    from nexi.types import Chunk, IndexedPage, StoredSource

    ada, people = make_person("Ada"), People(database)
    await PgvectorStore(database, ada).put([IndexedPage(StoredSource("https://a.example/", "A"), (Chunk("one"), Chunk("two")))])
    assert people.export(ada)["sources"] == [
        {"url": "https://a.example/", "title": "A", "fetched_at": "", "passages": ["one", "two"]}
    ]
    people.remove(ada)
    left = database.fetch("select count(*) from collections where owner = %(owner)s", {"owner": ada})
    assert left == [(0,)]
    assert database.fetch("select count(*) from chunks where content like %(text)s", {"text": b'%["one"%'}) == [(0,)]


async def test_people_of_one_process_share_what_makes_vectors_on_this_machine(
    postgres: Any, make_person: Callable[..., str], tmp_path: Path
) -> None:
    ada, bob = make_person("Ada"), make_person("Bob")
    async with serving_team(postgres.url, tmp_path) as served:
        embedders = [served.team.build_nexi(person).ports.embedder() for person in (ada, bob)]
    assert embedders[0] is not None
    assert embedders[0] is embedders[1]
