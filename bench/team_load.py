"""A team server under load: 3 servers, 4 workers and 200 people on this machine; a worker and a server are killed on the way.

    python -m bench.team_load [--people 200] [--servers 3] [--workers 4] [--save]

Each person asks one question at one server, follows the run at another and reads the answer at a third; half of them also ask
for the run of somebody else. The model is scripted (0.3 s a call) and the web is in memory (0.1 s a page), each a process of
its own. Postgres is the one of the tests, with fsync on. CPU is as the kernel counts it, for servers, workers and Postgres.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from rig.postgres import PostgresServer, running_postgres
from rig.team_fleet import MODEL_MS, PAGE_MS, TOWNS, WORKER_RUNS, TeamProcesses, cpu_seconds, running_world, year_of

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "team_load.md"
ARRIVE_S = 60.0  # everybody asks within this time
PATIENCE_S = 500.0


@dataclass
class Figures:
    """What was measured."""

    took: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ("ask", "state", "result")})
    waited: list[float] = field(default_factory=list)  # between the question and the beginning of its run
    total: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    connections: int = 0


def postgres_cpu(server: PostgresServer) -> float:
    main, *children = server.list_processes()
    total = cpu_seconds(main, with_ended=True)
    for pid in children:
        with suppress(OSError):  # it has ended
            total += cpu_seconds(pid)
    return total


# the people


class Person:
    """One of those who ask."""

    def __init__(self, number: int, token: str, fleet: TeamProcesses, figures: Figures, client: httpx2.AsyncClient) -> None:
        self._number, self._fleet, self._figures, self._client = number, fleet, figures, client
        self._headers = {"authorization": f"Bearer {token}"}
        self._turn = number
        self.run_id = ""

    async def _send(self, kind: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        """One request, at the next server; one that does not answer is left for another."""
        for _ in range(20):
            servers = list(self._fleet.servers)
            self._turn += 1
            base, began = servers[self._turn % len(servers)], time.perf_counter()
            try:
                reply = await self._client.request(method, base + path, json=body, headers=self._headers)
            except httpx2.TransportError:
                self._figures.counts["requests that went to another server"] += 1
                await asyncio.sleep(0.2)
                continue
            self._figures.took[kind].append(time.perf_counter() - began)
            if reply.status_code not in (429, 503):
                return reply
            self._figures.counts[f"answered {reply.status_code}"] += 1
            await asyncio.sleep(1.0)
        raise RuntimeError(f"{method} {path} was never answered")

    async def ask(self, others: list[Person]) -> None:
        town, began = self._number % TOWNS, time.perf_counter()
        question = f"When was the lighthouse of Town{town} built?"
        reply = await self._send("ask", "POST", "/v1/runs", {"question": question})
        self.run_id = reply.json()["id"]
        while (status := (await self._send("state", "GET", f"/v1/runs/{self.run_id}")).json())["state"] == "running":
            await asyncio.sleep(1.0)
        self._figures.total.append(time.perf_counter() - began)
        self._figures.waited.append(max(0.0, self._figures.total[-1] - status.get("seconds", 0.0)))
        result = (await self._send("result", "GET", f"/v1/runs/{self.run_id}/result")).text
        self._figures.counts[status["state"]] += 1
        self._figures.counts["with the right year"] += str(year_of(town)) in result
        if self._number % 2 and (other := next((o for o in others if o is not self and o.run_id), None)):
            stranger = await self._send("state", "GET", f"/v1/runs/{other.run_id}")
            self._figures.counts["runs of others refused" if stranger.status_code == 404 else "RUNS OF OTHERS SHOWN"] += 1


async def ask_all(fleet: TeamProcesses, tokens: list[str], figures: Figures, database: Database) -> None:
    chance = random.Random(21)
    limits = httpx2.Limits(max_connections=400, max_keepalive_connections=50)
    async with httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        people = [Person(number, token, fleet, figures, client) for number, token in enumerate(tokens)]

        async def come_and_ask(person: Person) -> None:
            await asyncio.sleep(chance.uniform(0, ARRIVE_S))
            await person.ask(people)

        async def disturb() -> None:
            while len(figures.total) < len(people) // 3:
                await asyncio.sleep(0.5)
            await asyncio.to_thread(fleet.kill_one_of_each)

        async def watch() -> None:
            while True:
                rows = await asyncio.to_thread(
                    database.fetch, "select count(*) from pg_stat_activity where usename is not null"
                )
                figures.connections = max(figures.connections, rows[0][0])
                await asyncio.sleep(2)

        watching = asyncio.create_task(watch())
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(disturb(), *map(come_and_ask, people))
        finally:
            watching.cancel()


def measure(people: int, servers: int, workers: int) -> tuple[Figures, dict[str, Any]]:
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder, running_postgres() as postgres, running_world(Path(folder)) as (web, model):
        database = Database(postgres.url).open()
        everybody = People(database)
        tokens = [everybody.add_token(everybody.add(f"Person {n}"), "load") for n in range(people)]
        fleet = TeamProcesses(postgres.url, Path(folder), web, model)
        try:
            for _ in range(servers):
                fleet.start_server()
            for _ in range(workers):
                fleet.start_worker()
            before, sql_before, began = fleet.cpu(), postgres_cpu(postgres), time.monotonic()
            asyncio.run(ask_all(fleet, tokens, figures, database))
            seconds = time.monotonic() - began
            cpu = {name: now - before[name] for name, now in fleet.cpu().items()}
            cpu["Postgres"] = postgres_cpu(postgres) - sql_before
            memory = fleet.memory_mb()
        finally:
            fleet.stop()
        facts, size, commits, two = database.fetch(
            "select (select count(*) from facts), pg_database_size(current_database()), "
            "(select xact_commit from pg_stat_database where datname = current_database()), "
            "(select count(*) from facts later join facts earlier on later.run = earlier.run and later.n = earlier.n + 1 "
            "where later.epoch < earlier.epoch)"
        )[0]
        tables = dict(
            database.fetch(
                "select relname, pg_total_relation_size(oid) from pg_class where relkind = 'r' "
                "and relname in ('facts', 'pages', 'chunks', 'runs')"
            )
        )
        database.close()
    about = {"seconds": seconds, "cpu": cpu, "memory": memory, "facts": facts, "bytes": size, "commits": commits, "two": two}
    return figures, {**about, "tables": tables}


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def render(figures: Figures, about: dict[str, Any], people: int, servers: int, workers: int) -> str:
    runs = max(1, len(figures.total))
    names = {"ask": "`POST /v1/runs`", "state": "`GET /v1/runs/ID`", "result": "`GET /v1/runs/ID/result`"}
    rows = [(names[kind], took, 1000.0, "ms") for kind, took in figures.took.items()]
    rows += [
        ("from the question to its run", figures.waited, 1.0, "s"),
        ("from the question to the answer", figures.total, 1.0, "s"),
    ]
    cpu, memory = about["cpu"], about["memory"]
    lines = [
        "# A team server under load",
        "",
        f"`python -m bench.team_load --save`: {people} people who ask within {ARRIVE_S:g} s, {servers} servers, {workers} "
        f"workers with {WORKER_RUNS} runs each, one Postgres (fsync on), a scripted model ({MODEL_MS} ms a call) and a web in "
        f"memory ({PAGE_MS} ms a page), all on {os.cpu_count()} cores that other work shares. After a third of the answers, "
        "one server and one worker are killed (`kill -9`); the worker is started again.",
        "",
        "| | count |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(figures.counts.items())),
        f"| facts written by two at once | {about['two']} |",
        f"| connections to Postgres, at most | {figures.connections} |",
        "",
        "| | p50 | p95 | max |",
        "|---|---|---|---|",
        *(
            f"| {name} | {' | '.join(f'{percentile(values, share) * factor:.0f} {unit}' for share in (0.5, 0.95, 1.0))} |"
            for name, values, factor, unit in rows
        ),
        "",
        "| | CPU for one run | memory of one process |",
        "|---|---|---|",
        f"| servers | {1000 * cpu['servers'] / runs:.0f} ms | {memory['servers']:.0f} MB |",
        f"| workers | {1000 * cpu['workers'] / runs:.0f} ms | {memory['workers']:.0f} MB |",
        f"| Postgres | {1000 * cpu['Postgres'] / runs:.0f} ms | |",
        "",
        f"{runs} runs in {about['seconds']:.0f} s. For one run: {about['facts'] / runs:.0f} facts, "
        f"{about['commits'] / runs:.0f} transactions, "
        + ", ".join(f"{size / runs / 1000:.0f} kB in `{name}`" for name, size in sorted(about["tables"].items()))
        + ".",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    figures, about = measure(chosen.people, chosen.servers, chosen.workers)
    text = render(figures, about, chosen.people, chosen.servers, chosen.workers)
    print(text)
    if chosen.save:
        TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
