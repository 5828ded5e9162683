"""Private files on a disk that may be full, slow or gone: bytes, locks, directories and small JSON objects.

An OSError leaves through `store_error` with cause and fix.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from nexi.errors import StoreError

T = TypeVar("T")

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
MAX_JSON_BYTES = 1_000_000
_BLOCK = 65536
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_LOCK_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_NO_LINKS_HERE = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
STORE_NAME = "knowledge.db"
_FIXES = {
    errno.ENOSPC: "Free some disk space, for example old folders under runs, or set NEXI_HOME to another disk.",
    errno.EDQUOT: "Your disk quota is used up: free some space or set NEXI_HOME to another disk.",
    errno.EROFS: "The file system is read-only: set NEXI_HOME to a folder that can be written.",
    errno.EACCES: "Give yourself write access to it, or set NEXI_HOME to a folder you own.",
    errno.EPERM: "Give yourself write access to it, or set NEXI_HOME to a folder you own.",
    errno.EIO: "The disk reports an error: check it, or set NEXI_HOME to another one.",
}


def store_error(what: str, path: Path, error: OSError) -> StoreError:
    fix = _FIXES.get(error.errno or 0, "Check that the folder exists and can be written, or set NEXI_HOME to another one.")
    return StoreError(what, cause=f"{error.strerror or error} ({path})", fix=fix)


@contextmanager
def translate_os_errors(what: str, path: Path) -> Iterator[None]:
    """Raise a StoreError that says what could not be done, for an OSError inside the block."""
    try:
        yield
    except OSError as error:
        raise store_error(what, path, error) from error


def expand_home(path: str) -> Path:
    """The path with `~` resolved; `~name` of a user that does not exist is a name like any other, as in a shell."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises a RuntimeError for such a user


def make_private_directory(path: Path) -> None:
    """Make a directory and what is missing above it; `mkdir` alone would leave the parents open to others."""
    if not path.parent.is_dir():
        make_private_directory(path.parent)
    path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)


def create_private_file(path: Path, data: bytes) -> None:
    """Write a new file that only its owner can read. Raises FileExistsError instead of touching one that is there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def create_empty_file(path: Path) -> None:
    """Make a private, empty file where there is none, without opening it under its own name.

    Whoever closes a descriptor of a file drops every POSIX lock that the process has on it. So the file of a database is closed
    before it gets its name, and nobody can have a lock on it by then. Where a file system has no hard links, SQLite makes it.
    """
    import tempfile

    if is_existing_path(path):
        return
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:12]}.", suffix=".tmp")
    os.close(fd)
    try:
        os.link(name, path)
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        if error.errno not in _NO_LINKS_HERE:
            raise
    finally:
        Path(name).unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise OSError for a file that cannot be written, without opening it."""
    if os.access(path, os.W_OK):
        return
    is_read_only = sys.platform != "win32" and bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    number = errno.EROFS if is_read_only else errno.EACCES
    raise OSError(number, os.strerror(number), str(path))


def is_store_file(path: Path) -> bool:
    """Whether a file is a knowledge store or lies beside one. Only SQLite may open it: see `create_empty_file`."""
    return path.name.startswith(STORE_NAME) or path.resolve().name.startswith(STORE_NAME)


