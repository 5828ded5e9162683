"""The trials of a team server in small: `python -m rig.team_trials --save` runs them in full and keeps the table."""

from __future__ import annotations

import pytest

from rig.postgres import MISSING, list_binaries, running_postgres
from rig.team_trials import disturb


@pytest.mark.slow
@pytest.mark.parametrize(("name", "events"), [("kill", 2), ("stall", 1), ("restart", 1), ("half-open", 1)])
def test_no_run_is_lost_or_done_twice(name: str, events: int) -> None:
    if not list_binaries():
        pytest.skip(MISSING)
    with running_postgres() as server:
        outcome = disturb(server, name, jobs=6, events=events, step_s=0.4, every_s=1.5)
    assert (outcome.finished, outcome.doubled_replies, outcome.two_writers) == (6, 0, 0)
