"""What goes wrong with stored knowledge, as errors a person can act on.

The embedded store above raises only these; below are SQLite's result codes and the system's error numbers.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from nexi import files
from nexi.errors import StoreError
from nexi.install import install_command
from nexi.notices import Notice

REPAIR = "Run `nexi doctor --repair`: it saves what can be read into a sound file and keeps the damaged one beside it."
MIN_SPACE_BYTES = 65_536
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REFUSED_WRITES = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def storage_full(most: int, used: int, size: int) -> StoreError:
    """The error for a person of a team who may keep `most` bytes, has `used` some, and would add `size`."""
    return StoreError(
        Notice("quota.reached", "you have reached your quota of {quota}", quota=Notice("quota.storage", "storage")),
        cause=f"{_show_size(used)} of {_show_size(most)} are used, and this needs {_show_size(size)} more",
        fix="delete runs or stored sources, or ask an administrator for more",
        code="quota_reached",
    )


def _show_size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"


def from_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    """The error behind SQLite's."""
    code = _result_code(error)
    if is_damage(error):
        return damaged_error(path, str(error).partition(" with text")[0])
    if code in _BUSY:
        return StoreError(
            "The knowledge store is busy",
            cause=f"another nexi has been writing to it for too long ({path})",
            fix="Try again when the other command has finished.",
            code="store_busy",
        )
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
        return error.errno in _REFUSED_WRITES
    codes = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
    return _result_code(error) in codes


def _result_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code. Python's binding itself raises some errors, which have none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def damaged_error(path: Path, cause: str) -> StoreError:
    return StoreError("The knowledge store is damaged", cause=f"{cause} ({path})", fix=REPAIR, code="store_damaged")


def lost_journal(path: Path, process: int) -> StoreError:
    return StoreError(
        f"Process {process} stores pages where no other process can see them",
        cause=f"the journal of the knowledge base ({path}-wal) was removed while it was running",
        fix=f"End it with `kill -9 {process}`: an orderly end could write its old pages over newer ones. Then run "
        "`nexi doctor --repair`, and ask again what it was asked since.",
        code="store_journal",
    )


def store_in_use(path: Path, process: int) -> StoreError:
    return StoreError(
        "The knowledge base is not repaired while another process uses it",
        cause=f"process {process} has {path} open, and what it stores during the repair would be lost",
        fix=f"End it (`kill {process}`, or Ctrl-C where it runs), then run `nexi doctor --repair` again.",
        code="store_in_use",
    )


def newer_schema(path: Path, version: int, newest_version: int) -> StoreError:
    return StoreError(
        "The knowledge store was written by a newer nexi",
        cause=f"its schema is {version}, this nexi knows up to {newest_version} ({path})",
        fix="Update nexi, or set NEXI_HOME to another folder.",
        code="store_newer",
    )


def not_a_store(path: Path) -> StoreError:
    return StoreError(
        "This file is no knowledge store",
        cause=f"it is a database of something else ({path})",
        fix="Move it away, or set NEXI_HOME to another folder.",
    )


def other_embedder(current: str, current_dims: int, embedder: str, dims: int) -> StoreError:
    return StoreError(
        "The knowledge store holds vectors of another embedding model",
        cause=f"it was made with {current} ({current_dims} dimensions), which {embedder} ({dims}) cannot be compared with",
        fix=f"Set the embedding model back to {current}, or embed the stored texts again with `nexi index --reembed`.",
        code="store_embedder",
    )


def bad_vectors(cause: str) -> StoreError:
    return StoreError(
        "These vectors cannot be stored", cause=cause, fix="Check the embedding model: its answers are not usable."
    )


def vectors_fix() -> str:
    return f"Install them with: {install_command('vectors')}"


def no_numpy() -> StoreError:
    return StoreError("Vectors need a part of nexi that is not installed", cause="numpy is missing", fix=vectors_fix())


def too_many_chunks(url: str, count: int, most: int) -> StoreError:
    return StoreError(
        "The page is too long to be stored",
        cause=f"{url} has {count} chunks, and {most} is the most",
        fix="Split it, or choose larger chunks.",
    )
