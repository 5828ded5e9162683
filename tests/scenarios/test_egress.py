"""Scope `local` at every door: what was asked and what was read stays on this machine, whatever the config names elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from nexi.app import Nexi, RunRequest
from nexi.app.intake import DocumentIndexing
from nexi.app.owner_token import OwnerToken
from nexi.cli import _interactive_mode
from nexi.cli.flags import parse_flags
from nexi.config import Config, save_config
from nexi.errors import ConfigError
from nexi.events import RunFinished, RunStarted, Warned
from nexi.mcp import create_server
from nexi.web import create_app
from tests.conftest import REFUSED

NOTE = "# Garden\n\nThe shed key hangs behind the blue door of the garden house.\n"
QUESTION = "Where does the shed key hang?"
ANSWER = "behind the blue door"
REMOTE = {
    "base_url": "http://192.0.2.7:8000/v1",
    "api_key": "sk-remote-secret-key",
    "model": "big-remote-model",
    "searxng_url": "http://192.0.2.8:8080",
    "embedding_base_url": "http://192.0.2.9:8000/v1",
    "embedding_model": "remote-embedder",
    "verify_judge": True,
}


@pytest.fixture
def wire() -> list[str]:
    """The hosts beyond this machine that were looked up or connected to."""
    REFUSED.clear()
    return REFUSED


@pytest.fixture
async def config(tmp_path: Path) -> Config:
    """A home that knows one note, and a config whose model, search service and embedder are all on other machines."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "garden.md").write_text(NOTE, "utf-8")
    home = tmp_path / "nexi"
    async with Nexi(Config(home=home, model="extractive")) as nexi:
        await DocumentIndexing(nexi, nexi.knowledge(), embeds=False).take(str(notes))
    return Config(home=home, **REMOTE)


@asynccontextmanager
async def http(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(config)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app),
            base_url="http://127.0.0.1:8000",
            headers={"authorization": f"Bearer {OwnerToken(config.state_dir).ensure()}"},
            timeout=300,
        ) as client,
    ):
        yield client


async def end_of(client: httpx2.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    """The result of a run over HTTP once it has ended."""
    started = await client.post("/v1/runs", json=body)
    assert started.status_code == 202, started.text
    run_id = started.json()["id"]
    await client.get(f"/v1/runs/{run_id}/events")
    return dict((await client.get(f"/v1/runs/{run_id}/result", params={"format": "json"})).json())


async def test_without_that_scope_the_wire_does_see_the_remote_model(config: Config, wire: list[str]) -> None:
    async with http(config) as client:
        await end_of(client, {"question": QUESTION, "options": {"time_target": 1}})
    assert "192.0.2.7" in wire


@pytest.mark.parametrize("options", [{"only_local": True}, {"focus": "local"}], ids=["only_local", "focus of the page"])
@pytest.mark.parametrize("mode", ["search", "research"])
async def test_a_run_over_http(config: Config, wire: list[str], mode: str, options: dict[str, Any]) -> None:
    async with http(config) as client:
        ended = await end_of(client, {"question": QUESTION, "mode": mode, "options": options})
    assert (ANSWER in ended["answer"], wire) == (True, [])


async def test_an_agentic_search_over_http(config: Config, wire: list[str]) -> None:
    async with http(config) as client:
        ended = await end_of(client, {"question": QUESTION, "mode": "agentic", "options": {"only_local": True}})
    assert (ANSWER in ended["results"][0]["content"], wire) == (True, [])


async def test_a_text_that_is_checked_over_http(config: Config, wire: list[str]) -> None:
    body = {"text": "The shed key hangs behind the blue door of the garden house.", "only_local": True}
    async with http(config) as client:
        reply = await client.post("/v1/verify", json=body)
    assert (reply.json()["counts"]["found"], reply.json()["judge"], wire) == (1, "", [])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_completion(config: Config, wire: list[str], stream: bool) -> None:
    body = {"model": "nexi-local", "messages": [{"role": "user", "content": QUESTION}], "stream": stream}
    async with http(config) as client:
        reply = await client.post("/v1/chat/completions", json=body)
    assert (reply.status_code, ANSWER in reply.text, wire) == (200, True, [])


async def test_the_tools_of_mcp(config: Config, wire: list[str]) -> None:
    async with Nexi(config) as nexi, Client(create_server(nexi)) as client:
        found = await client.call_tool("nexi_search", {"query": QUESTION, "only_local": True})
        begun = await client.call_tool("nexi_research", {"question": QUESTION, "only_local": True})
        run_id = begun.structured_content["id"]
        report = await client.call_tool("nexi_research_result", {"run_id": run_id, "wait_s": 20})
    assert ANSWER in found.content[0].text
    assert (ANSWER in report.content[0].text, wire) == (True, [])


@pytest.mark.parametrize("line", [QUESTION, f"/deep {QUESTION}"], ids=["search", "research"])
def test_the_prompt_of_the_terminal(
    config: Config,
    wire: list[str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    save_config(config, config.config_path)
    monkeypatch.setenv("NEXI_HOME", str(config.root))
    monkeypatch.chdir(tmp_path)
    read, write = os.pipe()
    os.write(write, f"{line}\nAnd who has it?\n".encode())
    os.close(write)
    with os.fdopen(read) as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        _interactive_mode(parse_flags({"local": True}))
    assert (ANSWER in capfd.readouterr().out, wire) == (True, [])


@pytest.mark.parametrize("mode", ["search", "research"])
async def test_a_run_that_is_resumed_or_replayed(config: Config, wire: list[str], mode: str) -> None:
    async with Nexi(config) as nexi:
        open_run = nexi.research if mode == "research" else nexi.search
        async with open_run(RunRequest(QUESTION, scope="local")) as run:
            async for event in run:
                if isinstance(event, RunStarted):
                    run.suspend()
                    break
        async with nexi.resume(run.id) as resumed:
            async for _ in resumed:
                pass
        replay = await nexi.replay(run.id)
    assert (ANSWER in resumed.result().answer.text, replay.is_same, wire) == (True, True, [])


async def test_the_user_is_told_that_the_remote_model_was_not_asked(config: Config) -> None:
    async with Nexi(config) as nexi, nexi.search(RunRequest(QUESTION, scope="local")) as run:
        facts = [event async for event in run if isinstance(event, Warned | RunFinished | RunStarted)]
    assert facts[0].model == "extractive"
    assert [fact.code for fact in facts if isinstance(fact, Warned)] == ["model_not_asked"]


async def test_a_model_of_this_machine_is_asked(config: Config, wire: list[str]) -> None:
    here = config.override(base_url="http://127.0.0.1:9/v1", api_key="")
    async with Nexi(here) as nexi, nexi.search(RunRequest(QUESTION, scope="local")) as run:
        facts = [event async for event in run]
    assert (facts[0].model, wire) == ("big-remote-model", [])


async def test_a_knowledge_store_on_another_machine_is_refused(config: Config, wire: list[str]) -> None:
    async with Nexi(config.override(qdrant_url="http://192.0.2.10:6333")) as nexi:
        with pytest.raises(ConfigError) as refused:
            nexi.search(RunRequest(QUESTION, scope="local"))
    assert (refused.value.message, wire) == ("a local question cannot use this knowledge store", [])
