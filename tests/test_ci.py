"""What every change must pass runs to its end, and says what each part cost."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("chromium", "node", "pandoc", "tesseract", "ip")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose make only notes what it is asked for; it fails for the browser."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("test: x\ncheck: x\neval: x\ntest-browser: x\ntest-company: x\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "make").write_text('#!/bin/sh\necho "$@" >> made\ntest "$1" != test-browser\n')
    for name in PROGRAMS:
        (programs / name).write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    return tmp_path


def test_every_part_runs_and_the_table_names_what_failed_and_what_is_missing(checkout: Path) -> None:
    environment = {"PATH": f"{checkout / 'programs'}:/usr/bin:/bin"}
    done = subprocess.run([".ci/run"], cwd=checkout, env=environment, capture_output=True, text=True, timeout=300, check=False)
    table = done.stdout.rpartition("part        seconds  end\n")[2]
    rows = dict(re.findall(r"^(\w+) +\d+(?:  (.+))?$", table, re.MULTILINE))
    assert (done.returncode, rows) == (
        1,
        {
            "programs": "passed",
            "tests": "passed",
            "long": "SKIPPED: no such target",
            "check": "passed",
            "browser": "FAILED (1)",
            "stories": "SKIPPED: no such target",
            "egress": "SKIPPED: no such target",
            "company": "passed",
            "evals": "passed",
            "all": "",
        },
    )
    assert sorted((checkout / "made").read_text().splitlines()) == [
        "check",
        "eval SAMPLE=40",
        "test",
        "test-browser",
        "test-company SECONDS=600",
    ]
