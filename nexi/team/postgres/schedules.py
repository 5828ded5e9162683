"""Schedules: questions of people that are asked again and again, as rows.

`state` hands out those of one person as the port ScheduleStore, `nexi admin schedules` has those of everybody, and every worker
asks what is due; below are `database` and the table of runs. A worker that has the lock of a row makes its run and moves its
time on in one transaction, so each time is asked once by all of them.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from nexi.errors import NexiError
from nexi.notices import Notice
from nexi.ports import Clock
from nexi.team.limits import MAX_DUE_SCHEDULES, MAX_SCHEDULES
from nexi.team.postgres.database import MAX_ROWS, Database, clean_text, read_statements
from nexi.team.postgres.people import PersonalRows
from nexi.team.postgres.runs import SUBMIT_RUN, describe_waiting_run
from nexi.types import Schedule

INTERVALS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_COLUMNS = "id, owner::text, question, mode, every, next_at, last_run"
SQL = read_statements(__file__)


def name_interval(every: timedelta) -> str:
    return next((name for name, interval in INTERVALS.items() if interval == every), str(every))


class Schedules:
    """The schedules of everybody. Its methods block; each raises StoreError."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(
        self, owner: str, question: str, mode: str, request: dict[str, Any], *, every: timedelta, first: datetime | None = None
    ) -> int:
        """A new schedule, by its id; without `first` it is due at once."""
        row = _describe_schedule(question, mode, request, every, first)
        return int(self._database.fetch(SQL["add"], {"owner": owner, "most": MAX_ROWS, **row})[0][0])

    def list_all(self) -> list[Schedule]:
        rows = self._database.fetch(f"select {_COLUMNS} from schedules order by next_at, id")  # noqa: S608
        return [Schedule(*row) for row in rows]

    def remove(self, schedule: int) -> None:
        """Raises NexiError where there is none such."""
        if not self._database.fetch("delete from schedules where id = %(id)s returning id", {"id": schedule}):
            raise NexiError(f"there is no schedule {schedule}", fix="nexi admin schedules lists them", code="not_found")

    def submit_due(self) -> list[tuple[str, str]]:
        """Make the runs that are due, each once, and return their ids and owners. Times that were missed are not made up."""
        runs: list[tuple[str, str]] = []
        if not self._database.fetch("select 1 from schedules where next_at <= now() limit 1"):
            return runs
        with self._database.transaction() as connection:
            rows = connection.execute(SQL["due"], (MAX_DUE_SCHEDULES,)).fetchall()
            for schedule, owner, question, mode, request in rows:
                (quota,) = connection.execute("select take_run(%s, true)", (owner,)).fetchone()
                if quota:  # it is asked again when it is due the next time
                    connection.execute(SQL["advance"], (None, schedule))
                    continue
                row = describe_waiting_run(str(owner), question, mode, request, self._clock)
                connection.execute(SUBMIT_RUN, row)
                connection.execute(SQL["advance"], (row["run"], schedule))
                runs.append((row["run"], row["owner"]))
        return runs


class PersonalSchedules(PersonalRows):
    """The schedules of one person."""

    def list_all(self) -> list[Schedule]:
        sql = f"select {_COLUMNS} from schedules where owner = %(owner)s order by next_at, id"  # noqa: S608
        return [Schedule(*row) for row in self._fetch(sql)]

    def add(
        self, question: str, mode: str, request: dict[str, Any], *, every: timedelta, first: datetime | None = None
    ) -> Schedule:
        row = _describe_schedule(question, mode, request, every, first)
        rows = self._fetch(SQL["add"], is_alone=True, most=MAX_SCHEDULES, **row)
        if not rows:
            raise NexiError(
                Notice("limit.schedules", "you have {most} schedules, the most that one person may have", most=MAX_SCHEDULES),
                fix=Notice("limit.make_room", "remove one first"),
                code="quota_reached",
            )
        return Schedule(*rows[0])

    def remove(self, schedule: int) -> None:
        sql = "delete from schedules where id = %(id)s and owner = %(owner)s returning id"
        if not self._fetch(sql, id=schedule, is_alone=True):
            raise NexiError(f"there is no schedule {schedule}", fix="GET /v1/schedules lists yours", code="not_found")


def _describe_schedule(
    question: str, mode: str, request: dict[str, Any], every: timedelta, first: datetime | None
) -> dict[str, Any]:
    return {"question": clean_text(question), "mode": mode, "request": json.dumps(request), "every": every, "first": first}
