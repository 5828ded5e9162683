"""Retention of the runs and page texts of a team: what the files of one person do, for everybody, in two statements.

A worker calls it once an hour; below is `database`. A run that is too old, or beyond what one person may keep, is marked first
and deleted a week later, so that a wrong setting or a clock that jumped can be put right. Kept and open runs stay.
"""

from __future__ import annotations

from nexi.team.limits import DELETION_NOTICE_DAYS, MAX_STATEMENT_S
from nexi.team.postgres.database import Database

RETENTION_LOCK = 0x6E657870

_MARK = """
with sized as (
    select run, created, sum(bytes) over (partition by owner order by created desc, run) as until_here,
        not is_kept and (state in ('finished', 'failed') or (lease_until is null and not is_queued)) as may_go
    from runs
), due as (
    select run from sized
    where may_go and (created < now() - make_interval(days => %(days)s) or until_here > %(bytes)s)
)
update runs set expires = case when run in (select run from due) then now() + make_interval(days => %(notice)s) end
where (expires is null) = (run in (select run from due))
"""
_DELETE = "delete from runs where expires < now() and not is_kept and not coalesce(lease_until > now(), false) returning 1"
_PAGES = """
delete from pages where used < now() - interval '1 hour'
and not exists (select from run_pages where run_pages.digest = pages.digest)
"""


def prune_expired(database: Database, keep_days: int, max_mb: int) -> int:
    """Mark what is due, delete what was marked a week ago with its pages, and return how many runs went. Raises StoreError."""
    values = {"days": keep_days, "bytes": max_mb * 1_000_000, "notice": DELETION_NOTICE_DAYS}
    with database.transaction(wait_s=MAX_STATEMENT_S) as connection:
        (is_first,) = connection.execute("select pg_try_advisory_xact_lock(%s)", (RETENTION_LOCK,)).fetchone()
        if not is_first:
            return 0  # another worker is at it
        connection.execute(_MARK, values)
        count = len(connection.execute(_DELETE).fetchall())
        connection.execute(_PAGES)
        return count
