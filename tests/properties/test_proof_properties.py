"""What holds for proofs whatever they are given."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from nexi.checking.pages import prepare
from nexi.checking.rules import check_answer, check_claim
from nexi.checking.sentences import read_answer
from nexi.text.plain import plain
from nexi.types import Verdict

TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
PIECES = ["The cat ", "sat in 1990", " [1]", "[2, 3]", ". ", "\n", "```\n", "| a |", "- ", "`x[1]`", "不", "?", "[[1]]"]
MARKED = st.lists(st.sampled_from(PIECES), max_size=25)
SUBJECTS = st.sampled_from(["The tower", "Ann Hill", "The old bridge", "Oslo", "The company"])
VERBS = st.sampled_from(["opened", "was founded", "lost money", "moved to Bergen", "won a prize"])


@given(TEXT, TEXT)
def test_any_answer_and_any_page_give_verdicts_with_true_offsets(answer: str, page: str) -> None:
    stored = prepare(page)
    for claim in check_answer(f"{answer} [1].", {1: stored}).claims:
        assert f"{answer} [1]."[claim.start : claim.end] == claim.text
        for e in claim.evidence:
            assert page[e.start : e.end] == e.span
            assert 0 <= e.fit <= 1
            assert 0 <= e.presence <= 1
            assert e.reason


@given(MARKED)
def test_sentences_never_overlap_and_lie_in_order(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = read_answer(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(text[s.start : s.end] == s.text for s in found)


@given(TEXT)
def test_the_way_back_to_the_stored_text_never_goes_backwards(text: str) -> None:
    seen = plain(text)
    back = [seen.stored_place(i) for i in range(len(seen.text))]
    assert back == sorted(back)
    assert all(0 <= place <= len(text) for place in back)


@given(SUBJECTS, VERBS, st.integers(1000, 2100))
def test_a_sentence_supports_itself_and_no_other_year(subject: str, verb: str, year: int) -> None:
    page = prepare(f"Some words before. {subject} {verb} in {year}. Some words after.")
    assert check_claim(f"{subject} {verb} in {year} [1].", {1: page}).verdict is Verdict.FOUND
    assert check_claim(f"{subject} {verb} in {year + 3} [1].", {1: page}).verdict is Verdict.CONTRADICTED


@given(SUBJECTS, VERBS, st.integers(2, 999_999))
def test_a_number_is_the_same_with_and_without_separators(subject: str, verb: str, number: int) -> None:
    page = prepare(f"{subject} {verb} with {number:,} visitors that week.")
    assert check_claim(f"{subject} {verb} with {number} visitors that week.", {1: page}).verdict is Verdict.FOUND
    assert check_claim(f"{subject} {verb} with {number + 1} visitors that week.", {1: page}).verdict is Verdict.CONTRADICTED


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_rules_alone_never_call_a_claim_supported(answer: str, page: str) -> None:
    claim = check_claim(answer, {1: prepare(page)})
    assert Verdict.SUPPORTED not in (claim.verdict, *(e.verdict for e in claim.evidence))
