"""Retention of the runs and page texts of a team: what the files of one person do, for everybody, in two statements.

A worker calls it once an hour; below is `database`. A run that is too old, or beyond what one person may keep, is marked first
and deleted a week later, so that a wrong setting or a clock that jumped can be put right. Kept and open runs stay.
"""

from __future__ import annotations

from nexi.team.limits import DELETION_NOTICE_DAYS, MAX_STATEMENT_S
from nexi.team.postgres.database import Database, read_statements

RETENTION_LOCK = 0x6E657870
SQL = read_statements(__file__)


def prune_expired(database: Database, keep_days: int, max_mb: int) -> int:
    """Mark what is due, delete what was marked a week ago with its pages, and return how many runs went. Raises StoreError."""
    values = {"days": keep_days, "bytes": max_mb * 1_000_000, "notice": DELETION_NOTICE_DAYS}
    with database.transaction(wait_s=MAX_STATEMENT_S) as connection:
        (is_first,) = connection.execute("select pg_try_advisory_xact_lock(%s)", (RETENTION_LOCK,)).fetchone()
        if not is_first:
            return 0  # another worker is at it
        connection.execute(SQL["mark"], values)
        count = len(connection.execute(SQL["remove_runs"]).fetchall())
        connection.execute(SQL["remove_pages"])
        return count
