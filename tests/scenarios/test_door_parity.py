"""The same wish comes out as the same run at every door: one table of options, and one resolved run for each row.

Every door is driven for real up to `Nexi.run`, where the request is caught and resolved.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from msgspec.structs import replace

from nexi.app import Nexi, RunRequest
from nexi.app.owner_token import OwnerToken
from nexi.app.resolve import LocalModelProbe, ResolvedRun, resolve
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.mcp_server import create_server
from nexi.search import run_search
from nexi.testing import FakeClock
from nexi.web import create_app
from tests.stub import OLLAMA_ROUTES, serving

QUESTION = "How far is the Moon from Earth?"
SEARCH = ("cli", "repl", "http", "openai", "mcp", "python")
RESEARCH = ("cli", "cli --deep", "repl", "http", "openai", "mcp")

Row = tuple[str, Mapping[str, Any]]
# What a person wants, and how each door says it; a door that has no word for it is left out.
SEARCH_ROWS: Mapping[str, Mapping[str, Any]] = {
    "effort": {
        "cli": ["-e", "l"],
        "repl": ["-e", "l"],
        "http": {"effort": "l"},
        "openai": {"model": "nexi-l"},
        "mcp": {"effort": "l"},
        "python": {"effort": "l"},
    },
    "iterations": {
        "cli": ["--max-iter", "3"],
        "http": {"max_iterations": 3},
        "mcp": {"max_iter": 3},
        "python": {"max_iter": 3},
    },
    "time": {
        "cli": ["--time-target", "30"],
        "repl": ["--time-target", "30"],
        "http": {"time_target": 30},
        "mcp": {"time_target": 30},
        "python": {"time_target": 30.0},
    },
    "length": {"cli": ["--max-len", "2000"], "http": {"max_output_tokens": 2000}, "openai": {"max_tokens": 2000}},
    "cost": {"cli": ["--max-cost", "0.5"], "repl": ["--max-cost", "0.5"], "http": {"max_cost": 0.5}},
    "model": {"cli": ["-m", "llama3.2"], "repl": ["-m", "llama3.2"], "http": {"model": "llama3.2"}},
    "scope": {
        "cli": ["--local"],
        "repl": ["--local"],
        "http": {"only_local": True},
        "openai": {"model": "nexi-local"},
        "mcp": {"only_local": True},
    },
    "sites": {
        "cli": ["-w", "moon.example", "-w", "-mars.example", "-t", "y", "-n", "5", "--focus", "papers"],
        "http": {
            "sites": ["moon.example"],
            "excluded_sites": ["mars.example"],
            "time_range": "y",
            "count": 5,
            "focus": "papers",
        },
    },
    "instructions": {"cli": ["-s", "Answer briefly."], "http": {"system_prompt": "Answer briefly."}},
    "nothing": {"cli": [], "repl": [], "http": {}, "openai": {"model": "nexi-m"}, "mcp": {}, "python": {}},
}
RESEARCH_ROWS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {"cli": [], "cli --deep": [], "repl": [], "http": {}, "openai": {}, "mcp": {}},
    "length": {
        "cli": ["--length", "brief"],
        "cli --deep": ["--length", "brief"],
        "http": {"length": "brief"},
        "mcp": {"length": "brief"},
    },
    "depth": {"cli": ["--depth", "2"], "cli --deep": ["--depth", "2"], "http": {"depth": 2}, "mcp": {"depth": 2}},
    "limits": {
        "cli": ["--time-target", "60", "--max-cost", "1"],
        "cli --deep": ["--time-target", "60", "--max-cost", "1"],
        "http": {"time_target": 60, "max_cost": 1},
        "mcp": {"time_target": 60, "max_cost": 1},
    },
    "scope": {
        "cli": ["--local"],
        "cli --deep": ["--local"],
        "repl": ["--local"],
        "http": {"only_local": True},
        "mcp": {"only_local": True},
    },
}


class RequestCaughtError(NexiError):
    """The request has come through its door."""


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    """What doors ask of `Nexi.run`."""
    requests: list[RunRequest] = []

    def run(self: Nexi, request: RunRequest, **_: object) -> Any:
        requests.append(request)
        raise RequestCaughtError("caught")

    monkeypatch.setattr(Nexi, "run", run)
    return requests


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home whose model is served by an Ollama on this machine."""
    with serving(OLLAMA_ROUTES) as port:
        monkeypatch.setenv("NEXI_HOME", str(tmp_path / "nexi"))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        monkeypatch.setenv("NEXI_MODEL", "qwen2.5:7b")
        monkeypatch.chdir(tmp_path)
        yield


def ask_cli(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    from nexi.cli import main

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit):
        main([*arguments, QUESTION])


def ask_repl(monkeypatch: pytest.MonkeyPatch, line: str, *arguments: str) -> None:
    from nexi.cli import main

    class Lines:
        def __init__(self) -> None:
            self.lines = [line]

        async def read(self) -> str:
            if not self.lines:
                raise EOFError
            return self.lines.pop()

    monkeypatch.setattr("nexi.cli.prompt.open_prompt", lambda *_, **__: Lines())
    monkeypatch.setattr("nexi.output.is_tty", lambda _: True)
    with pytest.raises(SystemExit):
        main(list(arguments))


