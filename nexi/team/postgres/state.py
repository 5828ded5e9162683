"""What a team server keeps for one person, as the port PersonalState."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nexi.ports import Clock, Embedder, KnowledgeStore
from nexi.team.postgres.database import Database
from nexi.team.postgres.history import PostgresHistory
from nexi.team.postgres.limits import PostgresBreaker, PostgresConcurrency, PostgresPacing
from nexi.team.postgres.people import People, quota_error
from nexi.team.postgres.runs import PostgresRuns
from nexi.team.postgres.schedules import PersonalSchedules
from nexi.team.postgres.sharing import PostgresKnowledgeSharing, PostgresSharing
from nexi.team.postgres.spaces import PostgresSpaces, PostgresSpaceSharing
from nexi.types import Allowance, Usage


class PostgresState:
    """The runs, past answers, knowledge and quotas of one person."""

    def __init__(
        self,
        database: Database,
        owner: str,
        clock: Clock,
        knowledge: KnowledgeStore,
        local_embedders: dict[str, Embedder | None] | None = None,
        open_knowledge: Callable[[str], KnowledgeStore] | None = None,
    ) -> None:
        self._database, self._clock = database, clock
        self.local_embedders = {} if local_embedders is None else local_embedders
        self.owner = owner
        self.runs = PostgresRuns(database, owner, clock)
        self.history = PostgresHistory(database, owner)
        self.knowledge = knowledge
        self.sharing = PostgresSharing(database, owner)
        self.knowledge_sharing = PostgresKnowledgeSharing(database, owner)
        self.schedules = PersonalSchedules(database, owner)
        self.spaces = PostgresSpaces(database, owner)
        self.space_sharing = PostgresSpaceSharing(database, owner)
        self._open_knowledge = open_knowledge or (lambda _: knowledge)
        self._people = People(database)

    def knowledge_of(self, owner_id: str) -> KnowledgeStore:
        return self._open_knowledge(owner_id)

    def make_pacing(self, name: str, burst: float, rate: float) -> PostgresPacing:
        return PostgresPacing(self._database, self._clock, name, burst=burst, rate=rate, person=self.owner)

    def make_breaker(self, marks: Mapping[str, str]) -> PostgresBreaker:
        return PostgresBreaker(self._database, marks)

    def limit_calls(self, server: str, most: int) -> PostgresConcurrency:
        return PostgresConcurrency(self._database, self._clock, server, most)

    def list_models(self) -> tuple[str, ...] | None:
        return self._people.quotas_of(self.owner).models

    def take_run(self, *, is_queued: bool = False) -> Allowance:
        """Count a new run, and say what it may use; tokens and cost are counted with its facts. One at a time for each person.
        Raises NexiError where a quota is reached."""
        quota = self._people.take_run(self.owner, is_queued=is_queued)
        quotas, usage = self._people.quotas_of(self.owner), self._people.usage_of(self.owner)
        if quota:
            raise quota_error(quota, quotas, usage)
        tokens = None if quotas.tokens_per_day is None else quotas.tokens_per_day - usage.tokens
        cost = None if quotas.cost_per_day is None else quotas.cost_per_day - usage.cost
        return Allowance(tokens, cost)

    def take_call(self, tokens: int, *, is_new: bool) -> None:
        """Count the estimate of a model call outside a run. Raises NexiError where a quota is reached."""
        if quota := self._people.take_call(self.owner, tokens, is_new=is_new):
            raise quota_error(quota, self._people.quotas_of(self.owner), self._people.usage_of(self.owner))

    def settle_call(self, estimate: int, usage: Usage) -> None:
        self._people.settle_call(self.owner, estimate, usage)
