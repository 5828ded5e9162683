"""Limits that all machines of a team keep together: the pace of requests to a host, resting search services, model calls.

`app.factory` uses these instead of the limits of one process; below is `database`. Times are the database's. A limit must never
be the reason that something fails, so without a database each process keeps the limit by itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from nexi.errors import BackendError, StoreError
from nexi.net import breaker
from nexi.net.breaker import State, Suspension
from nexi.net.limits import RateLimiter, stand_in_line
from nexi.ports import Clock
from nexi.team.limits import MAX_SLOT_S
from nexi.team.postgres.database import Database, clean_text, read_statements

SLOT_WAIT_S = 0.1
SQL = read_statements(__file__)


class PostgresPacing:
    """The Pacing port: a bucket of `burst` tokens for each key that refills with `rate` tokens a second, for all machines."""

    def __init__(self, database: Database, clock: Clock, name: str, *, burst: float, rate: float, person: str = "") -> None:
        self._database, self._clock, self._name, self._person = database, clock, name, person
        self._step, self._slack = 1.0 / rate, (burst - 1) / rate
        self._alone = RateLimiter(clock, burst=burst, rate=rate, evicts=True)

    async def wait(self, key: str) -> None:
        """Take a token when there is one, each person's in the order of asking. A caller that is cancelled takes none."""
        lines, name = self._database.lines, f"{self._name} {key}"
        # The people of a process take turns: one caller of each stands in the line, and the others wait behind her. A process
        # never has more than one token that nobody may want in the end.
        async with stand_in_line(lines, f"{name} of {self._person}"), stand_in_line(lines, name):
            try:
                rows = await self._fetch(SQL["reserve"], key)
            except StoreError:
                return await self._alone.wait(key)
            delay = rows[0][0] - self._step - self._slack
            try:
                return await self._clock.sleep(delay) if delay > 0 else None
            except asyncio.CancelledError:
                with suppress(StoreError):
                    await asyncio.shield(self._fetch(SQL["give_back"], key))
                raise

    async def try_take(self, key: str) -> float:
        """Take a token if there is one, and return 0.0; else the seconds after which there is."""
        try:
            if await self._fetch(SQL["try"], key):
                return 0.0
            rows = await self._fetch(SQL["look"], key)
        except StoreError:
            return self._alone.try_take(key)
        return max(0.0, float(rows[0][0]) - self._slack) if rows else 0.0

    async def _fetch(self, statement: str, key: str) -> list[tuple[Any, ...]]:
        values = {"key": clean_text(f"{self._name} {key}")[:500], "step": self._step, "slack": self._slack}
        return await self._database.in_thread(self._database.fetch, statement, values)


class PostgresBreaker:
    """The Breaker port over a table. `marks` tell one set-up of a backend from another."""

    def __init__(self, database: Database, marks: Mapping[str, str]) -> None:
        self._database, self._marks = database, dict(marks)

    async def admit(self, backend: str) -> State:
        """None to ask now, or the suspension that forbids it."""
        if await self._is_unknown(backend):
            return None
        is_admitted, state = await self._change(backend, breaker.try_admit)
        return None if is_admitted else state

    async def record_success(self, backend: str) -> None:
        if not await self._is_unknown(backend):
            await self._change(backend, lambda state, now: (True, breaker.after_success(state)))

    async def record_failure(self, backend: str, error: BackendError) -> None:
        def fail(state: State, now: float) -> tuple[bool, State]:
            return True, breaker.after_failure(
                state, now, error.code, reason=str(error), fix=error.fix, retry_after=error.retry_after
            )

        await self._change(backend, fail)

    async def _is_unknown(self, backend: str) -> bool:
        sql = "select 1 from suspensions where backend = %(backend)s and mark = %(mark)s"
        try:
            return not await self._database.in_thread(self._database.fetch, sql, self._name(backend))
        except StoreError:
            return True

    async def _change(self, backend: str, step: Callable[[State, float], tuple[bool, State]]) -> tuple[bool, State]:
        try:
            return await self._database.in_thread(self._apply, backend, step)
        except StoreError:
            return True, None

    def _apply(self, backend: str, step: Callable[[State, float], tuple[bool, State]]) -> tuple[bool, State]:
        """One step of the state machine, one process at a time."""
        name = self._name(backend)
        with self._database.transaction() as connection:
            connection.execute("select pg_advisory_xact_lock(hashtext(%(backend)s))", name)
            now, record = connection.execute(SQL["read_suspension"], name).fetchone()
            try:
                before = msgspec.convert(record, Suspension) if record else None
            except msgspec.ValidationError:
                before = None  # of another version
            is_admitted, after = step(before, now)
            if after is None:
                connection.execute("delete from suspensions where backend = %(backend)s and mark = %(mark)s", name)
            elif after != before:
                connection.execute(SQL["write_suspension"], {**name, "state": msgspec.json.encode(after).decode()})
        return is_admitted, after

    def _name(self, backend: str) -> dict[str, str]:
        return {"backend": backend, "mark": self._marks.get(backend, "")}


class PostgresConcurrency:
    """The ConcurrencyLimit port: at most so many calls to a model server at once, from all machines."""

    def __init__(self, database: Database, clock: Clock, server: str, most: int) -> None:
        self._database, self._clock = database, clock
        self._values: dict[str, Any] = {"server": clean_text(server), "most": most, "lease": MAX_SLOT_S}
        self._is_prepared = False

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait for a free slot and keep it for as long as the block."""
        holder, has_slot = os.urandom(8).hex(), False
        with suppress(StoreError):  # without a database there is none to wait for
            if not self._is_prepared:
                await self._fetch(SQL["add_slots"], holder)
                self._is_prepared = True
            while not (has_slot := bool(await self._fetch(SQL["take_slot"], holder))):
                await self._clock.sleep(SLOT_WAIT_S)
        renewal = asyncio.create_task(self._renew(holder))  # a slot whose process is lost becomes free again
        try:
            yield
        finally:
            renewal.cancel()
            if has_slot:
                with suppress(StoreError):  # its lease runs out by itself
                    await asyncio.shield(self._fetch(SQL["free_slot"], holder))

    async def _renew(self, holder: str) -> None:
        while True:
            await asyncio.sleep(MAX_SLOT_S / 3)
            with suppress(StoreError):
                await self._fetch(SQL["renew_slot"], holder)

    async def _fetch(self, statement: str, holder: str) -> list[tuple[Any, ...]]:
        return await self._database.in_thread(self._database.fetch, statement, {**self._values, "holder": holder})


def forget_idle_limits(database: Database) -> None:
    """Delete buckets that have long been full again. It blocks."""
    database.fetch("delete from rate_limits where full_at < now() - interval '10 minutes'")
