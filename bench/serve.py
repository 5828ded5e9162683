"""What the server adds: latency and CPU of a search beside a plain Starlette handler, readers of events, start and memory.

    python -m bench.serve [--requests N] [--save]

Both servers are processes of their own on loopback, over a backend that answers at once, so that what is measured is the way
through the server. CPU is of the server process alone, as the kernel counts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "serve.md"
CLIENTS = (1, 16, 64)
READERS = 50
WAITS = {"quick": 0.1, "slow": 1.5}  # seconds a page of these webs takes
QUERY = {"query": "how far is the moon from earth"}
TICKS = os.sysconf("SC_CLK_TCK")


# the two servers


def child(kind: str, home: str) -> None:
    """Serve on a free port, and say which."""
    import uvicorn

    from nexi.web.server import Server, ServerOptions, bind_socket, uvicorn_config

    config, app = _app(kind, Path(home))
    listener = bind_socket(ServerOptions(port=0))
    settings: uvicorn.Config = uvicorn_config(config, ServerOptions(port=0))
    settings.app, settings.factory = app, False
    print(listener.getsockname()[1], flush=True)
    Server(settings).run([listener])


def _app(kind: str, home: Path) -> tuple[Any, Any]:
    from nexi.app import Nexi
    from nexi.config import Config
    from nexi.testing import FakeWeb
    from nexi.web import create_app
    from nexi.web.guard import GuardRules

    class Slow(FakeWeb):
        """A web that takes its time, as the real one does."""

        async def search(self, query: Any) -> Any:
            await asyncio.sleep(WAITS[kind])
            return await super().search(query)

        async def fetch(self, url: str, limits: Any) -> Any:
            await asyncio.sleep(WAITS[kind])
            return await super().fetch(url, limits)

    pages = {f"https://site{n}.example/moon": f"# Moon {n}\n\nThe Moon is 384,400 km from Earth on average." for n in range(10)}
    config = Config(home=home, model="extractive")
    if kind == "plain":
        return config, _plain(config, home, pages)
    web = Slow(pages) if kind in WAITS else FakeWeb(pages)
    nexi = Nexi(config, backends=(web,), fetchers=(web,))
    app = create_app(config, nexi=nexi, rules=GuardRules(per_minute=1e9, burst=1e9, most_requests=10_000), most_runs=1000)
    app.state.drain_s = 0
    return config, app


def _plain(config: Any, home: Path, pages: dict[str, str]) -> Any:
    """The pack of one search, read from memory, in a handler that reads and parses its request."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from nexi.app import Nexi
    from nexi.testing import FakeWeb

    class Host:
        async def drain(self, _: float) -> None:
            return None

    async def pack() -> dict[str, Any]:
        web = FakeWeb(pages)
        async with Nexi(config, backends=(web,), fetchers=(web,)) as nexi:
            return dict(await nexi.search_api().search(QUERY))

    fixed = asyncio.run(pack())

    async def search(request: Request) -> Response:
        json.loads(await request.body())
        return JSONResponse(fixed)

    app = Starlette(routes=[Route("/v1/search", search, methods=["POST"]), Route("/healthz", lambda _: Response("ok"))])
    app.state.host, app.state.drain_s = Host(), 0
    return app


class Process:
    def __init__(self, kind: str, home: str) -> None:
        command = [sys.executable, "-m", "bench.serve", "--child", kind, "--home", home]
        self._running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._running.stdout
        self.base = f"http://127.0.0.1:{int(self._running.stdout.readline())}"
        self._wait()

    def _wait(self) -> None:
        urllib.request.urlopen(f"{self.base}/healthz", timeout=30).close()

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._running.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        line = next(s for s in Path(f"/proc/{self._running.pid}/status").read_text().splitlines() if s.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.terminate()
        self._running.wait()


# measuring


async def load(base: str, clients: int, requests: int) -> list[float]:
    """Milliseconds of each request, from so many clients at once."""
    left = iter(range(requests))
    times: list[float] = []

    async def one(client: httpx2.AsyncClient) -> None:
        for _ in left:
            began = time.perf_counter()
            reply = await client.post("/v1/search", json=QUERY)
            times.append((time.perf_counter() - began) * 1000)
            assert reply.status_code == 200, reply.text

    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=base, timeout=60, limits=limits, verify=False) as client:
        await asyncio.gather(*(one(client) for _ in range(clients)))
    return times


