"""Paragraphs of a PDF by the space between its lines: a PDF has lines only, and a heading must not run into a sentence. Pure.

Above sits `pdf_tables`, which knows where the lines of a page stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexi.formats.pdf_tables import TextLine

__all__ = ["part_paragraphs"]

WIDER = 0.4  # of the height of a line; so much more space than between the lines of a paragraph parts two
MIN_LINES = 3


def part_paragraphs(text: str, lines: Sequence[TextLine]) -> str:
    """The text with an empty line wherever two lines have more space between them than the lines of a paragraph have."""
    if len(lines) < MIN_LINES:
        return text
    gaps = [above.bottom - below.top for above, below in pairwise(lines)]
    usual = sorted(gaps)[len(gaps) // 8]  # most lines of a page may be paragraphs of their own
    enough = usual + WIDER * median(line.top - line.bottom for line in lines)
    places = [line.first for line, gap in zip(lines[1:], gaps, strict=True) if gap > enough]
    begins = [n for n in places if n > 0 and text[n - 1] == "\n" and not text[:n].endswith(("\n\n", "\n\r\n"))]
    places = [0, *sorted(begins), len(text)]
    return "\n".join(text[start:end] for start, end in pairwise(places))
