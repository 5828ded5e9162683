"""Trials of a team server: workers that are killed or stalled, and a database that restarts, while runs are under way.

    python -m rig.team_trials [--jobs 60] [--kills 20] [--save]

Three workers do two runs each at once over a real Postgres with fsync on. What is counted comes from the run logs: every run
must end with its answer, have each reply of the model once, and have been written by one worker at a time.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from nexi.app import RunRequest, SystemClock
from nexi.app.request import request_to_dict
from nexi.events import ModelReplied, RunFinished
from nexi.team.limits import DEFAULT_LEASE_S
from nexi.team.postgres.database import Database
from nexi.team.postgres.runs import PostgresRuns
from rig.postgres import PostgresServer, running_postgres
from rig.team_worker import QUESTION, STEPS

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "team" / "trials.md"
WORKERS = 3
MAX_TAKEOVER_S = 10.0


@dataclass
class Outcome:
    """What one trial came to."""

    name: str
    jobs: int
    finished: int = 0
    events: int = 0  # kills, stalls or restarts
    repeated_calls: int = 0
    doubled_replies: int = 0
    two_writers: int = 0
    takeovers: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def is_sound(self) -> bool:
        return self.finished == self.jobs and not (self.doubled_replies or self.two_writers)

    def row(self) -> str:
        waits = sorted(self.takeovers)
        took = f"{median(waits):.1f} / {waits[-1]:.1f}" if waits else "–"
        figures = (self.events, self.repeated_calls, self.doubled_replies, self.two_writers)
        return f"| {self.name} | {self.finished}/{self.jobs} | {' | '.join(map(str, figures))} | {took} | {self.seconds:.0f} |"


class Fleet:
    """The workers of a trial."""

    def __init__(self, url: str, home: str, step_s: float) -> None:
        self._words = [sys.executable, "-m", "rig.team_worker", url, home, str(step_s)]
        self._ready: set[int] = set()
        self._readers: list[threading.Thread] = []
        self.processes = [self._start() for _ in range(WORKERS)]
        while not self.is_whole:
            time.sleep(0.1)

    @property
    def is_whole(self) -> bool:
        """Whether every worker takes work."""
        return {process.pid for process in self.processes} <= self._ready

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
        self._readers.append(threading.Thread(target=self._note_ready, args=(process,), daemon=True))
        self._readers[-1].start()
        return process

    def _note_ready(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for _ in lines:
                self._ready.add(process.pid)

    def kill(self, index: int) -> int:
        victim = self.processes[index]
        victim.kill()
        victim.wait()
        self.processes[index] = self._start()
        return victim.pid

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for reader in self._readers:
            reader.join()


@contextmanager
def prepared(server: PostgresServer, jobs: int) -> Iterator[tuple[Database, PostgresRuns, list[str]]]:
    """A database with so many runs that wait."""
    database = Database(server.url).open()
    database.fetch("drop table if exists trial_calls")
    database.fetch("create table trial_calls (step int, pid int)")
    database.fetch("delete from people")
    owner = str(database.fetch("insert into people (name) values ('Ada') returning id")[0][0])
    runs = PostgresRuns(database, owner, SystemClock())
    request = RunRequest(QUESTION, door="http")
    ids = [runs.submit(QUESTION, "search", request_to_dict(request)) for _ in range(jobs)]
    database.fetch("update runs set queued_at = '-infinity'")  # workers find them by themselves
    try:
        yield database, runs, ids
    finally:
        database.close()


def count_ended(database: Database) -> int:
    return int(database.fetch("select count(*) from runs where state in ('finished', 'failed')")[0][0])


def held_by(database: Database, pid: int) -> dict[str, int]:
    rows = database.fetch("select run, epoch from runs where state = 'running' and holder like %(who)s", {"who": f"%-{pid}-%"})
    return dict(rows)


def judge(outcome: Outcome, database: Database, runs: PostgresRuns, ids: list[str]) -> Outcome:
    replies = STEPS + 1
    for run_id in ids:
        facts = [fact for _, fact in runs.open_log(run_id).facts]
        outcome.finished += bool(facts) and isinstance(facts[-1], RunFinished)
        outcome.doubled_replies += max(0, sum(isinstance(fact, ModelReplied) for fact in facts) - replies)
    outcome.two_writers = database.fetch(
        "select count(*) from facts later join facts earlier on later.run = earlier.run and later.n = earlier.n + 1 "
        "where later.epoch < earlier.epoch"
    )[0][0]
    outcome.repeated_calls = database.fetch("select count(*) from trial_calls")[0][0] - replies * len(ids)
    return outcome


def disturb(server: PostgresServer, name: str, *, jobs: int, events: int, step_s: float, every_s: float) -> Outcome:
    """Let workers do runs, and kill, stall or restart something again and again."""
    outcome, chance = Outcome(name, jobs), random.Random(21)
    with tempfile.TemporaryDirectory() as home, prepared(server, jobs) as (database, runs, ids):
        began = time.monotonic()
        fleet = Fleet(server.url, home, step_s)
        waiting: dict[tuple[str, int], float] = {}
        stalled: list[tuple[int, float]] = []
        next_event = time.monotonic() + every_s
        try:
            while count_ended(database) < jobs and time.monotonic() - began < 420:
                time.sleep(0.1)
                now = time.monotonic()
                if outcome.events < events and now >= next_event and fleet.is_whole:
                    next_event = now + every_s
                    index = chance.randrange(WORKERS)
                    if name == "restart":
                        server.stop()
                        server.start()
                        outcome.events += 1
                    elif held := held_by(database, fleet.processes[index].pid):
                        outcome.events += 1
                        if name == "kill":
                            fleet.kill(index)
                        else:
                            os.kill(fleet.processes[index].pid, signal.SIGSTOP)
                            stalled.append((fleet.processes[index].pid, now + 9.0))
                        waiting |= dict.fromkeys(held.items(), now)
                for pid, until in list(stalled):
                    if now >= until:
                        os.kill(pid, signal.SIGCONT)
                        stalled.remove((pid, until))
                epochs = dict(database.fetch("select run, epoch from runs"))
                for (run, epoch), since in list(waiting.items()):
                    if epochs[run] > epoch:
                        outcome.takeovers.append(now - since)
                        del waiting[run, epoch]
        finally:
            fleet.stop()
        outcome.seconds = time.monotonic() - began
        return judge(outcome, database, runs, ids)


def render_table(outcomes: list[Outcome], jobs: int) -> str:
    lines = [
        "# Trials of a team server",
        "",
        f"`python -m rig.team_trials --jobs {jobs} --save`: {WORKERS} workers with two runs each at once, "
        f"{jobs} runs of {STEPS + 1} model calls, lease {DEFAULT_LEASE_S:g} s, "
        f"on a machine that other work shares (load at the end: {os.getloadavg()[0]:.0f}).",
        "",
        "| trial | finished | events | received again | doubled in the log | written by two | takeover median / max s | s |",
        "|---|---|---|---|---|---|---|---|",
        *(outcome.row() for outcome in outcomes),
        "",
        "Events are kills (`kill -9` while the two other workers live; it is started again at once), stalls (`SIGSTOP` for "
        "9 s) and restarts of "
        "Postgres. A reply is received again when its worker was lost before it was in the log; one that is in the log is "
        "never asked for again, and a call that was cut off in the middle is not counted. "
        f"A takeover is the time from the event until another worker has the run (allowed: {MAX_TAKEOVER_S:g} s).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", default="kill,stall,restart")
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    events: dict[str, Any] = {"kill": chosen.kills, "stall": 4, "restart": 4}
    with running_postgres() as server:
        outcomes = [
            disturb(server, name, jobs=chosen.jobs, events=events[name], step_s=2.0 if name == "kill" else 1.0, every_s=5.0)
            for name in chosen.only.split(",")
        ]
    text = render_table(outcomes, chosen.jobs)
    print(text)
    if chosen.save:
        TABLE.write_text(text, "utf-8")
    raise SystemExit(0 if all(outcome.is_sound() for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
