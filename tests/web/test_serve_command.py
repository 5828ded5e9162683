"""`nexi serve` as a process: where it listens, how it ends, and how it goes on after a crash."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from nexi.app.owner_token import OwnerToken
from nexi.config import Config
from nexi.web import server
from rig import miniweb
from tests.children import CHILD_PATH

pytestmark = pytest.mark.long

FACT = "The Moon is 384,400 km from Earth on average."


def heed_hangups() -> None:
    """For a server started by tests that themselves run under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def process(home: Path, *arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `nexi serve` and its address; `owner_of` gives the headers of its owner."""
    with subprocess.Popen(
        [sys.executable, "-m", "nexi", "serve", "--port", "0", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": CHILD_PATH, "NEXI_HOME": str(home), **env},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=None if sys.platform == "win32" else heed_hangups,
    ) as running:
        try:
            assert running.stderr
            told = ""
            while not (address := re.search(r"(http://127[^/\s]+)\S*\n", told)):
                line = running.stderr.readline()
                assert line, told
                told += line
            yield running, address[1]
        finally:
            if running.poll() is None:
                running.kill()


def owner_of(home: Path) -> dict[str, str]:
    return {"authorization": f"Bearer {OwnerToken(home / 'state').ensure()}"}


def wait_until_ready(client: httpx2.Client) -> None:
    """The socket listens from the start, so the first request waits for the server behind it."""
    assert client.get("/healthz").text == "ok\n"


def ended(running: subprocess.Popen[str]) -> str:
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=300)
    return str(told)


def test_it_refuses_to_listen_beyond_this_machine_without_a_token(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nexi", "serve", "--host", "0.0.0.0", "--port", "0"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": CHILD_PATH, "NEXI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "does not listen on 0.0.0.0 without a token" in done.stderr
    assert "NEXI_TOKEN" in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with process(tmp_path) as (running, base):
        done = subprocess.run(
            [sys.executable, "-m", "nexi", "serve", "--port", base.rpartition(":")[2]],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": CHILD_PATH, "NEXI_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        ended(running)
    assert done.returncode == 2
    assert "cannot listen on 127.0.0.1" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_several_workers_serve_one_socket_and_end_together(tmp_path: Path) -> None:
    with (
        process(tmp_path, "--workers", "2", NEXI_TOKEN="t0ken") as (running, base),
        httpx2.Client(base_url=base, timeout=300) as client,
    ):
        wait_until_ready(client)
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"authorization": "Bearer t0ken"}).status_code == 200
        told = ended(running)
    assert running.returncode is not None
    assert "t0ken" not in told
    assert "Traceback" not in told


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_hangup_drains_and_leaves_a_run_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        world = {"NEXI_MODEL": "extractive", "SEARXNG_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        with (
            process(tmp_path, "--drain", "0", **world) as (running, base),
            httpx2.Client(base_url=base, headers=owner_of(tmp_path), timeout=120) as client,
        ):
            run_id = client.post("/v1/runs", json={"question": "How far is the Moon from Earth?"}).json()["id"]
            asked, _ = silent.accept()  # it is searching now
            running.send_signal(signal.SIGHUP)
            _, told = running.communicate(timeout=300)
            asked.close()
    assert running.returncode == -signal.SIGHUP
    assert [line for line in told.splitlines() if "run left open" in line and run_id in line]


def test_a_run_that_was_under_way_when_the_server_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    page = {
        "url": "http://moon.test/facts",
        "title": "Moon facts",
        "html": f"<html><body><main><p>{FACT}</p></main></body></html>",
    }
    with socket.create_server(("127.0.0.1", 0)) as silent, miniweb.serve(miniweb.Corpus([page])) as web:
        world = {"NEXI_MODEL": "extractive", "NEXI_ALLOW_PRIVATE": web.removeprefix("http://")}
        with process(tmp_path, SEARXNG_URL=f"http://127.0.0.1:{silent.getsockname()[1]}", **world) as (running, base):
            with httpx2.Client(base_url=base, headers=owner_of(tmp_path), timeout=300) as client:
                run_id = client.post("/v1/runs", json={"question": "How far is the Moon from Earth?"}).json()["id"]
                asked, _ = silent.accept()  # it is searching now
            running.kill()
            running.wait(300)
            asked.close()
        with (
            process(tmp_path, SEARXNG_URL=web, **world) as (running, base),
            httpx2.Client(base_url=base, headers=owner_of(tmp_path), timeout=300) as client,
        ):
            while client.get(f"/v1/runs/{run_id}").json()["state"] in ("running", "unfinished"):
                client.get(f"/v1/runs/{run_id}/events")
            told = client.get(f"/v1/runs/{run_id}/events").text
            answer = client.get(f"/v1/runs/{run_id}/result").json()["answer"]
            ended(running)
    kinds = [line.removeprefix("event: ") for line in told.splitlines() if line.startswith("event: ")]
    assert (kinds[0], kinds[-1], kinds.count("run_resumed")) == ("run_started", "run_finished", 1)
    assert FACT in answer


def test_a_server_does_not_keep_the_rare_garbage_collection_of_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, served_with = gc.get_threshold(), []
    monkeypatch.setattr(server.Server, "run", lambda *_: served_with.append(gc.get_threshold()))
    gc.set_threshold(50_000)
    try:
        server.serve(Config(home=tmp_path), server.ServerOptions(port=0))
    finally:
        gc.set_threshold(*before)
    assert served_with == [server.GC_THRESHOLDS]
