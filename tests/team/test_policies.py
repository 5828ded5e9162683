"""The second wall: through the connection of one person nothing of another is seen or changed, even without a WHERE."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from nexi.errors import ConfigError, StoreError
from nexi.events import PageFetched, RunStarted
from nexi.stores.pgvector.store import PgvectorStore
from nexi.team.postgres import runs as runs_module
from nexi.team.postgres.database import Database
from nexi.team.postgres.state import PostgresState
from nexi.testing import FakeClock
from nexi.types import Chunk, HistoryEntry, IndexedPage, RunAudience, Space, StoredSource, Vector
from tests.team.world import MOON, QUESTION

KNOWLEDGE = {"collections", "bodies", "sources", "chunks", "embeddings", "chunk_vectors", "unembedded"}
PERSONAL = {
    "runs",
    "shares",
    "facts",
    "run_pages",
    "page_owners",
    "pages",
    "history",
    "usage",
    "quotas",
    "knowledge_shares",
    "knowledge_answers",
    "schedules",
    "spaces",
    "space_shares",
    *KNOWLEDGE,
}


def state_of(database: Database, owner: str) -> PostgresState:
    return PostgresState(database, owner, FakeClock(), partial(PgvectorStore, database))


async def keep_everything_of(database: Database, owner: str) -> str:
    """A row of hers in every table that has policies; the id of her run."""
    state = state_of(database, owner)
    state.take_run()
    log = state.runs.create()
    await log.append(RunStarted(QUESTION, "m", "scripted"))
    digest = await state.runs.pages.put(f"What {owner} read.")
    await log.append(PageFetched(MOON, MOON, "Moon", digest, 20, 20, 0.1))
    await log.close()
    state.history.add(HistoryEntry(log.run_id, "2026-01-01T00:00:00", QUESTION, "384,400 km", [], "s", 1, 1.0, 9))
    state.sharing.set_audience(log.run_id, RunAudience(people=(owner,)))  # with oneself: nothing
    database.fetch(
        "insert into shares (run, owner, person) values (%(run)s, %(owner)s, %(owner)s)", {"run": log.run_id, "owner": owner}
    )
    state.knowledge_sharing.set_audience(RunAudience(people=(owner,)))
    database.fetch("insert into knowledge_shares values (%(owner)s, %(owner)s)", {"owner": owner})
    database.fetch("insert into knowledge_answers values (%(owner)s, %(owner)s, true)", {"owner": owner})
    database.fetch(
        "insert into schedules (owner, question, mode, request, every, next_at) "
        "values (%(owner)s, 'why?', 'search', '{}', '1 day', now() + interval '1 day')",
        {"owner": owner},
    )
    state.spaces.add(Space("lease"))
    database.fetch(
        "insert into space_shares (space, owner, person) select id, owner, owner from spaces where owner = %(owner)s",
        {"owner": owner},
    )
    await state.knowledge.put([stored_page("embedded", owner, (array("f", [1.0, 0.0]),))], embedder="m")
    await state.knowledge.put([stored_page("unembedded", owner)])
    database.fetch("insert into quotas (person, running) values (%(owner)s, 2)", {"owner": owner})
    return log.run_id


def stored_page(name: str, owner: str, vectors: tuple[Vector, ...] = ()) -> IndexedPage:
    return IndexedPage(StoredSource(f"https://{name}.example/", name), (Chunk(f"{name} text of {owner}"),), vectors)


def count_rows(database: Database, owner: str, tables: set[str]) -> dict[str, int | str]:
    """How many rows of each table a person sees who forgets to say whose she wants."""
    counts: dict[str, int | str] = {}
    for table in tables:
        try:
            counts[table] = database.fetch_as(owner, f'select count(*) from "{table}"')[0][0]  # noqa: S608
        except StoreError as error:
            counts[table] = "refused" if "permission denied" in error.cause else error.cause
    return counts


async def test_a_query_without_a_where_shows_what_is_hers_and_no_table_is_forgotten(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    for table in ("embeddings", "bodies"):  # of other tests
        database.fetch(f"delete from {table} where collection = (select id from collections where owner is null)")  # noqa: S608
    await keep_everything_of(database, ada)
    tables = {name for (name,) in database.fetch("select tablename from pg_tables where schemaname = 'public'")}
    shown = count_rows(database, eve, tables)
    nothing = {**dict.fromkeys(PERSONAL, 0), "collections": 1}  # the team's, which is empty
    assert {table: count for table, count in shown.items() if table in PERSONAL} == nothing
    assert {count for table, count in shown.items() if table not in PERSONAL} == {"refused"}
    hers = count_rows(database, ada, PERSONAL)
    twice = dict.fromkeys(("facts", "bodies", "sources", "chunks"), 2)
    assert hers == {**dict.fromkeys(PERSONAL, 1), **twice, "collections": 2}  # her own, and the team's


async def test_a_change_without_a_where_changes_nothing_of_somebody_else(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    run_id = await keep_everything_of(database, ada)
    assert database.fetch_as(eve, "update runs set question = 'mine now' returning run") == []
    assert database.fetch_as(eve, "delete from history returning id") == []
    assert database.fetch_as(eve, "delete from runs returning run") == []
    values = {"ada": ada, "eve": eve, "run": run_id}
    for statement in (
        "insert into runs (run, owner, header, state) values (%(eve)s, %(ada)s, '', 'waiting')",
        "insert into facts (run, n, epoch, line) values (%(run)s, 99, 1, '')",
        "insert into usage (owner, day, runs) values (%(eve)s, '2020-01-01', -5)",
    ):
        with pytest.raises(StoreError, match="row-level security"):
            database.fetch_as(eve, statement, values)
    assert state_of(database, ada).runs.list_runs()[0].query == QUESTION


async def test_the_adapter_finds_nothing_of_somebody_else_when_its_where_is_forgotten(
    database: Database, make_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    run_id = await keep_everything_of(database, ada)
    monkeypatch.setattr(runs_module, "_MINE", "run = %(run)s")
    runs = state_of(database, eve).runs
    assert (runs.has_run(run_id), runs.is_running(run_id), runs.is_cancel_requested(run_id)) == (False, False, False)
    for change in (runs.open_log, runs.claim, runs.request_stop, runs.request_cancel, runs.resubmit, runs.remove):
        with pytest.raises(StoreError, match="no run"):
            change(run_id)
    assert state_of(database, ada).runs.has_run(run_id)


async def test_knowledge_is_found_and_changed_by_its_owner_even_where_a_statement_names_no_collection(
    database: Database, make_person: Callable[..., str]
) -> None:
    ada, eve = make_person("Ada"), make_person("Eve")
    await keep_everything_of(database, ada)
    await keep_everything_of(database, eve)
    (collection,) = database.fetch("select id from collections where owner = %(ada)s", {"ada": ada})[0]
    term = f"{collection} text"
    found = "select count(*) from chunks_with_terms(array[%(term)s])"
    counted = "select count_chunks_with_term(%(term)s, 100)"
    for statement in (found, counted):
        assert [database.fetch_as(person, statement, {"term": term}) for person in (ada, eve)] == [[(2,)], [(0,)]]
    for statement in ("delete from sources returning 1", "update chunks set length = 0 returning 1"):
        assert len(database.fetch_as(eve, statement)) == 2  # her own
    values = {"collection": collection, "ada": ada}
    for statement in (
        "insert into embeddings (collection, embedder, dims, state) values (%(collection)s, 'mine', 2, 'building')",
        "insert into unembedded (chunk, collection) values (1, %(collection)s)",
        "insert into knowledge_shares values (%(ada)s, null)",
    ):
        with pytest.raises(StoreError, match="row-level security"):
            database.fetch_as(eve, statement, values)
    store = PgvectorStore(database, ada)
    assert {source.title for source in await store.sources()} == {"embedded", "unembedded"}
    database.fetch_as(ada, "insert into knowledge_shares values (%(ada)s, %(eve)s)", {"ada": ada, "eve": eve})
    assert database.fetch_as(eve, found, {"term": term}) == [(0,)]  # shared, and not accepted yet
    database.fetch_as(eve, "insert into knowledge_answers values (%(eve)s, %(ada)s, true)", {"ada": ada, "eve": eve})
    assert database.fetch_as(eve, found, {"term": term}) == [(2,)]
    assert database.fetch_as(eve, "delete from sources returning 1") == []  # to read is not to change


async def test_a_text_is_readable_for_those_who_read_it(database: Database, make_person: Callable[..., str]) -> None:
    ada, bob, eve = (state_of(database, make_person(name)).runs.pages for name in ("Ada", "Bob", "Eve"))
    text = f"A page that two people read: {make_person()}"
    digests = {await ada.put(text), await bob.put(text)}
    assert [await pages.get(digest) for digest in digests for pages in (ada, bob, eve)] == [text, text, None]


def test_a_statement_of_one_person_leaves_nothing_behind_on_its_connection(
    postgres: Any, make_person: Callable[..., str]
) -> None:
    one = Database(postgres.url, max_connections=1).open()
    one.fetch_as(make_person(), "select 1")
    with pytest.raises(StoreError, match="division"):
        one.fetch_as(make_person(), "select 1 / 0")
    assert one.fetch("select current_user, current_setting('nexi.owner', true)") == [("postgres", "")]
    assert one.fetch_as("", "select count(*) from runs") == [(0,)]
    one.close()


def test_a_login_that_may_not_create_roles_is_told_what_to_run(postgres: Any) -> None:
    admin = Database(postgres.url).open()
    admin.fetch("create role plain login")
    admin.fetch("create database plain owner plain")
    admin.fetch("alter role nexi_person rename to hidden")
    try:
        url = postgres.url_of("plain").replace("postgres@", "plain@")
        with pytest.raises(ConfigError, match="no role nexi_person") as refused:
            Database(url).open()
        assert 'grant nexi_person to "plain"' in refused.value.fix
        admin.fetch("alter role hidden rename to nexi_person")
        admin.fetch('grant nexi_person to "plain"')
        opened = Database(url).open()
        owner = str(opened.fetch("insert into people (name) values ('Ada') returning id")[0][0])
        assert (opened.fetch("select usesuper from pg_user where usename = current_user"), owner != "") == ([(False,)], True)
        assert state_of(opened, owner).runs.list_runs() == []
        opened.close()
    finally:
        admin.fetch("do $$ begin alter role hidden rename to nexi_person; exception when undefined_object then null; end $$")
        admin.close()
