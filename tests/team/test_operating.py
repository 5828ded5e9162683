"""Operating a team server: the commands of its containers, readiness, the metrics of a worker, and what is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nexi.config import Config
from nexi.events import RunFinished
from nexi.team.assembly import Team
from nexi.team.postgres.database import Database
from nexi.team.web.app import worker_app
from nexi.team.worker import TeamWorker
from nexi.types import StopReason, Usage
from nexi.web.operations import Metrics
from tests.team.world import serving_team

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
FINISHED = RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)


def fetch(url: str, token: str = "", body: dict[str, Any] | None = None) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        reply = httpx2.request("POST" if body else "GET", url, json=body, headers=headers, timeout=120)
    except httpx2.TransportError:
        return 0, ""
    return reply.status_code, reply.text


def wait_for(url: str, status: int = 200) -> str:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        got, text = fetch(url)
        if got == status:
            return text
        time.sleep(0.1)
    raise AssertionError(f"{url} did not answer {status}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(words: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def call_admin(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "nexi", "admin", *words]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def replace_option(words: list[str], name: str, value: str) -> list[str]:
    place = words.index(name)
    return [*words[: place + 1], value, *words[place + 2 :]]


def test_the_commands_of_the_containers_make_a_team_server(postgres: Any, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((ROOT / "deploy" / "team.yaml").read_text())["services"]
    containerfile = (ROOT / "deploy" / "Containerfile").read_text()
    serve = json.loads(re.findall(r"^CMD (.*)$", containerfile, re.MULTILINE)[-1])
    port, worker_port = free_port(), free_port()
    serve = replace_option(replace_option(serve, "--port", str(port)), "--host", "127.0.0.1")
    work = replace_option(services["worker"]["command"], "--port", str(worker_port))
    admin = Database(postgres.url).open()
    admin.fetch("drop database if exists fresh")
    admin.fetch("create database fresh")
    admin.close()
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "COVERAGE_PROCESS_START")},
        **dict.fromkeys(services["server"]["environment"], ""),  # as compose sets what is not in its file
        "NEXI_DATABASE_URL": postgres.url_of("fresh"),
        "NEXI_HOME": str(tmp_path / "data"),
        "NEXI_MODEL": "extractive",
        "PYTHONPATH": str(ROOT),
    }
    base = f"http://127.0.0.1:{port}"
    (tmp_path / "handbook.txt").write_text("The canteen of the office opens at half past eleven. " * 5)
    with running(serve, environment), running(work, environment):
        assert wait_for(f"{base}/readyz") == "ready\n"
        assert wait_for(f"http://127.0.0.1:{worker_port}/readyz") == "ready\n"
        token = call_admin(environment, "users", "add", "Ada", "--administrator").split()[-1]
        assert call_admin(environment, "knowledge", "add", str(tmp_path / "handbook.txt")) == "1  stored\n"
        asked = {"question": "When does the canteen of the office open?", "options": {"only_local": True}}
        status, text = fetch(f"{base}/v1/runs", token, asked)
        assert status == 202, text
        run_id, end = json.loads(text)["id"], time.monotonic() + 180
        while json.loads(fetch(f"{base}/v1/runs/{run_id}", token)[1])["state"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
        assert "half past eleven" in fetch(f"{base}/v1/runs/{run_id}/result", token)[1]
        counted = fetch(f"http://127.0.0.1:{worker_port}/metrics")[1]
        assert 'nexi_runs_ended_total{mode="search",stop="final_answer"} 1' in counted
        assert "nexi_runs_active 0" in counted


async def test_a_server_is_ready_only_with_the_schema_of_its_own_version(postgres: Any, tmp_path: Path) -> None:
    async with serving_team(postgres.url, tmp_path) as served, served.client() as anybody:
        assert (await anybody.get("/readyz")).text == "ready\n"
        served.team.database.fetch("insert into schema_steps (step) values (999)")
        try:
            refused = await anybody.get("/readyz")
            assert (refused.status_code, refused.text) == (503, "schema of another version\n")
        finally:
            served.team.database.fetch("delete from schema_steps where step = 999")
        assert (await anybody.get("/readyz")).status_code == 200


async def test_a_worker_says_whether_it_takes_work(postgres: Any, tmp_path: Path) -> None:
    team = Team(Config(home=tmp_path, database_url=postgres.url), Database(postgres.url).open())
    worker = TeamWorker(team)
    transport = httpx2.ASGITransport(app=worker_app(worker, team, Metrics()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://worker") as client:
        before = await client.get("/readyz")
        worker.draining = True
        after, health = await client.get("/readyz"), await client.get("/healthz")
    team.database.close()
    assert (before.text, after.status_code, after.text, health.text) == ("ready\n", 503, "draining\n", "ok\n")
