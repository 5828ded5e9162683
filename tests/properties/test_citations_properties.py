"""What holds of every text: nothing is lost in the stream, no marker is split, unknown ones never survive, code stays."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nexi.answers.citations import (
    CitationBook,
    SentenceStream,
    add_citations_to_answer,
    drop_unknown,
    extract_citation_markers,
    normalise_markers,
    strip_sources_section,
)

PIECES = [
    "Fact", " ", ". ", ".", "! ", "\n", "\n\n", "[1]", "[2]", "[9]", "[1, 2]", "[^3]", "【4†x】", "[[5]]", "[", "]",
    "`", "```", "\n```\n",
    "(u)", "- ", "1. ", "| ", "Sources:", "\nSources:\n", "[1] https://a.example\n", "e.g. ", "。",
    "9", "\u2028", "\r\n", "***", "---",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


@given(texts, st.lists(st.integers(0, 9), max_size=30))
def test_the_stretches_joined_are_the_text(text: str, sizes: list[int]) -> None:
    stream = SentenceStream()
    out = [stretch for piece in cut(text, sizes) for stretch in stream.feed(piece)]
    assert "".join(out) + stream.finish() == text
    assert "" not in out


@given(texts, st.lists(st.integers(1, 9), max_size=30))
def test_how_the_text_arrives_changes_nothing(text: str, sizes: list[int]) -> None:
    whole, pieces = SentenceStream(), SentenceStream()
    at_once = [*whole.feed(text), whole.finish()]
    assert [*(s for piece in cut(text, sizes) for s in pieces.feed(piece)), pieces.finish()] == at_once


@given(texts)
def test_no_marker_is_split(text: str) -> None:
    stream = SentenceStream()
    out = [*stream.feed(text), stream.finish()]
    assert sum(len(re.findall(r"\[[0-9]+\]", stretch)) for stretch in out) == len(re.findall(r"\[[0-9]+\]", text))


@given(texts, st.sets(st.integers(1, 9)))
def test_after_dropping_every_marker_names_a_source(text: str, known: set[int]) -> None:
    clean, dropped = drop_unknown(text, known)
    linked = {int(n) for n in re.findall(r"\[([0-9]+)\]\(", clean)}
    assert extract_citation_markers(clean) <= known | linked
    assert not dropped & known
    assert drop_unknown(clean, known)[0] == clean


@given(texts)
def test_normal_text_is_not_changed_again(text: str) -> None:
    once = normalise_markers(text)
    assert extract_citation_markers(text) <= extract_citation_markers(once) | {int(n) for n in re.findall(r"[0-9]+", text)}
    plain = re.sub(r"[\[\]【】()^`~]", "", once)
    assert normalise_markers(plain) == plain


@given(texts)
def test_stripping_takes_only_from_the_end(text: str) -> None:
    stripped = strip_sources_section(text)
    assert text.startswith(stripped)
    assert strip_sources_section(stripped) == stripped or len(strip_sources_section(stripped)) < len(stripped)


@given(texts)
def test_a_list_is_added_at_most_once(text: str) -> None:
    urls = {n: f"https://a.example/{n}" for n in range(1, 10)}
    once = add_citations_to_answer(text, urls)
    assert add_citations_to_answer(once, urls) == once


@given(st.lists(st.text(max_size=3), max_size=30))
def test_numbers_are_stable_and_without_holes(urls: list[str]) -> None:
    book = CitationBook(key=str.casefold)
    given_numbers = {url: book.number_for(url).number for url in urls}
    assert [source.number for source in book.sources] == list(range(1, len({u.casefold() for u in urls}) + 1))
    assert {url: book.number_for(url).number for url in reversed(urls)} == given_numbers
    assert {url: CitationBook(str.casefold, book.sources).number_for(url).number for url in urls} == given_numbers
