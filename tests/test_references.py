"""Questions that leave open which thing they mean: namesakes, and things that nothing has named."""

from __future__ import annotations

import pytest

from nexi.text.references import find_namesakes, find_open_reference

PAGES = [
    ("Michael Jordan (footballer)", "Michael Jordan was born in 1986."),
    ("Michael Jordan", "Michael Jordan was born in 1963."),
    ("Chicago Bulls", "Michael Jordan played for the Chicago Bulls."),
]


def test_pages_about_different_things_of_one_name_are_namesakes() -> None:
    assert find_namesakes("When was Michael Jordan born?", PAGES) == {0: "Michael Jordan (footballer)", 1: "Michael Jordan"}


def test_the_first_words_of_a_text_can_name_its_subject() -> None:
    pages = [("a.txt", "Ryan Davis (golfer) was born in 1980."), ("b.txt", "Ryan Davis (author) was born in 1970.")]
    assert find_namesakes("When was Ryan Davis born?", pages) == {0: "Ryan Davis (golfer)", 1: "Ryan Davis (author)"}


def test_a_question_that_says_which_is_meant_has_no_namesakes() -> None:
    assert find_namesakes("When was the footballer Michael Jordan born?", PAGES) == {}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What facilities does this library provide?", "library"),
        ("When was the famous basketball player born?", "player"),
        ("What is the Jewish population in the country?", "country"),
        ("What sporting events are hosted in the country's stadium?", "country"),
        ("Who is the author of Emma?", ""),
        ("Does the Prince of Wales have an income?", ""),
        ("How many books does the Ewell library lend?", ""),
        ("What are tides?", ""),
        ("What made Shen Kuo believe that the mountains were worn down?", ""),
        ("Who was responsible for the new building projects in Jacksonville?", ""),
    ],
)
def test_a_thing_that_was_never_named_is_open(question: str, kind: str) -> None:
    assert find_open_reference(question) == kind


def test_what_the_conversation_has_named_is_not_open() -> None:
    assert find_open_reference("When does the library open?", "Tell me about libraries in Ewell.") == ""
