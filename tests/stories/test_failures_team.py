"""A team server whose Postgres or whose identity provider is gone or wrong, met at the doors that it has.

`nexi serve` is a process of its own over a real Postgres. A person asks on the page, a program over HTTP and over MCP, and an
administrator runs the commands that open the database. As in `test_failures_asked`, what each of them reads is written down in
`tests/golden/asked`, and nothing of a library's dump is shown.

Two doors are missing because a cause cannot be met there: `nexi QUESTION` and the prompt ask with the settings of their own
home and open no team's database; and tokens, with which programs and MCP clients come, are kept in Postgres, so no provider
is asked about them. That these work while the provider is away is written down too.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx2
import pytest

from rig.served import Server
from tests.golden_files import compare_golden
from tests.stories.test_failures_asked import ASKS_MCP, DUMPS
from tests.stories.visit import SCREEN, Visitor, browser
from tests.stories.world import PATIENCE_S, QUESTION, World, free_port
from tests.team.world import running_provider

__all__ = ["browser"]

COMMANDS = ("admin users", "serve --port 0", "work")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}},
}
CHAT = {"model": "nexi", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture
def team(world: World, postgres: Any) -> World:
    """A world whose commands have the database of a team."""
    world.env["NEXI_DATABASE_URL"] = postgres.url
    return world


def serve_team(world: World, *options: str, **env: str) -> Server:
    server = world.serve(*options, **env)
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        try:
            if httpx2.get(f"{server.base}/readyz").status_code == 200:
                return server
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError("the team server is not ready")


def add_person(world: World) -> tuple[str, str]:
    """A token for programs, and the path of a link that signs in a browser."""
    world.run("admin", "users", "rm", "Ada", "--yes")
    token = world.run("admin", "users", "add", "Ada").out.split()[-1]
    return token, world.run("admin", "users", "link", "Ada").out.strip()


@contextmanager
def stop_postgres(postgres: Any) -> Iterator[None]:
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


@contextmanager
def visit_page(world: World, browser: Any, address: str) -> Iterator[Visitor]:
    profile = browser.new_context(**SCREEN)
    try:
        yield Visitor(profile.new_page(), address, world)
    finally:
        profile.close()


def post(server: Server, token: str, path: str, body: Mapping[str, Any]) -> str:
    headers = {**ASKS_MCP, "authorization": f"Bearer {token}"}
    reply = httpx2.post(f"{server.base}{path}", json=body, headers=headers, timeout=PATIENCE_S)
    wait = f", retry after {reply.headers['retry-after']} s" if "retry-after" in reply.headers else ""
    told = json.dumps({"error": reply.json()["error"]}, ensure_ascii=False) if reply.is_error else ""
    return f"{path}: {reply.status_code}{wait} {told}".strip()


def ask_over_http(server: Server, token: str) -> str:
    asked = (("/v1/runs", {"question": QUESTION}), ("/v1/chat/completions", CHAT))
    return "\n".join(post(server, token, path, body) for path, body in asked)


def ask_on_page(person: Visitor) -> str:
    person.page.fill("#question", QUESTION)
    person.page.press("#question", "Enter")
    return person.wait_for_problem()


def open_history(person: Visitor) -> str:
    person.page.click("#show-runs")
    person.page.wait_for_selector("#runs-message:not(:empty)")
    return person.text("#runs-message")


def run_commands(world: World) -> str:
    shown = {command: world.run(*command.split()) for command in COMMANDS}
    return "\n".join(f"nexi {command}: exit code {done.code}\n{done.err}" for command, done in shown.items())


def write_down(cause: str, shown: Mapping[str, str]) -> None:
    assert {door: text for door, text in shown.items() if DUMPS.search(text)} == {}
    lines = [f"# {cause}", *(f"[{door}] {text}" for door, text in shown.items())]
    compare_golden(f"asked/{re.sub('[^a-z]+', '-', cause.lower())}.txt", "\n".join(lines) + "\n")


def test_a_database_that_is_gone_is_named_once_at_every_door(team: World, postgres: Any, browser: Any) -> None:
    token, link = add_person(team)
    server = serve_team(team)
    with visit_page(team, browser, f"{server.base}{link}") as person:
        person.page.click("button")
        person.page.wait_for_selector("#question")
        with stop_postgres(postgres):
            shown = {"http": ask_over_http(server, token), "mcp": post(server, token, "/mcp", HELLO)}
            shown["page"] = ask_on_page(person)
            person.page.reload()
            shown["page, opened anew"] = ask_on_page(person)
            shown["history of the page"] = open_history(person)
            shown["terminal"] = run_commands(team)
    folder = postgres.url.partition("host=")[2]
    write_down("the database of the team is gone", {door: text.replace(folder, "POSTGRES") for door, text in shown.items()})


def sign_in_at_provider(person: Visitor) -> None:
    person.page.fill("input[name=sub]", "ada")
    person.page.press("input[name=sub]", "Enter")
    person.page.wait_for_url("**/login/callback**")


@contextmanager
def run_no_provider(_: str) -> Iterator[dict[str, str]]:
    yield {"NEXI_OIDC_ISSUER": f"http://127.0.0.1:{free_port()}", "NEXI_OIDC_CLIENT": "nexi"}


@contextmanager
def run_other_site(_: str) -> Iterator[dict[str, str]]:
    with running_provider() as provider:
        yield {"NEXI_OIDC_ISSUER": f"{provider}/elsewhere", "NEXI_OIDC_CLIENT": "nexi"}


@contextmanager
def run_with_wrong_secret(base: str) -> Iterator[dict[str, str]]:
    with running_provider("--require-registration", "true") as provider:
        about = {"redirect_uris": [f"{base}/login/callback"], "token_endpoint_auth_method": "client_secret_basic"}
        registered = httpx2.post(f"{provider}/oauth2/clients", json=about).json()
        client = str(registered["client_id"])
        yield {"NEXI_OIDC_ISSUER": provider, "NEXI_OIDC_CLIENT": client, "NEXI_OIDC_SECRET": "another"}


PROVIDERS: Mapping[str, Callable[[str], AbstractContextManager[dict[str, str]]]] = {
    "the identity provider is not running": run_no_provider,
    "another site stands at the address of the identity provider": run_other_site,
    "the secret for the identity provider is wrong": run_with_wrong_secret,
}


@pytest.mark.parametrize("cause", PROVIDERS)
def test_a_wrong_provider_keeps_no_token_out_and_is_named_where_one_signs_in(cause: str, team: World, browser: Any) -> None:
    token, _ = add_person(team)
    port = free_port()
    with PROVIDERS[cause](f"http://127.0.0.1:{port}") as settings:
        server = serve_team(team, "--port", str(port), **settings)
        with visit_page(team, browser, f"{server.base}/") as person:
            if "secret" in cause:
                sign_in_at_provider(person)
            shown = {"page": person.text("body")}
        started = httpx2.get(f"{server.base}/login")
        shown["http"] = team.normalise(f"/login: {started.status_code} {started.text}") if started.is_error else ""
        shown["http with a token"] = post(server, token, "/v1/runs", {"question": QUESTION})
        shown["mcp with a token"] = post(server, token, "/mcp", HELLO)
    write_down(cause, {door: text for door, text in shown.items() if text})
