"""The quiz that nexi carries: sixty short pairs, half lies, every kind in both halves, no help from shared words."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from evals.overlap import OverlapPairModel
from nexi.checking.quiz import grade_scores, take_quiz, whole_quiz

QUIZ = whole_quiz()
COUNTS = {"order": 4, "merged": 4, "hedge": 4, "roles": 4, "scope": 4, "attribution": 4, "number": 2, "date": 2, "negation": 2}


@pytest.mark.parametrize("is_true", [True, False])
def test_true_pairs_and_lies_are_of_the_same_kinds(is_true: bool) -> None:
    assert Counter(pair.kind for pair in QUIZ.pairs if pair.is_true is is_true) == COUNTS


@pytest.mark.parametrize("is_true", [True, False])
def test_every_other_pair_of_a_label_has_half_of_each_kind(is_true: bool) -> None:
    of_label = [pair for pair in QUIZ.pairs if pair.is_true is is_true]
    assert Counter(pair.kind for pair in of_label[::2]) == {kind: n // 2 for kind, n in COUNTS.items()}


def test_pairs_are_short_and_share_no_premise() -> None:
    sentences = [
        (len(re.findall(r"[.;](?:\s|$)", p.premise)), len(re.findall(r"\.(?:\s|$)", p.hypothesis))) for p in QUIZ.pairs
    ]
    assert all(premise <= 3 and hypothesis == 1 for premise, hypothesis in sentences)
    assert len({pair.premise for pair in QUIZ.pairs}) == len({pair.id for pair in QUIZ.pairs}) == 60
    assert max(len(pair.premise) + len(pair.hypothesis) for pair in QUIZ.pairs) < 240


def test_twelve_pairs_in_a_row_never_tell_the_label_by_their_place() -> None:
    labels = [pair.is_true for pair in QUIZ.pairs]
    assert all(4 <= sum(labels[start : start + 12]) <= 8 for start in range(0, 60, 12))


async def test_counting_shared_words_fails_the_quiz() -> None:
    grade = grade_scores(QUIZ, await take_quiz(OverlapPairModel(), QUIZ))
    assert grade.role == "it is not asked"
