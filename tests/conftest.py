"""Every test runs without network, with a home of its own and a bare environment."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from nexi.config import Config
from nexi.install import find_package
from rig.closed_ports import refuse_model_servers

LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0"}
KEEP = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT", "COVERAGE_PROCESS_START", "COVERAGE_RCFILE")


# The same examples on every machine, whatever its load; `--hypothesis-profile=default` looks for new ones.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.load_profile("steady")


class NetworkUsedError(AssertionError):
    """A test tried to leave the machine."""


REFUSED: list[str] = []  # the hosts that something tried to reach, for tests of what must stay on this machine


def _forbid(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple):
        if str(args[1][0]) not in LOOPBACK and not str(args[1][0]).startswith("127."):
            REFUSED.append(str(args[1][0]))
            raise NetworkUsedError(f"a test connects to {args[1]}")
    elif event == "socket.getaddrinfo" and args[0] not in (*LOOPBACK, None) and not _is_literal(str(args[0])):
        REFUSED.append(str(args[0]))
        raise NetworkUsedError(f"a test resolves {args[0]!r}")


def _is_literal(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except (OSError, ValueError):
            continue
        return True
    return False


sys.addaudithook(_forbid)
sys.addaudithook(refuse_model_servers)


def list_foreign_variables() -> list[str]:
    return [name for name in set(os.environ) - set(KEEP) if not name.startswith(("PYTEST", "HYPOTHESIS"))]


def pytest_sessionstart() -> None:
    """A worker of `make test` removes the developer's environment once, not for each of thousands of tests."""
    for name in list_foreign_variables() if "PYTEST_XDIST_WORKER" in os.environ else ():
        del os.environ[name]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No key, proxy or home of the developer reaches a test, nor what another test has set."""
    for name in list_foreign_variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are chosen by their words, whether the reading model is installed or not; its own tests name its folder."""
    monkeypatch.setattr(
        "nexi.stores.embedders.find_package", lambda name: None if name == "nexi_reader" else find_package(name)
    )
    if factory := sys.modules.get("nexi.app.factory"):
        factory._reading_model.cache_clear()


@pytest.fixture(autouse=True)
def shown_as_by_default() -> None:
    """A test that ran a command with --plain leaves no trace in the next."""
    if output := sys.modules.get("nexi.output"):
        output.set_plain_mode(False)


@pytest.fixture
def make_config(tmp_path: Path) -> Callable[..., Config]:
    """A config with a home of its own, a model that is never called unless a test says so, and no judge."""
    usual = {"base_url": "http://127.0.0.1:9/v1", "model": "scripted", "home": tmp_path / "nexi", "verify_judge": False}

    def make(**values: Any) -> Config:
        return Config(**{**usual, **values})

    return make


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A real Postgres, one for all tests of a process; it forgets at a power cut, and nothing else."""
    from rig.postgres import MISSING, list_binaries, running_postgres

    if not list_binaries():
        pytest.skip(MISSING)
    with running_postgres(is_durable=False) as server:
        yield server


@pytest.fixture
def pgvector(postgres: Any) -> None:
    """For tests that compare vectors in Postgres, which the pgvector of the wheel cannot on every processor."""
    from rig.postgres import NO_DISTANCES

    if not postgres.has_distances:
        pytest.skip(NO_DISTANCES)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly how many tests this machine left out for want of Postgres or its vectors."""
    from rig.postgres import MISSING, NO_DISTANCES

    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for tests, lack in (("Postgres", MISSING), ("pgvector", NO_DISTANCES)):
        if count := sum(lack in reason for reason in reasons):
            terminalreporter.write_line(f"{count} tests of {tests} skipped: {lack}", yellow=True, bold=True)


@pytest.fixture(scope="session")
def database(postgres: Any) -> Iterator[Any]:
    """The database of a team server; each test has people of its own in it."""
    from nexi.team.postgres.database import Database

    opened = Database(postgres.url).open()
    yield opened
    opened.close()


@pytest.fixture
def make_person(database: Any) -> Callable[..., str]:
    """Add a person to the database and return her id; nobody of an earlier test is left, nor a run that waits for a worker."""
    database.fetch("delete from people returning id")

    def make(name: str = "Ada", role: str = "user") -> str:
        rows = database.fetch(
            "insert into people (name, role) values (%(name)s, %(role)s) returning id", {"name": name, "role": role}
        )
        return str(rows[0][0])

    return make
