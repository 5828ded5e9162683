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
from pathlib import Path
from statistics import median
from typing import Any

from nexi.app import SystemClock
from nexi.events import ModelAsked, RunStarted
from nexi.ports import RunStore
from nexi.postgres.database import Database
from nexi.postgres.runs import PostgresRuns
from nexi.runs.directory import RunDirectory
from rig.postgres import running_postgres

TABLE = Path(__file__).resolve().parent / "team.md"
WRITERS = (1, 8, 40)
APPENDS = 4_000
STARTED = RunStarted("why?", "m", "scripted")
FACT = ModelAsked(1, "answer", "m" * 700, 12)
MIN_PER_SECOND, MAX_RATIO = 900, 12.0


async def measure(store: RunStore, writers: int) -> dict[str, float]:
    """Appends of so many runs at once."""
    logs = [store.create() for _ in range(writers)]
    for log in logs:
        await log.append(STARTED)
    took: list[float] = []

    async def write(log: Any) -> None:
        for _ in range(max(100, APPENDS // writers)):
            began = time.perf_counter()
            await log.append(FACT)
            took.append(time.perf_counter() - began)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(write, logs))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    for log in logs:
        await log.close()
    took.sort()
    return {
        "p50": median(took) * 1e3,
        "p95": took[int(len(took) * 0.95)] * 1e3,
        "rate": len(took) / seconds,
        "cpu": cpu / len(took) * 1e6,
    }


async def measure_notices(writer: RunStore, reader: RunStore, count: int = 100) -> list[float]:
    """Milliseconds from a commit until a follower on another server knows of it."""
    log = writer.create()
    await log.append(STARTED)
    waits = []
    for _ in range(count):
        waiting = asyncio.create_task(reader.wait_for_facts(log.run_id, 0, 1.0))
        await asyncio.sleep(0.06)
        await log.append(FACT)
        began = time.perf_counter()
        await waiting
        waits.append((time.perf_counter() - began) * 1e3)
    await log.close()
    return sorted(waits)


def render_table(
    files: dict[int, dict[str, float]], team: dict[int, dict[str, float]], notices: list[float]
) -> tuple[str, bool]:
    rows = [
        f"| {name}, {writers} | {row['p50']:.2f} / {row['p95']:.2f} | {row['rate']:,.0f} | {row['cpu']:.0f} |"
        for name, rows in (("file", files), ("Postgres", team))
        for writers, row in rows.items()
    ]
    ratio, rate = team[1]["p50"] / files[1]["p50"], team[40]["rate"]
    is_met = rate >= MIN_PER_SECOND and ratio <= MAX_RATIO
    lines = [
        "# Appends of a team server",
        "",
        f"`python -m bench.team --save` on {os.cpu_count()} cores that other work shares: compare the ratios.",
        "",
        "| log, writers at once | p50 / p95 ms | appends/s | CPU of the client, µs |",
        "|---|---|---|---|",
        *rows,
        "",
        f"With 40 writers {rate:,.0f} appends a second (wanted: {MIN_PER_SECOND}); one writer waits {ratio:.1f} times as long "
        f"for a commit as for the file (allowed: {MAX_RATIO:g}). {'Both are met.' if is_met else 'NOT met.'}",
        "",
        f"A follower on another server knows of a commit after {median(notices):.0f} ms "
        f"(p95 {notices[int(len(notices) * 0.95)]:.0f} ms): notices are sent every 50 ms, outside the appends.",
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
        files = {writers: asyncio.run(measure(runs, writers)) for writers in WRITERS}
        rows = {writers: asyncio.run(measure(team, writers)) for writers in WRITERS}
        notices = asyncio.run(measure_notices(team, PostgresRuns(other, owner, SystemClock())))
        database.close()
        other.close()
    text, is_met = render_table(files, rows, notices)
    print(text)
    if chosen.save:
        TABLE.write_text(text, "utf-8")
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
