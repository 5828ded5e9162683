"""How the text of a PDF page reads by where its words stand: raised figures, two columns, and paragraphs. Pure.

Above sit `pdf` and `pdf_tables`, which finds the lines; below, `notation` says how figures are written. A PDF has no columns
and no paragraphs, only words at places; what is in doubt stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import fmean, median

from nexi.extract import notation

Box = tuple[float, float, float, float]  # left, bottom, right, top

MAX_FIGURES = 5_000  # of a page that are looked at
MAX_SCRIPT_SIZE = 0.85  # of what stands before it
MIN_SHIFT = 0.2  # of a script's middle, up or down, as a share of the height of what stands before it
MAX_GAP = 0.4  # between the two, likewise
MIN_COLUMN_LINES = 4  # across both columns, one after the other
MIN_CELL_CHARS = 16  # on average; cells of a table are shorter
MIN_LETTERS = 0.7  # of the characters
MIN_PARAGRAPH_LINES = 3
WIDER = 0.4  # of the height of a line; so much more space than between the lines of a paragraph parts two

# Up to two digits behind a letter, a bracket or a ten could be an exponent, an index or the mark of a note.
_FIGURE = re.compile(r"(?P<base>(?<![\d.,])10|[^\W\d_]|\))(?: |\r\n)?(?P<script>[−–-]?\d{1,2})(?!\d)(?P<after>\r\n ?(?=\S))?")


@dataclass(frozen=True, slots=True)
class TextCell:
    """Words beside one another; `first` and `last` are where they stand in the text of the page."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    first: int
    last: int

    @property
    def height(self) -> float:
        return self.top - self.bottom

    def join(self, other: TextCell, space: str = " ") -> TextCell:
        right, bottom, top = max(self.right, other.right), min(self.bottom, other.bottom), max(self.top, other.top)
        first, last = min(self.first, other.first), max(self.last, other.last)
        return TextCell(f"{self.text}{space}{other.text}", self.left, right, bottom, top, first, last)


@dataclass(frozen=True, slots=True)
class TextLine:
    """The cells of one line from left to right, and the words that they were made of."""

    cells: Sequence[TextCell]
    words: Sequence[TextCell]

    @property
    def bottom(self) -> float:
        return min(cell.bottom for cell in self.cells)

    @property
    def top(self) -> float:
        return max(cell.top for cell in self.cells)

    @property
    def first(self) -> int:
        return min(word.first for word in self.words)

    @property
    def is_row(self) -> bool:
        return len(self.cells) > 1


def mark_scripts(text: str, box_of: Callable[[int], Box]) -> tuple[str, Callable[[int], Box]]:
    """The text of a page with its raised and lowered figures as `10^23` and `H₂O`, and where its characters stand now."""
    # They are known only by their size and place: 10²³ must not become 1023.
    parts: list[str] = []
    places: list[range] = []
    at = 0
    for figure in _FIGURE.finditer(text):
        if len(parts) > MAX_FIGURES:
            break
        base, script = box_of(figure.end("base") - 1), box_of(figure.end("script") - 1)
        height, size = base[3] - base[1], script[3] - script[1]
        shift = (script[1] + script[3] - base[1] - base[3]) / 2
        is_beside = 0 <= script[2] - base[2] <= MAX_GAP * height + size * len(figure["script"])
        if not 0 < size <= MAX_SCRIPT_SIZE * height or abs(shift) < MIN_SHIFT * height or abs(shift) > height or not is_beside:
            continue
        end = figure.end("base")
        write = notation.write_raised if shift > 0 else notation.write_lowered
        mark = write("".join((*parts[-4:], text[at:end])), figure["script"])
        parts += (text[at:end], mark)
        places += (range(at, end), *[range(figure.end("script") - 1, figure.end("script"))] * len(mark))
        at = figure.end("script")
        if not figure["after"]:
            continue
        following = box_of(figure.end("after"))
        if following[0] > base[2] and abs(following[1] - base[1]) < MIN_SHIFT * height:  # a line that the script has broken
            parts.append(" " if figure["after"][-1] == " " else "")
            places += [range(figure.end("after") - 1, figure.end("after"))] * len(parts[-1])
            at = figure.end("after")
    if not parts:
        return text, box_of
    stands_at = list(chain(*places, range(at, len(text))))
    return "".join((*parts, text[at:])), lambda place: box_of(stands_at[place])


def order_columns(text: str, lines: Sequence[TextLine]) -> str:
    """The text of a page with its left column before its right one, wherever lines of prose run across both."""
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
    if len(both) < MIN_COLUMN_LINES:
        return False
    texts = [[cells[side].text for cells in both] for side in (0, 1)]
    letters = sum(map(str.isalpha, "".join(map("".join, texts)).replace(" ", "")))
    chars = sum(len(cell.replace(" ", "")) for side in texts for cell in side)
    return letters >= MIN_LETTERS * chars and all(fmean(map(len, side)) >= MIN_CELL_CHARS for side in texts)


def part_paragraphs(text: str, lines: Sequence[TextLine]) -> str:
    """The text with an empty line wherever two lines have more space between them than the lines of a paragraph have."""
    if len(lines) < MIN_PARAGRAPH_LINES:
        return text
    gaps = [above.bottom - below.top for above, below in pairwise(lines)]
    usual = sorted(gaps)[len(gaps) // 8]  # most lines of a page may be paragraphs of their own
    enough = usual + WIDER * median(line.top - line.bottom for line in lines)
    places = [line.first for line, gap in zip(lines[1:], gaps, strict=True) if gap > enough]
    begins = [n for n in places if n > 0 and text[n - 1] == "\n" and not text[:n].endswith(("\n\n", "\n\r\n"))]
    places = [0, *sorted(begins), len(text)]
    return "\n".join(text[start:end] for start, end in pairwise(places))
