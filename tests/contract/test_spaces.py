"""What every store of spaces promises: one suite over SQLite and Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nexi.errors import NexiError
from nexi.ports import SpaceStore
from nexi.spaces import MAX_SPACES
from nexi.stores.spaces import SqliteSpaces
from nexi.team.postgres.state import PostgresSpaces
from nexi.types import Space

LEASE = Space("lease", "Quote the clause.", "small", "l", "local", ("wikipedia", "-arxiv"))


@pytest.fixture(params=["sqlite", "postgres"])
def spaces(request: pytest.FixtureRequest, tmp_path: Path) -> SpaceStore:
    if request.param == "sqlite":
        return SqliteSpaces(tmp_path / "home" / "spaces.db")
    return PostgresSpaces(request.getfixturevalue("database"), request.getfixturevalue("make_person")())


def own(space: Space) -> Space:
    """The space as its owner wrote it down."""
    return replace(space, owner_id="")


def code_of(error: pytest.ExceptionInfo[NexiError]) -> str:
    return error.value.code


def test_a_new_store_has_no_space(spaces: SpaceStore) -> None:
    assert spaces.list_all() == []
    for refused in (lambda: spaces.get("lease"), lambda: spaces.remove("lease"), lambda: spaces.change(LEASE)):
        with pytest.raises(NexiError) as error:
            refused()
        assert code_of(error) == "no_such_space"


def test_a_space_is_kept_as_it_was_given_and_listed_by_name(spaces: SpaceStore) -> None:
    spaces.add(LEASE)
    spaces.add(Space("Ärzte-2.0"))
    spaces.add(Space("budget"))
    assert [own(space) for space in spaces.list_all()] == [Space("budget"), LEASE, Space("Ärzte-2.0")]
    assert (own(spaces.get("lease")), spaces.get("lease").address) == (LEASE, "lease")


def test_a_name_is_given_once(spaces: SpaceStore) -> None:
    spaces.add(LEASE)
    with pytest.raises(NexiError) as error:
        spaces.add(Space("lease"))
    assert (code_of(error), own(spaces.get("lease"))) == ("space_exists", LEASE)


def test_a_space_can_be_changed_and_removed(spaces: SpaceStore) -> None:
    spaces.add(LEASE)
    spaces.change(Space("lease", "  Answer in German.  "))
    assert own(spaces.get("lease")) == Space("lease", "Answer in German.")
    spaces.remove("lease")
    assert spaces.list_all() == []


@pytest.mark.parametrize(
    "space",
    [
        *(Space(name) for name in ("", ".hidden", "_x", "a/b", "../x", "a b", "x" * 41, "a\nb", "a@b", "a\x00")),
        Space("a", instructions="x" * 20_001),
        Space("a", effort="xl"),
        Space("a", model="a\nb"),
        Space("a", services=("a b",)),
    ],
)
def test_what_cannot_be_a_space_is_refused(spaces: SpaceStore, space: Space) -> None:
    with pytest.raises(NexiError) as error:
        spaces.add(space)
    assert (code_of(error), spaces.list_all()) == ("bad_space", [])


def test_one_person_has_so_many_spaces_at_most(spaces: SpaceStore) -> None:
    for number in range(MAX_SPACES):
        spaces.add(Space(f"s{number}"))
    with pytest.raises(NexiError) as error:
        spaces.add(Space("more"))
    assert code_of(error) == "quota_reached"
