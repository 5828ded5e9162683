"""Trials of a team server: processes and databases that fail while runs are under way, and people who want too much.

    python -m rig.team_trials [--only kill,stall,...] [--save]

Each trial starts its own Postgres (fsync on) and its own processes, ends them, and says whether it holds. With --save its
section of tests/team/trials.md is replaced; the others stay as they were measured. The trials of one command run one after the
other. In those that disturb runs, what is counted comes from the run logs: every run must end with its answer, have each reply
of the model once, and have been written by one worker at a time.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nexi.app import RunRequest, SystemClock
from nexi.app.request import request_to_dict
from nexi.events import ModelReplied, RunFailed, RunFinished
from nexi.team.limits import DEFAULT_LEASE_S
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.postgres.runs import PostgresRuns
from rig.postgres import PostgresServer, running_postgres
from rig.silent_proxy import SilentProxy, running_proxy
from rig.team_crowd import try_people, try_streams
from rig.team_fleet import SlowWorkers, TeamProcesses
from rig.team_probes import Probes
from rig.team_upgrade import try_upgrade
from rig.team_worker import QUESTION, STEPS
from rig.trial_report import Report

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "team" / "trials.md"
WORKERS = 3
MAX_TAKEOVER_S = 10.0
MAX_RECOVERY_S = 30.0
MAX_ERROR_S = 5.0
FREEZE_S = 30.0
STALL_S = 9.0
PATIENCE_S = 420.0
MANY_RUNS, MAX_WAIT_FACTOR = 300, 3.0
LONG_CALL_S, RESTARTS = 12.0, 4


@dataclass
class Outcome:
    """What a trial that disturbs runs came to."""

    name: str
    jobs: int
    finished: int = 0
    events: int = 0  # kills, stalls, restarts or silences
    repeated_calls: int = 0
    doubled_replies: int = 0
    two_writers: int = 0
    takeovers: list[float] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)  # until a worker whose connections fell silent has a new run
    failures: list[str] = field(default_factory=list)  # codes of runs that failed
    seconds: float = 0.0

    def is_sound(self) -> bool:
        is_slow = max(self.takeovers, default=0.0) > MAX_TAKEOVER_S or max(self.recoveries, default=0.0) > MAX_RECOVERY_S
        return self.finished == self.jobs and not (self.doubled_replies or self.two_writers or is_slow)

    def row(self) -> str:
        figures = (self.events, self.repeated_calls, self.doubled_replies, self.two_writers)
        waits = " | ".join(map(render_waits, (self.takeovers, self.recoveries)))
        finished = f"{self.finished}/{self.jobs}{''.join(f', {code}' for code in self.failures)}"
        return f"| {finished} | {' | '.join(map(str, figures))} | {waits} | {self.seconds:.0f} |"


def render_waits(waits: list[float]) -> str:
    return f"{statistics.median(waits):.1f} / {max(waits):.1f}" if waits else "–"


HEAD = (
    "| finished | events | received again | doubled in the log | written by two | "
    "takeover median / max s | back at work median / max s | s |",
    "|---|---|---|---|---|---|---|---|",
)


@contextmanager
def prepared(server: PostgresServer, jobs: int) -> Iterator[tuple[Database, PostgresRuns, list[str]]]:
    """A database with so many runs that wait."""
    database = Database(server.url).open()
    database.fetch("drop table if exists trial_calls")
    database.fetch("create table trial_calls (step int, pid int)")
    database.fetch("delete from people")
    runs = PostgresRuns(database, People(database).add("Ada"), SystemClock())
    ids = [submit(runs) for _ in range(jobs)]
    try:
        yield database, runs, ids
    finally:
        database.close()


def submit(runs: PostgresRuns) -> str:
    return runs.submit(QUESTION, "search", request_to_dict(RunRequest(QUESTION, door="http")))


def count_ended(database: Database) -> int:
    return int(database.fetch("select count(*) from runs where state in ('finished', 'failed')")[0][0])


def held_by(database: Database, pid: int) -> dict[str, int]:
    rows = database.fetch(
        "select run, epoch from runs where state = 'running' and lease_until > now() and holder like %(who)s",
        {"who": f"%-{pid}-%"},
    )
    return dict(rows)


def judge(outcome: Outcome, database: Database, runs: PostgresRuns, ids: list[str]) -> Outcome:
    replies = STEPS + 1
    for run_id in ids:
        facts = [fact for _, fact in runs.open_log(run_id).facts]
        outcome.finished += bool(facts) and isinstance(facts[-1], RunFinished)
        outcome.failures += [fact.code for fact in facts[-1:] if isinstance(fact, RunFailed)]
        outcome.doubled_replies += max(0, sum(isinstance(fact, ModelReplied) for fact in facts) - replies)
    outcome.two_writers = database.fetch(
        "select count(*) from facts later join facts earlier on later.run = earlier.run and later.n = earlier.n + 1 "
        "where later.epoch < earlier.epoch"
    )[0][0]
    outcome.repeated_calls = database.fetch("select count(*) from trial_calls")[0][0] - replies * len(ids)
    return outcome


class Disturbance:
    """Something that happens to a worker, or to the database, again and again while runs are under way."""

    def __init__(self, name: str, server: PostgresServer, workers: SlowWorkers, proxies: list[SilentProxy]) -> None:
        self._name, self._server, self._workers, self._proxies = name, server, workers, proxies
        self._stalls: list[tuple[int, float]] = []

    def strike(self, index: int) -> None:
        if self._name == "kill":
            self._workers.restart(index)
        elif self._name == "half-open":
            self._proxies[index].silence()
        elif self._name == "stall":
            pid = self._workers.processes[index].pid
            os.kill(pid, signal.SIGSTOP)
            self._stalls.append((pid, time.monotonic() + STALL_S))
        else:
            self._server.stop("immediate" if index else "fast")
            self._server.start()

    def end_stalls(self) -> None:
        for pid, until in list(self._stalls):
            if time.monotonic() >= until:
                os.kill(pid, signal.SIGCONT)
                self._stalls.remove((pid, until))


def disturb(server: PostgresServer, name: str, *, jobs: int, events: int, step_s: float, every_s: float) -> Outcome:
    """Let workers do runs, and kill, stall, silence or restart something again and again."""
    outcome, chance = Outcome(name, jobs), random.Random(21)
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        database, runs, ids = stack.enter_context(prepared(server, jobs))
        proxies = [stack.enter_context(running_proxy(server.url)) for _ in range(WORKERS if name == "half-open" else 0)]
        began = time.monotonic()
        workers = SlowWorkers([proxy.url for proxy in proxies] or [server.url] * WORKERS, home, step_s)
        stack.callback(workers.stop)
        disturbance = Disturbance(name, server, workers, proxies)
        taken: dict[tuple[str, int], float] = {}
        silenced: dict[int, tuple[float, dict[str, int]]] = {}
        next_event = time.monotonic() + every_s
        while count_ended(database) < jobs and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.1)
            now = time.monotonic()
            if outcome.events < events and now >= next_event and workers.is_whole:
                next_event = now + every_s
                index = chance.randrange(WORKERS)
                pid = workers.processes[index].pid
                held = {} if name == "restart" else held_by(database, pid)
                if held or name == "restart":
                    outcome.events += 1
                    disturbance.strike(index)
                    taken |= dict.fromkeys(held.items(), now)
                    if name == "half-open":
                        silenced[pid] = now, held
            disturbance.end_stalls()
            epochs: dict[str, int] = dict(
                database.fetch("select run, epoch from runs where state in ('running', 'finished', 'failed')")
            )
            for (run, epoch), since in list(taken.items()):
                if epochs[run] > epoch:
                    outcome.takeovers.append(now - since)
                    del taken[run, epoch]
            for pid, (since, before) in list(silenced.items()):
                if held_by(database, pid).items() - before.items():
                    outcome.recoveries.append(now - since)
                    del silenced[pid]
        outcome.recoveries += [time.monotonic() - since for since, _ in silenced.values()]  # at least so long
        workers.stop()
        outcome.seconds = time.monotonic() - began
        return judge(outcome, database, runs, ids)


EXPLAINED = {
    "kill": "Workers are killed (`kill -9`) while the two others live, and started again at once.",
    "stall": f"Workers are stopped (`SIGSTOP`) for {STALL_S:g} s.",
    "restart": "Postgres is restarted, at random in good order (`fast`) or as by a crash (`immediate`).",
    "half-open": "The connections of a worker to Postgres stay open and fall silent for ever, as after a flush of a router's "
    "table; new ones pass. A worker is back at work when it holds a run that it did not hold before "
    f"(allowed: {MAX_RECOVERY_S:g} s).",
}


def try_disturbance(name: str, *, jobs: int = 60, events: int = 5, every_s: float = 5.0, step_s: float = 1.0) -> Report:
    with running_postgres() as server:
        outcome = disturb(server, name, jobs=jobs, events=events, step_s=step_s, every_s=every_s)
    about = (
        f"{EXPLAINED[name]} {WORKERS} workers with two runs each at once, {jobs} runs of {STEPS + 1} model calls of "
        f"{step_s:g} s, lease {DEFAULT_LEASE_S:g} s. A reply is received again when its worker was lost before it was in the "
        "log; one that is in the log is never asked for again, and a call that was cut off in the middle is not counted. A "
        f"takeover is the time from the event until another worker has the run (allowed: {MAX_TAKEOVER_S:g} s)."
    )
    return Report(about, [*HEAD, outcome.row()], outcome.is_sound() and outcome.events == events)


def try_freeze(*, jobs: int = 18, freeze_s: float = FREEZE_S) -> Report:
    """Every process of Postgres stands still; a server is asked all the time."""
    outcome = Outcome("freeze", jobs, events=1)
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        home = stack.enter_context(tempfile.TemporaryDirectory())
        database, runs, ids = stack.enter_context(prepared(server, jobs))
        token = People(database).add_token(People(database).list_all()[0][0], "trial")
        began = time.monotonic()
        processes = TeamProcesses(server.url, Path(home))
        stack.callback(processes.stop)
        base = processes.start_server()
        workers = SlowWorkers([server.url] * WORKERS, home, 1.0)
        stack.callback(workers.stop)
        probes = Probes(base, token, ids[0])
        stack.callback(probes.stop)
        probes.start()
        time.sleep(8)
        with server.frozen():
            frozen_at = time.monotonic()
            time.sleep(freeze_s)
        thawed_at = time.monotonic()
        while count_ended(database) < jobs and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.2)
        probes.stop()
        workers.stop()
        outcome.seconds = time.monotonic() - began
        judge(outcome, database, runs, ids)
    during = probes.between(frozen_at, thawed_at)
    after = [
        sent + took - thawed_at for sent, took, status in probes.replies if sent + took > thawed_at and 200 <= status < 300
    ]
    back_s = min(after, default=float("inf"))
    slowest = max((took for _, took, _ in during), default=0.0)
    statuses = ", ".join(f"{count} x {status or 'no reply'}" for status, count in sorted(probes.count(during).items()))
    lines = [
        *HEAD,
        outcome.row(),
        "",
        "| replies to requests sent during the freeze | slowest reply s | first success after the end s |",
        "|---|---|---|",
        f"| {statuses} | {slowest:.1f} | {back_s:.1f} |",
    ]
    about = (
        f"Every process of Postgres is stopped for {freeze_s:g} s while {jobs} runs are under way in {WORKERS} workers and "
        f"{len(probes.paths)} clients ask a server without a pause ({', '.join(probes.paths)}). Requests get an error within "
        f"{MAX_ERROR_S:g} s instead of a hang, and every run ends."
    )
    return Report(about, lines, outcome.is_sound() and slowest <= MAX_ERROR_S)


def try_rolling(*, restarts: int = RESTARTS, call_s: float = LONG_CALL_S) -> Report:
    """The worker that has the run is restarted in good order, again and again, before its first model call can end."""
    outcome = Outcome("rolling", 1)
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        home = stack.enter_context(tempfile.TemporaryDirectory())
        database, runs, (run_id,) = stack.enter_context(prepared(server, 1))
        began = time.monotonic()
        workers = SlowWorkers([server.url] * RESTARTS, home, call_s)
        stack.callback(workers.stop)
        moves: list[float] = []
        while outcome.events < restarts and time.monotonic() - began < PATIENCE_S:
            holders = [index for index, process in enumerate(workers.processes) if held_by(database, process.pid)]
            if not holders or not workers.is_whole:
                time.sleep(0.05)
                continue
            before = time.monotonic()
            workers.restart(holders[0], signal.SIGTERM)
            outcome.events += 1
            while not any(held_by(database, process.pid) for process in workers.processes):
                time.sleep(0.02)
            moves.append(time.monotonic() - before)
        replies_before = sum(isinstance(fact, ModelReplied) for _, fact in runs.open_log(run_id).facts)
        while count_ended(database) < 1 and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.2)
        losses = database.fetch("select losses from runs")[0][0]
        workers.stop()
        outcome.seconds = time.monotonic() - began
        judge(outcome, database, runs, [run_id])
    lines = [
        "| restarts | replies before the last one | counted as losses | finished | doubled in the log | written by two | "
        "until another has the run, median / max s | s |",
        "|---|---|---|---|---|---|---|---|",
        f"| {outcome.events} | {replies_before} | {losses} | {outcome.finished}/1 | {outcome.doubled_replies} | "
        f"{outcome.two_writers} | {render_waits(moves)} | {outcome.seconds:.0f} |",
    ]
    about = (
        f"{RESTARTS} workers; the one that has the run is restarted (`SIGTERM`, half a second to drain), {restarts} times, "
        f"before its first model call of {call_s:g} s has ended. The call begins anew each time; the run is not given up."
    )
    return Report(about, lines, outcome.is_sound() and (outcome.events, losses) == (restarts, 0))


def try_share(*, many: int = MANY_RUNS, step_s: float = 0.5, asks: int = 5) -> Report:
    """One person queues hundreds of runs; another asks one after the other meanwhile."""
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        home = stack.enter_context(tempfile.TemporaryDirectory())
        database, ada, _ = stack.enter_context(prepared(server, 0))
        bob = PostgresRuns(database, People(database).add("Bob"), SystemClock())
        began = time.monotonic()
        workers = SlowWorkers([server.url] * WORKERS, home, step_s)
        stack.callback(workers.stop)

        def time_run() -> float:
            sent, run_id = time.monotonic(), submit(bob)
            while database.fetch("select state from runs where run = %(run)s", {"run": run_id})[0][0] != "finished":
                time.sleep(0.05)
                assert time.monotonic() - sent < PATIENCE_S
            return time.monotonic() - sent

        time_run()  # a worker loads what it needs at its first run
        alone = [time_run() for _ in range(asks)]
        ids = [submit(ada) for _ in range(many)]
        while count_ended(database) < asks + 1 + WORKERS:
            time.sleep(0.05)
        among = [time_run() for _ in range(asks)]
        left = many - (count_ended(database) - 2 * asks - 1)
        while count_ended(database) < many + 2 * asks + 1 and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.5)
        workers.stop()
        finished = sum(isinstance(ada.open_log(run_id).facts[-1][1], RunFinished) for run_id in ids)
    factor = max(among) / statistics.median(alone)
    lines = [
        "| alone, median / max s | among the others, median / max s | slowest among / median alone | "
        f"of the {many} not ended by then | of the {many} finished in the end |",
        "|---|---|---|---|---|",
        f"| {render_waits(alone)} | {render_waits(among)} | {factor:.1f} | {left} | {finished} |",
    ]
    about = (
        f"{WORKERS} workers with two runs each at once. Bob asks {asks} questions one after the other, first alone, then while "
        f"Ada's {many} wait, each of {STEPS + 1} model calls of {step_s:g} s. Allowed: {MAX_WAIT_FACTOR:g} times as long."
    )
    return Report(about, lines, factor <= MAX_WAIT_FACTOR and finished == many and left > 0)


TRIALS: Mapping[str, tuple[str, Callable[[], Report]]] = {
    "kill": ("Workers are killed", lambda: try_disturbance("kill", events=20, step_s=2.0)),
    "stall": ("Workers stand still", lambda: try_disturbance("stall", events=4)),
    "restart": ("Postgres restarts", lambda: try_disturbance("restart")),
    "half-open": ("Connections stay open and fall silent", lambda: try_disturbance("half-open", jobs=100, every_s=12.0)),
    "freeze": ("The database stands still for half a minute", try_freeze),
    "rolling": ("Four restarts within one model call", try_rolling),
    "share": ("Three hundred runs of one person, and one of another", try_share),
    "streams": ("Five hundred streams of one person while twenty others work", try_streams),
    "people": ("Two hundred people for ten minutes", try_people),
    "upgrade": ("Dump, upgrade beside an old worker, restore", try_upgrade),
}
INTRODUCTION = """# Trials of a team server

Each section comes from `python -m rig.team_trials --only NAME --save`, all of them from `make team-trials`. Everything runs on
one machine that other work shares; each section says how loaded it was. What is not tried: packet loss between machines, a
replicated database, several machines, an hour or more.
"""


def save(sections: Mapping[str, str]) -> None:
    """Replace these sections of the table; the others stay as they are."""
    text = TABLE.read_text("utf-8") if TABLE.exists() else ""
    kept = {match[1]: match[0].strip() for match in re.finditer(r"^## [^\n]*\(`(.+?)`\)\n.*?(?=^## |\Z)", text, re.M | re.S)}
    parts = [INTRODUCTION.strip(), *(part for name in TRIALS if (part := sections.get(name) or kept.get(name)))]
    TABLE.write_text("\n\n".join(parts) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(TRIALS), help="names of trials, with commas between them")
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    failures = []
    for name in chosen.only.split(","):
        title, attempt = TRIALS[name]
        report = attempt()
        text = report.render(f"{title} (`{name}`)")
        print(text, end="\n\n", flush=True)
        if chosen.save:
            save({name: text})
        failures += [] if report.holds else [name]
    raise SystemExit(f"these do not hold: {', '.join(failures)}" if failures else 0)


if __name__ == "__main__":
    main()
