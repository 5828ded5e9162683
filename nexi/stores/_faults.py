"""What goes wrong with stored knowledge, as errors a person can act on."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from nexi import files
from nexi.errors import StoreError

REPAIR = "Run `nexi doctor --repair`: it saves what can be read into a sound file and keeps the damaged one beside it."
MIN_SPACE_BYTES = 65_536
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


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


def other_embedder(current: str, current_dims: int, embedder: str, dims: int) -> StoreError:
    cause = f"it was made with {current} ({current_dims} dimensions), which {embedder} ({dims}) cannot be compared with"
    fix = f"Set the embedding model back to {current}, or embed the stored texts again with `nexi index --reembed`."
    message = "The knowledge store holds vectors of another embedding model"
    return StoreError(message, cause=cause, fix=fix, code="store_embedder")


def bad_vectors(cause: str) -> StoreError:
    fix = "Check the embedding model: its answers are not usable."
    return StoreError("These vectors cannot be stored", cause=cause, fix=fix)
