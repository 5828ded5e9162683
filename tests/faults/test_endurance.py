"""The saved table of the long trials says what was counted, and no more."""

from __future__ import annotations

from tests.faults.endurance import GOALS, HEAD, TABLE, describe, load_tallies


def test_the_saved_table_says_what_was_counted() -> None:
    rows = [f"| {GOALS[name]} | {describe(t)} | {len(t.violations)} |" for name, t in sorted(load_tallies().items())]
    assert TABLE.read_text("utf-8").splitlines() == [*HEAD.splitlines(), *rows]
