"""A long past for one person of a team server, written straight into the tables, and what it costs to live with it.

Tests count the rows that a request reads, the growth bench also its time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from nexi.events import Fact, RunFinished, RunStarted
from nexi.runs.log_format import encode_fact, encode_header
from nexi.team.postgres.database import Database
from nexi.testing import FakeClock
from nexi.types import StopReason, Usage

__all__ = ["CountingDatabase", "add_past_runs", "past_run_id"]

_RUNS = """
insert into runs (run, owner, created, header, question, words, mode, state, is_queued, epoch, last, bytes)
select {id}, %(owner)s::uuid, now() - g * interval '1 minute', header, {words}, {words}, 'search',
    'finished', true, 1, 2, 2000
from (select header, %(first)s::int + n - 1 as g from unnest(%(headers)s::text[]) with ordinality as h(header, n)) h
"""
_FACTS = """
insert into facts (run, n, epoch, line) select {id}, n, 1, line
from generate_series(%(first)s::int, %(last)s::int) g, unnest(%(lines)s::text[]) with ordinality as l(line, n)
"""
_TEXTS = """
insert into pages (digest, body) select 'past-' || {id}, convert_to(repeat('A page text. ', 40), 'utf8')
from generate_series(%(first)s::int, %(last)s::int) g
"""
_PAGES = """
insert into page_owners (digest, owner, bytes) select 'past-' || {id}, %(owner)s::uuid, 520
from generate_series(%(first)s::int, %(last)s::int) g
"""
_HISTORY = """
insert into history (owner, id, entry, words) select %(owner)s::uuid, {id},
    json_build_object('id', {id}, 'ts', '2026-01-01T00:00:00', 'query', {words}, 'answer', {answer}, 'urls', '[]'::json,
        'effort', 'm', 'iterations', 1, 'duration_s', 1.0, 'tokens', 12)::text, {words} || chr(10) || {answer}
from generate_series(%(last)s::int, %(first)s::int, -1) g
"""
_STORAGE = """
insert into storage (owner, bytes) select %(owner)s::uuid,
    (select coalesce(sum(bytes), 0) from runs where owner = %(owner)s::uuid and state in ('finished', 'failed'))
    + (select coalesce(sum(octet_length(entry)), 0) from history where owner = %(owner)s::uuid)
    + (select coalesce(sum(bytes), 0) from page_owners where owner = %(owner)s::uuid)
on conflict (owner) do update set bytes = excluded.bytes
"""
_ROWS_READ = """
select coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables
where relname in ('runs', 'facts', 'history', 'pages', 'page_owners', 'run_pages')
"""
_FORMS = {
    "{id}": "md5(%(owner)s::text || g::text)",
    "{words}": "'how long is the river number ' || g || ' of the map'",
    "{answer}": "repeat('the river is as long as its map says. ', 20) || md5(g::text)",
}


def past_run_id(owner: str, number: int) -> str:
    """The id of one of the past runs; the higher its number, the older it is."""
    return hashlib.md5(f"{owner}{number}".encode(), usedforsecurity=False).hexdigest()


def add_past_runs(database: Database, owner: str, count: int, *, first: int = 1) -> None:
    """Give a person so many finished runs with a page text and a past answer each, and let the database know its sizes."""
    now, end = FakeClock().now(), RunFinished("as long as its map says", (), StopReason.FINAL_ANSWER, 1, Usage(), 0.5, 1, 1)
    facts: tuple[Fact, ...] = (RunStarted("how long is the river?", "m", "scripted"), end)
    values = {
        "owner": owner,
        "first": first,
        "last": first + count - 1,
        "headers": [encode_header(past_run_id(owner, number), now).decode("ascii") for number in range(first, first + count)],
        "lines": [encode_fact(number, now, 0.0, fact).decode("ascii") for number, fact in enumerate(facts, start=1)],
    }
    with database.transaction(wait_s=3_600) as connection:
        connection.execute("set local statement_timeout = 0")
        connection.execute("set local session_replication_role = replica")  # counters are set once, not row by row
        for statement in (_RUNS, _FACTS, _TEXTS, _PAGES, _HISTORY, _STORAGE):
            for name, form in _FORMS.items():
                statement = statement.replace(name, form)
            connection.execute(statement, values)
        connection.execute("analyze")


class CountingDatabase(Database):
    """A database that counts the rows its statements read, those in functions and behind policies too."""

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self.rows_read = 0

    def fetch(
        self,
        statement: str,
        values: Mapping[str, Any] | None = None,
        *,
        patience_s: float | None = None,
        wait_s: float | None = None,
    ) -> list[tuple[Any, ...]]:
        return self._count(None, statement, values)

    def fetch_as(
        self,
        owner: str,
        statement: str,
        values: Mapping[str, Any] | None = None,
        *,
        is_alone: bool = False,
        patience_s: float | None = None,
    ) -> list[tuple[Any, ...]]:
        return self._count(owner, statement, values)

    def _count(self, owner: str | None, statement: str, values: Mapping[str, Any] | None) -> list[tuple[Any, ...]]:
        with self.transaction(owner) as connection:
            before = connection.execute(_ROWS_READ).fetchone()[0]  # of earlier transactions that are not yet in the statistics
            cursor = connection.execute(statement, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            self.rows_read += connection.execute(_ROWS_READ).fetchone()[0] - before
        return rows
