"""The eval of judges: its rows, its saved table, and the sets a model is asked about."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evals.judge import CountingLLM, Row, grade_row, main, measure_row, merge_rows, read_set
from nexi.checking.quiz import UNREADABLE, Grade, whole_quiz
from nexi.types import Message, PairScore, Reply, Usage

QUIZ = whole_quiz()
ROW = Row("m", "quiz", 60, 71.66, 80.0, 90.0, 46.7, 2, "may only lower", Usage(5000, 900), 12.4, "one thread")


class FixedLLM:
    """Replies with the number of tokens it was allowed."""

    name = "fixed"

    async def complete(self, messages: Sequence[Message], *rest: Any, max_tokens: int, **options: Any) -> Reply:
        return Reply(str(max_tokens), usage=Usage(10, 2))


def test_a_model_that_is_always_right_gets_a_full_row() -> None:
    scores = [PairScore(0.9 if pair.is_true else 0.2) for pair in QUIZ.pairs]
    grade, row = grade_row("m", QUIZ, scores, Usage(7, 3), 2.0, "")
    assert grade.may_raise
    assert row == Row("m", "quiz", 60, 100.0, 100.0, 100.0, 0.0, 0, "raise and lower", Usage(7, 3), 2.0)


def test_nonsense_is_counted_and_counts_as_wrong() -> None:
    scores = [
        PairScore.gap(UNREADABLE) if n < 30 else PairScore(0.9 if pair.is_true else 0.2) for n, pair in enumerate(QUIZ.pairs)
    ]
    _, row = grade_row("m", QUIZ, scores, Usage(), 0.0, "")
    assert (row.nonsense, row.role) == (30, "is not asked")
    assert row.auc is not None
    assert row.auc < 100


def test_another_set_is_judged_by_the_thresholds_of_the_quiz() -> None:
    scores = [PairScore(0.7), PairScore(0.5), PairScore(0.65), PairScore.gap(UNREADABLE)]
    row = measure_row("m", "pairs", Grade(0.8, 0.8, 0.2, 0.6), [True, True, False, False], scores, Usage(), 1.0)
    assert row == Row("m", "pairs", 4, 50.0, 62.5, 50.0, 50.0, 1, "", Usage(), 1.0)


async def test_tokens_are_summed_and_replies_kept_short() -> None:
    llm = CountingLLM(FixedLLM(), 200)
    replies = [(await llm.complete([], max_tokens=most)).text for most in (1440, 90)]
    assert (replies, llm.usage.input_tokens, llm.usage.output_tokens) == (["200", "90"], 20, 4)


def test_a_new_row_replaces_the_older_one_of_the_same_model_and_set() -> None:
    other = Row("n", "quiz", 60, 50.0, None, 50.0, 50.0, 0, "is not asked", Usage(), 1.0)
    first = merge_rows("", [ROW, other])
    newer = Row("m", "quiz", 60, 80.0, 90.0, 90.0, 30.0, 0, "raise and lower", Usage(1, 1), 3.0)
    rows = [line for line in merge_rows(first, [newer]).splitlines() if line.startswith("| ")][1:]
    assert rows == [newer.render(), other.render()]
    assert ROW.render() == "| m | quiz | 60 | 71.7 | 80.0 | 90.0 | 46.7 | 2 | may only lower | 5000 | 900 | 12 | one thread |"


def test_the_pairs_of_the_open_half_are_a_set() -> None:
    pairs, labels = read_set("pairs", 0)
    assert len(pairs) == len(labels) == 152
    assert sum(labels) == 76


def test_word_overlap_is_saved_as_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["judge", "--overlap", "--set", "pairs", "--save"])
    assert main(tmp_path / "judge.md") == 0
    saved = (tmp_path / "judge.md").read_text(encoding="utf-8")
    assert [line.split(" | ")[:3] for line in saved.splitlines() if line.startswith("| overlap")] == [
        ["| overlap", "quiz", "60"],
        ["| overlap", "pairs", "152"],
    ]
    assert capsys.readouterr().out.startswith("| model | set | pairs |")


def test_a_folder_without_a_model_ends_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["judge", "--onnx", str(tmp_path)])
    assert main() == 1
    assert capsys.readouterr().err == f"judge: there is no installed model in {tmp_path}\n"


def test_without_a_model_the_command_says_what_it_wants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["judge"])
    with pytest.raises(SystemExit):
        main()
    assert "give --base-url with --model, or --onnx, or --overlap" in capsys.readouterr().err
