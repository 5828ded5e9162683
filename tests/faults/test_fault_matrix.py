"""A few cases of the fault matrix, and the table of all of them; `make test-faults` plays the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import TABLE, cases, head_of
from tests.faults.world import Case, play

FAR_TARGET_S = 600.0  # none of these waits for it, however busy the machine is
SHORT = [
    (Case("model", "reset", later=True), "research", "partial: "),
    (Case("stream", "bad_call", times=1), "research", "answer"),
    (Case("search", "malformed"), "research", "error "),
    (Case("pages", "truncated"), "research", ""),
    (Case("disk", "EIO at fsync"), "research", "partial: log_not_kept"),
    (Case("dns", "unknown of model"), "research", "error "),
]


@pytest.mark.parametrize(("case", "door", "outcome"), SHORT, ids=lambda v: f"{v.place}-{v.kind}" if isinstance(v, Case) else "")
def test_a_fault_ends_in_an_answer_a_named_gap_or_an_error(tmp_path: Path, case: Case, door: str, outcome: str) -> None:
    ending = play(case, door, tmp_path / "nexi", FAR_TARGET_S)
    assert (ending.leaks, ending.outcome[: len(outcome)]) == ([], outcome)


def test_the_saved_table_has_a_row_for_every_case_and_no_other() -> None:
    rows = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| ")][1:]
    assert [" |".join(row.split(" |")[:3]) + " |" for row in rows] == [head_of(case) for case in cases()]
