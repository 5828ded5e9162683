"""Who may read what in Postgres: exactly those that its owner names, as she names them and until she takes it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexi.errors import NexiError, StoreError
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.team.postgres.runs import PostgresRuns
from nexi.team.postgres.sharing import PostgresKnowledgeSharing, PostgresSharing
from nexi.testing import FakeClock
from nexi.types import KnowledgeOffer, RunAudience, SharedRun
from tests.raising import has_code

NO_ONE = RunAudience()
TEAM = RunAudience(team=True)


class Team:
    """Ada, who shares, and Bob and Eve, who may read."""

    def __init__(self, database: Database, make_person: Callable[..., str]) -> None:
        self.database = database
        self.ada, self.bob, self.eve = (make_person(name) for name in ("Ada", "Bob", "Eve"))
        self.run = PostgresRuns(database, self.ada, FakeClock()).submit("why?", "search", {})

    def runs_of(self, person: str) -> PostgresSharing:
        return PostgresSharing(self.database, person)

    def knowledge_of(self, person: str) -> PostgresKnowledgeSharing:
        return PostgresKnowledgeSharing(self.database, person)

    def read_audit(self, count: int) -> list[tuple[str, str, str]]:
        """The newest actions with who did what to what, the oldest first."""
        return [row[1:4] for row in reversed(People(self.database).read_audit(count))]


@pytest.fixture
def team(database: Database, make_person: Callable[..., str]) -> Team:
    return Team(database, make_person)


def list_shared(team: Team) -> tuple[list[str], list[str], list[str]]:
    ada, bob, eve = ([run.id for run in team.runs_of(person).list_shared()] for person in (team.ada, team.bob, team.eve))
    return ada, bob, eve


def test_a_run_is_shared_with_those_who_are_named_and_the_last_word_counts(team: Team) -> None:
    sharing, listed = team.runs_of(team.ada), []
    assert sharing.read_audience(team.run) == NO_ONE
    for audience in (RunAudience(people=("Bob",)), RunAudience(people=("Eve",)), TEAM, NO_ONE):
        sharing.set_audience(team.run, audience)
        assert sharing.read_audience(team.run) == audience
        listed.append(list_shared(team))
    one = [team.run]
    assert listed == [([], one, []), ([], [], one), ([], one, one), ([], [], [])]
    assert team.read_audit(4) == [(team.ada, "share_run", team.run)] * 4


def test_a_shared_run_is_listed_with_its_owner_and_its_question(team: Team) -> None:
    team.runs_of(team.ada).set_audience(team.run, TEAM)
    (shared,) = team.runs_of(team.bob).list_shared()
    assert shared == SharedRun(team.run, "Ada", "why?", "search", "waiting", shared.created)
    assert len(shared.created) == len("2026-01-01T00:00:00.000+00:00")


@pytest.mark.parametrize("run_id", ["of another", "0" * 32])
def test_what_is_not_hers_cannot_be_shared_by_anybody_nor_its_readers_be_seen(team: Team, run_id: str) -> None:
    team.runs_of(team.ada).set_audience(team.run, RunAudience(people=("Bob",)))
    run_id = team.run if run_id == "of another" else run_id
    for person in (team.bob, team.eve):
        with pytest.raises(StoreError, check=has_code("no_such_run")):
            team.runs_of(person).read_audience(run_id)
        with pytest.raises(StoreError, check=has_code("no_such_run")):
            team.runs_of(person).set_audience(run_id, TEAM)
    assert list_shared(team) == ([], [team.run], [])


def test_a_name_that_is_nobodys_changes_nothing(team: Team) -> None:
    sharing = team.runs_of(team.ada)
    sharing.set_audience(team.run, RunAudience(people=("Bob",)))
    with pytest.raises(NexiError, check=has_code("not_found")):
        sharing.set_audience(team.run, RunAudience(team=True, people=("Nobody At All",)))
    assert sharing.read_audience(team.run) == RunAudience(people=("Bob",))


def test_a_knowledge_base_is_offered_to_those_who_are_named_and_the_audit_says_to_whom(team: Team) -> None:
    sharing, offered = team.knowledge_of(team.ada), []
    for audience in (RunAudience(people=("Bob", "Eve")), RunAudience(people=("Eve",)), TEAM, NO_ONE):
        sharing.set_audience(audience)
        stored = sharing.read_audience()
        assert (stored.team, {*stored.people}) == (audience.team, {*audience.people})
        offered.append([len(team.knowledge_of(person).list_offers()) for person in (team.ada, team.bob, team.eve)])
    assert offered == [[0, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 0]]
    subjects = [f"{team.bob}, {team.eve}", team.eve, "the team", "no one"]
    assert team.read_audit(4) == [(team.ada, "share_knowledge", subject) for subject in subjects]


def test_a_knowledge_base_is_searched_by_those_who_accept_it_until_they_mute_it(team: Team) -> None:
    team.knowledge_of(team.ada).set_audience(RunAudience(people=("Bob",)))
    reader = team.knowledge_of(team.bob)
    states = [(reader.list_offers(), reader.list_owners())]
    for is_accepted in (True, False):
        reader.answer_offer(team.ada, is_accepted=is_accepted)
        states.append((reader.list_offers(), reader.list_owners()))
    assert states == [
        ([KnowledgeOffer(team.ada, "Ada", "offered")], {}),
        ([KnowledgeOffer(team.ada, "Ada", "accepted")], {team.ada: "Ada"}),
        ([KnowledgeOffer(team.ada, "Ada", "muted")], {}),
    ]
    assert team.read_audit(2) == [(team.bob, "accept_knowledge", team.ada), (team.bob, "mute_knowledge", team.ada)]


def test_what_is_not_offered_cannot_be_accepted(team: Team) -> None:
    team.knowledge_of(team.ada).set_audience(RunAudience(people=("Bob",)))
    with pytest.raises(NexiError, check=has_code("not_found")) as refused:
        team.knowledge_of(team.eve).answer_offer(team.ada, is_accepted=True)
    assert refused.value.cause == "it never was, or it was taken back"
    assert (team.knowledge_of(team.eve).list_owners(), team.knowledge_of(team.ada).list_owners()) == ({}, {})
