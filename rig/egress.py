"""egress - asks a local question at every door of an installed tree and counts what reaches a model on another address.

  python -m rig.egress                 this tree
  python -m rig.egress --tree DIR      another checkout of nexi, for comparison; exit 1 when anything left the machine

The model is a real server on an address of this machine that is not loopback, so that a leak is a request with the note in it.
Only commands and HTTP are used, which older versions have too. Standard library and the MCP client only.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTE = "# Garden\n\nThe shed key hangs behind the blue door of the garden house.\n"
SECRET = "blue door"
QUESTION = "Where does the shed key hang?"
TOKEN = "the-token-of-this-trial"
PATIENCE_S = 120
REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "remote",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "I do not know."}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def find_own_address() -> str:
    """An address of this machine that is not loopback. Nothing is sent: a datagram socket only chooses a route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@contextmanager
def serve_model(received: list[str]) -> Iterator[str]:
    """A model server that keeps every body it is sent."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
            body = json.dumps(REPLY).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer((find_own_address(), 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{server.server_address[0]!s}:{server.server_address[1]}/v1"
        server.shutdown()


class Tree:
    """The commands of one checkout, over a home that knows one note."""

    def __init__(self, root: Path, home: Path, model_url: str) -> None:
        self.root, self.home = root, home
        self.env = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(home),
            "NEXI_HOME": str(home / "nexi"),
            "PYTHONPATH": str(root),
            "OPENAI_BASE_URL": model_url,
            "OPENAI_API_KEY": "sk-not-a-real-key-000000",
            "NEXI_MODEL": "remote",
        }

    def run(self, *arguments: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", "nexi", *arguments]
        ended = subprocess.run(
            command, cwd=self.home, env=self.env, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return ended.stdout + ended.stderr

    @contextmanager
    def serve(self) -> Iterator[str]:
        log = self.home / "serve.log"
        with log.open("w") as out:
            server = subprocess.Popen(
                [sys.executable, "-m", "nexi", "serve", "--port", "0"],
                cwd=self.home,
                env={**self.env, "NEXI_TOKEN": TOKEN},
                stdout=out,
                stderr=out,
            )
        try:
            ends = time.monotonic() + PATIENCE_S
            while not (lines := [line for line in log.read_text().splitlines() if "http://127." in line]):
                if server.poll() is not None or time.monotonic() > ends:
                    raise SystemExit(f"nexi serve did not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield next(word for word in lines[0].split() if word.startswith("http://127.")).partition("/?")[0]
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


def post(url: str, body: Mapping[str, Any]) -> str:
    return get(url, json.dumps(body).encode())


def get(url: str, body: bytes | None = None) -> str:
    """The body of the reply, also of an error: what counts here is what reached the model."""
    wanted = urllib.request.Request(url, body, {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(wanted, timeout=PATIENCE_S) as reply:
            return str(reply.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def ask_run(base: str, mode: str, options: Mapping[str, Any]) -> str:
    """A run over HTTP, followed to its end."""
    run_id = json.loads(post(f"{base}/v1/runs", {"question": QUESTION, "mode": mode, "options": options}))["id"]
    get(f"{base}/v1/runs/{run_id}/events")
    return get(f"{base}/v1/runs/{run_id}/result?format=json")


def ask_chat(base: str) -> str:
    return post(f"{base}/v1/chat/completions", {"model": "nexi-local", "messages": [{"role": "user", "content": QUESTION}]})


def ask_mcp(tree: Tree) -> str:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def call() -> str:
        server = StdioServerParameters(command=sys.executable, args=["-m", "nexi", "mcp"], env=tree.env, cwd=tree.home)
        async with Client(stdio_client(server)) as client:
            found = await client.call_tool("nexi_search", {"query": QUESTION, "only_local": True})
        return str(found.content)

    return asyncio.run(call())


def ask_everywhere(tree: Tree) -> Iterator[tuple[str, Callable[[], str]]]:
    """Every door's name with the way to ask there."""
    yield "terminal --local", lambda: tree.run("--local", QUESTION)
    yield "terminal research --local", lambda: tree.run("research", "--local", QUESTION)
    yield "prompt --local", lambda: tree.run("--local", stdin=f"{QUESTION}\n")
    with tree.serve() as base:
        yield "HTTP only_local", lambda: ask_run(base, "search", {"only_local": True})
        yield "HTTP research only_local", lambda: ask_run(base, "research", {"only_local": True})
        yield "page focus local", lambda: ask_run(base, "search", {"focus": "local"})
        yield "chat nexi-local", lambda: ask_chat(base)
    yield "MCP only_local", lambda: ask_mcp(tree)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT)
    tree_root = parser.parse_args().tree.resolve()
    received: list[str] = []
    with tempfile.TemporaryDirectory() as folder, serve_model(received) as model_url:
        tree = Tree(tree_root, Path(folder), model_url)
        (tree.home / "notes").mkdir()
        (tree.home / "notes" / "garden.md").write_text(NOTE)
        tree.run("index", "notes")
        received.clear()
        print("| door | requests that left | with the note | answered |\n|---|---|---|---|")
        leaked = 0
        for door, ask in ask_everywhere(tree):
            received.clear()
            said = ask()
            leaked += len(received)
            print(f"| {door} | {len(received)} | {sum(SECRET in body for body in received)} | {SECRET in said} |", flush=True)
    return int(leaked > 0)


if __name__ == "__main__":
    sys.exit(main())
