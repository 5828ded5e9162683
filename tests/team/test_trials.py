"""The trials of a team server in small: `make team-trials` runs them in full and keeps the tables, which are read here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rig.postgres import MISSING, list_binaries, running_postgres
from rig.team_trials import TABLE, TRIALS, disturb

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "events"),
    [
        pytest.param("kill", 2, marks=pytest.mark.slow),
        *(pytest.param(name, 1, marks=pytest.mark.long) for name in ("stall", "restart", "half-open")),
    ],
)
def test_no_run_is_lost_or_done_twice(name: str, events: int) -> None:
    if not list_binaries():
        pytest.skip(MISSING)
    with running_postgres() as server:
        outcome = disturb(server, name, jobs=6, events=events, step_s=0.4, every_s=1.5)
    assert (outcome.finished, outcome.doubled_replies, outcome.two_writers) == (6, 0, 0)


def test_every_trial_is_saved_and_holds() -> None:
    sections = re.findall(r"^## [^\n]*\(`(.+?)`\)\n(.*?)(?=^## |\Z)", TABLE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert [name for name, _ in sections] == list(TRIALS)
    assert [name for name, text in sections if "\nHolds. " not in text] == []


def test_every_defect_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", (ROOT / "tests" / "team" / "defects.md").read_text("utf-8"))
    missing = [(file, name) for file, name in named if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert (len(named) > 30, missing) == (True, [])
