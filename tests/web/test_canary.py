"""Keys of a config, looked for wherever a person or a program could read them: no door shows one, whoever repeats it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import httpx2
import pytest

from tests.children import CHILD_PATH
from tests.web.test_serve_command import ended, process

CANARIES = {
    "model": "sk-canary-model-0001",
    "judge": "sk-canary-judge-0002",
    "jina": "jina-canary-0003",
    "tavily": "tvly-canary-0004",
    "searxng": "canary-password-0005",
    "token": "token-canary-0006",
    "embedding": "emb-canary-0007",
    "environment": "brave-canary-0008",
}
CANARIES["basic login"] = base64.b64encode(f"canary:{CANARIES['searxng']}".encode()).decode()
QUESTION = "what does the canary sing"
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "canary", "version": "1"}}


class Parrot(BaseHTTPRequestHandler):
    """A provider that refuses everything, and repeats what it was sent, headers and all."""

    heard: ClassVar[set[str]] = set()

    def log_message(self, *_: object) -> None:
        return

    def refuse(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        told = f"{self.path} with {dict(self.headers.items())}"
        self.heard.add(self.headers.get("authorization", ""))
        body = json.dumps({"error": {"message": told, "code": told, "type": told}, "detail": told}).encode()
        self.send_response(401 if "chat" in self.path else 500, told[:500])
        self.send_header("content-length", str(len(body)))
        self.send_header("x-repeated", told)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = refuse  # noqa: N815


@contextmanager
def parrot() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with parrot() as place:
        settings: dict[str, Any] = {
            "base_url": f"http://{place}/v1",
            "model": "m",
            "api_key": CANARIES["model"],
            "roles": {"judge": {"base_url": f"http://{place}/judge/v1", "model": "j", "api_key": CANARIES["judge"]}},
            "jina_key": CANARIES["jina"],
            "api_keys": {"tavily": CANARIES["tavily"], "embedding": CANARIES["embedding"]},
            "embedding_base_url": f"http://{place}/embedding/v1",
            "embedding_model": "e",
            "searxng_url": f"http://canary:{CANARIES['searxng']}@{place}/",
            "token": CANARIES["token"],
            "llm_max_retries": 0,
            "default_effort": "s",
            "search_timeout": 2,
        }
        (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        yield tmp_path


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": CHILD_PATH,
        "NEXI_HOME": str(home),
        "BRAVE_API_KEY": CANARIES["environment"],
    }


def over_http(client: httpx2.Client) -> Iterator[tuple[str, str]]:
    """Every door, asked once, and what it said."""
    yield "without a token", client.post("/v1/runs", json={"question": QUESTION}).text
    client.headers["authorization"] = f"Bearer {CANARIES['token']}"
    for mode in ("search", "agentic", "research"):
        options = {"depth": 1, "time_target": 20} if mode == "research" else {"time_target": 20}
        run_id = client.post("/v1/runs", json={"question": QUESTION, "mode": mode, "options": options}).json()["id"]
        yield f"events of {mode}", client.get(f"/v1/runs/{run_id}/events").text
        for path in (f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/result", f"/page/runs/{run_id}"):
            yield f"{path} of {mode}", client.get(path).text
    chat = {"model": "nexi-s", "messages": [{"role": "user", "content": QUESTION}]}
    candidates = [{"title": "t", "snippet": "s", "url": "https://moon.example/"}] * 2
    asked: dict[str, Any] = {
        "/v1/chat/completions": chat,
        "/v1/search": {"query": QUESTION, "constraints": {"search_mode": "full"}},
        "/v1/snippet_rank": {"query": QUESTION, "candidates": [{**c, "i": i} for i, c in enumerate(candidates)]},
        "/tavily/search": {"query": QUESTION, "include_answer": True},
        "/tavily/extract": {"urls": ["https://moon.example/"]},
        "/openwebui/search": {"query": QUESTION, "count": 1},
        "/openwebui/load": {"urls": ["https://moon.example/"]},
    }
    for path, body in asked.items():
        yield path, client.post(path, json=body).text
    yield "a stream", client.post("/v1/chat/completions", json={**chat, "stream": True}).text
    for path in (
        "/searxng/search?q=canary",
        "/page/setup",
        "/page/form",
        "/page/models",
        "/metrics",
        "/openapi.json",
        "/v1/runs",
        "/",
    ):
        yield path, client.get(path).text


def over_mcp(client: httpx2.Client) -> Iterator[tuple[str, str]]:
    """The tools of /mcp that reach out."""
    hello = client.post("/mcp", headers=MCP, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    headers = {**MCP, "mcp-protocol-version": "2025-06-18", "mcp-session-id": hello.headers.get("mcp-session-id", "")}
    client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    yield "/mcp", hello.text
    for number, tool in enumerate(("nexi_search", "nexi_find", "agentic_search"), 2):
        params = {"name": tool, "arguments": {"query": QUESTION}}
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        yield tool, client.post("/mcp", headers=headers, json=call).text


def by_command(home: Path, run_id: str) -> Iterator[tuple[str, str]]:
    """What the commands print about it all."""
    commands = [
        ["-v", QUESTION],
        ["doctor"],
        ["config", "show"],
        ["export", run_id, "--bundle", "-o", str(home / "bundle.tar.gz")],
    ]
    for arguments in commands:
        command = [sys.executable, "-m", "nexi", *arguments]
        done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=300, check=False)
        yield f"nexi {' '.join(arguments)}", done.stdout + done.stderr


def kept(home: Path) -> Iterator[tuple[str, str]]:
    """Every file but the config itself, also those inside of a bundle."""
    for path in home.rglob("*"):
        if path.is_file() and path.name != "config.json":
            yield str(path), path.read_bytes().decode("utf-8", "replace")
    with tarfile.open(home / "bundle.tar.gz") as bundle:
        for member in bundle.getmembers():
            if part := bundle.extractfile(member):
                yield f"bundle: {member.name}", part.read().decode("utf-8", "replace")


@pytest.mark.long
def test_no_key_is_seen_through_any_door_in_a_log_an_event_a_file_a_bundle_or_the_list_of_processes(home: Path) -> None:
    started = process(home, "--log-level", "debug", BRAVE_API_KEY=CANARIES["environment"])
    with started as (running, base), httpx2.Client(base_url=base, timeout=300) as client:
        seen = [*over_http(client), *over_mcp(client)]
        run_id = client.get("/v1/runs").json()["runs"][0]["id"]
        if (command := Path(f"/proc/{running.pid}/cmdline")).exists():
            seen.append(("list of processes", command.read_text(encoding="utf-8")))
        logged = ended(running)
    seen += [("log", logged), *by_command(home, run_id), *kept(home)]
    shown = [(where, name) for where, text in seen for name, key in CANARIES.items() if key in text]
    assert shown == []
    assert {f"Bearer {CANARIES[name]}" for name in ("model", "judge")} <= Parrot.heard
    assert QUESTION in logged, "at debug, questions are logged"
    assert all(json.loads(line) for line in logged.splitlines())
    assert {"nexi_search", "a stream", "nexi doctor"} <= {where for where, text in seen if text}
