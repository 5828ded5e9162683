"""Roots of words."""

from __future__ import annotations

import pytest

from nexi.text.stems import stem


@pytest.mark.parametrize(
    "words",
    [
        "build building buildings built",
        "write wrote written writing",
        "locate located location locations",
        "книга книги книгами",
        "الكتاب كتاب",
        "किताब किताबें",
    ],
)
def test_forms_of_one_word_have_one_root_in_each_script(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(("word", "other"), [("university", "universe"), ("organ", "organisation"), ("news", "new")])
def test_words_of_different_meaning_keep_their_roots_apart(word: str, other: str) -> None:
    assert stem(word) != stem(other)


@pytest.mark.parametrize("word", ["", "12", "x", "東京", "ß", "\ud800"])
def test_what_has_no_ending_is_its_own_root(word: str) -> None:
    assert stem(word) == word
