"""Health, readiness, numbers, and an OpenAPI document that is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.routing import Route

from nexi.config import Config
from nexi.web import create_app, list_contracts, list_error_shapes, page
from nexi.web.guard import GuardRules
from nexi.web.operations import HELP
from nexi.web.payload import Problem, own_shape
from tests.web.world import GatedWeb, serving

SHAPES = list_error_shapes()

SPELLINGS = {("/searxng", "GET"), ("/searxng", "POST"), ("/searxng/", "POST")}  # of a documented path
UNDOCUMENTED = SPELLINGS | {(route.path, method) for route in page.ROUTES for method in route.methods or ()}


async def test_the_openapi_document_has_exactly_the_paths_that_are_served(tmp_path: Path) -> None:
    app = create_app(Config(home=tmp_path))
    served = {
        (route.path, method)
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    told = {(path, method.upper()) for path, methods in app.state.openapi["paths"].items() for method in methods}
    assert told - served == set()
    assert served - told <= UNDOCUMENTED


async def test_every_operation_of_the_document_says_how_it_answers_and_fails(tmp_path: Path) -> None:
    document = create_app(Config(home=tmp_path)).state.openapi
    assert document["openapi"] == "3.1.0"
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert (path, bool(operation["summary"]), bool(operation["tags"])) == (path, True, True)
            assert operation["responses"]
        for name in re.findall(r"{(\w+)}", path):
            for operation in methods.values():
                assert name in [p["name"] for p in operation["parameters"] if p["in"] == "path" and p["required"]]
    assert len(list_contracts()) == 10


async def test_it_is_healthy_and_ready_until_it_drains(tmp_path: Path) -> None:
    async with serving(tmp_path, web=GatedWeb(is_open=False)) as served:
        assert (await served.client.get("/healthz")).text == "ok\n"
        assert (await served.client.get("/readyz")).text == "ready\n"
        await served.ask()
        served.app.state.host.draining = True
        reply = await served.client.get("/readyz")
        assert (reply.status_code, reply.text, reply.headers["retry-after"]) == (503, "draining\n", "5")
        assert (await served.client.get("/healthz")).status_code == 200
        assert (await served.client.get("/v1/models")).status_code == 503


async def test_the_numbers_count_what_runs_did(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.end_of(await served.ask())
        text = (await served.client.get("/metrics")).text
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        counted = {name: float(value) for name, value in values.items()}
        assert counted['nexi_runs_started_total{mode="search"}'] == 1
        assert counted['nexi_runs_ended_total{mode="search",stop="final_answer"}'] == 1
        assert counted['nexi_requests_total{method="POST",route="/v1/runs",status="202"}'] == 1
        assert counted["nexi_urls_found_total"] >= 1
        assert counted["nexi_urls_crawled_total"] >= 1
        assert counted["nexi_model_calls_total"] >= 1
        assert counted["nexi_cost_dollars_total"] == 0
        assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == set(HELP)


async def test_labels_hold_neither_ids_nor_questions(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        run_id = await served.ask("a secret question about the Moon")
        await served.end_of(run_id)
        await served.client.get("/searxng/search?q=a+secret+query")
        await served.client.get("/nothing/secret")
        text = (await served.client.get("/metrics")).text
        assert "secret" not in text
        assert run_id not in text


async def test_the_document_asks_for_a_token_where_the_server_does(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        document = (await served.client.get("/openapi.json")).json()
        assert document["security"] == [{"token": []}]
        assert document["paths"]["/v1/chat/completions"]["post"]["security"] == [{}, {"token": []}]
        assert "security" not in document["paths"]["/v1/runs"]["get"]
    async with serving(tmp_path, rules=GuardRules(token="t0ken"), token="t0ken") as served:
        document = (await served.client.get("/openapi.json")).json()
        assert document["security"] == [{"token": []}]
        assert "security" not in document["paths"]["/v1/chat/completions"]["post"]
        assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/v1/chat/nothing", "/searxng/x", "/tavily/x", "/openwebui/x"])
async def test_a_path_that_is_not_there_is_told_in_the_shape_of_its_contract(tmp_path: Path, path: str) -> None:
    shape = next((s for prefix, s in SHAPES.items() if path.startswith(prefix)), own_shape)
    async with serving(tmp_path) as served:
        reply = await served.client.get(path)
        told = shape(Problem(404, "not_found", "there is nothing at this path", "see /openapi.json"))
        assert (reply.status_code, reply.json()) == (404, told)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/runs", "GET, HEAD, POST"),
        ("/v1/runs/abcdef", "DELETE, GET, HEAD"),
        ("/v1/chat/completions", "POST"),
        ("/searxng/search", "GET, HEAD, POST"),
        ("/tavily/search", "POST"),
        ("/openwebui/load", "POST"),
    ],
)
async def test_a_method_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, path: str, methods: str) -> None:
    shape = next((s for prefix, s in SHAPES.items() if path.startswith(prefix)), own_shape)
    async with serving(tmp_path) as served:
        reply = await served.client.patch(path)
        assert (reply.status_code, reply.headers["allow"], set(reply.json())) == (
            405,
            methods,
            set(shape(Problem(405, "x", "y"))),
        )


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/models", "/v1/runs", "/", "/searxng?q=x"]
)
async def test_a_head_is_a_get_without_its_body(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as served:
        whole, head = await served.client.get(path), await served.client.head(path)
        assert (head.status_code, head.content, head.headers["content-type"]) == (200, b"", whole.headers["content-type"])
