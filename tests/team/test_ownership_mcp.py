"""MCP on a team server: every tool and resource that takes the id of a run answers for one's own runs alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.team.test_ownership import WORD, ask_as_ada
from tests.team.world import QUESTION, ServedTeam, serving_team

pytest.importorskip("mcp")
RUN_ARGUMENTS = {"run_id", "id", "continues", "previous_run"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
FILLED = {"query": QUESTION, "question": QUESTION, "format": "md", "seconds": 0, "wait_s": 0}


class McpSession:
    """One person's session, as a client has it."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.id = ""

    async def send(self, method: str, **params: Any) -> httpx2.Response:
        headers = {"accept": "application/json, text/event-stream", **({"mcp-session-id": self.id} if self.id else {})}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._client.post("/mcp", json=message, headers=headers)

    async def open(self) -> McpSession:
        self.id = (await self.send("initialize", **HELLO)).headers["mcp-session-id"]
        return self

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        reply = await self.send(method, **params)
        assert reply.status_code == 200, reply.text
        lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
        answers = [message for message in map(json.loads, lines) if "result" in message or "error" in message]
        answer: dict[str, Any] = answers[-1]
        return answer


@pytest.fixture
async def served(postgres: Any, tmp_path: Path) -> AsyncIterator[ServedTeam]:
    async with serving_team(postgres.url, tmp_path) as team:
        yield team


def tools_of_a_run(tools: list[dict[str, Any]], run_id: str) -> dict[str, dict[str, Any]]:
    """The arguments for each tool that takes the id of a run."""
    found = {}
    for tool in tools:
        schema = tool["inputSchema"]
        if named := RUN_ARGUMENTS & set(schema.get("properties", {})):
            required = {name: FILLED.get(name, QUESTION) for name in schema.get("required", ())}
            found[tool["name"]] = {**required, **dict.fromkeys(named, run_id)}
    return found


async def test_no_tool_or_resource_of_mcp_knows_the_run_of_somebody_else(
    served: ServedTeam, make_person: Callable[..., str]
) -> None:
    run_id = await ask_as_ada(served, make_person)
    async with served.client_of(make_person("Eve")) as client:
        eve = await McpSession(client).open()
        tools = tools_of_a_run((await eve.ask("tools/list"))["result"]["tools"], run_id)
        refused = {}
        for name, arguments in tools.items():
            reply = await eve.ask("tools/call", name=name, arguments=arguments)
            refused[name] = (reply.get("result", {}).get("isError", "error" in reply), WORD in json.dumps(reply))
        templates = (await eve.ask("resources/templates/list"))["result"]["resourceTemplates"]
        unknown = {}
        for template in templates:
            reply = await eve.ask("resources/read", uri=template["uriTemplate"].replace("{run_id}", run_id))
            unknown[template["uriTemplate"]] = ("error" in reply, WORD in json.dumps(reply))
        listed = json.dumps([await eve.ask("resources/list"), await eve.ask("resources/read", uri="nexi://runs")])
    assert refused == dict.fromkeys(tools, (True, False))
    assert unknown == dict.fromkeys((t["uriTemplate"] for t in templates), (True, False))
    assert (len(tools) >= 3, len(templates) >= 3, run_id in listed, WORD in listed) == (True, True, False, False)


async def test_the_owner_reads_by_mcp_what_somebody_else_cannot(served: ServedTeam, make_person: Callable[..., str]) -> None:
    run_id = await ask_as_ada(served, make_person)
    (owner,) = served.team.database.fetch("select owner from runs where run = %(run)s", {"run": run_id})[0]
    async with served.client_of(str(owner)) as client, served.client_of(make_person("Eve")) as other:
        ada, eve = await McpSession(client).open(), McpSession(other)
        assert WORD in json.dumps(await ada.ask("resources/read", uri=f"nexi://runs/{run_id}"))
        eve.id = ada.id  # a session that was overheard
        stolen = await eve.send("resources/read", uri=f"nexi://runs/{run_id}")
    assert (stolen.status_code, WORD in stolen.text) == (404, False)
