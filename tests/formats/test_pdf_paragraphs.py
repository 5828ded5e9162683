"""Paragraphs of a PDF: more space than between the lines of a paragraph parts two, and nothing else changes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from nexi.formats._pdf_layout import part_paragraphs


@dataclass(frozen=True)
class Line:
    bottom: float
    top: float
    first: int


def place_lines(lines: list[tuple[str, float]], mark: str = "\r\n") -> tuple[str, list[Line]]:
    """A text of lines of 12 points, each with the space above it."""
    text, placed, at = "", [], 800.0
    for words, space in lines:
        at -= space
        placed.append(Line(at - 12, at, len(text)))
        text, at = f"{text}{words}{mark}", at - 12
    return text, placed


def test_a_heading_stands_apart_from_the_paragraph_below_it() -> None:
    text, lines = place_lines(
        [("Tides", 0), ("High water is", 20), ("at noon.", 2), ("Conclusion", 20), ("Raise the quay.", 20)]
    )
    assert part_paragraphs(text, lines).replace("\r", "").rstrip("\n").split("\n\n") == [
        "Tides",
        "High water is\nat noon.",
        "Conclusion",
        "Raise the quay.",
    ]


def test_lines_with_the_same_space_stay_together() -> None:
    text, lines = place_lines([(f"line {n}", 14) for n in range(30)])
    assert part_paragraphs(text, lines) == text


def test_a_page_of_two_lines_says_nothing_about_its_paragraphs() -> None:
    text, lines = place_lines([("Title", 0), ("Text", 90)])
    assert part_paragraphs(text, lines) == text


def test_lines_that_stand_apart_already_get_no_second_empty_line() -> None:
    text, lines = place_lines([("Title\r\n", 0), ("one", 40), ("two", 2), ("three", 2)])
    assert part_paragraphs(text, lines) == text


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="\r\n"), min_size=1), st.floats(-5, 60)), max_size=40))
def test_only_empty_lines_are_added(lines: list[tuple[str, float]]) -> None:
    text, placed = place_lines(lines, "\n")
    assert re.sub("\n+", "\n", part_paragraphs(text, placed)) == re.sub("\n+", "\n", text)
