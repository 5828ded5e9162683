"""The spaces of one person of a team and those shared with her, as the ports SpaceStore and SpaceSharing.

`state` hands them out; below are `database` and `people`. Others read a space and ask in it; only its owner changes it.
"""

from __future__ import annotations

from typing import Any

from nexi.errors import NexiError
from nexi.spaces import MAX_SPACES, check_space, decode_space, encode_space, no_such_space, space_exists, too_many_spaces
from nexi.team.postgres.database import Database, clean_text
from nexi.team.postgres.people import People
from nexi.types import RunAudience, Space

__all__ = ["PostgresSpaceSharing", "PostgresSpaces"]

_READABLE = "select name, settings, owner::text from spaces "  # of the rows that the policies let this person see
_INSERT = (
    "insert into spaces (owner, name, settings) select %(owner)s, %(name)s, %(settings)s "
    "where (select count(*) from spaces where owner = %(owner)s) < %(most)s on conflict do nothing returning name"
)


class PostgresSpaces:
    """The spaces that one person may ask in."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner
        self._people = People(database)

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
        values = {"name": space.name, "settings": encode_space(space), "most": MAX_SPACES}
        if self._fetch(_INSERT, **values):
            return
        if any(other.name == space.name for other in self.list_all() if not other.owner):
            raise space_exists(space.name)
        raise too_many_spaces()

    def change(self, space: Space) -> None:
        space = check_space(space)
        statement = "update spaces set settings = %(settings)s where owner = %(owner)s and name = %(name)s returning name"
        if not self._fetch(statement, name=space.name, settings=encode_space(space)):
            raise no_such_space(space.name)

    def remove(self, name: str) -> None:
        statement = "delete from spaces where owner = %(owner)s and name = %(name)s returning name"
        if not self._fetch(statement, name=clean_text(name)):
            raise no_such_space(name)

    def _read(self, statement: str, **values: Any) -> list[Space]:
        rows = self._fetch(statement, **values)
        names = self._people.find_names([owner for _, _, owner in rows if owner != self._owner])
        own = {self._owner: ("", self._owner)}
        people = own | {person: (name, person) for person, name in names.items()}
        return [decode_space(name, settings, *people[owner]) for name, settings, owner in rows if owner in people]

    def _fetch(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        is_writing = not statement.startswith("select")
        return self._database.fetch_as(self._owner, statement, {"owner": self._owner, **values}, is_alone=is_writing)


class PostgresSpaceSharing:
    """Who reads the spaces of one person and asks in them."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database, self._owner = database, owner
        self._people = People(database)

    def read_audience(self, name: str) -> RunAudience:
        rows = self._database.fetch_as(
            self._owner,
            "select shares.space is not null, shares.person from spaces "
            "left join space_shares shares on shares.space = spaces.id "
            "where spaces.owner = %(owner)s and name = %(name)s order by shares.created, shares.person",
            {"owner": self._owner, "name": clean_text(name)},
        )
        if not rows:
            raise no_such_space(name)
        return self._people.name_audience([person for is_shared, person in rows if is_shared])

    def set_audience(self, name: str, audience: RunAudience) -> None:
        ids = [self._people.find(person) for person in audience.people]
        rows = self._database.fetch_as(
            self._owner,
            "with mine as (select id, owner from spaces where owner = %(owner)s and name = %(name)s), "
            "wanted as (select unnest(%(people)s::uuid[]) as person), "
            "gone as (delete from space_shares where space in (select id from mine) "
            "and not exists (select from wanted where wanted.person is not distinct from space_shares.person)), "
            "added as (insert into space_shares (space, owner, person) select id, owner, person from mine, wanted "
            "where person is distinct from owner on conflict do nothing) select id from mine",
            {"owner": self._owner, "name": clean_text(name), "people": [*ids, *([None] if audience.team else [])]},
        )
        if not rows:
            raise no_such_space(name)
        self._people.record(self._owner, "share_space", name)