async def ask_http(path: str, body: Mapping[str, Any]) -> None:
    config = load_config()
    app, headers = create_app(config), {"authorization": f"Bearer {OwnerToken(config.state_dir).ensure()}"}
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", headers=headers) as client,
    ):
        await client.post(path, json=body)


async def ask_mcp(tool: str, arguments: Mapping[str, Any]) -> None:
    async with Nexi(load_config()) as nexi, Client(create_server(nexi)) as client:
        await client.call_tool(tool, dict(arguments))


async def ask_python(options: Mapping[str, Any]) -> None:
    with pytest.raises(RequestCaughtError):
        await run_search(QUESTION, load_config(), **options)


def ask(monkeypatch: pytest.MonkeyPatch, door: str, mode: str, said: Any) -> None:
    """Say it at that door."""
    chat = {"messages": [{"role": "user", "content": QUESTION}]}
    research = mode == "research"
    match door:
        case "cli":
            ask_cli(monkeypatch, *(["research"] if research else []), *said)
        case "cli --deep":
            ask_cli(monkeypatch, "--deep", *said)
        case "repl":
            ask_repl(monkeypatch, f"/deep {QUESTION}" if research else QUESTION, *said)
        case "http":
            asyncio.run(ask_http("/v1/runs", {"question": QUESTION, "mode": mode, "options": said}))
        case "openai":
            model = "nexi-deep" if research else "nexi-m"
            asyncio.run(ask_http("/v1/chat/completions", {"model": model, **chat, **said}))
        case "mcp" if research:
            asyncio.run(ask_mcp("nexi_research", {"question": QUESTION, **said}))
        case "mcp":
            asyncio.run(ask_mcp("nexi_search", {"query": QUESTION, **said}))
        case "python":
            asyncio.run(ask_python(said))


def resolved(request: RunRequest) -> ResolvedRun:
    """The run a request stands for, without the name of its door."""
    run = asyncio.run(resolve(request, load_config(), LocalModelProbe(FakeClock(), patience_s=60)))
    return replace(run, request=replace(run.request, door=""))


@pytest.mark.parametrize("row", SEARCH_ROWS)
def test_a_search_is_resolved_alike(row: str, caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    runs = check_row("search", SEARCH_ROWS[row], caught, monkeypatch)
    assert runs[0].config.endpoint("answer").max_context in (16384, 131072, 128000)


@pytest.mark.parametrize("row", RESEARCH_ROWS)
def test_research_is_resolved_alike(row: str, caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    runs = check_row("research", RESEARCH_ROWS[row], caught, monkeypatch)
    assert {run.max_parallel_researchers for run in runs} == {1}


@pytest.mark.parametrize(("mode", "rows"), [("search", SEARCH_ROWS), ("research", RESEARCH_ROWS)])
def test_a_local_question_has_no_model_elsewhere_at_any_door(
    mode: str, rows: Mapping[str, Mapping[str, Any]], caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.0.2.7:8000/v1")
    runs = check_row(mode, rows["scope"], caught, monkeypatch)
    endpoints = [run.config.endpoint(role) for run in runs for role in ("answer", "extract", "judge")]
    assert [endpoint.is_extractive for endpoint in endpoints] == [True] * 3 * len(rows["scope"])
    assert [run.request.is_local for run in runs] == [True] * len(rows["scope"])


def check_row(
    mode: str, row: Mapping[str, Any], caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch
) -> list[ResolvedRun]:
    """Ask at every door of a row; the same resolved run must come of it."""
    for door, said in row.items():
        with monkeypatch.context() as patched:
            ask(patched, door, mode, said)
    assert len(caught) == len(row), [request.door for request in caught]
    runs = [resolved(request) for request in caught]
    differing = {door: _differences(runs[0], run) for door, run in zip(row, runs, strict=True)}
    assert {door: difference for door, difference in differing.items() if difference} == {}
    return runs


def _differences(one: ResolvedRun, other: ResolvedRun) -> dict[str, Any]:
    parts: dict[str, Callable[[ResolvedRun], Any]] = {
        "request": lambda run: run.request,
        "budget": lambda run: run.budget,
        "window": lambda run: run.config.endpoint("answer"),
        "parallel": lambda run: run.max_parallel_researchers,
        "notices": lambda run: run.notices,
        "knowledge": lambda run: (run.config.knowledge, run.config.strict),
    }
    return {name: (get(one), get(other)) for name, get in parts.items() if get(one) != get(other)}


def test_a_follow_up_names_the_run_it_continues_at_every_door(
    caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_cli(monkeypatch, "-c")
    body = {"question": QUESTION, "continues": "abc123"}
    asyncio.run(ask_http("/v1/runs", body))
    assert [(request.door, request.continues) for request in caught] == [("cli", "last"), ("http", "abc123")]


def test_the_request_is_what_the_log_tells_first(tmp_path: Path) -> None:
    request = RunRequest(QUESTION, effort="s", model="extractive", door="cli")
    asyncio.run(_fail_without_search(request))
    (log,) = (tmp_path / "nexi" / "runs").glob("*/log.jsonl")
    first = json.loads(log.read_text().splitlines()[1])["fact"]
    assert (first["kind"], first["request"]["model"], first["request"]["door"]) == ("run_started", "extractive", "cli")


async def _fail_without_search(request: RunRequest) -> None:
    async with Nexi(load_config(), backends=(), fetchers=()) as nexi, nexi.run(request) as run:
        async for _ in run:
            pass
