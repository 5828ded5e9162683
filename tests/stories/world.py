"""The world of a story: a small web with a search service that can be broken, a model, a fresh home, and the real command.

`world.run("question")` is the command in a pipe, `world.terminal("question")` the command in a terminal, `world.serve()` the
page; each is a process of its own. What they leave on the screen is compared as a whole, with ids, times and ports made
equal. The search service and the model break while they run: `world.web.trouble = "json off"`, `world.model.trouble = ...`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rig import held_model, miniweb
from rig.held_model import HeldModel
from rig.scripted_llm import Script
from rig.served import Server
from rig.serving import serve_in_thread
from rig.terminal import Picture, Terminal, terminal

PATIENCE_S = 120
LINK = re.compile(r"\x1b\]8;.*?\x1b\\")  # around a text that opens a page
KEY = "sk-0123456789abcdef0123456789abcdef"
QUESTION = "How far is the Moon from Earth on average?"
FACT = "The Moon is 384,400 km from Earth on average."


def page(url: str, title: str, *paragraphs: str) -> dict[str, str]:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    head = f"<head><title>{title}</title></head>"
    return {"url": url, "title": title, "html": f"<html>{head}<body><main><h1>{title}</h1>{body}</main></body></html>"}


PAGES = (
    page("http://moon.test/facts", "Moon facts", FACT, "It has almost no air and many craters."),
    page("http://tides.test/moon", "Tides", "The Moon raises the tides of the oceans on Earth.", "They come twice a day."),
    page("http://orbit.test/moon", "Orbit of the Moon", "The Moon goes round the Earth in 27.3 days."),
)

# What a search service says instead of results: a status, a media type and a body.
SEARCH_TROUBLES: Mapping[str, tuple[int, str, bytes]] = {
    "json off": (403, "text/html", b"<html><body>Forbidden</body></html>"),
    "html": (200, "text/html", b"<html><body><h1>Welcome to our shop</h1></body></html>"),
    "limiter": (429, "text/plain", b"Too Many Requests"),
    "fault": (500, "text/plain", b"Internal Server Error"),
    "no engines": (
        200,
        "application/json",
        b'{"results": [], "unresponsive_engines": [["brave", "timeout"], ["google", "access denied"]]}',
    ),
    "nothing": (200, "application/json", b'{"results": [], "unresponsive_engines": []}'),
}
# What every page of the web says instead of its text: a status, a body and a media type.
PAGE_TROUBLES: Mapping[str, tuple[int, bytes, str]] = {
    "paywall": (403, b"<html><body><h1>Subscribe</h1><p>This article is for subscribers.</p></body></html>", "text/html"),
    "gone": (404, b"<html><body><h1>Not found</h1></body></html>", "text/html"),
}
MODEL_TROUBLES: Mapping[str, tuple[int, object]] = {
    "wrong key": (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    "no credit": (402, {"error": {"message": "Insufficient credits"}}),
    "too many": (429, {"error": {"message": "Rate limit reached"}}),
    "small window": (400, {"error": {"message": "This model's maximum context length is 512 tokens."}}),
    "page": (200, "<html><body><h1>Welcome to our shop</h1></body></html>"),
    "wrong name": (404, {"error": {"message": "The model `scripted` does not exist", "code": "model_not_found"}}),
}


class Web:
    """The web and its search service, which is in the named trouble while one is set."""

    def __init__(self, pages: Sequence[Mapping[str, str]]) -> None:
        web = self

        class Handler(miniweb.Handler):
            world = miniweb.World(miniweb.Corpus([dict(each) for each in pages]), miniweb.Settings())

            def do_GET(self) -> None:  # noqa: N802
                if web.trouble == "robots" and self.path == "/robots.txt":
                    return self.reply(200, b"User-agent: *\nDisallow: /\n", "text/plain")
                return super().do_GET()

            def do_search(self, query: dict[str, str]) -> None:
                web.searched.set()
                if web.trouble not in SEARCH_TROUBLES:
                    return super().do_search(query)
                status, kind, body = SEARCH_TROUBLES[web.trouble]
                return self.reply(status, body, kind)

            def do_page(self, host: str, path: str, query: str) -> None:
                web.is_open.wait(PATIENCE_S)
                if web.trouble not in PAGE_TROUBLES:
                    return super().do_page(host, path, query)
                return self.reply(*PAGE_TROUBLES[web.trouble])

        self.trouble = ""
        self.searched = threading.Event()  # somebody has asked the search service
        self.is_open = threading.Event()  # cleared, no page is given out
        self.is_open.set()
        self.server = miniweb.Server(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return miniweb.address_of(self.server).removeprefix("http://")


def answer_without_tools(request: dict[str, Any]) -> tuple[int, object]:
    """What a model says that takes no tools, as Ollama does for some."""
    if "tools" in request:
        return 400, {"error": {"message": "scripted does not support tools"}}
    message = {"role": "assistant", "content": f"{FACT[:-1]} [1]."}
    return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def refuse_all(status: int, body: object) -> ThreadingHTTPServer:
    """A model server that has one answer for everything, or a function of what it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            asked = self.rfile.read(int(self.headers.get("content-length") or 0))
            if callable(body):
                return self.send(*body(json.loads(asked or b"{}")))
            return self.send(status, body)

        def send(self, status: int, body: object) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@dataclass(frozen=True)
class Screen:
    """What one command left on the screen, and its exit code."""

    code: int
    out: str
    err: str = ""


