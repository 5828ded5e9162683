"""Trial of an upgrade: a team server of the schema before the last one, with data and runs in progress, becomes the one of now.

The old version is the commit before the newest step of the schema, taken whole from the history of the repository: its own
commands make the database, and one worker of it goes on working beside the new ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2

from nexi.team.postgres.database import list_migrations
from rig.postgres import running_postgres
from rig.team_fleet import SlowWorkers, TeamProcesses, wait_for
from rig.team_worker import ANSWER, QUESTION
from rig.trial_report import Report

__all__ = ["try_upgrade"]

ROOT = Path(__file__).resolve().parent.parent
RUNS = 24
PATIENCE_S = 240.0
TWO_WRITERS = """
select count(*) from facts later join facts earlier on later.run = earlier.run and later.n = earlier.n + 1
where later.epoch < earlier.epoch
"""


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def find_old_commit() -> str:
    """The commit before the newest step of the schema."""
    (newest,) = ROOT.glob(f"nexi/**/migrations/{list_migrations()[-1][0]:03}_*.sql")
    place = f":(glob)nexi/**/{newest.name}"  # it may have moved since
    added = git("log", "--no-renames", "--diff-filter=A", "--format=%h", "--", place).split()
    return git("rev-parse", "--short", f"{added[-1]}^")


class Client:
    """A person at a server."""

    def __init__(self, base: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=base, headers=headers, timeout=60, trust_env=False)

    def ask(self, count: int) -> list[str]:
        replies = [self._http.post("/v1/runs", json={"question": QUESTION}) for _ in range(count)]
        return [reply.raise_for_status().json()["id"] for reply in replies]

    def count_answers(self, runs: list[str]) -> int:
        """How many of these runs have ended with the answer."""
        return sum(ANSWER.partition(" [")[0] in self._http.get(f"/v1/runs/{run}/result").text for run in runs)

    def find(self, words: str) -> int:
        return len(self._http.get("/page/history", params={"q": words}).raise_for_status().json()["items"])


class Rows:
    """The database as it is, whichever version has made it."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def wait_until_ended(self, count: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while self.fetch("select count(*) from runs where state in ('finished', 'failed')")[0][0] < count:
            assert time.monotonic() < end, "the runs do not end"
            time.sleep(0.2)

    def count_calls(self) -> Counter[int]:
        """How many model calls each worker has made."""
        return Counter(dict(self.fetch("select pid, count(*) from trial_calls group by pid")))

    def close(self) -> None:
        self._connection.close()


def try_upgrade(*, runs: int = RUNS) -> Report:
    commit = find_old_commit()
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        old = folder / "old"
        old.mkdir()
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(old)], input=archive, check=True)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{old}:{old / 'reader'}",
            "NEXI_HOME": str(folder / "admin"),
            "NEXI_DATABASE_URL": server.url,
        }
        add = [sys.executable, "-m", "nexi", "admin", "users", "add", "Ada", "--administrator"]
        token = subprocess.run(add, cwd=old, env=environment, check=True, capture_output=True, text=True).stdout.split()[-1]
        rows = Rows(server.url)
        stack.callback(rows.close)
        rows.fetch("create table trial_calls (step int, pid int)")
        old_steps = rows.fetch("select max(step) from schema_steps")[0][0]
        (folder / "a").mkdir()
        old_processes = TeamProcesses(server.url, folder / "a", checkout=old)
        stack.callback(old_processes.stop)
        old_base = old_processes.start_server()
        old_workers = SlowWorkers([server.url] * 2, str(folder / "a"), 1.0, checkout=old)
        stack.callback(old_workers.stop)
        before = Client(old_base, token).ask(runs)
        rows.wait_until_ended(runs // 4)
        dump = server.dump("postgres")
        states = dict(rows.fetch("select state, count(*) from runs group by state"))

        (folder / "b").mkdir()
        processes = TeamProcesses(server.url, folder / "b")
        stack.callback(processes.stop)
        base = processes.start_server()  # this makes the new schema
        migrated = rows.count_calls()
        wait_for(f"{old_base}/readyz", 503)
        old_workers.processes[1].send_signal(signal.SIGTERM)
        old_workers.processes[1].wait()
        workers = SlowWorkers([server.url], str(folder / "b"), 1.0)
        stack.callback(workers.stop)
        client = Client(base, token)
        after = client.ask(runs // 2)
        rows.wait_until_ended(runs + runs // 2)
        calls = rows.count_calls() - migrated
        old_calls, new_calls = (calls[each.processes[0].pid] for each in (old_workers, workers))
        answers, listed, two = client.count_answers(before + after), client.find("moon far"), rows.fetch(TWO_WRITERS)[0][0]
        old_workers.stop()
        workers.stop()

        rows.fetch("create database restored")
        server.restore(dump, "restored")
        url = server.url_of("restored")
        (folder / "c").mkdir()
        restored_processes = TeamProcesses(url, folder / "c")
        stack.callback(restored_processes.stop)
        restored_base = restored_processes.start_server()
        restored_workers = SlowWorkers([url] * 2, str(folder / "c"), 1.0)
        stack.callback(restored_workers.stop)
        restored = Rows(url)
        stack.callback(restored.close)
        restored.wait_until_ended(runs)
        restored_answers = Client(restored_base, token).count_answers(before)
        restored_two = restored.fetch(TWO_WRITERS)[0][0]
        new_steps = rows.fetch("select max(step) from schema_steps")[0][0]
    total = runs + runs // 2
    lines = [
        "| | |",
        "|---|---|",
        f"| schema before and after | step {old_steps}, step {new_steps} |",
        "| runs at the moment of the dump | " + ", ".join(f"{n} {state}" for state, n in sorted(states.items())) + " |",
        "| the old server after the upgrade | not ready (503), as it should be |",
        f"| model calls after the upgrade | {old_calls} by the old worker, {new_calls} by the new one |",
        f"| answers, of {runs} runs asked before and {total - runs} after | {answers} |",
        f"| past answers that a search finds | {listed} |",
        f"| facts written by two at once | {two} |",
        f"| answers of the {runs} runs from the dump, restored beside it and upgraded | {restored_answers} |",
        f"| facts written by two at once there | {restored_two} |",
    ]
    about = (
        f"The old version is the last commit before step {new_steps} of the schema, with its own commands: a "
        f"server and two workers. With {runs} runs under way a dump is made; then a server and a worker of this version start "
        "on the same database while one old worker goes on. At the end the dump is restored into an empty database and "
        "upgraded there."
    )
    is_sound = (answers, listed, two, restored_answers, restored_two) == (total, total, 0, runs, 0)
    return Report(about, lines, is_sound and old_calls > 0 and new_calls > 0 and old_steps < new_steps)
