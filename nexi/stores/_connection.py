"""A SQLite file: one thread that owns one connection and does its work in order, and what goes wrong as errors to act on."""

from __future__ import annotations

import asyncio
import errno
import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from nexi import files
from nexi.errors import StoreError

T = TypeVar("T")
MODE_PAUSE_S = 0.01
BUSY_S = 30.0
CACHE_KIB = 16_384
REPAIR = "Run `nexi doctor --repair`: it saves what can be read into a sound file and keeps the damaged one beside it."
MIN_SPACE_BYTES = 65_536
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
Prepare = Callable[[sqlite3.Connection], None]
READING_KIB = 1_024  # the system keeps the file in memory too; here it would count twice, and no search gets faster


class SqliteThread:
    """`run` awaits one piece of work. What SQLite raises in it leaves as a StoreError."""

    def __init__(
        self,
        path: Path,
        prepare: Prepare,
        *,
        busy_s: float = BUSY_S,
        cache_kib: int = CACHE_KIB,
        check_file: Callable[[], None] = lambda: None,
        only_reads: bool = False,
    ) -> None:
        self._path, self._prepare, self._only_reads = path, prepare, only_reads
        self._check_file = check_file  # before the file is opened, which makes one where there is none
        self._cache_kib, self._busy_s = cache_kib, busy_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nexi-knowledge")
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work off the event loop. Work that has begun is finished even if the caller is cancelled."""
        return await self.run_plainly(lambda: work(self._open_connection()))

    async def run_plainly(self, work: Callable[[], T]) -> T:
        """The same for work that opens and closes the file itself."""

        def run_translating() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                raise from_sqlite(error, self._path) from error
            except OSError as error:
                raise files.store_error("The knowledge store could not be used", self._path, error) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run_translating)

    async def aclose(self) -> None:
        """Close the connection after the work that has begun, also when the caller is cancelled meanwhile."""
        closing = asyncio.get_running_loop().run_in_executor(self._thread, self.close)
        self._thread.shutdown(wait=False)
        await asyncio.shield(closing)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open_connection(self) -> sqlite3.Connection:
        """The connection; a new one where a repair has put another file in the place of ours, or the last could not write."""
        if self._connection is not None and self._file != _file_identity(self._path):
            self.close()
        if self._connection is None:
            self._check_file()
            self._file = _file_identity(self._path)
            try:
                self._connection = open_database(self._path, self._prepare, busy_s=self._busy_s, cache_kib=self._cache_kib)
                self._file = _file_identity(self._path)
            except (OSError, sqlite3.OperationalError) as error:
                if not self._only_reads or not is_refused_write(error):
                    raise
                self._connection = _open_unwritable(self._path, self._prepare, error)
                self._file = (0, -1)  # opened again for the next work: the disk may be writable then
        return self._connection


def open_database(path: Path, prepare: Prepare, *, busy_s: float = BUSY_S, cache_kib: int = CACHE_KIB) -> sqlite3.Connection:
    """A connection that waits for others, with the file private from its first byte."""
    files.make_private_directory(path.parent)
    files.create_empty_file(path)  # SQLite gives the journal beside it the same permissions
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, cached_statements=256)  # we begin transactions
    try:
        files.check_writable(path)  # SQLite itself would open it for reading and fail later
        _use_write_ahead(connection, busy_s)
        for pragma in ("synchronous=FULL", "temp_store=MEMORY", "foreign_keys=ON", f"cache_size=-{cache_kib}"):
            connection.execute(f"PRAGMA {pragma}")
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_unwritable(path: Path, prepare: Prepare, error: OSError | sqlite3.OperationalError) -> sqlite3.Connection:
    """A connection that writes nothing, for a disk that is full or read-only. Raises the error that led here."""
    # SQLite needs to write even to read what lies in a journal. Without a journal the file is whole and taken as it is; where
    # there is none, an empty store in memory has the same content.
    if not path.exists() or not path.stat().st_size:
        return _open_prepared(":memory:", prepare, error)
    try:
        return _open_prepared(f"{path.absolute().as_uri()}?mode=ro", prepare, error)
    except (OSError, sqlite3.OperationalError):
        journal = path.with_name(f"{path.name}-wal")
        if journal.exists() and journal.stat().st_size:
            raise
    return _open_prepared(f"{path.absolute().as_uri()}?immutable=1", prepare, error)


def _open_prepared(address: str, prepare: Prepare, error: OSError | sqlite3.OperationalError) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, isolation_level=None, cached_statements=256)
    try:
        connection.execute("PRAGMA temp_store=MEMORY")
        prepare(connection)
    except BaseException as fault:
        connection.close()
        if isinstance(fault, sqlite3.OperationalError):
            raise error from None
        raise
    return connection


def _use_write_ahead(connection: sqlite3.Connection, busy_s: float) -> None:
    """Turn the mode on. SQLite does not wait for others here, so that two who make the file at once would fail."""
    until = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(MODE_PAUSE_S)
        else:
            return


def end_reading(db: sqlite3.Connection) -> None:
    """End a transaction that wrote nothing. Over a damaged file the first try may tell of the damage once more."""
    for _ in range(2):
        if db.in_transaction:
            with suppress(sqlite3.DatabaseError):
                db.execute("ROLLBACK")


def _file_identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return status.st_dev, status.st_ino


def in_transaction(db: sqlite3.Connection, work: Callable[[], T]) -> T:
    """All of the work or none of it. The write lock is taken at the start, so nothing waits in the middle."""
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work()
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


def from_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    """The error behind SQLite's."""
    code = _result_code(error)
    if is_damage(error):
        return damaged_error(path, str(error).partition(" with text")[0])
    if code in _BUSY:
        cause = f"another nexi has been writing to it for too long ({path})"
        fix = "Try again when the other command has finished."
        return StoreError("The knowledge store is busy", cause=cause, fix=fix, code="store_busy")
    if code == sqlite3.SQLITE_FULL:
        return files.store_error("The knowledge store could not be written", path, OSError(errno.ENOSPC, str(error)))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return files.store_error("The knowledge store could not be opened for writing", path, OSError(errno.EACCES, str(error)))
    if code == sqlite3.SQLITE_IOERR:
        # SQLite calls it an error of the disk, too, when a full one has no room for its index of the journal.
        number = errno.EIO
        with suppress(OSError):
            number = errno.EIO if shutil.disk_usage(path.parent).free > MIN_SPACE_BYTES else errno.ENOSPC
        return files.store_error("The knowledge store could not be read or written", path, OSError(number, str(error)))
    return StoreError("The knowledge store failed", cause=f"{error} ({path})", fix=REPAIR)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is damaged: SQLite says so, or a text in it is no text, which only Python's binding notices."""
    return _result_code(error) in _DAMAGED or str(error).startswith("Could not decode to UTF-8")


def is_refused_write(error: OSError | sqlite3.Error) -> bool:
    """Whether a disk that is full, read-only or another user's may be all that is wrong."""
    if isinstance(error, OSError):
        return error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
    codes = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
    return _result_code(error) in codes


def _result_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code. Python's binding itself raises some errors, which have none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def damaged_error(path: Path, cause: str) -> StoreError:
    return StoreError("The knowledge store is damaged", cause=f"{cause} ({path})", fix=REPAIR, code="store_damaged")
