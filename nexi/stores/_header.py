"""The first page of the embedded store's file: SQLite's header and the list of tables.

`salvage` turns here when that page is lost. Every store of one version is laid out alike, so the first page of a new store
leads to the tables of any other; only the counters in it are of the file at hand. What the tables hold is not known here.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from nexi.stores import _thread, schema

TABLES = {"meta", "bodies", "sources", "chunks"}
_WAL = b"\x02\x02"  # the two bytes that say how the file is written
_MODE, _CHANGES, _PAGES, _VALID_FOR = 18, 24, 28, 92


def is_readable(db: sqlite3.Connection) -> bool:
    """Whether the list of tables can be read, and ours are in it."""
    try:
        return {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master")} >= TABLES
    except sqlite3.DatabaseError:
        return False


def made_anew(path: Path, copy: Path) -> bool:
    """Write a copy of the file, with its journal, that has a first page again; False where that cannot help."""
    # the first page of a store that was just made
    with closing(_thread.open_database(copy, lambda db: schema.prepare_tables(db, copy))) as new:
        new.execute("PRAGMA journal_mode=DELETE")
        size = int(new.execute("PRAGMA page_size").fetchone()[0])
    with copy.open("rb") as file:
        page = file.read(size)
    pages, rest = divmod(path.stat().st_size, len(page))
    if pages < 2 or rest:
        return False
    shutil.copyfile(path, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(path.with_name(path.name + "-wal"), copy.with_name(copy.name + "-wal"))
    with copy.open("r+b") as file:
        header = bytearray(page)
        header[_MODE : _MODE + 2] = _WAL
        header[_PAGES : _PAGES + 4] = pages.to_bytes(4, "big")
        header[_VALID_FOR : _VALID_FOR + 4] = header[_CHANGES : _CHANGES + 4]
        file.write(bytes(header))
    return True
