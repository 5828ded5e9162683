"""The server as a child process that speaks the protocol on stdin and stdout, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from mcp import Client

from nexi.app import SystemClock
from nexi.install import install_command
from nexi.runs.directory import RunDirectory
from tests.mcp.world import ANSWER, QUESTION, command, text_of, until

pytestmark = pytest.mark.long

CANARY = "sk-canary-5f1c09e4a77b"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def test_a_client_lists_calls_hears_progress_and_leaves(web: str, tmp_path: Path) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with Client(command(web, tmp_path)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("nexi_search", {"query": QUESTION}, progress_callback=hear)
        begun = (await client.call_tool("nexi_research", {"question": QUESTION, "depth": 1})).structured_content
        report = await client.call_tool("nexi_research_result", {"run_id": begun["id"], "wait_s": 30})
        wrong = await client.call_tool("nexi_search", {"query": ""})
    assert names[0] == "nexi_search"
    assert text_of(answer).startswith(ANSWER)
    assert told == sorted(set(told))
    assert len(told) > 3
    assert report.structured_content["state"] == "finished"
    assert (wrong.is_error, (wrong.meta or {})["nexi/error"]["code"]) == (True, "question")


async def test_a_cancelled_call_ends_its_run_and_the_server_goes_on(web: str, tmp_path: Path) -> None:
    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", SystemClock())
    with silent_model() as port:
        env = {"NEXI_MODEL": "slow", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
        async with Client(command(web, tmp_path, **env)) as client:
            call = asyncio.create_task(client.call_tool("nexi_search", {"query": QUESTION}))
            await until(lambda: any(run.state == "running" for run in runs.list_runs()), 20)
            call.cancel()
            await asyncio.wait([call])
            await until(lambda: [run.state for run in runs.list_runs()] == ["failed"])
            found = await client.call_tool("nexi_find", {"query": "moon"})
    assert len(found.structured_content["hits"]) == 2


@contextmanager
def silent_model() -> Iterator[int]:
    """An endpoint that takes a connection and says nothing; gives its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield int(listener.getsockname()[1])


def talk(web: str, home: Path, lines: list[Any], until: int, **env: str) -> subprocess.CompletedProcess[str]:
    """Send lines as they are to a server of our own, and leave when that id was answered."""
    how = command(web, home, **env)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    piped = subprocess.PIPE
    with (
        (home / "stderr.txt").open("w+", encoding="utf-8") as errors,
        subprocess.Popen([how.command, *how.args], env=how.env, stdin=piped, stdout=piped, stderr=errors, text=True) as running,
    ):
        assert running.stdin
        assert running.stdout
        late = Timer(60, running.kill)
        late.start()
        running.stdin.write(text)
        running.stdin.flush()
        said = ""
        while (line := running.stdout.readline()) and json.loads(line).get("id") != until:
            said += line
        running.stdin.close()
        said += line + running.stdout.read()
        code = running.wait(300)
        late.cancel()
        errors.seek(0)
        return subprocess.CompletedProcess(how.args, code, said, errors.read())


def call(number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_broken_lines_leave_stdout_to_the_protocol_and_no_key_appears_anywhere(web: str, tmp_path: Path) -> None:
    broken = [
        "",
        "{",
        "[]",
        "null",
        '"x"',
        '{"jsonrpc":"1.0"}',
        "\x00\x01",
        '{"a":' * 400,
        '{"jsonrpc":"2.0","id":9,"method":"no"}',
    ]
    half = '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nexi_find","arguments":{"query":"\\ud800"}}}'
    lines = [HELLO, READY, *broken, half, call(5, "nexi_find", {"query": "moon"}), call(6, "nexi_search", {"query": QUESTION})]
    keys = {"OPENAI_API_KEY": CANARY, "OPENROUTER_API_KEY": CANARY, "JINA_API_KEY": CANARY, "NEXI_TOKEN": CANARY}
    done = talk(web, tmp_path, lines, until=5, **keys)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    answered = {reply.get("id") for reply in replies}
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    assert {1, 5, 9} <= answered
    assert "Traceback" not in done.stderr
    kept = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert CANARY not in done.stdout + done.stderr
    assert CANARY.encode() not in kept
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments", [["http", "0.0.0.0", "0"], ["http", "203.0.113.9", "8000"], ["http", "0.0.0.0:1", "8000"]]
)
def test_an_address_it_may_not_or_cannot_use_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    from nexi.mcp_server_cli import main

    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert (arguments[1] in shown.err, "NEXI_TOKEN" in shown.err) == (True, True)


@pytest.mark.parametrize("arguments", [["http", "127.0.0.1", "99999"], ["http", "127.0.0.1", "x"], ["carrier-pigeon"]])
def test_wrong_use_is_told_on_stderr(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    from nexi.mcp_server_cli import main

    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert "error: argument" in shown.err


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n, p=None: None if n == 'mcp' else find(n, p)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "nexi.mcp_server_cli"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{hidden}:{Path.cwd()}", "NEXI_HOME": str(tmp_path)},
        input="",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert install_command("mcp") in done.stderr
