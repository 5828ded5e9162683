"""What a person does on a team server, with few and with many runs behind her.

    python -m bench.team_growth [--runs 100 10000 100000] [--others 0] [--save]

Each request goes through the app of the server, over a real Postgres on the same machine; no worker runs. A request is timed as
the fastest of several, which says least about what else the machine does, and the rows that its statements read are counted:
those do not depend on the machine at all. The past is written into the tables by SQL, so the runs are small.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2

from nexi.app import Nexi
from nexi.config import Config
from nexi.team.assembly import People, Quotas, Team
from nexi.team.web.app import create_team_app
from nexi.testing import FakeWeb
from nexi.web.guard import GuardRules
from rig.postgres import list_binaries, list_binaries_with_trigrams, running_postgres
from rig.team_history import CountingDatabase, add_past_runs, past_run_id

TABLE = Path(__file__).resolve().parent / "team_growth.md"
RUNS = (100, 10_000, 100_000)
TRIES = 7
MANY = GuardRules(per_minute=1_000_000, burst=1_000_000)
Request = Callable[[httpx2.AsyncClient, str], Awaitable[httpx2.Response]]
REQUESTS: dict[str, Request] = {
    "submit a question": lambda client, run: client.post("/v1/runs", json={"question": "How long is the river?"}),
    "account": lambda client, run: client.get("/account"),
    "list 20 runs": lambda client, run: client.get("/v1/runs?limit=20"),
    "list failed runs": lambda client, run: client.get("/v1/runs?state=failed"),
    "open the oldest run": lambda client, run: client.get(f"/v1/runs/{run}"),
    "history of the page": lambda client, run: client.get("/page/history"),
    "search a frequent word": lambda client, run: client.get("/page/history?q=river"),
    "search the oldest": lambda client, run: client.get("/page/history?q=number+1+of"),
}


async def measure(url: str, home: Path, runs: int, others: int) -> dict[str, tuple[float, int]]:
    """The fastest time of each request in milliseconds, and the rows it reads, for a person with so many runs."""
    database = CountingDatabase(url)
    database.open()
    people, web = People(database), FakeWeb({})
    ada = people.add(f"Ada with {runs}")
    people.set_quotas(ada, Quotas(storage_bytes=10**12))
    database.fetch("drop index if exists history_by_trigrams, runs_by_trigrams")  # made again below, in one go
    add_past_runs(database, ada, runs)
    for number in range(others // 10_000):
        add_past_runs(database, people.add(f"Other {number}"), 10_000)
    database.close()
    database = CountingDatabase(url)
    database.open()
    people = People(database)
    for chore in ("vacuum analyze", "checkpoint"):  # which the database would do in the middle of the measurement
        with database._pool.connection() as connection:
            connection.execute("set statement_timeout = 0")
            connection.execute(chore)
            connection.execute("reset statement_timeout")
    config = Config(home=home, model="extractive", database_url=url)

    def make_nexi(personal: Config, state: Any) -> Nexi:
        return Nexi(personal, state=state, backends=(web,), fetchers=(web,))

    app = create_team_app(Team(config, database, make_nexi=make_nexi), rules=MANY)
    oldest = past_run_id(ada, runs)
    times = {}
    async with app.router.lifespan_context(app):
        headers = {"authorization": f"Bearer {people.add_token(ada, 'bench')}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="https://127.0.0.1", headers=headers, timeout=600
        ) as client:
            for name, ask in REQUESTS.items():
                times[name] = await _time_request(database, lambda ask=ask: ask(client, oldest))  # type: ignore[misc]
    return times


async def _time_request(database: CountingDatabase, ask: Callable[[], Awaitable[httpx2.Response]]) -> tuple[float, int]:
    best, rows = float("inf"), 0
    for _ in range(TRIES):
        database.rows_read, began = 0, time.perf_counter()
        reply = await ask()
        best, rows = min(best, time.perf_counter() - began), database.rows_read
        assert reply.status_code < 300, reply.text
    return best * 1_000, rows


def render(results: dict[int, dict[str, tuple[float, int]]], others: int, version: str, has_trigrams: bool) -> str:
    sizes = sorted(results)
    head = " | ".join(f"{size:,} runs" for size in sizes)
    lines = [
        "# What a long past costs on a team server",
        "",
        f"`python -m bench.team_growth`, Postgres {version} on the same machine ({platform.machine()}, {os.cpu_count()} cores, "
        f"and other work), {'with' if has_trigrams else 'without'} pg_trgm, {others:,} runs of other people beside them. "
        f"The fastest of {TRIES}, and the rows that its statements read; the last column compares the times.",
        "",
        f"| request | {head} | last / first |",
        f"|---|{'---|' * len(sizes)}---|",
    ]
    for name in REQUESTS:
        cells = [results[size][name] for size in sizes]
        shown = " | ".join(f"{ms:.1f} ms, {rows:,} rows" for ms, rows in cells)
        lines.append(f"| {name} | {shown} | {cells[-1][0] / cells[0][0]:.2f} |")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines += ["", f"The server's process, with its client, took {memory:.0f} MB at most.", ""]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=list(RUNS))
    parser.add_argument("--others", type=int, default=0, help="runs of other people, in ten thousands each")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args(words)
    candidates = [*list_binaries_with_trigrams(), *list_binaries()]
    results = {}
    with running_postgres(is_durable=False, candidates=candidates[:1]) as server, tempfile.TemporaryDirectory() as home:
        for number, runs in enumerate(options.runs):
            results[runs] = asyncio.run(measure(server.url, Path(home), runs, 0 if number else options.others))
        database = CountingDatabase(server.url)
        database.open()
        ((version,),) = database.fetch("show server_version")
        has_trigrams = bool(database.fetch("select 1 from pg_extension where extname = 'pg_trgm'"))
        database.close()
    table = render(results, options.others, version.partition(" ")[0], has_trigrams)
    print(table)
    if options.save:
        TABLE.write_text(table, "utf-8")


if __name__ == "__main__":
    main()
