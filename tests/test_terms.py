"""Text to search terms."""

from __future__ import annotations

import pytest

from nexi.text.terms import extract_terms, fold_text, join_roots, question_roots, question_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Moon", ["the", "moon"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("snake_case __init__", ["snake_case", "snake", "case", "__init__", "init"]),
        ("C++, C# and F#", ["c++", "c", "c#", "c", "and", "f#", "f"]),
        ("node.js 3.11", ["node.js", "node", "js", "3.11", "3", "11"]),
        ("don't John's l'état", ["don", "john", "etat"]),
        ("Élan Straße ПРИВЕТ", ["elan", "strasse", "привет"]),
        ("日本語の", ["日本", "本語", "語の", "の"]),
        ("東", ["東"]),
        ("Python入門", ["python", "入門", "門"]),
        ("", []),
        ("?! — ...", []),
        ("'quoted' end. #tag... (a.b.c) x+y+", ["quoted", "end", "tag", "a.b.c", "a", "b", "c", "x+y", "x", "y"]),
    ],
)
def test_words_identifiers_and_scripts_become_terms(text: str, expected: list[str]) -> None:
    assert extract_terms(text) == expected


def test_a_question_is_asked_without_the_words_every_text_has_unless_there_are_no_others() -> None:
    assert question_terms("What is the capital of France, France?") == ["capital", "france"]
    assert question_terms("who are you") == ["who", "are", "you"]


def test_an_index_stores_and_is_asked_for_the_roots_of_terms() -> None:
    assert join_roots("Who wrote running tests? Книги 日本").split() == ["who", "write", "run", "test", "книг", "日本", "本"]
    assert question_roots("who writes and wrote the running test?") == ["write", "run", "test"]


def test_folding_makes_forms_of_one_letter_one() -> None:
    assert [fold_text(t) for t in ("ﬁn", "Ａ", "İ", "e\u0301")] == ["fin", "a", "i", "e"]


def test_quotes_and_dashes_of_print_part_words_as_those_of_a_keyboard_do() -> None:
    plain = 'it\'s the "Moon" - tide ... and cafe a.b'
    assert join_roots("it’s the “Moon”—tide… and café\u00a0a.b") == join_roots(plain)
    assert extract_terms("«Œuvre»—l’été·x") == ["œuvre", "ete", "x"]
