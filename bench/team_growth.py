"""What a person does on a team server, with few and with many runs behind her, alone and among a million runs.

    python -m bench.team_growth [--runs 100 10000 100000] [--all 1000000] [--save]

Each request goes through the app of the server, over a real Postgres on the same machine; no worker runs. The first person has
a database to herself; the others share a second one with the runs of everybody else. All take turns at each request, so that
other work on the machine slows down all of them alike, and what is compared is the CPU time of the server and of the database
for one request, the least of several. The rows that the statements read are counted apart: they do not depend on the machine.
The past is written into the tables by SQL, so the runs are small.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import platform
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from nexi.app import Nexi
from nexi.config import Config
from nexi.team.assembly import Team
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People, Quotas
from nexi.team.web.app import create_team_app
from nexi.testing import FakeWeb
from nexi.web.guard import GuardRules
from rig.postgres import PostgresServer, list_binaries, list_binaries_with_trigrams, running_postgres
from rig.team_history import CountingDatabase, add_past_runs, past_run_id

TABLE = Path(__file__).resolve().parent / "team_growth.md"
RUNS = (100, 10_000, 100_000)
ALL_RUNS = 1_000_000
OTHERS = 10
TRIES = 25
MAX_GROWTH = 1.5
MANY = GuardRules(per_minute=1_000_000, burst=1_000_000)


@dataclass(frozen=True)
class Subject:
    """A person with her past."""

    database: str
    person: str
    runs: int
    total: int

    @property
    def oldest(self) -> str:
        return past_run_id(self.person, self.runs)

    @property
    def rare_word(self) -> str:
        """In her oldest answer alone."""
        return hashlib.md5(str(self.runs).encode(), usedforsecurity=False).hexdigest()[4:12]


Request = Callable[[httpx2.AsyncClient, Subject], Awaitable[httpx2.Response]]
REQUESTS: dict[str, Request] = {
    "account": lambda client, who: client.get("/account"),
    "list 20 runs": lambda client, who: client.get("/v1/runs?limit=20"),
    "list failed runs": lambda client, who: client.get("/v1/runs?state=failed"),
    "open the oldest run": lambda client, who: client.get(f"/v1/runs/{who.oldest}"),
    "history of the page": lambda client, who: client.get("/page/history"),
    "search a word that all have": lambda client, who: client.get("/page/history?q=river"),
    "search a word of the oldest": lambda client, who: client.get(f"/page/history?q={who.rare_word}"),
    "search two words of the oldest": lambda client, who: client.get(f"/page/history?q=river+{who.rare_word}"),
    "search a word that none has": lambda client, who: client.get("/page/history?q=zebra"),
    "pin the oldest run": lambda client, who: client.post(f"/page/history/{who.oldest}", json={"pinned": True}),
    "history of the page with that pin": lambda client, who: client.get("/page/history"),
    "submit a question": lambda client, who: client.post("/v1/runs", json={"question": "How long is the river?"}),
}
SHORT_WORDS: dict[str, Request] = {
    "search two letters that none has": lambda client, who: client.get("/page/history?q=zq"),
}


def fill(server: PostgresServer, sizes: Sequence[int], total: int) -> list[Subject]:
    """A database with the first person alone, and one with everybody; the indexes of words are made at the end, in one go."""
    admin = Database(server.url).open()
    for setting in ("autovacuum = off", "maintenance_work_mem = '1GB'", "max_wal_size = '8GB'"):
        admin.fetch(f"alter system set {setting}")
    admin.fetch("select pg_reload_conf()")
    subjects = []
    for name, members, others in (("alone", sizes[:1], 0), ("everybody", sizes, max(0, total - sum(sizes)))):
        admin.fetch(f"create database {name}")
        url = server.url_of(name)
        database = Database(url).open()
        database.fetch("drop index if exists history_by_trigrams, runs_by_trigrams")
        people = People(database)
        for runs in members:
            person = people.add(f"Ada with {runs}")
            people.set_quotas(person, Quotas(storage_bytes=10**12))
            add_past_runs(database, person, runs)
            subjects.append(Subject(url, person, runs, sum(members) + others))
        for number in range(OTHERS if others else 0):
            add_past_runs(database, people.add(f"Other {number}"), others // OTHERS)
        database.close()
        database = Database(url).open()  # which makes the indexes again
        with database._pool.connection() as connection:
            connection.execute("set statement_timeout = 0")
            connection.execute("vacuum analyze")  # as the database does by itself after a while
        database.close()
    with admin._pool.connection() as connection:
        connection.execute("checkpoint")
    admin.close()
    return subjects


def backend_seconds() -> dict[int, float]:
    """The CPU time of each process of Postgres that serves a connection."""
    seconds = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if b"postgres: " in (title := (folder / "cmdline").read_bytes()) and b"[local]" in title:
                    seconds[int(folder.name)] = int((folder / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                continue  # it has ended
    return seconds


class Doors:
    """The app of a server for each database, and a client for each person."""

    def __init__(self, home: Path, make_database: Callable[[str], Database]) -> None:
        self._home, self._make_database, self._stack = home, make_database, AsyncExitStack()
        self._apps: dict[str, tuple[Any, Database]] = {}
        self.clients: dict[Subject, httpx2.AsyncClient] = {}

    async def __aenter__(self) -> Doors:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self, subject: Subject) -> None:
        if subject.database not in self._apps:
            database, web = self._make_database(subject.database), FakeWeb({})
            config = Config(home=self._home, model="extractive", database_url=subject.database)

            def make_nexi(personal: Config, state: Any) -> Nexi:
                return Nexi(personal, state=state, backends=(web,), fetchers=(web,))

            app = create_team_app(Team(config, database.open(), make_nexi=make_nexi), rules=MANY)
            await self._stack.enter_async_context(app.router.lifespan_context(app))
            self._apps[subject.database] = app, database
        app, database = self._apps[subject.database]
        headers = {"authorization": f"Bearer {People(database).add_token(subject.person, 'bench')}"}
        transport = httpx2.ASGITransport(app=app)
        self.clients[subject] = await self._stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url="https://127.0.0.1", headers=headers, timeout=600)
        )

    def database_of(self, subject: Subject) -> Database:
        return self._apps[subject.database][1]


async def measure_seconds(home: Path, subjects: Sequence[Subject]) -> dict[tuple[str, Subject], tuple[float, float]]:
    """The least CPU time of each request for each person, and the shortest time it took, in seconds."""
    least = {}
    async with Doors(home, Database) as doors:
        for subject in subjects:
            await doors.open(subject)
        for name, ask in (SHORT_WORDS | REQUESTS).items():
            tries: dict[Subject, list[tuple[float, float]]] = {subject: [] for subject in subjects}
            for number in range(TRIES * len(subjects)):
                subject = subjects[number % len(subjects)]
                before, own, began = backend_seconds(), time.process_time(), time.perf_counter()
                reply = await ask(doors.clients[subject], subject)
                took, own = time.perf_counter() - began, time.process_time() - own
                assert reply.status_code < 300, reply.text
                theirs = sum(seconds - before.get(pid, 0.0) for pid, seconds in backend_seconds().items())
                tries[subject].append((own + theirs, took))
            for subject, taken in tries.items():
                least[name, subject] = min(cpu for cpu, _ in taken), min(took for _, took in taken)
        for subject in subjects:
            doors.database_of(subject).fetch("delete from runs where state = 'waiting'")  # or they would be the newest
    return least


async def count_rows(home: Path, subjects: Sequence[Subject]) -> dict[tuple[str, Subject], int]:
    rows = {}
    async with Doors(home, CountingDatabase) as doors:
        for subject in subjects:
            await doors.open(subject)
            database = doors.database_of(subject)
            assert isinstance(database, CountingDatabase)
            for name, ask in (SHORT_WORDS | REQUESTS).items():
                database.rows_read = 0
                await ask(doors.clients[subject], subject)
                rows[name, subject] = database.rows_read
    return rows


def render(
    subjects: Sequence[Subject],
    seconds: dict[tuple[str, Subject], tuple[float, float]],
    rows: dict[tuple[str, Subject], int],
    about: str,
) -> tuple[str, bool]:
    first, last = subjects[0], subjects[-1]
    growth = {name: seconds[name, last][0] / seconds[name, first][0] for name in REQUESTS | SHORT_WORDS}
    is_met = all(growth[name] <= MAX_GROWTH for name in REQUESTS)

    def render_row(name: str) -> str:
        cells = [
            f"{cpu * 1e3:.1f} / {took * 1e3:.1f} ms, {rows[name, subject]:,} rows"
            for subject in subjects
            for cpu, took in [seconds[name, subject]]
        ]
        return f"| {name} | {' | '.join(cells)} | {growth[name]:.2f} |"

    head = " | ".join(
        f"{subject.runs:,} runs, {'alone' if subject.runs == subject.total else f'{subject.total:,} in all'}"
        for subject in subjects
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = [
        "# What a long past costs on a team server",
        "",
        f"`python -m bench.team_growth --save`, {about}. Each cell: the CPU time of the server and of Postgres together for "
        f"one request, the time it took (each the least of {TRIES}, with the people in turns), and the rows that its "
        f"statements read. The last column compares the CPU times of the last and the first person (allowed: {MAX_GROWTH:g}).",
        "",
        f"| request | {head} | last / first |",
        f"|---|{'---|' * len(subjects)}---|",
        *map(render_row, REQUESTS),
        "",
        f"{'The limit is kept by all of them.' if is_met else 'The limit is NOT kept.'} "
        "A word without three letters or digits in a row has no trigrams that an index could find: it is looked for among the "
        "newest 2,000 runs, so it costs more with thousands of runs than with a hundred, and no more after that:",
        "",
        f"| request | {head} | last / first |",
        f"|---|{'---|' * len(subjects)}---|",
        *map(render_row, SHORT_WORDS),
        "",
        f"The process of both servers, with their clients, took {memory:.0f} MB at most.",
        "",
    ]
    return "\n".join(lines), is_met


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=list(RUNS), help="of each person that is compared")
    parser.add_argument("--all", type=int, default=ALL_RUNS, help="runs of everybody together in the second database")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args(words)
    candidates = [*list_binaries_with_trigrams(), *list_binaries()]
    with running_postgres(is_durable=False, candidates=candidates[:1]) as server, tempfile.TemporaryDirectory() as home:
        began = time.monotonic()
        subjects = fill(server, options.runs, options.all)
        filled_s = time.monotonic() - began
        seconds = asyncio.run(measure_seconds(Path(home), subjects))
        rows = asyncio.run(count_rows(Path(home), subjects))
        database = Database(subjects[-1].database).open()
        version, size, has_trigrams = database.fetch(
            "select current_setting('server_version'), pg_size_pretty(pg_database_size(current_database())), "
            "exists (select from pg_extension where extname = 'pg_trgm')"
        )[0]
        database.close()
    about = (
        f"Postgres {version.partition(' ')[0]} as it comes (shared_buffers 128 MB) {'with' if has_trigrams else 'without'} "
        f"pg_trgm, on the same machine ({platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}); the "
        f"database of everybody has {size} and was filled in {filled_s / 60:.0f} minutes"
    )
    table, is_met = render(subjects, seconds, rows, about)
    print(table)
    if options.save:
        TABLE.write_text(table, "utf-8")
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
