"""`nexi searxng` over a docker that is a script: it keeps its containers in files, and its SearXNG is a server of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.command import Command

DOCKER = """#!{python}
import pathlib, sys

here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with open(here / "said", "a") as log:
    log.write(" ".join(words) + "\\n")
container = here / "container"
match words:
    case ["run", *_]:
        container.write_text("running")
    case ["port", *_]:
        print("127.0.0.1:{port}")
    case ["container", "inspect", *_]:
        print(str(container.exists()).lower())
    case ["rm", *_]:
        container.unlink(missing_ok=True)
    case ["logs", *_]:
        print("the end of the log")
"""


class Searxng(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"OK"
        self.send_response(200 if self.path == "/healthz" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return None


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Searxng) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def docker(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the one docker on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "docker"
    script.write_text(DOCKER.format(python=sys.executable, port=port))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def runs(docker: Path) -> int:
    return sum(line.startswith("run ") for line in (docker / "said").read_text().splitlines())


def test_it_is_started_looked_at_and_stopped(nexi: Command, docker: Path, port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    started = nexi("searxng", "start")
    assert (started.code, started.out) == (0, f"{url}\n")
    assert "SearXNG is running: docker.io/searxng/searxng:latest, container nexi-searxng-" in started.err
    assert "0 processes use it; it runs until `nexi searxng stop`." in started.err
    assert "To use it for searches: nexi config set searxng_autostart true" in started.err
    assert nexi("searxng", "status").out == f"{url}\n"
    again = nexi("searxng", "start")
    assert (again.out, runs(docker)) == (f"{url}\n", 1)
    stopped = nexi("searxng", "stop")
    assert (stopped.code, stopped.out) == (0, "")
    assert "SearXNG is not running." in stopped.err
    assert not (docker / "container").exists()
    assert "SearXNG is not running." in nexi("searxng", "status").err


def test_json_has_the_same_fields_whether_it_runs_or_not(nexi: Command, docker: Path, port: int) -> None:
    settings, state = nexi.home / "searxng" / "default-settings.yml", nexi.home / "state" / "searxng-singleton.json"
    places = {"settings": str(settings), "state": str(state)}
    started = json.loads(nexi("searxng", "start", "--json").out)
    assert started == {
        "schema": "nexi-searxng-1",
        "running": True,
        "healthy": True,
        "url": f"http://127.0.0.1:{port}",
        "container": started["container"],
        "image": "docker.io/searxng/searxng:latest",
        "command": "docker",
        "users": [],
        "kept": True,
        **places,
    }
    assert json.loads(nexi("searxng", "status", "--json").out) == started
    stopped = json.loads(nexi("searxng", "stop", "--force", "--json").out)
    assert list(stopped) == list(started)
    assert (stopped["running"], stopped["url"]) == (False, "")


def test_the_tag_of_the_environment_and_the_image_of_the_config_are_used(
    nexi: Command, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexi.home.mkdir(parents=True)
    (nexi.home / "config.json").write_text('{"searxng_image": "ghcr.io/searxng/searxng", "searxng_port": 8899}')
    monkeypatch.setenv("SEARXNG_IMAGE_TAG", "2026.8.1")
    assert json.loads(nexi("searxng", "start", "--json").out)["image"] == "ghcr.io/searxng/searxng:2026.8.1"
    (run,) = [line for line in (docker / "said").read_text().splitlines() if line.startswith("run ")]
    assert "--publish 127.0.0.1:8899:8080 " in run
    nexi("searxng", "stop")


def test_an_instance_that_is_named_elsewhere_is_said(nexi: Command, docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:9")
    assert "Searches still use the instance set by SEARXNG_URL" in nexi("searxng", "start").err
    nexi("searxng", "stop")


def test_without_docker_and_podman_the_exit_code_is_1_and_the_fix_is_said(
    nexi: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    failed = nexi("searxng", "start", "--json")
    assert (failed.code, json.loads(failed.out)["code"]) == (1, "no_engine")
    assert nexi("searxng", "status").code == 0


def test_a_wrong_tag_is_a_matter_of_configuration(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_IMAGE_TAG", "--privileged")
    refused = nexi("searxng", "status")
    assert (refused.code, "SEARXNG_IMAGE_TAG must be the tag of a container image" in refused.err) == (2, True)


def test_processes_that_start_it_at_once_make_one_container(nexi: Command, docker: Path, port: int) -> None:
    words = [sys.executable, "-m", "nexi", "searxng", "start"]
    env = {"PATH": str(docker), "NEXI_HOME": str(nexi.home), "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [process.communicate(timeout=300)[0] for process in started] == [f"http://127.0.0.1:{port}\n".encode()] * 3
    assert runs(docker) == 1
    nexi("searxng", "stop")
