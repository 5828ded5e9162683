"""Appends to the run log of a team server against the log of one person, and how soon a follower learns of them.

    python -m bench.team [--save]

Both logs are flushed to the disk at every append. Postgres is the one of the tests, with fsync on, on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from nexi.app import SystemClock
from nexi.events import ModelAsked, RunStarted
from nexi.ports import RunStore
from nexi.runs.directory import RunDirectory
from nexi.team.postgres.database import Database
from nexi.team.postgres.runs import PostgresRuns
from rig.postgres import running_postgres

TABLE = Path(__file__).resolve().parent / "team.md"
WRITERS = (1, 8, 40)
APPENDS, ROUNDS = 4_000, 20
STARTED = RunStarted("why?", "m", "scripted")
FACT = ModelAsked(1, "answer", "m" * 700, 12)
MIN_PER_SECOND, MAX_RATIO = 900, 12.0


class Series:
    """Appends of so many runs at once to one store, in rounds."""

    def __init__(self, store: RunStore | BareTable, writers: int) -> None:
        self._logs = [store.create() for _ in range(writers)]
        self._took: list[float] = []
        self._seconds = self._cpu = 0.0

    async def open(self) -> None:
        for log in self._logs:
            await log.append(STARTED)

    async def _write(self, log: Any, count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            await log.append(FACT)
            self._took.append(time.perf_counter() - began)

    async def run_round(self) -> None:
        count = max(10, APPENDS // ROUNDS // len(self._logs))
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(self._write(log, count) for log in self._logs))
        self._seconds, self._cpu = self._seconds + time.perf_counter() - began, self._cpu + time.process_time() - cpu

    async def close(self) -> dict[str, float]:
        for log in self._logs:
            await log.close()
        took = sorted(self._took)
        return {
            "p50": median(took) * 1e3,
            "p95": took[int(len(took) * 0.95)] * 1e3,
            "rate": len(took) / self._seconds,
            "cpu": self._cpu / len(took) * 1e6,
        }


class BareTable:
    """One INSERT of the same size into a table without anything else: what the database itself needs for a commit."""

    run_id = ""

    def __init__(self, database: Database) -> None:
        self._database, self._line = database, "m" * 900
        database.fetch("create table if not exists bare (line text)")

    def create(self) -> BareTable:
        return self

    async def append(self, fact: Any) -> int:
        await self._database.in_thread(self._database.fetch, "insert into bare values (%(line)s)", {"line": self._line})
        return 0

    async def close(self) -> None:
        return


async def measure(stores: Sequence[RunStore | BareTable], writers: int) -> list[dict[str, float]]:
    """Appends of so many runs at once to each store, in turns: the disk of a shared machine changes from minute to minute."""
    series = [Series(store, writers) for store in stores]
    for one in series:
        await one.open()
    for _ in range(ROUNDS):
        for one in series:
            await one.run_round()
    return [await one.close() for one in series]


async def measure_notices(writer: RunStore, reader: RunStore, count: int = 100) -> list[float]:
    """Milliseconds from a commit until a follower on another server has read the fact."""
    log = writer.create()
    await log.append(STARTED)
    waits = []
    for number in range(2, count + 2):
        following = asyncio.create_task(follow(reader, log.run_id, number))
        await asyncio.sleep(0.06)
        await log.append(FACT)
        began = time.perf_counter()
        waits.append((await following - began) * 1e3)
    await log.close()
    return sorted(waits)


async def follow(reader: RunStore, run_id: str, number: int) -> float:
    """When a follower has read the fact of that number."""
    while len((await asyncio.to_thread(reader.open_log, run_id)).facts) < number:
        await reader.wait_for_facts(run_id, number - 1, 1.0)
    return time.perf_counter()


def render_table(
    files: dict[int, dict[str, float]], team: dict[int, dict[str, float]], bare: dict[str, float], notices: list[float]
) -> tuple[str, bool]:
    rows = [
        f"| {name}, {writers} | {row['p50']:.2f} / {row['p95']:.2f} | {row['rate']:,.0f} | {row['cpu']:.0f} |"
        for name, rows in (("file", files), ("Postgres", team), ("Postgres, bare INSERT", {1: bare}))
        for writers, row in rows.items()
    ]
    ratio, rate = team[1]["p50"] / files[1]["p50"], team[40]["rate"]
    is_met = rate >= MIN_PER_SECOND and ratio <= MAX_RATIO
    lines = [
        "# Appends of a team server",
        "",
        f"`python -m bench.team --save` on {os.cpu_count()} cores that other work shares: compare the ratios. "
        f"The two logs were written in turns, {ROUNDS} rounds each, because the disk changes from minute to minute.",
        "",
        "| log, writers at once | p50 / p95 ms | appends/s | CPU of the client, µs |",
        "|---|---|---|---|",
        *rows,
        "",
        f"With 40 writers {rate:,.0f} appends a second (wanted: {MIN_PER_SECOND}); one writer waits {ratio:.1f} times as long "
        f"for a commit as for the file (allowed: {MAX_RATIO:g}). {'Both are met.' if is_met else 'NOT met.'}",
        "",
        f"A bare INSERT of the same size waits {bare['p50'] / files[1]['p50']:.1f} times as long as the file; the fenced "
        f"append, which also changes the row of its run, {team[1]['p50'] / bare['p50']:.1f} times as long as that.",
        "",
        f"A follower on another server has read a fact {median(notices):.0f} ms after its commit (p95 "
        f"{notices[int(len(notices) * 0.95)]:.0f} ms): notices are sent every 50 ms, outside the appends.",
        "",
    ]
    return "\n".join(lines), is_met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.home()) as home, running_postgres() as server:
        database, other = Database(server.url).open(), Database(server.url).open()
        owner = str(database.fetch("insert into people (name) values ('Ada') returning id")[0][0])
        team = PostgresRuns(database, owner, SystemClock())
        runs = RunDirectory(Path(home) / "runs", Path(home) / "pages", SystemClock())
        stores = (runs, team, BareTable(database))
        measured = {writers: asyncio.run(measure(stores[: 3 if writers == 1 else 2], writers)) for writers in WRITERS}
        files, rows = ({writers: figures[index] for writers, figures in measured.items()} for index in (0, 1))
        notices = asyncio.run(measure_notices(team, PostgresRuns(other, owner, SystemClock())))
        database.close()
        other.close()
    text, is_met = render_table(files, rows, measured[1][2], notices)
    print(text)
    if chosen.save:
        TABLE.write_text(text, "utf-8")
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
