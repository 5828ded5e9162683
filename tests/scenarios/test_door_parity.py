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

from nexi.app import Nexi, RunLimits, RunRequest
from nexi.app.owner_token import OwnerToken
from nexi.app.questions import OpenQuestion
from nexi.app.resolve import LocalModelProbe, ResolvedRun, resolve
from nexi.config import load_config
from nexi.errors import NexiError
from nexi.mcp import create_server
from nexi.search import run_search
from nexi.testing import FakeClock
from nexi.types import Query
from nexi.web import create_app
from tests.stub import OLLAMA_ROUTES, serving

QUESTION = "How far is the Moon from Earth?"
SYSTEM = {"role": "system", "content": "Answer briefly."}
SITES = {"sites": ["moon.example"], "excluded_sites": ["mars.example"]}
PAGE = "https://moon.example/facts"
DOORS = ("cli", "repl", "http", "openai", "mcp", "python")

# How each door says a wish, by the field of RunRequest. REASONS says why a door has no word for one.
SEARCH_ROWS: Mapping[str, Mapping[str, Any]] = {
    "question": {"cli": [], "repl": [], "http": {}, "openai": {"model": "nexi-m"}, "mcp": {}, "python": {}},
    "effort": {
        "cli": ["-e", "l"],
        "repl": ["-e", "l"],
        "http": {"effort": "l"},
        "openai": {"model": "nexi-l"},
        "mcp": {"effort": "l"},
        "python": {"effort": "l"},
    },
    "limits.max_iterations": {
        "cli": ["--max-iter", "3"],
        "repl": ["--max-iter", "3"],
        "http": {"max_iterations": 3},
        "mcp": {"max_iter": 3},
        "python": {"max_iter": 3},
    },
    "limits.time_target": {
        "cli": ["--time-target", "30"],
        "repl": ["--time-target", "30"],
        "http": {"time_target": 30},
        "mcp": {"time_target": 30},
        "python": {"time_target": 30.0},
    },
    "limits.max_output_tokens": {
        "cli": ["--max-len", "2000"],
        "repl": ["--max-len", "2000"],
        "http": {"max_output_tokens": 2000},
        "openai": {"max_tokens": 2000},
        "mcp": {"max_output_tokens": 2000},
    },
    "limits.max_cost": {
        "cli": ["--max-cost", "0.5"],
        "repl": ["--max-cost", "0.5"],
        "http": {"max_cost": 0.5},
        "mcp": {"max_cost": 0.5},
    },
    "limits.max_tokens": {
        "cli": ["--max-tokens", "9000"],
        "repl": ["--max-tokens", "9000"],
        "http": {"max_tokens": 9000},
        "mcp": {"max_tokens": 9000},
    },
    "query.count": {"cli": ["-n", "5"], "repl": ["-n", "5"], "http": {"count": 5}, "mcp": {"count": 5}},
    "query.sites": {
        "cli": ["-w", "moon.example"],
        "repl": ["-w", "moon.example"],
        "http": {"sites": ["moon.example"]},
        "mcp": {"sites": ["moon.example"]},
    },
    "query.excluded_sites": {
        "cli": ["-w", "-mars.example"],
        "repl": ["-w", "-mars.example"],
        "http": {"excluded_sites": ["mars.example"]},
        "mcp": {"excluded_sites": ["mars.example"]},
    },
    "query.time_range": {"cli": ["-t", "y"], "repl": ["-t", "y"], "http": {"time_range": "y"}, "mcp": {"time_range": "y"}},
    "query.language": {
        "cli": ["--lang", "de"],
        "repl": ["--lang", "de"],
        "http": {"language": "de"},
        "mcp": {"language": "de"},
    },
    "query.focus": {
        "cli": ["--focus", "papers"],
        "repl": ["--focus", "papers"],
        "http": {"focus": "papers"},
        "mcp": {"focus": "papers"},
    },
    "model": {
        "cli": ["-m", "llama3.2"],
        "repl": ["-m", "llama3.2"],
        "http": {"model": "llama3.2"},
        "mcp": {"model": "llama3.2"},
    },
    "scope": {
        "cli": ["--local"],
        "repl": ["--local"],
        "http": {"scope": "local"},
        "openai": {"model": "nexi-local"},
        "mcp": {"scope": "local"},
    },
    "scope, only local": {"cli": ["--local"], "http": {"only_local": True}, "mcp": {"only_local": True}},
    "scope, only the web": {"cli": ["--web"], "repl": ["--web"], "http": {"scope": "web"}, "mcp": {"scope": "web"}},
    "system_prompt": {
        "cli": ["-s", "Answer briefly."],
        "repl": ["-s", "Answer briefly."],
        "http": {"system_prompt": "Answer briefly."},
        "openai": {"model": "nexi-m", "messages": [SYSTEM, {"role": "user", "content": QUESTION}]},
        "mcp": {"system_prompt": "Answer briefly."},
    },
    "attachments": {
        "cli": ["-f", PAGE],
        "http": {"attachments": [PAGE]},
        "mcp": {"attachments": [PAGE]},
    },
    "strict": {"cli": ["--strict"], "repl": ["--strict"], "http": {"strict": True}, "mcp": {"strict": True}},
    "space": {"cli": ["--space", "moons"], "http": {"space": "moons"}, "mcp": {"space": "moons"}},
    "continues": {"http": {"continues": "abc123"}, "mcp": {"continues": "abc123"}},
}
RESEARCH_ROWS: Mapping[str, Mapping[str, Any]] = {
    "mode": {"cli": [], "cli --deep": [], "repl": [], "http": {}, "openai": {}, "mcp": {}},
    "length": {
        "cli": ["--length", "brief"],
        "cli --deep": ["--length", "brief"],
        "http": {"length": "brief"},
        "mcp": {"length": "brief"},
    },
    "depth": {"cli": ["--depth", "2"], "cli --deep": ["--depth", "2"], "http": {"depth": 2}, "mcp": {"depth": 2}},
    "limits": {
        "cli": ["--time-target", "60", "--max-cost", "1", "--max-tokens", "90000", "--max-len", "2000"],
        "cli --deep": ["--time-target", "60", "--max-cost", "1", "--max-tokens", "90000", "--max-len", "2000"],
        "http": {"time_target": 60, "max_cost": 1, "max_tokens": 90000, "max_output_tokens": 2000},
        "mcp": {"time_target": 60, "max_cost": 1, "max_tokens": 90000, "max_output_tokens": 2000},
    },
    "query": {
        "cli": ["-w", "moon.example", "-w", "-mars.example", "-t", "y", "-n", "5", "--lang", "de", "--focus", "papers"],
        "http": {**SITES, "time_range": "y", "count": 5, "language": "de", "focus": "papers"},
        "mcp": {**SITES, "time_range": "y", "count": 5, "language": "de", "focus": "papers"},
    },
    "model, attachments and strict": {
        "cli": ["-m", "llama3.2", "-f", PAGE, "--strict"],
        "cli --deep": ["-m", "llama3.2", "-f", PAGE, "--strict"],
        "http": {"model": "llama3.2", "attachments": [PAGE], "strict": True},
        "mcp": {"model": "llama3.2", "attachments": [PAGE], "strict": True},
    },
    "scope": {
        "cli": ["--local"],
        "cli --deep": ["--local"],
        "repl": ["--local"],
        "http": {"only_local": True},
        "mcp": {"only_local": True},
    },
    "scope, only the web": {
        "cli": ["--web"],
        "cli --deep": ["--web"],
        "repl": ["--web"],
        "http": {"scope": "web"},
        "mcp": {"scope": "web"},
    },
}
AGENTIC_ROWS: Mapping[str, Mapping[str, Any]] = {
    "agentic": {
        "cli": ["--threshold", "0.7", "--max-iter", "2"],
        "http": {"completeness_threshold": 0.7, "max_iterations": 2},
        "mcp": {"completeness_threshold": 0.7, "max_iterations": 2},
    },
}
NOT_A_WISH = {
    "limits.is_quota": "a team server sets it from what is left of a quota",
    "query.text": "the model words its searches",
    "instructions": "they are those of the space",
    "services": "they are those of the space",
    "door": "it names the door",
    "client_body": "what was sent is kept for the Responses API",
    "keeps_history": "a door knows whether its answers belong to the history",
    "keeps_log": "a door knows whether its runs are asked for again",
}
OF_OPENAI = "the requests of OpenAI's clients have no field for it"
OF_PYTHON = "the signature is that of nexi-search; the Config that is passed says it"
REASONS: Mapping[tuple[str, str], str] = {
    ("holds_plan", "cli"): "the terminal shows the plan itself, with --plan",
    ("holds_plan", "repl"): "the prompt starts research at once",
    ("holds_plan", "mcp"): "a client has no tool to settle a plan with",
    ("length", "repl"): "the prompt writes reports of the usual length",
    ("depth", "repl"): "the prompt lets the coordinator choose",
    ("attachments", "repl"): "the prompt takes files with /file",
    ("agentic", "repl"): "the prompt answers questions; passages are for programs",
    ("space", "repl"): "the prompt opens the space first, and refuses one that is not there",
    ("continues", "cli"): "a terminal continues the last conversation, with -c",
    ("continues", "repl"): "the prompt is one conversation",
    ("continues", "python"): "a session is passed",
    ("mode", "python"): OF_PYTHON,
    **{
        (field, "openai"): OF_OPENAI
        for field in (
            *("limits.max_iterations", "limits.time_target", "limits.max_cost", "limits.max_tokens"),
            *("query.count", "query.sites", "query.excluded_sites", "query.time_range", "query.language", "query.focus"),
            *("model", "attachments", "continues", "holds_plan", "depth", "length", "strict", "agentic", "space"),
        )
    },
    **{
        (field, "python"): OF_PYTHON
        for field in (
            *("limits.max_output_tokens", "limits.max_cost", "limits.max_tokens"),
            *("query.count", "query.sites", "query.excluded_sites", "query.time_range", "query.language", "query.focus"),
            *("model", "scope", "system_prompt", "attachments", "holds_plan", "depth", "length", "strict", "agentic", "space"),
        )
    },
}


