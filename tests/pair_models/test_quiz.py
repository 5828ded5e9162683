"""A model is believed as far as its test says: it raises, only lowers, or is not asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from evals.overlap import OverlapPairModel
from nexi.app.pair_models import GradeBook
from nexi.checking.quiz import UNREADABLE, Grade, GradedPairModel, Quiz, grade_scores, take_quiz
from nexi.errors import NexiError, StoreError
from nexi.types import JudgeFigure, PairScore

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def quiz_of(*labels: str) -> Quiz:
    pairs = [
        {"id": f"q{n}", "kind": "order", "premise": f"premise {n}", "hypothesis": f"hypothesis {n}", "label": label}
        for n, label in enumerate(labels)
    ]
    return Quiz.parse(json.dumps({"version": 1, "pairs": pairs}))


TWENTY = quiz_of(*["supported", "not_supported"] * 5, *["supported", "contradicted"] * 5)


class FixedPairModel:
    """Scores in the order of the pairs, whatever the pairs are."""

    name = "fixed"

    def __init__(self, *scores: PairScore) -> None:
        self.scores = scores
        self.asked = 0

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        self.asked += 1
        return self.scores[: len(pairs)]


def answers(wrong: int = 0, *, true: float = 0.8, lie: float = 0.3) -> list[PairScore]:
    """What a model says that mistakes the first `wrong` pairs."""
    return [PairScore(true if pair.is_true is (n >= wrong) else lie) for n, pair in enumerate(TWENTY.pairs)]


def test_a_perfect_model_gets_a_threshold_between_its_scores() -> None:
    assert grade_scores(TWENTY, answers(true=0.4, lie=0.2)) == Grade(1.0, 1.0, 0.0, 0.3, pairs=20)


def test_of_equal_thresholds_the_one_nearest_to_one_half_is_chosen() -> None:
    assert grade_scores(TWENTY, answers(true=0.9, lie=0.2)).supported_from == 0.5


@pytest.mark.parametrize(
    ("wrong", "accuracy", "role"),
    [
        (4, 0.8, "it may raise and lower"),
        (6, 0.7, "it may only lower"),
        (9, 0.55, "it is not asked"),
    ],
)
def test_accuracy_decides_what_a_model_may_do(wrong: int, accuracy: float, role: str) -> None:
    grade = grade_scores(TWENTY, answers(wrong, true=0.9, lie=0.1))
    assert (grade.balanced_accuracy, grade.role) == (accuracy, role)


def test_the_threshold_of_one_half_is_chosen_on_the_other_half() -> None:
    """Scores without any order fit some threshold by chance; measured on other pairs the chance is gone."""
    noise = [PairScore(((n * 7919) % 101) / 100) for n in range(20)]
    assert grade_scores(TWENTY, noise).balanced_accuracy < 0.6


def test_gaps_are_wrong_for_true_pairs_and_for_lies_alike() -> None:
    grade = grade_scores(TWENTY, [PairScore.gap(UNREADABLE)] * 20)
    assert grade == Grade(0.0, 0.0, 1.0, 0.5, pairs=20, gaps=20)


async def test_a_model_that_could_not_be_asked_has_no_grade() -> None:
    model = FixedPairModel(*answers()[:19], PairScore.gap("connection refused"))
    with pytest.raises(NexiError) as caught:
        await take_quiz(model, TWENTY)
    assert str(caught.value) == "fixed could not be tested: connection refused"


async def test_too_few_scores_count_as_gaps() -> None:
    scores = await take_quiz(FixedPairModel(*answers()[:3]), TWENTY)
    assert scores == [*answers()[:3], *[PairScore.gap(UNREADABLE)] * 17]


async def test_word_overlap_can_take_the_quiz() -> None:
    scores = await take_quiz(OverlapPairModel(), TWENTY)
    assert grade_scores(TWENTY, scores).balanced_accuracy == 0.5


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pairs": [{}]}', '{"pairs": "abc"}', '{"pairs": []}'])
def test_a_file_that_is_no_quiz_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quiz"):
        Quiz.parse(text)


def test_an_unknown_label_is_named() -> None:
    with pytest.raises(ValueError, match="not a quiz: Invalid enum value 'perhaps'"):
        quiz_of("supported", "supported", "perhaps", "not_supported")


# what a grade does to scores

GOOD = Grade(0.9, 0.9, 0.1, 0.8, 0.6)
MIDDLING = Grade(0.7, 0.7, 0.3, 0.5)
POOR = Grade(0.5, 0.5, 0.5, 0.5)


async def scored_with(grade: Grade, *scores: PairScore) -> list[PairScore]:
    async def test(deadline: float | None) -> Grade:
        return grade

    return list(await GradedPairModel(FixedPairModel(*scores), test).score([("p", "h")] * len(scores)))


async def test_scores_of_a_good_model_have_one_half_at_its_thresholds() -> None:
    scores = await scored_with(GOOD, PairScore(0.8), PairScore(0.4), PairScore(1.0), PairScore(0.0, 0.6, reason="not 1895"))
    figure = JudgeFigure("fixed", 0.9)
    assert [replace(score, judge=None) for score in scores] == [
        PairScore(0.5), PairScore(0.25), PairScore(1.0), PairScore(0.0, 0.6, reason="not 1895"),
    ]  # fmt: skip
    assert {score.judge for score in scores} == {figure}
    assert [score.supports for score in scores] == [True, False, True, False]


async def test_a_middling_model_lowers_but_never_raises() -> None:
    raising, lowering = await scored_with(MIDDLING, PairScore(0.9), PairScore(0.2))
    assert raising == PairScore.gap("a judge that is right in 70% of its test may only lower")
    assert lowering == PairScore(pytest.approx(0.2), judge=JudgeFigure("fixed", 0.7))
    assert lowering.known


async def test_a_poor_model_is_not_asked() -> None:
    async def test(deadline: float | None) -> Grade:
        return POOR

    model = FixedPairModel(PairScore(0.9))
    scores = await GradedPairModel(model, test).score([("p", "h")])
    assert scores == [PairScore.gap("fixed was right in 50% of its test, too rarely to be asked")]
    assert model.asked == 0


async def test_a_model_that_cannot_be_tested_answers_with_gaps_and_is_tried_once() -> None:
    tries = 0

    async def test(deadline: float | None) -> Grade:
        nonlocal tries
        tries += 1
        raise NexiError("fixed could not be tested", cause="connection refused")

    model = GradedPairModel(FixedPairModel(PairScore(0.9)), test)
    assert await model.score([("p", "h")]) == [PairScore.gap("fixed could not be tested: connection refused")]
    assert await model.score([("p", "h")]) == [PairScore.gap("fixed could not be tested: connection refused")]
    assert tries == 1


async def test_no_pair_needs_no_test() -> None:
    async def test(deadline: float | None) -> Grade:
        raise AssertionError

    assert await GradedPairModel(FixedPairModel(), test).score([]) == []


# where grades are kept


def test_a_grade_is_found_again_by_its_key(tmp_path: Path) -> None:
    book = GradeBook(tmp_path / "state" / "judges.json")
    grade = Grade(0.9, 0.95, 0.15, 0.6, 0.7, 60, 1, 11_000, 0.002, 12.5, "2026-01-02")
    book.put("a", grade)
    book.put("b", POOR)
    assert GradeBook(tmp_path / "state" / "judges.json").grade("a") == grade
    assert book.grade("c") is None


@pytest.mark.parametrize("content", ["", "[]", '{"version": 9}', '{"version": 1, "grades": {"a": {"balanced_accuracy": 7}}}'])
def test_a_damaged_book_counts_as_not_tested_and_is_written_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "judges.json"
    path.write_text(content)
    book = GradeBook(path)
    assert book.grade("a") is None
    book.put("a", GOOD)
    assert book.grade("a") == GOOD


def test_a_failed_test_is_remembered_for_a_day_and_forgotten_with_a_grade(tmp_path: Path) -> None:
    book = GradeBook(tmp_path / "judges.json")
    book.put_failure("a", "too slow", NOON)
    assert book.failure("a", NOON + timedelta(hours=23)) == "too slow"
    assert book.failure("a", NOON + timedelta(hours=25)) == ""
    book.put("a", GOOD)
    assert book.failure("a", NOON) == ""


def test_a_book_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="could not be kept"):
        GradeBook(tmp_path / "file" / "judges.json").put("a", GOOD)
