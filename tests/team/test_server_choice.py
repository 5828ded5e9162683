"""The Postgres of tests is the first one here whose pgvector survives a distance."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig.postgres import MISSING, list_binaries, running_postgres

Install = Callable[[str], Path]


@pytest.fixture
def install() -> Iterator[Install]:
    """Make a folder of real programs in which the one that tries a distance is a script."""
    installed = list_binaries()
    if not installed:
        pytest.skip(MISSING)
    root = Path(tempfile.mkdtemp(prefix="nexi-pg-choice-", dir="/tmp"))  # who runs Postgres must be able to enter it
    root.chmod(0o755)

    def install_programs(script: str) -> Path:
        folder = Path(tempfile.mkdtemp(dir=root))
        folder.chmod(0o755)
        for name in ("initdb", "pg_ctl"):
            (folder / name).symlink_to(installed[0] / name)
        (folder / "psql").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "psql").chmod(0o755)
        return folder

    yield install_programs
    shutil.rmtree(root)


def test_an_installation_that_dies_of_a_distance_gives_way_to_one_that_does_not(install: Install) -> None:
    dying, sound, unused = install("kill -ILL $$"), install("exit 0"), install("exit 0")
    with running_postgres(is_durable=False, candidates=[dying, sound, unused]) as server:
        assert (server.binaries, server.has_distances) == (sound, True)


def test_where_every_installation_dies_the_first_one_runs_without_distances(install: Install) -> None:
    dying, crippled = install("kill -ILL $$"), install("exit 2")
    with running_postgres(is_durable=False, candidates=[dying, crippled]) as server:
        server.stop()
        server.start()
        assert (server.binaries, server.has_distances) == (dying, False)


def test_without_any_installation_the_error_says_what_to_install() -> None:
    with pytest.raises(RuntimeError, match="on Debian, install postgresql"), running_postgres(candidates=[]):
        pass
