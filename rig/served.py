"""served - a real `nexi serve` in a process of its own, between a mini web and a held model, all on loopback.

`with stage(home, pages, script) as there` gives its address, its model and its server, which can be killed and started again
on the same home and port. Whoever looks at it with a browser is not known here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from rig import held_model, miniweb
from rig.held_model import HeldModel
from rig.scripted_llm import Script

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 180


class Server:
    """The command `nexi serve`."""

    def __init__(self, env: Mapping[str, str], log: Path, *options: str, prefix: Sequence[str] = ()) -> None:
        self._env, self._log, self._options, self._prefix = env, log, options, prefix
        self._process: subprocess.Popen[bytes] | None = None
        self.base = ""
        self.token = ""  # of the owner, where nothing else is the key

    def start(self) -> None:
        """Serve, on the port of the last time if there was one."""
        port = self.base.rpartition(":")[2] or "0"
        serve = [sys.executable, "-m", "nexi", "serve", "--port", port, "--rate", "1000000", "--drain", "0"]
        command = [*self._prefix, *serve, *self._options]
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("a") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=dict(self._env), stdout=subprocess.DEVNULL, stderr=log)
        self.base, _, self.token = self._link(before).partition("/?token=")

    @property
    def link(self) -> str:
        """What a person opens."""
        return f"{self.base}/?token={self.token}" if self.token else f"{self.base}/"

    @property
    def headers(self) -> dict[str, str]:
        """What a program of the owner sends."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def cookies(self) -> list[dict[str, str]]:
        """What a browser keeps that has opened the link."""
        owner = OwnerToken(Path(self._env["NEXI_HOME"]) / "state")
        return (
            [{"name": f"nexi-owner-{self.base.rpartition(':')[2]}", "value": owner.cookie, "url": self.base}]
            if self.token
            else []
        )

    def _link(self, before: int) -> str:
        """From the line that says so; a server that ends instead says why."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            said = self._log.read_text()[before:]
            if found := [line for line in said.splitlines() if "http://127." in line]:
                return found[0].split()[-1]
            assert self._process is not None
            assert self._process.poll() is None, said
            time.sleep(0.02)
        raise AssertionError(f"nexi serve did not start:\n{self._log.read_text()[before:]}")

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_S)
            self._process = None


@dataclass(frozen=True)
class Stage:
    """Everything around one page."""

    web: str
    model: HeldModel
    server: Server
    home: Path

    @property
    def base(self) -> str:
        return self.server.base

    @property
    def headers(self) -> dict[str, str]:
        return self.server.headers


def _turn_judge_off(home: Path) -> None:
    """A scripted model judges nothing; the server would only wait for it."""
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "config.json").exists():
        (home / "config.json").write_text('{"verify_judge": false}', encoding="utf-8")


@contextmanager
def stage(
    home: Path, pages: Sequence[Mapping[str, Any]], script: Script | None, *options: str, latency_ms: float = 0, **env: str
) -> Iterator[Stage]:
    """Web, model and server; without a script there is no model, and nexi uses its own."""
    model = HeldModel(script or Script(2))
    home.mkdir(parents=True, exist_ok=True)
    with miniweb.serve(miniweb.Corpus(list(map(dict, pages))), latency_ms=latency_ms) as web, held_model.serve(model) as root:
        address = web.removeprefix("http://")
        given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home), "NEXI_HOME": str(home / "nexi")}
        given |= {"SEARXNG_URL": web, "NEXI_ALLOW_PRIVATE": address}
        given |= {"OPENAI_BASE_URL": f"{root}/v1", "NEXI_MODEL": "scripted"} if script else {"NEXI_MODEL": "extractive"}
        _turn_judge_off(home / "nexi")
        server = Server({**given, **env}, home / "serve.log", *options)
        server.start()
        try:
            yield Stage(web, model, server, home / "nexi")
        finally:
            model.release()
            server.kill()


def serve_here(app: Any, config: Config) -> None:
    """Serve an application of one's own in this process until it is ended, and print the port."""
    from nexi.web import server

    app.state.drain_s = 0
    listener = server.bind_socket(server.ServerOptions(port=0))
    settings = server.uvicorn_config(config, server.ServerOptions(port=0))
    settings.app, settings.factory = app, False
    print(listener.getsockname()[1], flush=True)
    server.Server(settings).run([listener])
