"""A server on loopback over a small web in memory; searches can be held at a gate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from nexi.app import Nexi
from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.testing import FakeWeb
from nexi.types import Hit, Query
from nexi.web import create_app
from nexi.web.guard import GuardRules
from nexi.web.server import Server, ServerOptions, SlowClientTimeoutProtocol, bind_socket, uvicorn_config

MOON, MARS = "https://moon.example/facts", "https://mars.example/facts"
PAGES = {
    MOON: "# Moon facts\n\nThe Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    MARS: "# Mars facts\n\nMars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
}
QUESTION = "How far is the Moon from Earth on average?"
MANY = GuardRules(per_minute=1_000_000, burst=1_000_000)


class GatedWeb(FakeWeb):
    """A web whose searches wait until the gate is open."""

    def __init__(self, *, is_open: bool = True) -> None:
        super().__init__(PAGES)
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        if is_open:
            self.gate.set()

    async def search(self, query: Query) -> list[Hit]:
        self.asked.set()
        await self.gate.wait()
        return await super().search(query)


@dataclass
class Served:
    """A server that listens, and a client of it."""

    base: str
    client: httpx2.AsyncClient
    app: Starlette
    web: GatedWeb
    server: Server

    async def ask(self, question: str = QUESTION, **more: Any) -> str:
        reply = await self.client.post("/v1/runs", json={"question": question, **more})
        assert reply.status_code == 202, reply.text
        return str(reply.json()["id"])

    async def end_of(self, run_id: str) -> dict[str, Any]:
        """The status of a run that has ended, waited for by reading its events."""
        await self.events(run_id)
        return dict((await self.client.get(f"/v1/runs/{run_id}")).json())

    async def events(self, run_id: str, after: str = "") -> list[tuple[str, dict[str, Any]]]:
        """Every event after that id, to the end of the stream."""
        headers = {"last-event-id": after} if after else {}
        async with self.client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as stream:
            return [event async for event in read_events(stream)]


async def read_events(stream: httpx2.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    mark = ""
    async for line in stream.aiter_lines():
        if line.startswith("id: "):
            mark = line.removeprefix("id: ")
        elif line.startswith("data: "):
            yield mark, json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def serving(
    home: Path,
    *,
    web: GatedWeb | None = None,
    rules: GuardRules = MANY,
    most_runs: int = 8,
    drain_s: float = 0.0,
    config: Config | None = None,
    token: str = "",
    is_guest: bool = False,
    llms: dict[str, Any] | None = None,
    more: Sequence[BaseRoute] = (),
    protocol: type[SlowClientTimeoutProtocol] = SlowClientTimeoutProtocol,
) -> AsyncIterator[Served]:
    """A real server on a free port of loopback; leaving the block ends it as SIGTERM does, without its pauses.

    Its client is the owner's, unless it is a guest's.
    """
    web = web or GatedWeb()
    config = config or Config(home=home, model="extractive")
    nexi = Nexi(config, backends=(web,), fetchers=(web,), llms=llms)
    app = create_app(config, rules=rules, most_runs=most_runs, nexi=nexi, more=more)
    app.state.drain_s = drain_s
    options = ServerOptions(port=0, drain_s=drain_s)
    listener = bind_socket(options)
    settings = uvicorn_config(config, options)
    settings.app, settings.factory, settings.http = app, False, protocol
    server = Server(settings)
    settings.load()
    server.lifespan = settings.lifespan_class(settings)
    await server.startup([listener])
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    token = token or ("" if rules.token else OwnerToken(config.state_dir).ensure())
    headers = {"authorization": f"Bearer {token}"} if token and not is_guest else {}
    try:
        async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=120, verify=False) as client:
            yield Served(base, client, app, web, server)
    finally:
        for listening in server.servers:
            listening.close()
        await app.state.host.drain(drain_s)
        for connection in list(server.server_state.connections):
            connection.shutdown()
        await server.lifespan.shutdown()
        listener.close()
