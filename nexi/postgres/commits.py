"""Commits: the facts of all runs of a process that come together go to the database in one fenced statement.

`runs` hands in batches, one at a time for each run; below is `database`. One thread with a connection of its own writes, so
that many runs at once cost little more than one. Whether a batch was kept is decided run by run: a run that another writer has
taken adds nothing, and does not hold the others up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from nexi import events
from nexi.errors import RunTakenError, StoreError
from nexi.events import Fact, ModelReplied, RunStarted
from nexi.postgres.database import Database, clean_text
from nexi.runs.log_format import ENDED_STATES, digests_in
from nexi.types import Usage

__all__ = ["Committer", "FactBatch", "FactRow", "taken_error"]

_APPEND = """
with wanted as (
    select * from unnest(%(runs)s::text[], %(epochs)s::bigint[], %(lasts)s::int[], %(sizes)s::int[], %(states)s::text[],
        %(questions)s::text[], %(modes)s::text[]) as w(run, epoch, last, size, state, question, mode)
), locked as (
    select runs.run from runs join wanted on runs.run = wanted.run and runs.epoch = wanted.epoch
    where runs.state = 'running' order by runs.run for update of runs
), held as (
    update runs set last = wanted.last, bytes = bytes + wanted.size, state = coalesce(wanted.state, runs.state),
        question = coalesce(wanted.question, runs.question), mode = coalesce(wanted.mode, runs.mode),
        lease_until = case when wanted.state is null then lease_until end
    from wanted where runs.run = wanted.run and runs.run in (select run from locked) returning runs.run, runs.owner
)"""
_CREATE = """
with held as (
    insert into runs (run, owner, header, question, mode, state, epoch, holder, lease_until, last, bytes)
    select w.run, %(owner)s, %(header)s, coalesce(w.question, ''), coalesce(w.mode, ''), coalesce(w.state, 'running'), w.epoch,
        %(holder)s, now() + make_interval(secs => %(lease)s), w.last, w.size
    from unnest(%(runs)s::text[], %(epochs)s::bigint[], %(lasts)s::int[], %(sizes)s::int[], %(states)s::text[],
        %(questions)s::text[], %(modes)s::text[]) as w(run, epoch, last, size, state, question, mode)
    returning run, owner
)"""
_REFERENCES = """, named as (
    insert into run_pages (run, digest)
    select held.run, p.digest from held join unnest(%(page_runs)s::text[], %(digests)s::text[]) as p(run, digest) using (run)
    on conflict do nothing
)"""
_SPENDING = """, spent as (
    insert into usage (owner, day, runs, tokens, cost)
    select held.owner, (now() at time zone 'utc')::date, sum(s.runs), sum(s.tokens), sum(s.cost)
    from held join unnest(%(runs)s::text[], %(begun)s::int[], %(tokens)s::bigint[], %(costs)s::float8[])
        as s(run, runs, tokens, cost) using (run) group by held.owner
    on conflict (owner, day) do update set runs = usage.runs + excluded.runs, tokens = usage.tokens + excluded.tokens,
        cost = usage.cost + excluded.cost
)"""
_FACTS = """
insert into facts (run, n, epoch, line)
select f.run, f.n, f.epoch, f.line from held
join unnest(%(fact_runs)s::text[], %(numbers)s::int[], %(fact_epochs)s::bigint[], %(lines)s::text[]) as f(run, n, epoch, line)
using (run) returning run
"""


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

    @property
    def ended_state(self) -> str | None:
        last = self.rows[-1].fact
        return ENDED_STATES[last.kind] if isinstance(last, events.TERMINAL) else None


class Committer:
    """The one writer of facts in a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[FactBatch, Callable[[StoreError | None], None]]] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    async def commit(self, batch: FactBatch) -> None:
        """Return when the facts are kept. Raises StoreError, and RunTakenError where another writer has the run."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[StoreError | None] = loop.create_future()

        def report(error: StoreError | None) -> None:
            loop.call_soon_threadsafe(_settle, done, error)

        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="nexi-commits", daemon=True)
                self._thread.start()
            self._waiting.append((batch, report))
            self._changed.notify()
        if error := await done:
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
                batches, self._waiting = self._waiting, []
                if not batches:
                    return
            errors = self._write_all([batch for batch, _ in batches])
            for batch, report in batches:
                report(errors[batch.run])

    def _write_all(self, batches: Sequence[FactBatch]) -> dict[str, StoreError | None]:
        """What became of each run's batch; a batch that fails with others is tried again by itself."""
        new, known = [b for b in batches if b.created], [b for b in batches if not b.created]
        errors: dict[str, StoreError | None] = {}
        if len(known) > 1:
            try:
                kept = self._write(known)
                errors |= {batch.run: None for batch in known if batch.run in kept}
            except StoreError:
                pass
        for batch in (*new, *known):
            if batch.run not in errors:
                errors[batch.run] = self._write_one(batch)
        return errors

    def _write_one(self, batch: FactBatch) -> StoreError | None:
        try:
            is_kept = bool(self._write([batch]))
        except StoreError as error:
            if error.code != "duplicate":
                return error
            is_kept = False
        try:
            return None if is_kept or self._has_committed(batch) else taken_error(batch.run)
        except StoreError as error:
            return error

    def _write(self, batches: Sequence[FactBatch]) -> set[str]:
        values = _values_of(batches)
        created = batches[0].created
        parts = (
            _CREATE if created else _APPEND,
            _REFERENCES if values["digests"] else "",
            _SPENDING if any(values["begun"]) or any(values["tokens"]) else "",
            _FACTS,
        )
        rows = self._database.fetch("".join(parts), {**values, **(created or {})})
        return {run for (run,) in rows}

    def _has_committed(self, batch: FactBatch) -> bool:
        """Whether a commit whose confirmation was lost has happened."""
        found = self._database.fetch(
            "select count(*) from facts where run = %(run)s and epoch = %(epoch)s and n = any(%(numbers)s)",
            {"run": batch.run, "epoch": batch.epoch, "numbers": [row.number for row in batch.rows]},
        )
        return bool(found[0][0] == len(batch.rows))