class World:
    """Everything around one person: the web, the model (none until one is asked for), and a home that nothing was kept in."""

    def __init__(self, folder: Path, web: Web, stack: ExitStack) -> None:
        self.folder, self.web, self._stack = folder, web, stack
        self.home = folder / "nexi"
        self.env = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "NEXI_HOME": str(self.home),
            "SEARXNG_URL": f"http://{web.address}",
            "NEXI_ALLOW_PRIVATE": web.address,
            "NEXI_MODEL": "extractive",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }
        self.set(verify_judge=False)  # a scripted model judges nothing

    def set(self, **settings: Any) -> None:
        """Write settings into the home, as `nexi config set` does."""
        path = self.home / "config.json"
        self.home.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**self.settings(), **settings}))
        path.chmod(0o600)

    def settings(self) -> dict[str, Any]:
        """The settings that the home has."""
        path = self.home / "config.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    # models

    def use_model(self, script: Script | None = None) -> HeldModel:
        """Have a model that can be held at its gates: see rig/held_model.py."""
        model = HeldModel(script or Script(2))
        root = self._stack.enter_context(held_model.serve(model))
        self._stack.callback(model.release)
        self.env |= {"OPENAI_BASE_URL": f"{root}/v1", "NEXI_MODEL": "scripted"}
        return model

    def use_broken_model(self, trouble: str) -> None:
        """Have a model server that refuses everything, with a key that was typed."""
        root = self.start_refusal(*MODEL_TROUBLES.get(trouble, (0, answer_without_tools)))
        self.env |= {"OPENAI_BASE_URL": f"{root}/v1", "NEXI_MODEL": "scripted", "OPENAI_API_KEY": KEY}

    def start_refusal(self, status: int, body: object) -> str:
        """The address of a server that refuses everything."""
        return self._stack.enter_context(serve_in_thread(refuse_all(status, body)))

    # disks

    def move_to_small_disk(self) -> None:
        """Move the home to a disk of 8 MB; the test is skipped where none can be mounted."""
        place = self.folder / "disk"
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
        if sys.platform != "linux" or subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("a file system cannot be mounted here")
        self._stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=False)
        shutil.copytree(self.home, place / "nexi")
        self.home = place / "nexi"
        self.env["NEXI_HOME"] = str(self.home)

    def fill_disk(self) -> None:
        with (self.folder / "disk" / "fill").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 4096)

    def forbid_writing(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder / "disk")], check=True)

    # commands

    def run(self, *arguments: str, typed: str = "", prefix: Sequence[str] = (), **env: str) -> Screen:
        """`nexi` in a pipe, from start to end."""
        process = subprocess.run(
            [*prefix, sys.executable, "-m", "nexi", *arguments],
            env={**self.env, **env},
            input=typed,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Screen(process.returncode, self.normalise(process.stdout), self.normalise(process.stderr))

    @contextmanager
    def terminal(
        self, *arguments: str, columns: int = 100, rows: int = 40, module: str = "nexi", **env: str
    ) -> Iterator[Terminal]:
        """`nexi` in a terminal; `look_at` tells what is left on its screen."""
        with terminal(
            list(arguments), {**self.env, **env}, columns=columns, rows=rows, module=module, cwd=str(self.folder)
        ) as screen:
            yield screen

    def look_at(self, screen: Terminal) -> Screen:
        """Wait for the end, then read the whole screen as it was left."""
        code = screen.ending()
        return Screen(code, self.normalise(Picture(LINK.sub("", screen.raw)).text))

    def ask_in_terminal(self, *arguments: str, columns: int = 100, **env: str) -> Screen:
        with self.terminal(*arguments, columns=columns, **env) as screen:
            return self.look_at(screen)

    def serve(self, *options: str, prefix: Sequence[str] = (), **env: str) -> Server:
        """`nexi serve` on a free port, which is killed with the world; its `base` is the address."""
        server = Server({**self.env, **env}, self.folder / "serve.log", *options, prefix=prefix)
        server.start()
        self._stack.callback(server.kill)
        return server

    # what is kept

    def history(self) -> list[dict[str, Any]]:
        """The entries of the history, the oldest first."""
        path = self.home / "history.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def run_list(self) -> str:
        """`nexi runs` without times: what each run was, the newest first."""
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", self.run("runs").out)

    def run_ids(self) -> list[str]:
        """The ids of the runs that have a log, the oldest first."""
        folders = sorted((self.home / "runs").glob("*"), key=lambda folder: folder.stat().st_mtime)
        return [folder.name for folder in folders]

    def normalise(self, text: str) -> str:
        """Without what differs from run to run: the folder, ports, ids, and times."""
        text = text.replace(str(self.home), "HOME").replace(str(self.folder), "~")
        text = text.replace(self.web.address, "WEB")
        text = re.sub(r"\b(127\.0\.0\.1|localhost):\d{2,5}\b", r"\1:PORT", text)
        for run_id in self.run_ids():
            text = text.replace(run_id, "ID")
        text = re.sub(r"\b([Rr]un) [0-9a-f]{6}\b", r"\1 ID", text)  # of a run that is not kept
        text = re.sub(r"\b\d+\.\d s\b", "N s", text)
        return text.strip("\n")


@contextmanager
def make_world(folder: Path, pages: Sequence[Mapping[str, str]] = PAGES) -> Iterator[World]:
    """A world that ends with the block, with everything that was started in it."""
    web = Web(pages)
    with ExitStack() as stack:
        stack.enter_context(serve_in_thread(web.server))
        stack.callback(web.is_open.set)
        yield World(folder, web, stack)


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
