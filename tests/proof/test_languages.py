"""Sentences in twelve other languages are checked no worse than they were."""

from __future__ import annotations

import json

from evals.languages import KEPT_RUNS, measure, render


def test_no_planted_error_passes_and_more_true_sentences_are_kept_than_before() -> None:
    figures, before = measure(), json.loads(KEPT_RUNS.read_text(encoding="utf-8"))["before"]
    assert figures.keys() == before.keys()
    assert sum(passed for _, passed, _ in figures.values()) == 0
    assert sum(kept for kept, _, _ in figures.values()) >= sum(kept for kept, _, _ in before.values())


def test_the_table_has_a_row_for_each_language_and_one_for_all() -> None:
    assert render({"old": {"de": (4, 1, 5), "fr": (5, 0, 5)}})[2:] == [
        "| de | 4 of 5 | 1 of 5 |",
        "| fr | 5 of 5 | 0 of 5 |",
        "| all | 9 of 10 | 1 of 10 |",
    ]