def list_wishes() -> list[str]:
    """The fields of a request; of its limits and its query, theirs."""
    parts = {"limits": RunLimits, "query": Query}
    return [
        f"{name}.{part}" if part else name
        for name in RunRequest.__struct_fields__
        for part in (parts[name].__struct_fields__ if name in parts else ("",))
    ]


def test_every_wish_can_be_said_at_every_door_or_there_is_a_reason() -> None:
    said = {
        (name.partition(",")[0], door)
        for rows in (SEARCH_ROWS, RESEARCH_ROWS, AGENTIC_ROWS, {"holds_plan": {"http": {}}})
        for name, row in rows.items()
        for door in row
    }
    wishes = [name for name in list_wishes() if name not in NOT_A_WISH]
    assert [(name, door) for name in wishes for door in DOORS if ((name, door) in said) == ((name, door) in REASONS)] == []
    assert set(NOT_A_WISH) <= set(list_wishes())
    assert {name for name, _ in REASONS} <= set(wishes)


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

    async def find_nothing_open(*_: object) -> OpenQuestion:
        return OpenQuestion()

    monkeypatch.setattr("nexi.cli.repl.open_prompt", lambda *_, **__: Lines())
    monkeypatch.setattr("nexi.cli.runner.is_tty", lambda _: True)
    monkeypatch.setattr("nexi.app.assembly.Nexi.find_open_question", find_nothing_open)  # it would search before the run
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
    command = {"research": ["research"], "agentic": ["agentic"]}.get(mode, [])
    match door:
        case "cli":
            ask_cli(monkeypatch, *command, *said)
        case "cli --deep":
            ask_cli(monkeypatch, "--deep", *said)
        case "repl":
            ask_repl(monkeypatch, f"/deep {QUESTION}" if research else QUESTION, *said)
        case "http":
            options = {name: value for name, value in said.items() if name not in ("space", "continues")}
            rest = {name: value for name, value in said.items() if name not in options}
            asyncio.run(ask_http("/v1/runs", {"question": QUESTION, "mode": mode, "options": options, **rest}))
        case "openai":
            model = "nexi-deep" if research else "nexi-m"
            asyncio.run(ask_http("/v1/chat/completions", {"model": model, **chat, **said}))
        case "mcp" if research:
            asyncio.run(ask_mcp("nexi_research", {"question": QUESTION, **said}))
        case "mcp":
            tool = "agentic_search" if mode == "agentic" else "nexi_search"
            asyncio.run(ask_mcp(tool, {"query": QUESTION, **said}))
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


def test_an_agentic_search_has_the_same_settings_at_every_door(
    caught: list[RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_AGENTIC_SEARCH", "true")
    for door, said in AGENTIC_ROWS["agentic"].items():
        with monkeypatch.context() as patched:
            ask(patched, door, "agentic", said)
    settings = [{name: value for name, value in request.agentic.items() if value is not None} for request in caught]
    assert settings == [{"completeness_threshold": 0.7, "max_iterations": 2}] * len(AGENTIC_ROWS["agentic"])


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
