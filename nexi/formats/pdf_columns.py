"""Two columns of a PDF whose words were written line by line across both: each column is read by itself.

Above sits `pdf_tables`, which finds the lines of a page; below, nothing. A page that was written column by column needs none of
this. Lines of prose on both sides of the same gutter are two columns; what is in doubt stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexi.formats.pdf_tables import TextLine

__all__ = ["order_columns"]

MIN_LINES = 4  # across both columns, one after the other
MIN_CELL_CHARS = 16  # on average; cells of a table are shorter
MIN_LETTERS = 0.7  # of the characters


def order_columns(text: str, lines: Sequence[TextLine]) -> str:
    """The text of a page with its left column before its right one, wherever lines run across both."""
    parts: list[str] = []
    end = 0
    for run, gutter in _find_runs(lines):
        first, last = min(line.words[0].first for line in run), max(word.last for line in run for word in line.words)
        left, right = ([c.text for line in run for c in line.cells if (c.left > gutter) == side] for side in (False, True))
        parts += [text[end:first], "\n".join(left), "\n\n", "\n".join(right)]
        end = last
    return "".join([*parts, text[end:]])


def _find_runs(lines: Sequence[TextLine]) -> Iterator[tuple[list[TextLine], float]]:
    """Lines of prose one after the other that leave the same space free, and where it begins."""
    run: list[TextLine] = []
    left_end, right_start = 0.0, 0.0  # of the two columns
    for line in lines:
        first, last, count = line.cells[0], line.cells[-1], len(line.cells)
        if run and count == 2:
            sides = max(left_end, first.right), min(right_start, last.left)
        elif run and count == 1 and first.right < right_start:
            sides = max(left_end, first.right), right_start
        elif run and count == 1 and first.left > left_end:
            sides = left_end, min(right_start, first.left)
        else:
            sides = 0.0, 0.0  # it stands across both
        if sides[0] >= sides[1]:
            if _is_prose(run):
                yield run, left_end
            run = []
            if count != 2:
                continue
            sides = first.right, last.left
        run.append(line)
        left_end, right_start = sides
    if _is_prose(run):
        yield run, left_end


def _is_prose(run: Sequence[TextLine]) -> bool:
    both = [line.cells for line in run if len(line.cells) == 2]
    if len(both) < MIN_LINES:
        return False
    texts = [[cells[side].text for cells in both] for side in (0, 1)]
    letters = sum(map(str.isalpha, "".join(map("".join, texts)).replace(" ", "")))
    chars = sum(len(cell.replace(" ", "")) for side in texts for cell in side)
    return letters >= MIN_LETTERS * chars and all(fmean(map(len, side)) >= MIN_CELL_CHARS for side in texts)