def _values_of(batches: Sequence[FactBatch]) -> dict[str, Any]:
    starts = [next((r.fact for r in b.rows if isinstance(r.fact, RunStarted)), None) for b in batches]
    usages = [sum((r.fact.usage for r in b.rows if isinstance(r.fact, ModelReplied)), Usage()) for b in batches]
    rows = [(batch, row) for batch in batches for row in batch.rows]
    pages = [(b.run, digest) for b, row in rows for digest in digests_in(row.line.encode("ascii"))]
    return {
        "runs": [b.run for b in batches],
        "epochs": [b.epoch for b in batches],
        "lasts": [b.rows[-1].number for b in batches],
        "sizes": [sum(len(row.line) for row in b.rows) for b in batches],
        "states": [b.ended_state for b in batches],
        "questions": [clean_text(start.query) if start else None for start in starts],
        "modes": [start.mode if start else None for start in starts],
        "begun": [1 if start else 0 for start in starts],
        "tokens": [usage.total for usage in usages],
        "costs": [usage.cost or 0.0 for usage in usages],
        "page_runs": [run for run, _ in pages],
        "digests": [digest for _, digest in pages],
        "fact_runs": [b.run for b, _ in rows],
        "fact_epochs": [b.epoch for b, _ in rows],
        "numbers": [row.number for _, row in rows],
        "lines": [row.line for _, row in rows],
    }


def _settle(done: asyncio.Future[StoreError | None], error: StoreError | None) -> None:
    if not done.done():
        done.set_result(error)


def taken_error(run_id: str, cause: str = "its lease had run out, and another worker continues it") -> RunTakenError:
    return RunTakenError(f"Run {run_id} was taken over", cause=cause, fix="follow it there")
