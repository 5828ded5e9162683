"""The footnotes of an HTML report become citations, with a list of the addresses that they name."""

from __future__ import annotations

import pytest

from nexi.formats import extract

WORDS = "This paragraph is long enough to be the main part of a page that has little else to say about anything at all."


def text_of(mark: str, notes: str) -> str:
    page = f"<html><body><article><h1>Report</h1><p>A is B.{mark}</p><p>{WORDS}</p></article>{notes}</body></html>"
    return extract(page, "text/html", "https://r.example/report", cites_notes=True).text


@pytest.mark.parametrize(
    ("mark", "notes"),
    [
        ('<sup><a href="#n1">1</a></sup>', '<ol><li id="n1">T <a href="https://a.example/x">link</a></li></ol>'),
        ('<a href="#n1">[1]</a>', '<ol><li><span id="n1"></span>T https://a.example/x</li></ol>'),
        ('<a href="https://a.example/x">[1]</a>', ""),
        ('<a href="#n*">*</a>', '<p id="n*"><a href="https://a.example/x">link</a></p>'),
    ],
    ids=["list", "place inside a note", "number that is a link", "star"],
)
def test_a_mark_is_a_citation_of_what_its_note_names(mark: str, notes: str) -> None:
    text = text_of(mark, notes)
    assert "A is B.[1]" in text
    assert "link" not in text  # the note itself says nothing
    assert text.endswith("Sources:\n[1] https://a.example/x")


@pytest.mark.parametrize(
    "mark",
    ['<a href="#part">2</a>', '<a href="#nowhere">2</a>', '<a href="#body">more</a>'],
    ids=["section", "nowhere", "words"],
)
def test_a_link_to_a_place_that_is_no_note_is_no_citation(mark: str) -> None:
    section = f'<section id="part"><p>{WORDS * 20} <a href="https://a.example/x">link</a></p></section>'
    assert "Sources:" not in text_of(mark, section)


def test_two_notes_of_one_address_are_one_source_and_numbers_stay() -> None:
    notes = "".join(f'<p id="n{n}"><a href="https://{host}.example/">x</a></p>' for n, host in ((3, "a"), (4, "b"), (5, "a")))
    text = text_of('<a href="#n3">3</a><a href="#n4">4</a><a href="#n5">5</a>', notes)
    assert "[3][4][3]" in text
    assert text.endswith("Sources:\n[3] https://a.example/\n[4] https://b.example/")
