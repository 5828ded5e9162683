"""Runs and knowledge that one person lets others read, as the ports RunSharing and KnowledgeSharing.

`state` hands them out; below are `database` and `people`. To share is to let read: only its owner changes
what is shared.
"""

from __future__ import annotations

from nexi.errors import NexiError
from nexi.runs.log_format import check_run_id, no_such_run
from nexi.team.limits import MAX_SHARED_LISTED
from nexi.team.postgres.database import Database, clean_text
from nexi.team.postgres.people import People
from nexi.types import KnowledgeOffer, RunAudience, SharedRun

__all__ = ["SHARED_WITH_ME", "PostgresKnowledgeSharing", "PostgresSharing"]

SHARED_WITH_ME = (
    "exists (select from shares where shares.run = runs.run and shares.owner <> %(owner)s "
    "and (shares.person = %(owner)s or shares.person is null))"
)


class PostgresSharing:
    """What one person shares, and what others share with her."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner
        self._people = People(database)

    def read_audience(self, run_id: str) -> RunAudience:
        rows = self._database.fetch_as(
            self._owner,
            "select shares.run is not null, shares.person from runs left join shares using (run) "
            "where runs.run = %(run)s and runs.owner = %(owner)s order by shares.created",
            {"run": check_run_id(run_id), "owner": self._owner},
        )
        if not rows:
            raise no_such_run(run_id)
        return self._people.name_audience([person for is_shared, person in rows if is_shared])

    def set_audience(self, run_id: str, audience: RunAudience) -> None:
        ids = [self._people.find(name) for name in audience.people]
        rows = self._database.fetch_as(
            self._owner,
            "with mine as (select run, owner from runs where run = %(run)s and owner = %(owner)s), "
            "wanted as (select unnest(%(people)s::uuid[]) as person), "
            "gone as (delete from shares where run in (select run from mine) "
            "and not exists (select from wanted where wanted.person is not distinct from shares.person)), "
            "added as (insert into shares (run, owner, person) select run, owner, person from mine, wanted "
            "where person is distinct from owner on conflict do nothing) select run from mine",
            {"run": check_run_id(run_id), "owner": self._owner, "people": [*ids, *([None] if audience.team else [])]},
        )
        if not rows:
            raise no_such_run(run_id)
        self._people.record(self._owner, "share_run", run_id)

    def list_shared(self) -> list[SharedRun]:
        rows = self._database.fetch_as(
            self._owner,
            f"select run, owner, question, mode, state, created from runs where {SHARED_WITH_ME} "  # noqa: S608
            "order by created desc limit %(limit)s",
            {"owner": self._owner, "limit": MAX_SHARED_LISTED},
        )
        names = self._people.find_names([str(owner) for _, owner, *_ in rows])
        return [
            SharedRun(run, names[str(owner)], question, mode, state, created.isoformat(timespec="milliseconds"))
            for run, owner, question, mode, state, created in rows
        ]


class PostgresKnowledgeSharing:
    """Who reads the knowledge base of one person, and whose she reads. A store that is not in this database asks here too."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner
        self._people = People(database)

    def read_audience(self) -> RunAudience:
        rows = self._database.fetch_as(
            self._owner,
            "select person from knowledge_shares where owner = %(owner)s order by created, person",
            {"owner": self._owner},
        )
        return self._people.name_audience([person for (person,) in rows])

    def set_audience(self, audience: RunAudience) -> None:
        ids = [self._people.find(name) for name in audience.people]
        self._database.fetch_as(
            self._owner,
            "with wanted as (select unnest(%(people)s::uuid[]) as person), "
            "gone as (delete from knowledge_shares where owner = %(owner)s "
            "and not exists (select from wanted where wanted.person is not distinct from knowledge_shares.person)) "
            "insert into knowledge_shares (owner, person) select %(owner)s::uuid, person from wanted "
            "where person is distinct from %(owner)s::uuid on conflict do nothing",
            {"owner": self._owner, "people": [*ids, *([None] if audience.team else [])]},
        )
        self._people.record(self._owner, "share_knowledge", "the team" if audience.team else ", ".join(ids) or "no one")

    def list_owners(self) -> dict[str, str]:
        rows = self._database.fetch_as(self._owner, "select accepted_owners()")
        return self._people.find_names([str(owner) for (owner,) in rows])

    def list_offers(self) -> list[KnowledgeOffer]:
        rows = self._database.fetch_as(
            self._owner,
            "select shares.owner, answers.is_accepted from (select owner, min(created) as created from knowledge_shares "
            "where owner <> %(owner)s and (person = %(owner)s or person is null) group by owner) shares "
            "left join knowledge_answers answers on answers.owner = shares.owner and answers.person = %(owner)s "
            "order by shares.created, shares.owner limit %(limit)s",
            {"owner": self._owner, "limit": MAX_SHARED_LISTED},
        )
        names = self._people.find_names([str(owner) for owner, _ in rows])
        return [
            KnowledgeOffer(str(owner), names[str(owner)], "offered" if answer is None else "accepted" if answer else "muted")
            for owner, answer in rows
        ]

    def answer_offer(self, owner: str, *, is_accepted: bool) -> None:
        rows = self._database.fetch_as(
            self._owner,
            "insert into knowledge_answers (person, owner, is_accepted) "
            "select distinct %(person)s::uuid, owner, %(is_accepted)s from knowledge_shares where owner::text = %(owner)s "
            "and owner <> %(person)s and (person = %(person)s or person is null) "
            "on conflict (person, owner) do update set is_accepted = excluded.is_accepted, created = now() returning owner",
            {"person": self._owner, "owner": clean_text(owner), "is_accepted": is_accepted},
        )
        if not rows:
            raise NexiError(
                "this knowledge base is not shared with you", cause="it never was, or it was taken back", code="not_found"
            )
        self._people.record(self._owner, "accept_knowledge" if is_accepted else "mute_knowledge", owner)