def row(name: str, process: Process, clients: int, requests: int) -> tuple[str, float]:
    asyncio.run(load(process.base, clients, max(20, requests // 10)))
    before = process.cpu()
    times = sorted(asyncio.run(load(process.base, clients, requests)))
    cpu = (process.cpu() - before) / requests * 1000
    p50, p99 = statistics.median(times), times[int(len(times) * 0.99) - 1]
    return f"| {name} | {clients} | {p50:.2f} | {p99:.2f} | {cpu:.2f} |", cpu


async def run_seconds(base: str, readers: int) -> float:
    """The wall time of one research run while so many follow its events."""
    async with httpx2.AsyncClient(
        base_url=base, timeout=120, verify=False, limits=httpx2.Limits(max_connections=200)
    ) as client:
        asked = {"question": "how far is the moon from earth", "mode": "research", "options": {"depth": 1}}
        run_id = (await client.post("/v1/runs", json=asked)).json()["id"]

        async def follow() -> None:
            async with client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
                async for _ in stream.aiter_raw():
                    pass

        await asyncio.gather(*(follow() for _ in range(readers)))
        return float((await client.get(f"/v1/runs/{run_id}")).json()["seconds"])


def readers(base: str, times: int) -> tuple[float, float]:
    asyncio.run(run_seconds(base, 1))
    alone, among = [], []
    for _ in range(times):
        alone.append(asyncio.run(run_seconds(base, 1)))
        among.append(asyncio.run(run_seconds(base, READERS)))
    return statistics.median(alone), statistics.median(among)


def _with_readers(kind: str, home: str) -> str:
    with Process(kind, home) as process:
        alone, among = readers(process.base, 5)
    return (
        f"- A research run over a web of {WAITS[kind]} s a page: {alone:.2f} s with one reader, {among:.2f} s with {READERS}, "
        f"{among / alone:.2f}x (at most 1.2x)"
    )


def ready(home: str) -> tuple[float, float]:
    """Seconds until the framework is imported, and until the server answers; the best of three, each in turn."""
    framework, server = [], []
    for _ in range(3):
        began = time.perf_counter()
        modules = "starlette.applications, uvicorn, uvicorn.protocols.http.h11_impl"
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        framework.append(time.perf_counter() - began)
        began = time.perf_counter()
        command = [sys.executable, "-m", "nexi", "serve", "--port", "0", "--log-level", "error"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NEXI_HOME": home}) as running:
            assert running.stderr
            while "http://127." not in (line := running.stderr.readline()):
                assert line
            urllib.request.urlopen(line.split()[-1].partition("/?")[0] + "/readyz", timeout=30).close()
            server.append(time.perf_counter() - began)
            running.terminate()
    return min(framework), min(server)


def report(requests: int) -> str:
    lines = ["| server | clients | p50 ms | p99 ms | CPU ms per request |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as home, Process("plain", home) as plain, Process("nexi", home) as ours:
        idle = ours.memory_mb()
        ratios = []
        for clients in CLIENTS:
            other, floor = row("plain Starlette", plain, clients, requests)
            mine, cpu = row("nexi, simple mode", ours, clients, requests)
            lines += [other, mine]
            ratios.append(cpu / floor if floor else 0.0)
        told = [_with_readers(kind, home) for kind in WAITS]
        framework, server = ready(home)
    lines += [
        "",
        f"- CPU per request beside the plain handler: {', '.join(f'{r:.1f}x' for r in ratios)} (at most 3x)",
        *told,
        f"- Framework imported in {framework:.2f} s, server ready in {server:.2f} s: {server / framework:.2f}x (at most 1.5x)",
        f"- Memory when idle: {idle:.0f} MB (at most 120)",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--home", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child, given.home)
    text = report(given.requests)
    print(text)
    if given.save:
        machine = f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} from other work"
        head = f"# What the server adds\n\n`python -m bench.serve --requests {given.requests} --save`; {machine}.\n\n"
        TABLE.write_text(head + text, encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
