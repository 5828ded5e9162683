"""The spaces of one person of a team and those shared with her, as the ports SpaceStore and SpaceSharing.

`state` hands them out; below are `database` and `people`. Others read a space and ask in it; only its owner changes it.
"""

from __future__ import annotations

from typing import Any

from nexi.errors import NexiError
from nexi.spaces import MAX_SPACES, check_space, decode_space, encode_space, no_such_space, space_exists, too_many_spaces
from nexi.team.postgres.database import clean_text, read_statements
from nexi.team.postgres.people import PersonalRows
from nexi.team.postgres.sharing import SharedRows
from nexi.types import RunAudience, Space

_READABLE = "select name, settings, owner::text from spaces "  # of the rows that the policies let this person see
SQL = read_statements(__file__)


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
        if self._fetch(SQL["add"], name=space.name, settings=encode_space(space), most=MAX_SPACES, is_alone=True):
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


class PostgresSpaceSharing(SharedRows):
    """Who reads the spaces of one person and asks in them."""

    def read_audience(self, name: str) -> RunAudience:
        rows = self._fetch(SQL["read_audience"], name=clean_text(name))
        if not rows:
            raise no_such_space(name)
        return self._people.name_audience([person for is_shared, person in rows if is_shared])

    def set_audience(self, name: str, audience: RunAudience) -> None:
        mine = "select id as space, owner from spaces where owner = %(owner)s and name = %(name)s"
        self._replace_audience(audience, mine, "space_shares", "space, owner", no_such_space(name), name=clean_text(name))
        self._people.record(self._owner, "share_space", name)
