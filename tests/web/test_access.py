"""Who may do what at a server that nobody configured: the owner all, a guest on the same machine questions to the web."""

from __future__ import annotations

from pathlib import Path

import httpx2

from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.web import create_app
from tests.web.world import MOON, QUESTION, Served, serving

PUBLIC = {
    "GET /healthz",
    "GET /readyz",
    "GET /static/opensearch.xml",
    "GET /static/sentences",
    "GET /static/{name}",
    "GET /shared/{key}",
}
PAGES = {
    "GET /",
    "GET /runs/{id}",
    "GET /spaces/{name}",
    "GET /history",
    "GET /knowledge",
    "GET /check",
    "GET /table",
    "GET /setup",
}
GUEST = {
    "POST /v1/runs",
    "GET /v1/runs/{id}",
    "DELETE /v1/runs/{id}",
    "GET /v1/runs/{id}/events",
    "GET /v1/runs/{id}/result",
    "POST /v1/runs/{id}/resume",
    "POST /v1/runs/{id}/plan",
    "POST /v1/runs/{id}/stop",
    "POST /v1/runs/{id}/cancel",
    "POST /v1/chat/completions",
    "GET /v1/models",
    "GET /v1/models/{model}",
    "POST /v1/responses",
    "GET /v1/responses/{id}",
    "DELETE /v1/responses/{id}",
    "POST /v1/responses/{id}/cancel",
    "GET /v1/responses/{id}/input_items",
    "POST /v1/completions",
    "POST /v1/embeddings",
    "POST /v1/search",
    "POST /v1/snippet_rank",
    "GET /searxng/search",
    "POST /searxng/search",
    "GET /searxng/",
    "POST /searxng/",
    "GET /searxng",
    "POST /searxng",
    "GET /searxng/config",
    "GET /searxng/healthz",
    "POST /tavily/search",
    "POST /tavily/extract",
    "POST /tavily/crawl",
    "POST /tavily/map",
    "POST /tavily/research",
    "GET /tavily/research/{id}",
    "POST /openwebui/search",
    "POST /openwebui/load",
    "GET /openapi.json",
}
OWNER = {
    "GET /v1/runs",
    "POST /v1/cache/clear",
    "POST /v1/verify",
    "POST /v1/table",
    "GET /v1/spaces",
    "POST /v1/spaces",
    "GET /v1/spaces/{name}",
    "PATCH /v1/spaces/{name}",
    "DELETE /v1/spaces/{name}",
    "GET /v1/spaces/{name}/sources",
    "POST /v1/spaces/{name}/sources",
    "DELETE /v1/spaces/{name}/sources",
    "GET /v1/spaces/{name}/shares",
    "PUT /v1/spaces/{name}/shares",
    "GET /metrics",
    "POST /page/render",
    "GET /page/runs/{id}",
    "GET /page/runs/{id}/passage",
    "GET /page/runs/{id}/picture",
    "GET /page/runs/{id}/export",
    "GET /page/form",
    "GET /page/models",
    "POST /page/files",
    "POST /page/open-question",
    "GET /page/runs/{id}/suggestions",
    "GET /page/history",
    "GET /suggest",
    "DELETE /page/history/{id}",
    "POST /page/history/{id}",
    "GET /page/runs/{id}/thread",
    "GET /page/knowledge",
    "GET /page/check",
    "GET /page/table",
    "POST /page/check",
    "GET /page/knowledge/find",
    "POST /page/knowledge/forget",
    "GET /page/setup",
    "POST /page/doctor",
    "GET /page/settings",
    "POST /page/settings",
    "POST /page/settings/models",
    "POST /page/settings/test",
    "POST /page/runs/{id}/share",
    "DELETE /page/runs/{id}/share",
    "GET /page/runs/{id}/timeline",
    "GET /mcp",
    "POST /mcp",
    "DELETE /mcp",
}
NOTE = b"# Tides\n\nThe tide gauge of Port Alder stands 4.2 metres above the quay."
NOTE_QUESTION = "How high does the tide gauge of Port Alder stand above the quay?"


def routes_of(config: Config) -> set[str]:
    """Every method and path; the MCP endpoint has the methods of its protocol."""
    asked = set()
    for route in create_app(config).routes:
        for method in getattr(route, "methods", None) or ("GET", "POST", "DELETE"):
            asked.add(f"{method} {getattr(route, 'path', '')}")
    return {one for one in asked if not one.startswith("HEAD ")}


def address_of(route: str) -> tuple[str, str]:
    method, _, path = route.partition(" ")
    return method, path.replace("{id}", "aaaaaa").replace("{model}", "nexi-s").replace("{name}", "app.js").replace("{key}", "k")


async def status_of(client: httpx2.AsyncClient, route: str) -> tuple[str, int]:
    reply = await client.request(*address_of(route), json={} if route.startswith("POST") else None)
    return route, reply.status_code


def test_every_route_has_a_class(tmp_path: Path) -> None:
    assert routes_of(Config(home=tmp_path, model="extractive")) == PUBLIC | PAGES | GUEST | OWNER


async def test_what_the_owner_keeps_needs_the_token_at_every_route(tmp_path: Path) -> None:
    async with serving(tmp_path, is_guest=True) as served:
        for key in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}, {"cookie": "nexi-owner=wrong"}):
            served.client.headers.update(key)
            assert {await status_of(served.client, route) for route in OWNER} == {(route, 401) for route in OWNER}