def write_all(fd: int, data: bytes) -> None:
    """One write; more only where the system took less, and then the next one says why."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append_line(fd: int, line: bytes) -> None:
    """Write a line on a line of its own, and to the disk; what was torn before stays apart, and what tears now is cut off."""
    end = os.lseek(fd, 0, os.SEEK_END)
    if end:
        os.lseek(fd, end - 1, os.SEEK_SET)
        line = line if os.read(fd, 1) == b"\n" else b"\n" + line
    try:
        write_all(fd, line)
        os.fsync(fd)
    except OSError:
        with suppress(OSError):  # a tail that stays torn is skipped by readers and closed off by the next append
            os.ftruncate(fd, end)
        raise


def replace_file(path: Path, data: bytes, *, is_durable: bool = False) -> None:
    """Readers see the old file or the new one, never a part. A durable one also survives a power cut after this returns."""
    import tempfile

    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:12]}.", suffix=".tmp")
    try:
        with os.fdopen(fd, "wb", buffering=0):
            write_all(fd, data)
            if is_durable:
                os.fsync(fd)  # before the rename: the name must never lead to bytes that are not on the disk
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    if is_durable:
        sync_directory(path.parent)


def read_json_object(path: Path) -> dict[str, Any]:
    """The small JSON object that a file holds; an empty one for a file that is missing, damaged or too large."""
    import json

    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_JSON_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_json_as(path: Path, kind: type[T]) -> T | None:
    """The JSON value that a file holds; None where there is none of this kind."""
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def keep_json(path: Path, value: object, *, makes_folder: bool = True) -> None:
    """Keep a JSON value where that is possible; what cannot be kept is made again."""
    import msgspec

    with suppress(OSError):
        if makes_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(value))


def write_json_object(path: Path, value: Mapping[str, Any], failure: str) -> None:
    """Replace a small JSON object for good and make its folder. Raises StoreError, which begins with `failure`."""
    import json

    with translate_os_errors(failure, path):
        make_private_directory(path.parent)
        replace_file(path, json.dumps(value, indent=1).encode(), is_durable=True)


def merge_json_object(path: Path, changes: Mapping[str, Any], failure: str) -> dict[str, Any]:
    """Add to a small JSON object that other processes add to as well, and give the whole. Raises StoreError as above."""
    with translate_os_errors(failure, path):
        make_private_directory(path.parent)
        with open_locked(path.with_suffix(".lock")):
            fields = {**read_json_object(path), **changes}
            write_json_object(path, fields, failure)
            return fields


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where the system can."""
    if sys.platform == "win32":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def take_lock(fd: int, *, shared: bool = False) -> bool:
    """Take the exclusive or shared lock of an open file at once, or say that another holds it."""
    try:
        _lock(fd, wait=False, shared=shared)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE and error.errno not in _LOCK_TAKEN:
            raise
        return error.errno in _NO_LOCKS_HERE
    return True


@contextmanager
def open_locked(path: Path) -> Iterator[int]:
    """Open a private file to append to, made where there is none, with its exclusive lock inside the block."""
    fd = os.open(path, APPEND | os.O_CREAT, PRIVATE_FILE)
    try:
        wait_for_lock(fd)
        yield fd
    finally:
        os.close(fd)


def wait_for_lock(fd: int) -> None:
    """Wait for the exclusive lock. A file system without locks has one writer at a time by luck; going on is kinder."""
    try:
        _lock(fd, wait=True)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise


if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 0x7FFF_0000  # locks are mandatory here, so the locked byte lies where no reader goes

    def _lock(fd: int, *, wait: bool, shared: bool = False) -> None:
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(fd: int, *, wait: bool, shared: bool = False) -> None:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def lines_from_end(path: Path) -> Iterator[bytes]:
    """The lines of a file, last first, read in blocks from its end; a last line without a newline counts."""
    with path.open("rb") as file:
        position = file.seek(0, os.SEEK_END)
        pieces: list[bytes] = []  # the line under way, its end first
        while position:
            size = min(_BLOCK, position)
            position -= size
            file.seek(position)
            first, *rest = file.read(size).split(b"\n")
            if rest:
                pieces.append(rest.pop())
                yield b"".join(reversed(pieces))
                yield from reversed(rest)
                pieces = []
            pieces.append(first)
        yield b"".join(reversed(pieces))


def is_existing_path(path: Path) -> bool:
    """Whether something is there. Raises OSError if the system cannot tell; `Path.exists` of Python 3.14 returns False then."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null character
        return False
    return True


def is_existing_file(path: Path) -> bool:
    """Whether there is such a file; a name that is too long for one is none."""
    try:
        return path.is_file()
    except OSError:
        return False
