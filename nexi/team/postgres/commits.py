"""Commits: the facts of all runs of a process that come together go to the database in one fenced statement.

`runs` hands in batches, one at a time for each run; below is `database`. One thread with a connection of its own writes, so
that many runs at once cost little more than one. Whether a batch was kept is decided run by run: a run that another writer has
taken adds nothing, and does not hold the others up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from nexi import events
from nexi.errors import RunTakenError, StoreError
from nexi.events import Fact, ModelReplied, RunStarted
from nexi.runs.log_format import ENDED_STATES, digests_in
from nexi.team.limits import MAX_RETRY_S
from nexi.team.postgres.database import Database, clean_text, read_statements
from nexi.types import Usage

# values come as JSON: the driver would spend more on a dozen arrays than the database on the statement
SQL = read_statements(__file__)
_APPEND_ONE = SQL["changed"].format(is_mine="runs.epoch = wanted.epoch and runs.state = 'running'")
_APPEND_MANY = SQL["locked"] + SQL["changed"].format(is_mine="runs.run in (select run from locked)")


class FactRow(Struct, frozen=True):
    """A fact on its way into the table."""

    number: int
    fact: Fact
    line: str


class FactBatch(Struct, frozen=True):
    """Facts of one run that are committed together. `created` has the row of a run that is not in the table yet."""

    run: str
    epoch: int
    rows: Sequence[FactRow]
    created: dict[str, Any] | None = None


class Committer:
    """The one writer of facts in a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[FactBatch, Future[StoreError | None]]] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    async def commit(self, batch: FactBatch) -> None:
        """Return when the facts are kept. Raises StoreError, and RunTakenError where another writer has the run."""
        outcome: Future[StoreError | None] = Future()
        outcome.set_running_or_notify_cancel()  # so that a caller that is cancelled does not cancel it
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="nexi-commits", daemon=True)
                self._thread.start()
            self._waiting.append((batch, outcome))
            self._changed.notify()
        if error := await asyncio.wrap_future(outcome):
            raise error

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread:
            self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._closing):
                    self._changed.wait()
                batches, self._waiting = self._waiting, []  # all that came while the last were written
                if not batches:
                    return
            try:
                errors = self._write_all([batch for batch, _ in batches])
            except Exception as error:  # noqa: BLE001  # whatever it is: this thread goes on, and nobody waits for ever
                failure = StoreError(
                    "The steps of a run could not be kept",
                    cause=f"{type(error).__name__}: {error}",
                    fix="Please report this with the cause above.",
                )
                errors = {batch.run: failure for batch, _ in batches}
            for batch, outcome in batches:
                outcome.set_result(errors[batch.run])

    def _write_all(self, batches: Sequence[FactBatch]) -> dict[str, StoreError | None]:
        """What became of each run's batch; a batch that fails with others is tried again by itself."""
        new, appends = [b for b in batches if b.created], [b for b in batches if not b.created]
        errors: dict[str, StoreError | None] = {}
        if len(appends) > 1:
            with suppress(StoreError):
                committed_runs = self._write(appends)
                errors |= {batch.run: None for batch in appends if batch.run in committed_runs}
        for batch in (*new, *appends):
            if batch.run not in errors:
                errors[batch.run] = self._write_one(batch)
        return errors

    def _write_one(self, batch: FactBatch) -> StoreError | None:
        try:
            if self._write([batch]):
                return None
        except StoreError as error:
            if error.code != "duplicate":
                return error
        # a commit whose confirmation was lost may have happened
        try:
            values = {"run": batch.run, "epoch": batch.epoch, "numbers": [row.number for row in batch.rows]}
            rows = self._database.fetch(SQL["count"], values, patience_s=MAX_RETRY_S)
        except StoreError as error:
            return error
        return None if rows[0][0] == len(batch.rows) else taken_error(batch.run)

    def _write(self, batches: Sequence[FactBatch]) -> set[str]:
        new_run, descriptions = batches[0].created, [_describe_batch(batch) for batch in batches]
        pages = [{"run": b.run, "digest": d} for b in batches for row in b.rows for d in digests_in(row.line.encode("ascii"))]
        facts = [{"run": b.run, "n": row.number, "epoch": b.epoch, "line": row.line} for b in batches for row in b.rows]
        parts = (
            SQL["wanted"],
            SQL["created"] if new_run else _APPEND_ONE if len(batches) == 1 else _APPEND_MANY,
            SQL["named"] if pages else "",
            SQL["spent"] if any(row["tokens"] for row in descriptions) else "",
            SQL["facts"],
        )
        values = {"batches": _to_json(descriptions), "facts": _to_json(facts), **({"pages": _to_json(pages)} if pages else {})}
        rows = self._database.fetch("".join(parts), {**values, **(new_run or {})}, patience_s=MAX_RETRY_S)
        return {run for (run,) in rows}


def _describe_batch(batch: FactBatch) -> dict[str, Any]:
    start = next((row.fact for row in batch.rows if isinstance(row.fact, RunStarted)), None)
    usage = sum((row.fact.usage for row in batch.rows if isinstance(row.fact, ModelReplied)), Usage())
    last = batch.rows[-1]
    return {
        "run": batch.run,
        "epoch": batch.epoch,
        "last": last.number,
        "size": sum(len(row.line) for row in batch.rows),
        "state": ENDED_STATES[last.fact.kind] if isinstance(last.fact, events.TERMINAL) else None,
        "question": clean_text(start.query) if start else None,
        "words": clean_text(start.query.casefold()) if start else None,
        "mode": start.mode if start else None,
        "tokens": usage.total,
        "cost": usage.cost or 0.0,
        "progress": any(isinstance(row.fact, events.PROGRESS) for row in batch.rows),
    }


def _to_json(rows: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode("utf-8")


def taken_error(run_id: str, cause: str = "its lease had run out, and another worker continues it") -> RunTakenError:
    return RunTakenError(f"Run {run_id} was taken over", cause=cause, fix="follow it there")