async def test_a_guest_is_let_in_where_questions_are_asked_and_never_for_lack_of_a_token(tmp_path: Path) -> None:
    async with serving(tmp_path, is_guest=True) as served:
        statuses = [await status_of(served.client, route) for route in sorted(GUEST | PUBLIC)]
    assert [(route, status) for route, status in statuses if status in (401, 403) or status >= 500] == []


async def test_with_serve_token_always_questions_need_the_token_too(tmp_path: Path) -> None:
    config = Config(home=tmp_path, model="extractive", serve_token="always")
    async with serving(tmp_path, config=config, is_guest=True) as served:
        refused = GUEST | OWNER
        assert {await status_of(served.client, route) for route in refused} == {(route, 401) for route in refused}
        assert (await served.client.get("/healthz")).status_code == 200
    async with serving(tmp_path, config=config) as served:
        assert (await served.client.get("/v1/models")).status_code == 200


async def test_a_page_without_the_token_says_what_happened_and_what_to_do(tmp_path: Path) -> None:
    async with serving(tmp_path, is_guest=True) as served:
        for route in sorted(PAGES):
            reply = await served.client.request(*address_of(route))
            assert (route, reply.status_code, reply.headers["content-type"]) == (route, 401, "text/html; charset=utf-8")
            assert "<code>nexi serve</code>" in reply.text
            assert "<code>nexi token</code>" in reply.text
            assert "app.js" not in reply.text


# the link and the cookie


async def test_the_token_in_the_link_becomes_a_cookie_and_leaves_the_address(tmp_path: Path) -> None:
    token = OwnerToken(tmp_path / "state").ensure()
    async with serving(tmp_path, is_guest=True) as served:
        reply = await served.client.get("/runs/aaaaaa", params={"source": "2", "token": token})
        assert (reply.status_code, reply.headers["location"]) == (303, "/runs/aaaaaa?source=2")
        assert (reply.headers["cache-control"], reply.headers["referrer-policy"]) == ("no-store", "no-referrer")
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert token.lower() not in cookie
        assert (await served.client.get("/")).status_code == 200
        assert (await served.client.get("/page/settings")).status_code == 200


async def test_cookies_of_other_servers_of_this_machine_do_not_hide_the_owners(tmp_path: Path) -> None:
    owner = OwnerToken(tmp_path / "state")
    owner.ensure()
    async with serving(tmp_path, is_guest=True) as served:
        port = served.base.rpartition(":")[2]
        sent = f'a[b]={{"x": 1}}; nexi-owner-1=other; nexi-owner-{port}={owner.cookie}'
        assert (await served.client.get("/page/form", headers={"cookie": sent})).status_code == 200


async def test_a_wrong_token_in_the_link_opens_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, is_guest=True) as served:
        for token in ("wrong", "", "\u00e9"):
            reply = await served.client.get("/", params={"token": token})
            assert (reply.status_code, "set-cookie" in reply.headers) == (401, False)


async def test_a_new_token_signs_browsers_and_programs_out(tmp_path: Path) -> None:
    owner = OwnerToken(tmp_path / "state")
    async with serving(tmp_path, is_guest=True) as served:
        first = {"authorization": f"Bearer {owner.ensure()}"}
        await served.client.get("/", params={"token": owner.read()})
        assert (await served.client.get("/page/form")).status_code == 200
        second = {"authorization": f"Bearer {OwnerToken(tmp_path / 'state').renew()}"}
        statuses = [(await served.client.get("/page/form", headers=headers)).status_code for headers in ({}, first, second)]
    assert statuses == [401, 401, 200]


# guests ask the web


async def completion(served: Served, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    reply = await served.client.post("/v1/chat/completions", json={"model": "nexi-s", "messages": messages})
    return reply.text


async def test_a_guest_is_answered_from_the_web_and_never_from_the_knowledge_base(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.post("/page/files?name=tides.md", content=NOTE)).json()["outcome"] == "stored"
        assert "4.2 metres" in await completion(served, NOTE_QUESTION)
        del served.client.headers["authorization"]
        assert "4.2 metres" not in await completion(served, NOTE_QUESTION)
        assert "384,400 km" in await completion(served, QUESTION)
        local = {"question": NOTE_QUESTION, "options": {"only_local": True}}
        started = await served.client.post("/v1/runs", json=local)
        events = await served.client.get(f"/v1/runs/{started.json()['id']}/events")
        assert "4.2 metres" not in events.text


async def test_what_a_guest_asks_is_kept_apart_and_found_by_its_id_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        own = await served.ask()
        await served.end_of(own)
        owner = served.client.headers.pop("authorization")
        guests = await served.ask()
        assert len(guests) == 32
        assert (await served.end_of(guests))["state"] == "finished"
        assert MOON in (await served.client.get(f"/v1/runs/{guests}/result")).text
        for path in (f"/v1/runs/{own}", f"/v1/runs/{own}/events", f"/v1/runs/{own}/result", f"/tavily/research/{own}"):
            assert (path, (await served.client.get(path)).status_code) == (path, 404)
        follow_up = await served.client.post("/v1/runs", json={"question": "and Mars?", "continues": own})
        assert follow_up.status_code == 404
        served.client.headers["authorization"] = owner
        assert [run["id"] for run in (await served.client.get("/v1/runs")).json()["runs"]] == [own]
        assert (await served.client.get(f"/v1/runs/{guests}")).status_code == 404
        assert (await served.client.get("/page/history")).text.count(QUESTION) == 1
    assert not (tmp_path / "people" / "guest" / "history.jsonl").exists()
    assert not (tmp_path / "people" / "guest" / "knowledge.db").exists()
