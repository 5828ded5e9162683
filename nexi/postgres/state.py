"""What a team server keeps for one person, as the port PersonalState."""

from __future__ import annotations

from collections.abc import Mapping

from nexi.errors import NexiError
from nexi.ports import Clock, KnowledgeStore
from nexi.postgres.database import Database
from nexi.postgres.history import PostgresHistory
from nexi.postgres.limits import PostgresBreaker, PostgresConcurrency, PostgresPacing
from nexi.postgres.people import People
from nexi.postgres.runs import PostgresRuns
from nexi.postgres.sharing import PostgresSharing
from nexi.types import Allowance

__all__ = ["PostgresState"]


class PostgresState:
    """The runs, past answers, knowledge and quotas of one person."""

    def __init__(self, database: Database, owner: str, clock: Clock, knowledge: KnowledgeStore) -> None:
        self._database, self._clock = database, clock
        self.owner = owner
        self.runs = PostgresRuns(database, owner, clock)
        self.history = PostgresHistory(database, owner)
        self.knowledge = knowledge
        self.sharing = PostgresSharing(database, owner)
        self._people = People(database)

    def make_pacing(self, name: str, burst: float, rate: float) -> PostgresPacing:
        return PostgresPacing(self._database, self._clock, name, burst=burst, rate=rate)

    def make_breaker(self, marks: Mapping[str, str]) -> PostgresBreaker:
        return PostgresBreaker(self._database, marks)

    def limit_calls(self, server: str, most: int) -> PostgresConcurrency:
        return PostgresConcurrency(self._database, self._clock, server, most)

    def check_quotas(self, *, is_queued: bool = False) -> Allowance:
        """What a new run may use. Raises NexiError where a quota is reached; what is used is counted with the facts."""
        quotas, usage = self._people.quotas_of(self.owner), self._people.usage_of(self.owner)
        used = [
            ("runs a day", quotas.runs_per_day, usage.runs),
            ("tokens a day", quotas.tokens_per_day, usage.tokens),
            ("dollars a day", quotas.cost_per_day, usage.cost),
            ("runs at once", None if is_queued else quotas.running, usage.running),  # one that waits begins when another ends
        ]
        for name, most, now in used:
            if most is not None and now >= most:
                raise NexiError(
                    f"your quota of {most:g} {name} is reached",
                    cause=f"{now:g} are used",
                    fix="ask again tomorrow, or ask an administrator for more" if "day" in name else "wait for a run to end",
                    code="quota_reached",
                )
        tokens = None if quotas.tokens_per_day is None else quotas.tokens_per_day - usage.tokens
        cost = None if quotas.cost_per_day is None else quotas.cost_per_day - usage.cost
        return Allowance(tokens, cost)
