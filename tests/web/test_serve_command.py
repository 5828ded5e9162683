"""`nexi serve` as a process: where it listens, how it ends, and what of the keys can be seen from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

CANARIES = {"api_key": "sk-canary-model-0001", "jina_key": "jina-canary-0002", "token": "token-canary-0003"}
ASKED = {"question": "what does the canary sing"}


@contextmanager
def process(home: Path, *arguments: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `nexi serve` and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "nexi", "serve", "--port", "0", *arguments],
        env={"PATH": os.environ["PATH"], "NEXI_HOME": str(home), **env},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr
            told = ""
            while not (address := re.search(r"nexi serves (http://\S+)", told)):
                line = running.stderr.readline()
                assert line, told
                told += line
            yield running, address[1]
        finally:
            if running.poll() is None:
                running.kill()


def wait_until_ready(client: httpx2.Client) -> None:
    """The socket listens from the start, so the first request waits for the server behind it."""
    assert client.get("/healthz").text == "ok\n"


def ended(running: subprocess.Popen[str]) -> str:
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=30)
    return str(told)


def test_no_key_is_seen_in_a_log_an_error_an_event_a_file_of_a_run_or_the_list_of_processes(tmp_path: Path) -> None:
    settings = {**CANARIES, "base_url": "http://127.0.0.1:9/v1", "model": "m", "searxng_url": "http://127.0.0.1:9"}
    settings |= {"llm_max_retries": 0, "default_effort": "s", "max_output_tokens": 100, "search_timeout": 1}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    seen: list[str] = []
    with process(tmp_path, "--log-level", "debug") as (running, base), httpx2.Client(base_url=base, timeout=30) as client:
        seen.append(client.post("/v1/runs", json=ASKED).text)
        client.headers["authorization"] = f"Bearer {CANARIES['token']}"
        run_id = client.post("/v1/runs", json=ASKED).json()["id"]
        seen.append(client.get(f"/v1/runs/{run_id}/events").text)
        chat = {"model": "nexi-s", "messages": [{"role": "user", "content": "canary?"}]}
        seen += [client.post("/v1/chat/completions", json=chat).text, client.get("/metrics").text]
        seen += [client.post("/v1/search", json={"query": "x"}).text, client.get("/openapi.json").text]
        seen.append(Path(f"/proc/{running.pid}/cmdline").read_text(encoding="utf-8") if Path("/proc").exists() else "")
        logged = ended(running)
    seen += [logged, *(p.read_text(encoding="utf-8", errors="replace") for p in (tmp_path / "runs").rglob("*") if p.is_file())]
    assert [text for text in seen for key in CANARIES.values() if key in text] == []
    assert "what does the canary sing" in logged, "at debug, questions are logged"
    assert all(json.loads(line) for line in logged.splitlines())


def test_it_refuses_to_listen_beyond_this_machine_without_a_token(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nexi", "serve", "--host", "0.0.0.0", "--port", "0"],
        env={"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "does not listen on 0.0.0.0 without a token" in done.stderr
    assert "NEXI_TOKEN" in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with process(tmp_path) as (running, base):
        done = subprocess.run(
            [sys.executable, "-m", "nexi", "serve", "--port", base.rpartition(":")[2]],
            env={"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        ended(running)
    assert done.returncode == 2
    assert "cannot listen on 127.0.0.1" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_several_workers_serve_one_socket_and_end_together(tmp_path: Path) -> None:
    with (
        process(tmp_path, "--workers", "2", NEXI_TOKEN="t0ken") as (running, base),
        httpx2.Client(base_url=base, timeout=60) as client,
    ):
        wait_until_ready(client)
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"authorization": "Bearer t0ken"}).status_code == 200
        told = ended(running)
    assert running.returncode is not None
    assert "t0ken" not in told
    assert "Traceback" not in told
