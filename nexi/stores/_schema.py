"""The tables of the embedded store, the way from each version to the next, and a Scope as SQL over the stored sources.

`words` indexes chunks; what a question needs of whole pages is counted in it (`word_places`), so that a text is indexed once.
A chunk's id is the number of its body times CHUNKS plus its place, so that a body is a range of ids and no index is needed
between the two. Vectors lie in files beside it: a body has a range of their slots, from `slot` on; `epoch` names the files,
`slots` is how many are taken, `holes` how many of those are free again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from nexi import urls
from nexi.errors import StoreError
from nexi.stores._connection import in_transaction
from nexi.stores._vectors import VectorWriter, load_numpy
from nexi.text import stems, terms
from nexi.types import EVERYTHING, Chunk, Scope, StoreStats

APPLICATION = 0x4E455849  # "NEXI", in the header of the file
VERSION = 6
CHUNKS = 65536
MIN_HOLES = 4096  # below that, empty slots are not worth the copying
Ranked = list[tuple[int, float]]  # ids of chunks with their scores, best first
TERMS = f"{terms.VERSION}.{stems.VERSION}"  # what made the words of the indexes; of another they are made anew


def _read_script(name: str) -> str:
    return Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")


WORDS = _read_script("words")
TABLES = f"""{_read_script("tables")}{WORDS}
INSERT INTO meta VALUES ('terms', '{TERMS}'), ('generation', 0), ('embedder', ''), ('dims', 0),
    ('epoch', 1), ('slots', 0), ('holes', 0), ('pages', 0), ('page_terms', 0);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""  # noqa: S608  # numbers of ours


