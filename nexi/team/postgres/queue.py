"""The queue of runs: which one a worker takes next. It is the table of runs itself, so there is one truth.

The worker above does the work; below is `database`. A run that is picked is reserved for a moment; the claim that its worker
makes decides who may write it. Runs whose writer is lost come first, then those of the person with the fewest in progress.
"""

from __future__ import annotations

from nexi.team.limits import MAX_RESERVED_S
from nexi.team.postgres.database import Database, read_statements

_PICK = read_statements(__file__)["pick"]
NOTICE = "queue"  # in place of a run's id, among the notices of the database


class RunPicker:
    """What the workers of a team take their runs from."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pick(self, *, is_lost: bool = False) -> tuple[str, str] | None:
        """A run to go on with and its owner; with `is_lost`, one whose writer is gone. It blocks. Raises StoreError."""
        values = {"is_lost": is_lost, "reserved": MAX_RESERVED_S, "lease": self._database.lease_s}
        rows = self._database.fetch(_PICK, values)
        return (rows[0][0], str(rows[0][1])) if rows else None

    def announce(self) -> None:
        """Tell the workers that there is something to pick."""
        self._database.announce(NOTICE)

    async def wait(self, timeout_s: float) -> None:
        """Return when there may be something to pick, or when the time is over."""
        await self._database.wait_for_notice(NOTICE, timeout_s)

    def wake(self) -> None:
        """End the wait of this process, which has room again."""
        self._database.wake_waiters(NOTICE)
