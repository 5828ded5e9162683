"""The processes of a team server for trials and measurements: real ones, or workers with a slow model and a web in memory.

`TeamProcesses` are `nexi serve` and `nexi work` between a mini web and a scripted model, each a process of its own.
`SlowWorkers` are `rig.team_worker`, whose model takes as long as a trial wants.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["SlowWorkers", "TeamProcesses", "cpu_seconds", "free_port", "memory_mb", "running_world", "wait_for", "year_of"]

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
TOWNS = 50
MODEL_MS, PAGE_MS = 300, 100
WORKER_RUNS = 4
PATIENCE_S = 60.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(url: str, status: int = 200) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                answered = reply.status
        except urllib.error.HTTPError as error:
            answered = error.code
        except OSError:
            answered = 0
        if answered == status:
            return
        time.sleep(0.05)
    raise SystemExit(f"{url} did not answer {status}")


def cpu_seconds(pid: int, *, with_ended: bool = False) -> float:
    """CPU time of a process, and with `with_ended` of the children that it has waited for."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(int(n) for n in numbers[11 : 15 if with_ended else 13]) / TICKS


def memory_mb(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


# a web and a model


def year_of(town: int) -> int:
    """The answer to a question about a town of the web."""
    return 1700 + 3 * town


def write_corpus(folder: Path) -> None:
    body = "<html><head><title>{0}</title></head><body><main><h1>{0}</h1><p>{1}</p></main></body></html>"
    pages = []
    for town in range(TOWNS):
        text = f"The lighthouse of Town{town} was built in {year_of(town)}. It is {20 + town} metres tall. " * 3
        for site in ("museum", "coast"):
            title = f"The lighthouse of Town{town}"
            pages.append({"url": f"http://{site}{town}.test/lighthouse", "title": title, "html": body.format(title, text)})
    (folder / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)), encoding="utf-8")


@contextmanager
def running_world(folder: Path) -> Iterator[tuple[str, str]]:
    """(web, model) base URLs."""
    write_corpus(folder)
    with ExitStack() as stack:
        web, model = free_port(), free_port()
        for words, port in (
            (["rig.miniweb", str(folder), "--latency-ms", str(PAGE_MS), "--url-mode", "original"], web),
            (["rig.scripted_llm", "--latency-ms", str(MODEL_MS)], model),
        ):
            command = [sys.executable, "-m", *words, "--port", str(port)]
            child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(child.wait)
            stack.callback(child.kill)
            wait_for(f"http://127.0.0.1:{port}/stats")
        yield f"http://127.0.0.1:{web}", f"http://127.0.0.1:{model}"


# the team


class TeamProcesses:
    """The commands `nexi serve` and `nexi work`; without a web and a model, with the built-in model."""

    def __init__(self, url: str, home: Path, web: str = "", model: str = "", *, checkout: Path = ROOT) -> None:
        self._checkout = checkout
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "NEXI_HOME": str(home / "nexi"),
            "PYTHONPATH": f"{checkout}:{checkout / 'reader'}",
            "NEXI_DATABASE_URL": url,
            "NEXI_MODEL": "scripted" if model else "extractive",
            "NO_PROXY": "127.0.0.1",
        }
        if model:
            self._environment |= {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "none"}
        if web:
            self._environment |= {"SEARXNG_URL": web, "HTTP_PROXY": web}
        (home / "nexi").mkdir(exist_ok=True)
        config = {"verify_judge": False, "suggestions": False, "respect_robots": False, "page_cache": False}
        (home / "nexi" / "config.json").write_text(json.dumps(config))
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        self.workers: list[subprocess.Popen[bytes]] = []
        self._ended_cpu = {"server": 0.0, "worker": 0.0}

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "nexi", *words, "--log-level", "error"]
        return subprocess.Popen(
            command, cwd=self._checkout, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start_server(self, *options: str) -> str:
        base = f"http://127.0.0.1:{(port := free_port())}"
        self.servers[base] = self._start("serve", "--port", str(port), "--drain", "5", *options)
        wait_for(f"{base}/readyz")
        return base

    def start_worker(self) -> None:
        port = free_port()
        self.workers.append(self._start("work", "--max-runs", str(WORKER_RUNS), "--port", str(port)))
        wait_for(f"http://127.0.0.1:{port}/readyz")

    def kill_one_of_each(self) -> None:
        """A machine is lost: the server stays away, the worker is started again."""
        base = next(iter(self.servers))
        for name, process in (("server", self.servers.pop(base)), ("worker", self.workers.pop(0))):
            self._ended_cpu[name] += cpu_seconds(process.pid)
            process.kill()
            process.wait()
        self.start_worker()

    def cpu(self) -> dict[str, float]:
        servers = sum(cpu_seconds(p.pid) for p in self.servers.values()) + self._ended_cpu["server"]
        workers = sum(cpu_seconds(p.pid) for p in self.workers) + self._ended_cpu["worker"]
        return {"servers": servers, "workers": workers}

    def memory_mb(self) -> dict[str, float]:
        return {
            "servers": max(memory_mb(p.pid) for p in self.servers.values()),
            "workers": max(memory_mb(p.pid) for p in self.workers),
        }

    def stop(self) -> None:
        for process in (*self.servers.values(), *self.workers):
            process.kill()
            process.wait()


class SlowWorkers:
    """Workers with two runs each at once, and a model that takes `step_s` for each call."""

    def __init__(self, urls: Sequence[str], home: str, step_s: float, *, checkout: Path = ROOT) -> None:
        self._urls, self._home, self._step_s, self._checkout = urls, home, step_s, checkout
        self._ready: set[int] = set()
        self._readers: list[threading.Thread] = []
        self.processes = [self._start(url) for url in urls]
        while not self.is_whole:
            time.sleep(0.1)

    @property
    def is_whole(self) -> bool:
        """Whether every worker takes work."""
        return {process.pid for process in self.processes} <= self._ready

    def _start(self, url: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "rig.team_worker", url, self._home, str(self._step_s)]
        environment = {**os.environ, "PYTHONPATH": f"{self._checkout}:{self._checkout / 'reader'}"}
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self._checkout, env=environment
        )
        self._readers.append(threading.Thread(target=self._note_ready, args=(process,), daemon=True))
        self._readers[-1].start()
        return process

    def _note_ready(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for _ in lines:
                self._ready.add(process.pid)

    def restart(self, index: int, how: signal.Signals = signal.SIGKILL) -> None:
        """End a worker, as a crash does unless told otherwise, and start another in its place."""
        self.processes[index].send_signal(how)
        self.processes[index].wait()
        self.processes[index] = self._start(self._urls[index])

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for reader in self._readers:
            reader.join()
