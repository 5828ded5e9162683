"""A search through the server beside the real metasearch engine under it: what nexi adds to the wait.

    python -m bench.searxng [--requests N] [--save]

Debian's searx searches a small web on loopback. It is asked directly for JSON, and through `POST /v1/search` of a `nexi serve`
that has it as its backend, by turns, each request with words of its own so that nothing comes from a cache.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from rig import miniweb, searx

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "searxng.md"
CLIENTS = (1, 16, 64)
PATIENCE_S = 60  # one engine of two cores lets the last of many clients wait; nexi gives up after 8 s unless it is told
BUDGET = {"max_total_time_ms": PATIENCE_S * 1000, "per_request_timeout_ms": {"search": PATIENCE_S * 1000}}
PAGES = [
    {"url": f"http://site{n}.test/moon", "title": f"Moon {n}", "html": f"<p>The Moon is {n} times 384,400 km from Earth.</p>"}
    for n in range(10)
]
NOTE = """
Nexi asks a backend a few queries at a time; where there are more clients than that, they wait in its line, first come first
served, rather than all at once in the engine.
"""
Times = list[float]


@contextmanager
def nexi(home: Path, backend: str) -> Iterator[str]:
    """The command itself, with that engine as its only backend."""
    words = ["serve", "--port", "0", "--rate", "10000000", "--drain", "0"]
    known = {"NEXI_HOME": str(home), "SEARXNG_URL": backend, "NEXI_MODEL": "extractive"}
    command = [sys.executable, "-m", "nexi", *words]
    (home / "config.json").write_text(json.dumps({"search_timeout": PATIENCE_S}))
    log = home / "log"
    with log.open("w") as told:
        running = subprocess.Popen(command, cwd=ROOT, stderr=told, env={**os.environ, **known})
    try:
        while "http://127." not in log.read_text():
            assert running.poll() is None, log.read_text()
            time.sleep(0.05)
        line = next(line for line in log.read_text().splitlines() if "http://127." in line)
        yield line.split()[-1].partition("/?")[0]
    finally:
        running.terminate()
        running.wait()


class Asked:
    """Two ways to the same hits."""

    def __init__(self, direct: str, ours: str) -> None:
        self.direct, self.ours = direct, ours
        self._words = itertools.count()

    async def directly(self, client: httpx2.AsyncClient) -> int:
        asked = {"q": f"moon distance {next(self._words)}", "format": "json"}
        reply = await client.get(f"{self.direct}/search", params=asked)
        return len(reply.raise_for_status().json()["results"])

    async def by_nexi(self, client: httpx2.AsyncClient) -> int:
        asked = {"query": f"moon distance {next(self._words)}", "budget": BUDGET}
        reply = await client.post(f"{self.ours}/v1/search", json=asked)
        return len(reply.raise_for_status().json()["items"])

    async def times(self, way: str, clients: int, requests: int) -> Times:
        """Milliseconds of each request that brought hits, from so many clients at once."""
        left, taken = iter(range(requests)), Times()
        ask = self.directly if way == "direct" else self.by_nexi

        async def one(client: httpx2.AsyncClient) -> None:
            for _ in left:
                began = time.perf_counter()
                found = await ask(client)
                if found:
                    taken.append((time.perf_counter() - began) * 1000)

        limits = httpx2.Limits(max_connections=clients)
        async with httpx2.AsyncClient(timeout=120, limits=limits, verify=False) as client:
            await asyncio.gather(*(one(client) for _ in range(clients)))
        return taken


def p50_p99(times: Times) -> tuple[float, float]:
    ordered = sorted(times)
    return statistics.median(ordered), ordered[max(0, int(len(ordered) * 0.99) - 1)]


def rows(asked: Asked, clients: int, requests: int) -> str:
    """Both by turns, in four rounds, so that other work on the machine falls on both."""
    taken: dict[str, Times] = {"direct": [], "nexi": []}
    for way in taken:
        asyncio.run(asked.times(way, clients, clients))
    for _ in range(4):
        for way, times in taken.items():
            times += asyncio.run(asked.times(way, clients, max(clients, requests // 4)))
    (d50, d99), (n50, n99) = p50_p99(taken["direct"]), p50_p99(taken["nexi"])
    brought = f"{len(taken['direct'])}, {len(taken['nexi'])}"
    return f"| {clients} | {brought} | {d50:.1f} | {d99:.1f} | {n50:.1f} | {n99:.1f} | {n50 - d50:+.1f} ({n50 / d50:.2f}x) |"


def report(requests: int) -> str:
    lines = [
        "| clients | answers with hits | searx p50 ms | p99 | nexi over it p50 ms | p99 | added at p50 |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder, miniweb.serve(miniweb.Corpus(PAGES)) as web:
        home = Path(folder) / "home"
        home.mkdir()
        with searx.serve(Path(folder), web, patience=PATIENCE_S) as direct, nexi(home, direct) as ours:
            lines += [rows(Asked(direct, ours), clients, requests) for clients in CLIENTS]
    return "\n".join(lines) + "\n" + NOTE


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    given = parser.parse_args()
    if why := searx.missing():
        print(f"left out: {why}")
        return
    text = report(given.requests)
    print(text)
    if given.save:
        machine = f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} with other work"
        head = "# Beside a real SearXNG\n\n"
        how = f"`python -m bench.searxng --requests {given.requests} --save`; Debian's searx 1.1.0, {machine}.\n\n"
        TABLE.write_text(head + how + text, encoding="utf-8")


if __name__ == "__main__":
    main()
