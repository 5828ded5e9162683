"""The tables of the embedded store, their version, and the way from each version to the next.

Lanes prepare every new connection with it. A chunk's id is its page's body number times CHUNKS plus its place, so that a
body is a range of ids and no index is needed between the two.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nexi import terms
from nexi.stores import faults
from nexi.stores.lane import in_transaction

APPLICATION = 0x4E455849  # "NEXI", in the header of the file
VERSION = 1
CHUNKS = 65536

TABLES = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE bodies(
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, title TEXT NOT NULL,
    chunks INTEGER NOT NULL, words INTEGER NOT NULL);
CREATE TABLE sources(
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT NOT NULL, body INTEGER NOT NULL REFERENCES bodies(id),
    title TEXT NOT NULL, domain TEXT NOT NULL, host TEXT NOT NULL, language TEXT NOT NULL, fetched_at TEXT NOT NULL,
    tags TEXT NOT NULL);
CREATE INDEX sources_body ON sources(body);
CREATE INDEX sources_host ON sources(host, body);
CREATE INDEX sources_language ON sources(language, body);
CREATE INDEX sources_fetched ON sources(fetched_at, body);
CREATE TABLE tags(tag TEXT NOT NULL, source INTEGER NOT NULL, PRIMARY KEY(tag, source)) WITHOUT ROWID;
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, heading TEXT NOT NULL, context TEXT NOT NULL, code TEXT NOT NULL,
    start INTEGER NOT NULL);
CREATE INDEX chunks_code ON chunks(id) WHERE code <> '';
CREATE TABLE vectors(body INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, head, content='', tokenize="porter ascii tokenchars '_.+#'");
INSERT INTO meta VALUES ('terms', {terms.VERSION}), ('generation', 0), ('embedder', ''), ('dims', 0);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""  # noqa: S608  # numbers of ours


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of an empty file, bring an older one up to date, refuse what is newer or not ours."""
    if _version(db, path) == VERSION:
        return
    in_transaction(db, lambda: _upgrade(db, path))


def _version(db: sqlite3.Connection, path: Path) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    if application != APPLICATION and (version or application or _tables(db)):
        raise faults.not_a_store(path)
    if version > VERSION:
        raise faults.newer_schema(path, version, VERSION)
    return version


def _upgrade(db: sqlite3.Connection, path: Path) -> None:
    """With the write lock held: another process may have been first."""
    if _version(db, path) == 0:
        run(db, TABLES)


def run(db: sqlite3.Connection, script: str) -> None:
    """Several statements inside the transaction at hand; `executescript` would commit it first."""
    for statement in script.split(";\n"):
        if statement.strip():
            db.execute(statement)


def _tables(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def meta(db: sqlite3.Connection, key: str) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else ""


def set_meta(db: sqlite3.Connection, key: str, value: str | int) -> None:
    db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", (key, value))
