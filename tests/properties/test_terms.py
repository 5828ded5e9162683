"""Terms hold for any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexi.text.terms import MAX_TERM, extract_terms, question_terms

LINES = st.text(max_size=200)


@given(LINES)
def test_terms_are_short_and_have_no_blanks_or_quotes(text: str) -> None:
    assert all(0 < len(term) <= MAX_TERM for term in extract_terms(text))
    assert not any(c.isspace() or c == '"' for term in extract_terms(text) for c in term)


@given(LINES, LINES)
def test_texts_apart_give_the_terms_of_each(first: str, second: str) -> None:
    assert extract_terms(f"{first}\n{second}") == extract_terms(first) + extract_terms(second)


@given(LINES)
def test_a_question_asks_only_for_its_own_terms_and_each_once(text: str) -> None:
    found = question_terms(text)
    assert len(set(found)) == len(found)
    assert set(found) <= set(extract_terms(text))
    assert bool(found) == bool(extract_terms(text))
