"""How right an answer is."""

from __future__ import annotations

import pytest

from nexi.bench import Share, _AnswerScore, score_answer, wilson_share


@pytest.mark.parametrize(
    ("answer", "right", "correct"),
    [
        ("It was opened in 1890 [1].", ["1890"], True),
        ("It was opened in 1890.", ["189"], False),
        ("The length is 2467 metres.", ["2,467"], True),
        ("About 2,467 m.", ["2467"], True),
        ("**The Beatles** made it [2].", ["Beatles"], True),
        ("Nobody knows.", ["Beatles"], False),
        ("Yes, it does.", ["yes"], True),
        ("There is no doubt that it does.", ["no"], False),
        ("首都是东京。", ["东京"], True),
        ("", ["x"], False),
        ("I do not know.\n\nSources:\n[1] 1890", ["1890"], False),
    ],
)
def test_an_answer_is_correct_when_a_right_one_stands_in_it(answer: str, right: list[str], correct: bool) -> None:
    assert score_answer(answer, right).correct is correct


def test_nearly_all_of_the_words_are_enough() -> None:
    assert score_answer("the battle of Great Hastings in 1066", ["Battle of Hastings in 1066"]) == _AnswerScore(
        True, False, 10 / 11, 7
    )


def test_an_answer_that_is_the_right_one_is_exact() -> None:
    assert score_answer("The Beatles", ["beatles"]) == _AnswerScore(True, True, 1.0, 2)


def test_a_share_of_few_has_a_wide_interval() -> None:
    assert wilson_share(8, 10).percent == 80.0
    assert (round(wilson_share(8, 10).low, 1), round(wilson_share(8, 10).high, 1)) == (49.0, 94.3)
    assert wilson_share(0, 0) == Share(0.0, 0.0, 100.0)