def prepare_tables(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of an empty file, bring an older one up to date, refuse what is newer or not ours."""

    def upgrade() -> None:  # with the write lock held: another process may have been first
        version = version_of(db, path)
        if version == 0:
            _run_script(db, TABLES)
        elif version == 1:
            _vectors_to_files(db, path)
        if 0 < version < 5:
            _run_script(db, _read_script("to_version_5"))
        if 0 < version < 6:
            _run_script(db, _read_script("to_version_6"))
        if 0 < version < 5 or read_meta(db, "terms") != TERMS:
            # the same texts give other terms in this nexi, or other indexes, so these are made anew
            _run_script(db, f"DROP TABLE words;\nDROP TABLE IF EXISTS word_places;\n{WORDS}")
            set_meta(db, "pages", 0)
            set_meta(db, "page_terms", 0)
            for body, title in db.execute("SELECT id, title FROM bodies ORDER BY id").fetchall():
                index_bodies(db, [read_body(db, body, title)])
            set_meta(db, "terms", TERMS)
        db.execute(f"PRAGMA user_version = {VERSION}")

    if version_of(db, path) != VERSION or read_meta(db, "terms") != TERMS:
        in_transaction(db, upgrade)


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 0 for an empty file. Raises StoreError for a file that is newer or not ours."""
    version, application, tables = db.execute(_READ_HEADER).fetchone()
    if application != APPLICATION and (version or application or tables):
        cause, fix = f"it is a database of something else ({path})", "Move it away, or set NEXI_HOME to another folder."
        raise StoreError("This file is no knowledge store", cause=cause, fix=fix)
    if version > VERSION:
        cause = f"its schema is {version}, this nexi knows up to {VERSION} ({path})"
        fix = "Update nexi, or set NEXI_HOME to another folder."
        raise StoreError("The knowledge store was written by a newer nexi", cause=cause, fix=fix, code="store_newer")
    return int(version)


# One statement sees one moment: between two, another process may make the tables, and half of its work is no store of ours.
_READ_HEADER = """SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master)
    FROM pragma_user_version, pragma_application_id"""


def _vectors_to_files(db: sqlite3.Connection, path: Path) -> None:
    """Version 1 kept vectors in a table."""
    _run_script(db, _read_script("to_version_2"))
    dims, slots = int(read_meta(db, "dims") or 0), 0
    writer = VectorWriter(path)
    for body, data in db.execute("SELECT body, data FROM vectors ORDER BY body").fetchall():
        rows = load_numpy().frombuffer(data, "<f4").reshape(-1, dims)
        writer.write(1, slots, rows)
        db.execute("UPDATE bodies SET slot = ? WHERE id = ?", (slots, body))
        slots += len(rows)
    writer.flush()
    writer.close()
    set_meta(db, "slots", slots)
    db.execute(f"INSERT INTO unembedded SELECT id FROM chunks WHERE id / {CHUNKS} IN (SELECT id FROM bodies WHERE slot < 0)")  # noqa: S608
    db.execute("DROP TABLE vectors")


class IndexedBody(NamedTuple):
    """What is findable of a body: its title, and its chunks by their ids."""

    body: int
    title: str
    chunks: Sequence[tuple[int, Chunk]]


def span_of(body: int) -> tuple[int, int]:
    """The first and the last id that the chunks of a body may have."""
    return body * CHUNKS, body * CHUNKS + CHUNKS - 1


def read_body(db: sqlite3.Connection, body: int, title: str) -> IndexedBody:
    rows = db.execute("SELECT id, text, heading, context FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id", span_of(body))
    return IndexedBody(body, title, [(number, Chunk(*texts)) for number, *texts in rows])


def index_bodies(db: sqlite3.Connection, bodies: Sequence[IndexedBody]) -> None:
    """Make the words of bodies findable. All terms are made before the first row is written: memory caches hold one of both."""
    rows, lengths = _terms_of_bodies(bodies)
    db.executemany("INSERT INTO words(rowid, text, title, head) VALUES (?, ?, ?, ?)", rows)
    db.executemany("UPDATE bodies SET terms = ? WHERE id = ?", lengths)
    _count_pages(db, len(bodies), sum(length for length, _ in lengths))


def unindex_body(db: sqlite3.Connection, body: IndexedBody) -> None:
    """Forget the words of a body: an index forgets only when told the same terms again."""
    rows, lengths = _terms_of_bodies([body])
    db.executemany("INSERT INTO words(words, rowid, text, title, head) VALUES ('delete', ?, ?, ?, ?)", rows)
    _count_pages(db, -1, -lengths[0][0])


def _terms_of_bodies(bodies: Sequence[IndexedBody]) -> tuple[list[tuple[int, str, str, str]], list[tuple[int, int]]]:
    """(id, terms of text, title and what else stands above the text) of each chunk; (number of terms, id) of each body."""
    rows: list[tuple[int, str, str, str]] = []
    lengths: list[tuple[int, int]] = []
    for body, title, chunks in bodies:
        title_terms = terms.join_roots(title)
        length = terms.count_roots(title_terms)
        for number, chunk in chunks:
            text_terms = terms.join_roots(chunk.text)
            rows.append((number, text_terms, title_terms, terms.join_roots(f"{chunk.heading}\n{chunk.context}")))
            length += terms.count_roots(text_terms)
        lengths.append((length, body))
    return rows, lengths


def _count_pages(db: sqlite3.Connection, pages: int, page_terms: int) -> None:
    """Keep how many pages there are, and how many terms they have, which BM25 over pages needs."""
    db.executemany("UPDATE meta SET value = value + ? WHERE key = ?", ((pages, "pages"), (page_terms, "page_terms")))


def _run_script(db: sqlite3.Connection, script: str) -> None:
    """Several statements inside the transaction at hand; `executescript` would commit it first."""
    for statement in script.split(";\n"):
        if statement.strip():
            db.execute(statement)


def read_meta(db: sqlite3.Connection, key: str) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def set_meta(db: sqlite3.Connection, key: str, value: str | int) -> None:
    db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", (key, value))


def read_stats(db: sqlite3.Connection) -> StoreStats:
    pages = int(db.execute("SELECT count(*) FROM sources").fetchone()[0])
    chunks, words = db.execute("SELECT coalesce(sum(chunks), 0), coalesce(sum(words), 0) FROM bodies").fetchone()
    unembedded = int(db.execute("SELECT count(*) FROM unembedded").fetchone()[0])
    return StoreStats(pages, chunks, words, unembedded, read_meta(db, "embedder"), int(read_meta(db, "dims") or 0))


class Condition(Struct, frozen=True):
    """What follows WHERE, about a source `s`, and its values. Empty for everything."""

    sql: str = ""
    values: tuple[str | int, ...] = ()


def scope_condition(scope: Scope) -> Condition:
    """The sources of a scope; `code` is about chunks and not part of it."""
    if scope == EVERYTHING:
        return Condition()
    clauses: list[tuple[str, list[str | int]]] = []
    if scope.urls:
        clauses.append((f"s.key IN ({', '.join('?' * len(scope.urls))})", [urls.hit_key(url) for url in scope.urls]))
    if scope.domains:
        clauses.append(_domain_clause(scope.domains, ""))
    if scope.excluded_domains:
        clauses.append(_domain_clause(scope.excluded_domains, "NOT "))
    if scope.languages:
        # `en` covers `en-GB`
        clause = " OR ".join(["s.language = ? OR (s.language >= ? AND s.language < ?)"] * len(scope.languages))
        names = [language.lower() for language in scope.languages]
        clauses.append((f"({clause})", [limit for name in names for limit in (name, name + "-", name + ".")]))
    for tag in scope.tags:
        clauses.append(("s.id IN (SELECT source FROM tags WHERE tag = ?)", [tag]))
    if scope.since:
        clauses.append(("s.fetched_at >= ?", [normalise_time(scope.since)]))
    if scope.until:
        clauses.append(("s.fetched_at <= ?", [end_of(scope.until)]))
    return Condition(" AND ".join(sql for sql, _ in clauses), tuple(value for _, values in clauses for value in values))


def _domain_clause(domains: tuple[str, ...], mark: str) -> tuple[str, list[str | int]]:
    """Hosts are stored backwards, so a domain with its subdomains is a range: com.example. up to com.example/."""
    hosts = [reverse_domain(domain) for domain in domains]
    clause = " OR ".join(["(s.host >= ? AND s.host < ?)"] * len(hosts))
    return f"{mark}({clause})", [limit for host in hosts for limit in (host, host[:-1] + "/")]


def reverse_domain(domain: str) -> str:
    """example.com as com.example. with a dot at its end."""
    return ".".join(reversed([label for label in domain.strip().strip(".").lower().split(".") if label])) + "."


def normalise_time(text: str) -> str:
    """An ISO 8601 time in one form (UTC, seconds), so that times compare as text; what is no time stays as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    return when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")


def end_of(text: str) -> str:
    """The last moment of a day that is given without a time."""
    return normalise_time(f"{text}T23:59:59" if len(text) == len("2026-01-31") else text)
