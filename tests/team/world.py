"""A team server in memory over a real database: its app, a worker in the same process, and a client for each person."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from nexi.app import Nexi
from nexi.config import Config
from nexi.team.assembly import Team
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.web.app import create_team_app
from nexi.team.worker import TeamWorker
from nexi.testing import FakeWeb
from nexi.web.guard import GuardRules

MOON = "https://moon.example/facts"
PAGES = {MOON: "# Moon facts\n\nThe Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days."}
QUESTION = "How far is the Moon from Earth on average?"
MANY = GuardRules(per_minute=1_000_000, burst=1_000_000)


@dataclass
class ServedTeam:
    """A team server, and how to be somebody there."""

    app: Starlette
    team: Team
    people: People

    def client(self, token: str = "", **options: Any) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        transport = httpx2.ASGITransport(app=self.app)
        return httpx2.AsyncClient(transport=transport, base_url="https://127.0.0.1", headers=headers, timeout=300, **options)

    def client_of(self, person: str, scopes: tuple[str, ...] = ("read", "ask")) -> httpx2.AsyncClient:
        return self.client(self.people.add_token(person, "test", scopes))


@asynccontextmanager
async def serving_team(
    url: str, home: Path, *, rules: GuardRules = MANY, llms: Mapping[str, Any] | None = None, **settings: Any
) -> AsyncIterator[ServedTeam]:
    """A server and a worker of a team; both end with the block."""
    config = Config(**{"home": home, "model": "extractive", "database_url": url, **settings})
    web = FakeWeb(PAGES)

    def make_nexi(personal: Config, state: Any) -> Nexi:
        return Nexi(personal, state=state, backends=(web,), fetchers=(web,), llms=llms)

    team = Team(config, Database(url).open(), make_nexi=make_nexi)
    app = create_team_app(team, rules=rules)
    stopping = asyncio.Event()
    async with app.router.lifespan_context(app):
        working = asyncio.create_task(TeamWorker(team, drain_s=0.0).work(stopping))
        try:
            yield ServedTeam(app, team, People(team.database))
        finally:
            stopping.set()
            await working


async def ask(client: httpx2.AsyncClient, question: str = QUESTION, **more: Any) -> str:
    """Ask as somebody, wait for the end, and return the id of the run."""
    reply = await client.post("/v1/runs", json={"question": question, **more})
    assert reply.status_code == 202, reply.text
    run_id = str(reply.json()["id"])
    async with asyncio.timeout(120):
        while (status := (await client.get(f"/v1/runs/{run_id}")).json())["state"] == "running":
            await asyncio.sleep(0.05)
    assert status["state"] == "finished", status
    return run_id


@contextmanager
def running_provider(*options: str) -> Iterator[str]:
    """The address of an identity provider that lets anybody be anybody, in a process of its own."""
    if find_spec("oidc_provider_mock") is None:
        pytest.skip("oidc-provider-mock is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "oidc_provider_mock", "-H", "127.0.0.1", "-p", str(port), *options]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(1_200):
            with suppress(httpx2.TransportError):
                httpx2.get(f"{url}/.well-known/openid-configuration")
                break
            time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()
