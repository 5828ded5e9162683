"""Nobody reaches what belongs to somebody else, at any door. The table is made from the routes, so no new one is forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.team.web import page as team_page
from nexi.team.web import routes as team_routes
from nexi.web import list_contracts, page
from tests.team.world import MOON, QUESTION, ServedTeam, ask, serving_team

WORD = "xylophone"  # in everything that is Ada's
BODIES: dict[str, dict[str, Any]] = {
    "/v1/runs": {"question": QUESTION},
    "/v1/runs/{id}/plan": {"tasks": ["one"]},
    "/v1/runs/{id}/shares": {"team": True},
    "/v1/knowledge/shares": {"team": False},
    "/v1/schedules": {"question": QUESTION, "first": (datetime.now(UTC) + timedelta(days=30)).isoformat()},
    "/page/history/{id}": {"title": "mine"},
    "/v1/chat/completions": {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]},
    "/v1/completions": {"model": "nexi-s", "prompt": QUESTION},
    "/v1/responses": {"model": "nexi-s", "input": QUESTION},
    "/v1/embeddings": {"model": "nexi-s", "input": "moon"},
    "/v1/search": {"query": "moon"},
    "/v1/snippet_rank": {"query": "moon", "snippets": ["the moon"]},
    "/v1/verify": {"text": "The Moon is 384,400 km from Earth on average.", "against": [MOON]},
    "/v1/spaces": {"name": "mine"},
    "/v1/spaces/{name}": {"effort": "s"},
    "/v1/spaces/{name}/sources": {"urls": [MOON]},
    "/v1/spaces/{name}/shares": {"team": False},
    "/v1/table": {"columns": ["distance"], "documents": [MOON]},
    "/openwebui/search": {"query": "moon", "count": 1},
    "/openwebui/load": {"urls": [MOON]},
    "/tavily/search": {"query": "moon"},
    "/tavily/extract": {"urls": [MOON]},
    "/tavily/crawl": {"url": MOON, "limit": 1},
    "/tavily/map": {"url": MOON, "limit": 1},
    "/tavily/research": {"input": QUESTION},
    "/page/render": {"text": "moon"},
    "/page/knowledge/forget": {"urls": ["file:xylophone.txt"]},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}
QUERIES = {
    "/page/files": "?name=mine.txt",
    "/page/knowledge/find": "?q=xylophone",
    "/page/history": "?q=xylophone",
    "/suggest": "?q=xylo",
}
SKIPPED = {"/page/doctor"}  # for administrators; see test_people


def every_route() -> list[tuple[str, str]]:
    """Method and path of everything the app of a person answers."""
    team_contracts = (team_routes.CONTRACT, team_page.CONTRACT)
    routes = [*page.ROUTES, *(route for contract in (*list_contracts(), *team_contracts) for route in contract.routes)]
    rows = {(method, route.path) for route in routes for method in (route.methods or {"GET"}) - {"HEAD"}}
    return sorted(rows | {("POST", "/mcp")})


WITH_ID = [row for row in every_route() if "{id}" in row[1] and row[1] != "/runs/{id}"]
WITHOUT_ID = [row for row in every_route() if "{id}" not in row[1] and row[1] not in SKIPPED]


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path, share=True) as team:
        yield team


async def ask_as_ada(served: ServedTeam, make_person: Callable[..., str]) -> str:
    """Ada asks, and drops a file on the page; the id of her run."""
    async with served.client_of(make_person("Ada")) as ada:
        run_id = await ask(ada, f"{QUESTION} {WORD}")
        taken = await ada.post("/page/files?name=xylophone.txt", content=f"The {WORD} is in the cellar. ".encode() * 20)
        assert taken.status_code == 200, taken.text
        made = await ada.post("/v1/schedules", json={**BODIES["/v1/schedules"], "question": f"Where is the {WORD}?"})
        assert made.status_code == 201, made.text
        found = (await ada.get("/page/knowledge/find?q=xylophone")).text
        assert WORD in found
        _, offered = (await ada.get("/suggest?q=xylo")).json()
        assert sorted(offered) == [f"{QUESTION} {WORD}", "xylophone.txt"]
    return run_id


def fill_path(path: str, run_id: str) -> str:
    filled = path.replace("{id}", run_id).replace("{model}", "nexi").replace("{name}", "app.js").replace("{key}", "k" * 32)
    more = "?format=md" if path.endswith("/export") else "?source=1&start=0&end=5" if path.endswith("/passage") else ""
    return filled + (more or QUERIES.get(path, ""))


async def send(client: httpx2.AsyncClient, method: str, path: str, run_id: str) -> httpx2.Response:
    body = BODIES.get(path)
    headers = {"accept": "application/json, text/event-stream"} if path == "/mcp" else {}
    if path == "/page/files":
        return await client.request(method, fill_path(path, run_id), content=b"my own text, which is long enough to keep")
    return await client.request(method, fill_path(path, run_id), json=body, headers=headers)


async def test_the_run_of_somebody_else_is_unknown_at_every_door(served: ServedTeam, make_person: Callable[..., str]) -> None:
    run_id = await ask_as_ada(served, make_person)
    statuses, leaks = {}, []
    async with served.client_of(make_person("Eve")) as eve:
        for method, path in WITH_ID:
            reply = await send(eve, method, path, run_id)
            statuses[method, path] = reply.status_code
            leaks += [(method, path)] * (WORD in reply.text)
    assert statuses == dict.fromkeys(WITH_ID, 404)
    assert leaks == []
    assert len(WITH_ID) >= 14


async def test_a_table_reads_no_file_of_somebody_else(served: ServedTeam, make_person: Callable[..., str]) -> None:
    await ask_as_ada(served, make_person)
    body = {"columns": ["instrument"], "documents": ["file:xylophone.txt"]}
    async with served.client_of(make_person("Eve")) as eve:
        (row,) = (await eve.post("/v1/table", json=body)).json()["rows"]
    assert (row["problem"], row["cells"][0]["quote"]) == ("it is not in the knowledge base", "")


async def test_nothing_of_somebody_else_is_shown_at_any_door(served: ServedTeam, make_person: Callable[..., str]) -> None:
    await ask_as_ada(served, make_person)
    leaks, faults = [], []
    async with served.client_of(make_person("Eve")) as eve:
        for method, path in WITHOUT_ID:
            reply = await send(eve, method, path, "")
            leaks += [(method, path)] * (WORD in reply.text.replace("?q=xylophone", ""))
            faults += [(method, path, reply.text)] * (reply.status_code == 500)
    assert (leaks, faults) == ([], [])


async def test_every_door_but_the_public_ones_wants_to_know_who_asks(served: ServedTeam) -> None:
    public = {
        "/healthz",
        "/readyz",
        "/",
        "/runs/{id}",
        "/spaces/{name}",
        "/static/{name}",
        "/static/sentences",
        "/static/opensearch.xml",
        "/shared/{key}",
        "/profile",
        "/static/team/texts",
        "/static/team/{name}",
        *page.PANELS,
    }
    async with served.client() as nobody:
        statuses = {(m, p): (await send(nobody, m, p, "0" * 32)).status_code for m, p in every_route()}
    assert {row for row, status in statuses.items() if status != 401} == {row for row in every_route() if row[1] in public}


async def test_a_follow_up_to_somebody_elses_run_is_refused(served: ServedTeam, make_person: Callable[..., str]) -> None:
    run_id = await ask_as_ada(served, make_person)
    async with served.client_of(make_person("Eve")) as eve:
        runs = await eve.post("/v1/runs", json={"question": "And Mars?", "continues": run_id})
        responses = await eve.post(
            "/v1/responses", json={"model": "nexi-s", "input": "x", "previous_response_id": f"resp_{run_id}"}
        )
    assert (runs.status_code, responses.status_code) == (404, 404)
    assert WORD not in runs.text + responses.text
