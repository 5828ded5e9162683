"""Text as words."""

from __future__ import annotations

import pytest

from nexi.text.words import content_words, drop_stop_words, find_words, has_unspaced


def test_words_are_runs_of_letters_and_digits_of_any_script() -> None:
    assert find_words("Don't call snake_case2, Élan: 東京 42!") == ["Don", "t", "call", "snake", "case2", "Élan", "東京", "42"]


def test_content_words_are_lower_case_and_leave_stop_words_out() -> None:
    assert content_words("The Moon doesn't have an atmosphere") == ["moon", "atmosphere"]


@pytest.mark.parametrize(("query", "expected"), [("What is C++ in node.js?", "C++ node.js"), ("who is it", "")])
def test_a_query_keeps_what_says_something_as_it_is_written(query: str, expected: str) -> None:
    assert drop_stop_words(query) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("Moon", False), ("книга", False), ("the 月", True), ("ภาษา", True), ("한국", True)]
)
def test_scripts_without_spaces_are_known(text: str, expected: bool) -> None:
    assert has_unspaced(text) is expected
