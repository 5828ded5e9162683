"""The spaces of one home, as the port SpaceStore: one small SQLite file beside the history."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nexi import files
from nexi.errors import StoreError
from nexi.spaces import MAX_SPACES, check_space, decode_space, encode_space, no_such_space, space_exists, too_many_spaces
from nexi.types import Space

BUSY_S = 10.0
_SCHEMA = "create table if not exists spaces (name text primary key, settings text not null) without rowid"


class SqliteSpaces:
    """The spaces of a person who has nexi for herself."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def list_all(self) -> list[Space]:
        return [decode_space(*row) for row in self._fetch("select name, settings from spaces order by name")]

    def get(self, address: str) -> Space:
        rows = self._fetch("select name, settings from spaces where name = ?", address)
        if not rows:
            raise no_such_space(address)
        return decode_space(*rows[0])

    def add(self, space: Space) -> None:
        space = check_space(space)
        with self._connect() as connection:
            if connection.execute("select 1 from spaces where name = ?", (space.name,)).fetchone():
                raise space_exists(space.name)
            if connection.execute("select count(*) from spaces").fetchone()[0] >= MAX_SPACES:
                raise too_many_spaces()
            connection.execute("insert into spaces values (?, ?)", (space.name, encode_space(space)))

    def change(self, space: Space) -> None:
        space = check_space(space)
        if not self._fetch("update spaces set settings = ? where name = ? returning name", encode_space(space), space.name):
            raise no_such_space(space.name)

    def remove(self, name: str) -> None:
        if not self._fetch("delete from spaces where name = ? returning name", name):
            raise no_such_space(name)

    def _fetch(self, statement: str, *values: str) -> list[tuple[str, str]]:
        if not self._path.exists() and statement.startswith("select"):
            return []  # looking makes no file
        with self._connect() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A transaction of its own, alone with the file. Raises StoreError."""
        try:
            files.make_private_directory(self._path.parent)
            files.create_empty_file(self._path)
            with closing(sqlite3.connect(self._path, timeout=BUSY_S)) as connection, connection:
                connection.execute("begin immediate")  # so that a count and an insert are one step
                connection.execute(_SCHEMA)
                yield connection
        except OSError as error:
            raise files.store_error("The spaces could not be used", self._path, error) from error
        except sqlite3.Error as error:
            fix = f"move {self._path} away and make the spaces again: their files and threads are kept elsewhere"
            raise StoreError("The spaces could not be used", cause=f"{error} ({self._path})", fix=fix) from error
