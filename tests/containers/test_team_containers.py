"""The team server from its one command, with a real podman: people sign in and ask, and a worker is killed on the way.

It needs podman-compose and the images that deploy/team.yaml names: pulled, or made by `python -m rig.container_images`.
Containers and volumes go with the test; the image stays as localhost/nexi-team, so that its layers are not made again.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rig.container_images import POSTGRES_IMAGE, PYTHON_IMAGE, SEARXNG_IMAGE, has_image
from tests.containers import podman

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = re.findall(r"^!([^/\n]+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
QUESTION = "How far is the Moon from Earth on average?"
NEEDED = ("podman", "podman-compose")

if missing := [name for name in NEEDED if not shutil.which(name)]:
    pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)
COMPOSE_VERSION = subprocess.run(["podman-compose", "--version"], capture_output=True, text=True, check=False).stdout
if not re.search(r"podman-compose version (?:1\.[6-9]|1\.\d\d|[2-9])", COMPOSE_VERSION):
    pytest.skip("podman-compose is older than 1.6", allow_module_level=True)


def list_pip_paths() -> list[str]:
    """Files and folders that pip is configured to install from on this machine; a build in a container needs them too."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    settings = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    paths = {path.removesuffix("/simple") for path in re.findall(r"(?:file://|(?<=[' ]))(/[^' ]+)", settings)}
    return sorted(path for path in paths if Path(path).exists())


class TeamContainers:
    """A checkout of its own, and the team server that was started from it."""

    def __init__(self, folder: Path, port: int, variables: dict[str, str]) -> None:
        self.folder, self.base, self.variables = folder, f"http://127.0.0.1:{port}", variables

    def call(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=os.environ | self.variables, capture_output=True, text=True, timeout=1800, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout.strip()

    def compose(self, *words: str) -> str:
        return self.call("podman-compose", "-f", "deploy/team.yaml", *words)

    def remove_all(self) -> None:
        """Whatever a run of the tests has left, too."""
        for kind, remove in (("ps", "rm --depend --time 0"), ("volume", "volume rm"), ("network", "network rm")):
            listed = ("ps", "--all", "--quiet") if kind == "ps" else (kind, "ls", "--quiet")
            label = "label=io.podman.compose.project=nexi-tested"
            if names := self.call("podman", *listed, "--filter", label).split():
                self.call("podman", *remove.split(), "--force", *names)

    def select(self, query: str) -> list[str]:
        return self.call(
            "podman", "exec", "nexi-tested_database_1", "psql", "-U", "nexi", "-d", "nexi", "-Atc", query
        ).splitlines()

    def row_of(self, run_id: str) -> list[str]:
        """Its epoch, state, the container that holds it, and the number of its last fact."""
        rows = (line.split("|") for line in self.select("select run, epoch, state, split_part(holder, '-', 1), last from runs"))
        return next(row[1:] for row in rows if row[0] == run_id)

    def request(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx2.Response:
        return httpx2.request(method, self.base + path, headers=headers, json=body, timeout=60, trust_env=False)

    def wait_ready(self) -> None:
        for _ in range(60):
            with suppress(httpx2.TransportError):
                if self.request("GET", "/readyz", {}).status_code == 200:
                    return
            time.sleep(1)
        raise AssertionError(self.call("podman", "logs", "nexi-tested_server_1"))

    def sign_in(self, name: str) -> dict[str, str]:
        """The headers of a browser in which a person has used a link."""
        path = self.compose("exec", "-T", "server", "nexi", "admin", "users", "link", name)
        reply = self.request("POST", path, {"Origin": self.base})
        cookie = re.match(r"(__Host-[^=]+=[^;]+);.*HttpOnly", reply.headers["set-cookie"], re.IGNORECASE)
        assert cookie, reply.headers["set-cookie"]
        return {"Cookie": cookie[1], "Origin": self.base}

    def wait_for_end(self, run_id: str, headers: dict[str, str]) -> dict[str, Any]:
        for _ in range(120):
            status: dict[str, Any] = self.request("GET", f"/v1/runs/{run_id}", headers).json()
            if status["state"] != "running":
                return status
            time.sleep(0.5)
        raise AssertionError(f"the run has not ended: {status}")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamContainers]:
    folder = tmp_path_factory.mktemp("checkout")
    variables = podman.named_environment(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", variables["CONTAINERS_CONF"])
        if absent := [name for name in (PYTHON_IMAGE, POSTGRES_IMAGE, SEARXNG_IMAGE) if not has_image(name)]:
            pytest.skip(f"no image here: {', '.join(absent)}; python -m rig.container_images makes stand-ins")
    for name in (*BUILT_FROM, "deploy"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    shutil.copy2(ROOT / ".dockerignore", folder)
    (folder / "deploy" / ".env").unlink(missing_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables |= {"PATH": f"{_make_commands(folder)}:{os.environ['PATH']}", "NEXI_PORT": str(port)}
    variables |= {"COMPOSE_PROJECT_NAME": "nexi-tested", "NEXI_MODEL": "extractive", "NEXI_ALLOW_PRIVATE": "searxng:8080"}
    containers = TeamContainers(folder, port, variables)
    try:
        containers.remove_all()
        yield containers
    finally:
        containers.remove_all()


def _make_commands(folder: Path) -> Path:
    """Commands before those of the machine: no docker, and a podman-compose whose builds use the machine's package index."""
    commands = folder / "commands"
    commands.mkdir()
    lent = " ".join(f"--volume {path}:{path}:ro" for path in list_pip_paths())
    secret = "--secret id=pip.conf,src=/etc/pip.conf" if Path("/etc/pip.conf").exists() else ""
    options = f'--podman-build-args "--network host {lent} {secret}"'
    (commands / "podman-compose").write_text(f'#!/bin/sh\nexec {shutil.which("podman-compose")} {options} "$@"\n')
    (commands / "docker").write_text("#!/bin/sh\nexit 1\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    return commands


def test_one_command_starts_a_team_server_on_which_a_signed_in_person_asks(team: TeamContainers) -> None:
    _, name, token = team.call("sh", "deploy/team.sh", "Ada").splitlines()[-1].split("  ")
    team.wait_ready()
    headers = team.sign_in("Ada")
    account = team.request("GET", "/account", headers).json()
    run_id = team.request("POST", "/v1/runs", headers, {"question": QUESTION}).json()["id"]
    ended = team.wait_for_end(run_id, headers)
    answer = team.request("GET", f"/v1/runs/{run_id}/result", {"Authorization": f"Bearer {token}"}).json()
    strangers = team.compose("exec", "-T", "server", "nexi", "admin", "users", "add", "Grace").split("  ")[2]
    refused = team.request("GET", f"/v1/runs/{run_id}", {"Authorization": f"Bearer {strangers}"})
    assert (name, account["name"], account["role"]) == ("Ada", "Ada", "administrator")
    assert (ended["state"], "384,400 km" in answer["answer"], refused.status_code) == ("finished", True, 404)


def test_started_again_it_keeps_its_secrets_and_people(team: TeamContainers) -> None:
    secrets = (team.folder / "deploy" / ".env").read_text(encoding="utf-8")
    people = team.select("select name, role from people order by name")
    assert "nexi_" not in team.call("sh", "deploy/team.sh", "Somebody")
    team.wait_ready()
    assert team.select("select name, role from people order by name") == people
    assert (team.folder / "deploy" / ".env").read_text(encoding="utf-8") == secrets
    assert (team.folder / "deploy" / ".env").stat().st_mode & 0o777 == 0o600


def test_a_run_continues_in_another_worker_when_its_own_is_killed(team: TeamContainers) -> None:
    team.compose("up", "-d", "--scale", "worker=2")
    team.wait_ready()
    headers = team.sign_in("Grace")  # who has no page of it yet
    workers = {name: team.call("podman", "inspect", "--format", "{{.Id}}", name) for name in _workers(team)}
    run_id = team.request("POST", "/v1/runs", headers, {"question": QUESTION}).json()["id"]
    holder = _wait_for_holder(team, run_id)
    (killed,) = [name for name, container in workers.items() if container.startswith(holder)]
    begun = time.monotonic()
    team.call("podman", "kill", "--signal", "KILL", killed)
    ended = team.wait_for_end(run_id, headers)
    seconds = time.monotonic() - begun
    epoch, state, last, _ = team.row_of(run_id)
    facts = [line for line in team.select("select run, n from facts order by n") if line.startswith(run_id)]
    print(f"taken over and finished {seconds:.1f} s after the kill")
    assert (ended["state"], state, epoch) == ("finished", "finished", "2")
    assert last != holder
    assert facts == [f"{run_id}|{number}" for number in range(1, len(facts) + 1)]
    assert seconds < 30


def _workers(team: TeamContainers) -> list[str]:
    return team.call("podman", "ps", "--filter", "name=nexi-tested_worker", "--format", "{{.Names}}").splitlines()


def _wait_for_holder(team: TeamContainers, run_id: str) -> str:
    for _ in range(60):
        _, _, holder, facts = team.row_of(run_id)
        if holder and int(facts):
            return holder
        time.sleep(0.1)
    raise AssertionError("no worker has begun the run")
