"""What one person lets others read, as the ports RunSharing, KnowledgeSharing and SpaceSharing.

`state` hands them out; below are `database` and `people`. To share is to let read, and of a space to let ask in it: only its
owner changes what is shared.
"""

from __future__ import annotations

from typing import Any

from nexi.errors import NexiError
from nexi.runs.log_format import check_run_id, no_such_run
from nexi.spaces import no_such_space
from nexi.team.limits import MAX_SHARED_LISTED
from nexi.team.postgres.database import clean_text, read_statements
from nexi.team.postgres.people import PersonalRows
from nexi.types import KnowledgeOffer, RunAudience, SharedRun

SQL = read_statements(__file__)
SHARED_WITH_ME = SQL["shared_with_me"]


class _SharedRows(PersonalRows):
    """What one person lets others read: a row for each of them, and one without a person for the whole team."""

    def _replace_audience(
        self, audience: RunAudience, mine: str, table: str, columns: str, missing: NexiError | None = None, **values: Any
    ) -> list[str]:
        """Let exactly these people read what `mine` selects, and return their ids. Raises `missing` where that is nothing."""
        ids = [self._people.find(name) for name in audience.people]
        statement = SQL["replace"].format(mine=mine, table=table, columns=columns, key=columns.partition(",")[0])
        rows = self._fetch(statement, people=[*ids, *([None] if audience.team else [])], **values)
        if missing and not rows:
            raise missing
        return ids

    def _read_audience(self, statement: str, missing: NexiError, **values: Any) -> RunAudience:
        """Who reads something of this person: a row for each, or one that only says that it is there. Raises `missing`."""
        rows = self._fetch(SQL[statement], **values)
        if not rows:
            raise missing
        return self._people.name_audience([person for is_shared, person in rows if is_shared])


class PostgresSharing(_SharedRows):
    """The runs that one person shares, and those that others share with her."""

    def read_audience(self, run_id: str) -> RunAudience:
        return self._read_audience("read_run", no_such_run(run_id), run=check_run_id(run_id))

    def set_audience(self, run_id: str, audience: RunAudience) -> None:
        mine = "select run, owner from runs where run = %(run)s and owner = %(owner)s"
        self._replace_audience(audience, mine, "shares", "run, owner", no_such_run(run_id), run=check_run_id(run_id))
        self._people.record(self._owner, "share_run", run_id)

    def list_shared(self) -> list[SharedRun]:
        rows = self._fetch(SQL["runs"].format(shared_with_me=SHARED_WITH_ME), limit=MAX_SHARED_LISTED)
        names = self._people.find_names([str(owner) for _, owner, *_ in rows])
        return [
            SharedRun(run, names[str(owner)], question, mode, state, created.isoformat(timespec="milliseconds"))
            for run, owner, question, mode, state, created in rows
        ]


class PostgresKnowledgeSharing(_SharedRows):
    """Who reads the knowledge base of one person, and whose she reads. A store that is not in this database asks here too."""

    def read_audience(self) -> RunAudience:
        rows = self._fetch("select person from knowledge_shares where owner = %(owner)s order by created, person")
        return self._people.name_audience([person for (person,) in rows])

    def set_audience(self, audience: RunAudience) -> None:
        ids = self._replace_audience(audience, "select %(owner)s::uuid as owner", "knowledge_shares", "owner")
        self._people.record(self._owner, "share_knowledge", "the team" if audience.team else ", ".join(ids) or "no one")

    def list_owners(self) -> dict[str, str]:
        return self._people.find_names([str(owner) for (owner,) in self._fetch("select accepted_owners()")])

    def list_offers(self) -> list[KnowledgeOffer]:
        rows = self._fetch(SQL["offers"], limit=MAX_SHARED_LISTED)
        names = self._people.find_names([str(owner) for owner, _ in rows])
        return [
            KnowledgeOffer(str(owner), names[str(owner)], "offered" if answer is None else "accepted" if answer else "muted")
            for owner, answer in rows
        ]

    def answer_offer(self, owner: str, *, is_accepted: bool) -> None:
        if not self._fetch(SQL["answer"], sharer=clean_text(owner), is_accepted=is_accepted):
            cause = "it never was, or it was taken back"
            raise NexiError("this knowledge base is not shared with you", cause=cause, code="not_found")
        self._people.record(self._owner, "accept_knowledge" if is_accepted else "mute_knowledge", owner)


class PostgresSpaceSharing(_SharedRows):
    """Who reads the spaces of one person and asks in them."""

    def read_audience(self, name: str) -> RunAudience:
        return self._read_audience("read_space", no_such_space(name), name=clean_text(name))

    def set_audience(self, name: str, audience: RunAudience) -> None:
        mine = "select id as space, owner from spaces where owner = %(owner)s and name = %(name)s"
        self._replace_audience(audience, mine, "space_shares", "space, owner", no_such_space(name), name=clean_text(name))
        self._people.record(self._owner, "share_space", name)
