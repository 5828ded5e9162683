"""What a team server keeps for one person, as the port PersonalState."""

from __future__ import annotations

from nexi.ports import Clock
from nexi.postgres.database import Database
from nexi.postgres.history import PostgresHistory
from nexi.postgres.runs import PostgresRuns

__all__ = ["PostgresState"]


class PostgresState:
    """The runs and past answers of one person."""

    def __init__(self, database: Database, owner: str, clock: Clock) -> None:
        self.owner = owner
        self.runs = PostgresRuns(database, owner, clock)
        self.history = PostgresHistory(database, owner)
