"""The saved table of the long trials says what was counted, and no more."""

from __future__ import annotations

from tests.faults.endurance import GOALS, HEAD, TABLE, describe, load_tallies, mutate, strange_text


def test_the_saved_table_says_what_was_counted() -> None:
    rows = [f"| {GOALS[name]} | {describe(t)} | {len(t.violations)} |" for name, t in sorted(load_tallies().items())]
    assert TABLE.read_text("utf-8").splitlines() == [*HEAD.splitlines(), *rows]


def test_a_seed_names_its_input() -> None:
    import random

    made = [(strange_text(random.Random(seed)), mutate(b'{"query": "x"}', random.Random(seed))) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
