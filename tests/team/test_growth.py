"""A long past costs nothing: what a person does reads as many rows with thousands of runs behind her as with a few."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from nexi.events import RunFinished, RunStarted
from nexi.stores.pgvector.store import PgvectorStore
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People, Quotas
from nexi.team.postgres.runs import prune_expired
from nexi.team.postgres.state import PostgresState
from nexi.testing import FakeClock
from nexi.types import HistoryEntry, StopReason, Usage
from nexi.web.page.history import _list_entries
from rig.postgres import list_binaries_with_trigrams, running_postgres
from rig.team_history import CountingDatabase, add_past_runs, past_run_id

PAST = 3_000
MAX_ROWS_READ = 250  # of a list of twenty
NEWEST = 1_000  # rows that are searched before an index is, in both tables


@pytest.fixture
def counting(postgres: Any) -> Iterator[CountingDatabase]:
    opened = CountingDatabase(postgres.url)
    opened.open()
    yield opened
    opened.close()


def state_of(database: Database, owner: str) -> PostgresState:
    return PostgresState(database, owner, FakeClock(), partial(PgvectorStore, database))


def count_reads(database: CountingDatabase, act: Callable[[], Any]) -> int:
    database.rows_read = 0
    act()
    return database.rows_read


@pytest.mark.parametrize("limits", [Quotas(), Quotas(storage_bytes=10**12, running=5)])
def test_submitting_listing_opening_and_the_account_read_few_rows_after_thousands_of_runs(
    counting: CountingDatabase, make_person: Callable[..., str], limits: Quotas
) -> None:
    ada = make_person()
    People(counting).set_quotas(ada, limits)
    add_past_runs(counting, ada, PAST)
    state, people = state_of(counting, ada), People(counting)
    oldest = past_run_id(ada, PAST)
    reads = {
        "submit": count_reads(counting, lambda: (state.take_run(is_queued=True), state.runs.submit("why?", "search", {}))),
        "account": count_reads(counting, lambda: people.usage_of(ada)),
        "list": count_reads(counting, lambda: state.runs.list_runs(20)),
        "list of those that run": count_reads(counting, lambda: state.runs.list_runs(20, state="running")),
        "list of the failed": count_reads(counting, lambda: state.runs.list_runs(20, state="failed")),
        "open": count_reads(counting, lambda: state.runs.open_log(oldest)),
        "runs of everybody": count_reads(counting, lambda: people.list_runs(20)),
        "page": count_reads(counting, lambda: _list_entries(state.runs, state.history, {}, "", 21)),
        "page with a pin": count_reads(
            counting, lambda: _list_entries(state.runs, state.history, {oldest: {"pinned": True}}, "", 21)
        ),
        "search for a frequent word": count_reads(counting, lambda: state.history.find("river", 20)),
    }
    assert {name: count for name, count in reads.items() if count > MAX_ROWS_READ + NEWEST * ("search" in name)} == {}


@pytest.mark.long
def test_a_rare_word_is_found_by_trigrams_where_the_database_has_them() -> None:
    installations = list_binaries_with_trigrams()
    if not installations:
        pytest.skip("needs a Postgres with pg_trgm: on Debian, install postgresql")
    with running_postgres(is_durable=False, candidates=installations) as server:
        database = CountingDatabase(server.url)
        database.open()
        ada, eve = (People(database).add(name) for name in ("Ada", "Eve"))
        database.fetch("drop index history_by_trigrams, runs_by_trigrams")  # to fill an index bit by bit takes longer
        for person in (ada, eve):
            add_past_runs(database, person, 4 * PAST)
        database.close()
        database = CountingDatabase(server.url)
        database.open()
        state = state_of(database, ada)
        rare = hashlib.md5(b"2999", usedforsecurity=False).hexdigest()[4:12]  # of an answer
        reads = count_reads(database, lambda: state.history.find(rare, 20))
        entries = state.history.find(rare, 20).entries
        short_reads = [count_reads(database, lambda words=words: state.history.find(words, 20)) for words in ("zq", "river zq")]
        runs = state.runs.find_runs("Number 2999 OF", 20)
        database.close()
    oldest = "how long is the river number 2999 of the map"
    assert ([entry.query for entry in entries], [run.id for run in runs]) == ([oldest], [entries[0].id])
    assert reads <= 2 * NEWEST + MAX_ROWS_READ  # the newest are counted, then searched
    assert max(short_reads) <= 6 * NEWEST + MAX_ROWS_READ < 4 * PAST  # and with a word that no index finds, so many and no more


def test_words_are_found_among_the_newest_and_the_oldest_in_order_and_no_sign_is_special(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    add_past_runs(database, ada, 1_200)
    add_past_runs(database, eve, 5)
    state = state_of(database, ada)
    listed = [run.id for run in state.runs.find_runs("1 number", 1_000)]
    assert listed == [past_run_id(ada, number) for number in range(1, 1_201) if "1" in str(number)]
    assert [run.id for run in state.runs.find_runs("1200 of NUMBER", 9)] == [past_run_id(ada, 1_200)]
    rare = hashlib.md5(b"1199", usedforsecurity=False).hexdigest()[4:12]  # of an answer
    words = f"{rare} map how NUMBER 1199"
    assert [entry.id for entry in state.history.find(words, 9).entries] == [past_run_id(ada, 1_199)]
    for sign in ("%", "_", "\\", "number _", "number 1% of"):
        assert (state.history.find(sign, 9).entries, state.runs.find_runs(sign, 9)) == ([], [])
    assert len(state.history.find("river").entries) == 1_200


def test_a_pinned_run_comes_first_and_is_searched_however_old_it_is(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada = make_person()
    add_past_runs(database, ada, 300)
    state, oldest = state_of(database, ada), past_run_id(ada, 300)
    labels = {oldest: {"pinned": True, "title": "Longest"}}
    for words, count in (("", 3), ("river", 3), ("longest", 1), ("nothing of that", 0)):
        items = _list_entries(state.runs, state.history, labels, words, 3)
        assert len(items) == count
        assert [item["id"] for item in items[:1]] == [oldest][:count]


async def test_the_counted_bytes_are_those_that_are_kept_whatever_is_added_and_deleted(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    state, people, kept = state_of(database, ada), People(database), {}

    def check(step: str) -> None:
        kept[step] = people.usage_of(ada).storage_bytes
        assert kept[step] == count_stored(database, ada), step

    for number in range(3):
        log = state.runs.create()
        await log.append(RunStarted("why?", "m", "scripted"))
        check("a run that is open")
        await state.runs.pages.put(f"page {number // 2}")
        await state_of(database, eve).runs.pages.put(f"page {number // 2}")
        await log.append(RunFinished("because", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1))
        await log.close()
        state.history.add(HistoryEntry(f"{number}" * 6, "2026-01-01T00:00:00", "why?", "because", [], "s", 1, 1.0, 9))
        check("a run that ended")
    state.runs.remove(log.run_id)
    check("a run less")
    state.history.remove("111111")
    check("an answer less")
    state.history.clear()
    check("no answers")
    database.fetch("update pages set used = now() - interval '2 hours'")
    prune_expired(database, keep_days=3_650, max_mb=1_000)
    check("no pages")
    for run in state.runs.list_runs():
        state.runs.remove(run.id)
    check("nothing")
    assert kept["nothing"] == 0 < kept["no pages"] < kept["no answers"] < kept["a run less"] < kept["a run that ended"]
    people.remove(eve)
    assert database.fetch("select count(*) from storage where owner = %(eve)s", {"eve": eve}) == [(0,)]


def count_stored(database: Database, owner: str) -> int:
    """The sum that the counter stands for."""
    rows = database.fetch(
        "select (coalesce((select sum(bytes) from runs where owner = %(who)s), 0) "
        "+ coalesce((select sum(octet_length(entry)) from history where owner = %(who)s), 0) "
        "+ coalesce((select sum(octet_length(body)) from page_owners join pages using (digest) where owner = %(who)s), 0) "
        "+ coalesce((select sum(bytes) from collections where owner = %(who)s), 0))::bigint",
        {"who": owner},
    )
    return int(rows[0][0])


def test_a_database_of_before_gets_its_counters_from_what_is_kept(postgres: Any, database: Database) -> None:
    database.fetch("drop database if exists before_counters")
    database.fetch("create database before_counters")
    url = postgres.url_of("before_counters")
    old = Database(url).open()
    ada = People(old).add("Ada")
    add_past_runs(old, ada, 10)
    for table in ("history", "page_owners", "runs"):
        old.fetch(f"alter table {table} disable trigger user")
    old.fetch("drop table storage")
    for statement in (
        "drop function add_storage, find_history, find_runs",
        "drop function count_storage, count_ended_run cascade",
        "alter table page_owners drop column bytes",
        "alter table runs drop column words",
        "drop index runs_by_state, runs_by_time, runs_in_progress",
        "alter table runs drop column losses",
        "drop function word_condition, trigram_words",
        "delete from schema_steps where step in (36, 37, 41, 43)",
    ):
        old.fetch(statement)
    old.close()
    new = Database(url).open()
    assert People(new).usage_of(ada).storage_bytes == count_stored(new, ada) > 0
    assert len(state_of(new, ada).runs.find_runs("river number 7", 5)) == 1
    new.close()
    database.fetch("drop database before_counters")
