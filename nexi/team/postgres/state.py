"""What a team server keeps for one person, as the port PersonalState, with her past answers and spaces as ports of their own.

`team.assembly` hands it out; below are the other modules of this folder. Others read a space and ask in it; only its owner
changes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from nexi.errors import NexiError
from nexi.ports import Clock, Embedder, KnowledgeStore
from nexi.spaces import MAX_SPACES, check_space, decode_space, encode_space, no_such_space, space_exists, too_many_spaces
from nexi.team.limits import MAX_RETRY_S
from nexi.team.postgres.database import MAX_ROWS, Database, clean_text, read_statements
from nexi.team.postgres.limits import PostgresBreaker, PostgresConcurrency, PostgresPacing
from nexi.team.postgres.people import People, PersonalRows, quota_error
from nexi.team.postgres.runs import PostgresRuns
from nexi.team.postgres.schedules import PersonalSchedules
from nexi.team.postgres.sharing import PostgresKnowledgeSharing, PostgresSharing, PostgresSpaceSharing
from nexi.types import TEAM, Allowance, HistoryEntry, HistoryRead, Space, Usage

SQL = read_statements(__file__)
_READABLE = "select name, settings, owner::text from spaces "  # of the rows that the policies let this person see


class _PostgresHistory(PersonalRows):
    """The past answers of one person: one row for each."""

    def add(self, entry: HistoryEntry) -> None:
        self._fetch(
            "with before as (delete from history where owner = %(owner)s and id = %(id)s) "  # of a lost worker
            "insert into history (owner, id, entry, words) values (%(owner)s, %(id)s, %(entry)s, %(words)s)",
            id=entry.id,
            entry=json.dumps(entry.to_dict()),
            words=clean_text(f"{entry.query}\n{entry.answer}".casefold()),
            patience_s=MAX_RETRY_S,
        )

    def read(self, count: int | None = None) -> HistoryRead:
        limit = None if count is None else max(0, count)
        return self._read("select entry from history where owner = %(owner)s order by number desc limit %(limit)s", limit=limit)

    def find(self, text: str, count: int | None = None) -> HistoryRead:
        words = clean_text(" ".join(text.casefold().split()))
        return self._read("select find_history(%(text)s, %(count)s)", text=words, count=MAX_ROWS if count is None else count)

    def get(self, entry_id: str) -> HistoryEntry | None:
        sql = "select entry from history where owner = %(owner)s and id = %(id)s order by number desc limit 1"
        history = self._read(sql, id=clean_text(entry_id))
        return history.entries[0] if history.entries else None

    def remove(self, entry_id: str) -> int:
        sql = "delete from history where owner = %(owner)s and id = %(id)s returning 1"
        return len(self._fetch(sql, id=clean_text(entry_id)))

    def clear(self) -> None:
        self._fetch("delete from history where owner = %(owner)s")

    def _read(self, statement: str, **values: Any) -> HistoryRead:
        return HistoryRead([HistoryEntry.from_dict(json.loads(entry)) for (entry,) in self._fetch(statement, **values)])


class PostgresSpaces(PersonalRows):
    """The spaces that one person may ask in."""

    def list_all(self) -> list[Space]:
        return self._read(_READABLE + 'order by owner <> %(owner)s, name collate "C", created')

    def get(self, address: str) -> Space:
        name, _, owner = clean_text(address).partition("@")
        spaces = self._read(_READABLE + "where name = %(name)s", name=name)
        own = [space for space in spaces if not space.owner]
        matches = [space for space in spaces if owner in (space.owner, space.owner_id)] if owner else own or spaces
        if not matches:
            raise no_such_space(address)
        if len(matches) > 1:
            cause = "several people share a space of this name with you"
            choices = " or ".join(f"{space.name}@{space.owner_id}" for space in matches[:5])
            raise NexiError(f"{address!r} may be more than one space", cause=cause, fix=f"use {choices}", code="no_such_space")
        return matches[0]

    def add(self, space: Space) -> None:
        space = check_space(space)
        if self._fetch(SQL["add_space"], name=space.name, settings=encode_space(space), most=MAX_SPACES, is_alone=True):
            return
        if any(other.name == space.name for other in self.list_all() if not other.owner):
            raise space_exists(space.name)
        raise too_many_spaces()

    def change(self, space: Space) -> None:
        space = check_space(space)
        statement = "update spaces set settings = %(settings)s where owner = %(owner)s and name = %(name)s returning name"
        if not self._fetch(statement, name=space.name, settings=encode_space(space), is_alone=True):
            raise no_such_space(space.name)

    def remove(self, name: str) -> None:
        statement = "delete from spaces where owner = %(owner)s and name = %(name)s returning name"
        if not self._fetch(statement, name=clean_text(name), is_alone=True):
            raise no_such_space(name)

    def _read(self, statement: str, **values: Any) -> list[Space]:
        rows = self._fetch(statement, **values)
        names = self._people.find_names([owner for _, _, owner in rows if owner != self._owner])
        people = {self._owner: ("", self._owner)} | {person: (name, person) for person, name in names.items()}
        return [decode_space(name, settings, *people[owner]) for name, settings, owner in rows if owner in people]


class PostgresState:
    """The runs, past answers, knowledge and quotas of one person."""

    def __init__(
        self,
        database: Database,
        owner: str,
        clock: Clock,
        open_knowledge: Callable[[str | None], KnowledgeStore],
        local_embedders: dict[str, Embedder | None] | None = None,
    ) -> None:
        """`open_knowledge` gives the knowledge base of a person, or of the team for None."""
        self._database, self._clock, self._people, self._open_knowledge = database, clock, People(database), open_knowledge
        self.local_embedders = {} if local_embedders is None else local_embedders
        self.owner = owner
        self.runs = PostgresRuns(database, owner, clock)
        self.history = _PostgresHistory(database, owner)
        self.knowledge = open_knowledge(None if owner == TEAM else owner)
        self.sharing = PostgresSharing(database, owner)
        self.knowledge_sharing = PostgresKnowledgeSharing(database, owner)
        self.schedules = PersonalSchedules(database, owner)
        self.spaces = PostgresSpaces(database, owner)
        self.space_sharing = PostgresSpaceSharing(database, owner)

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
