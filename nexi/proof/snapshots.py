"""A page's stored text, prepared once so that many sentences can be compared with it cheaply.

Below `spans`, above `plain` and `terms`. The text is cut into sentences by paragraph, list item, table row, heading and line of
code, and every term knows the sentences it stands in. Work and memory are linear and capped: of a page beyond the cap the
beginning is read, and that is kept to be said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from nexi.proof.facts import Reading, read
from nexi.proof.plain import Plain, plain
from nexi.proof.terms import WORD, flat, terms
from nexi.text.sentences import sentence_bounds
from nexi.types import content_digest

MAX_CHARS = 1_500_000  # five times what a fetched page may have
MAX_READINGS = 400  # sentences kept as they were read, about 2 MB
LONGEST = 700  # characters of one sentence; longer ones are read in pieces

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_OWN_LINE = re.compile(r"\s*(?:#{1,6}\s|\||[-*+•]\s|\d{1,3}[.)]\s|\[page \d+\])")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_PAGE = re.compile(r"^\[page (\d+)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Snapshot:
    """The stored text of a page, ready to be asked. `bounds` are its sentences in `plain`, `above` the heading of each."""

    text: str
    url: str = ""
    digest: str = ""
    plain: Plain = field(default=Plain(""), repr=False, compare=False)
    bounds: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    above: tuple[int, ...] = field(default=(), repr=False, compare=False)
    places: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)
    read_chars: int = field(default=0, compare=False)
    readings: dict[tuple[int, int], Reading] = field(default_factory=dict, repr=False, compare=False)  # read closely so far

    @property
    def whole(self) -> bool:
        """Whether all of the page was read."""
        return self.read_chars >= len(self.text)

    def reading(self, index: int) -> Reading:
        """One sentence, read closely once."""
        return self.reading_between(index, index)

    def reading_between(self, first: int, last: int) -> Reading:
        """A few sentences as one, read closely once."""
        found = self.readings.get((first, last))
        if found is None:
            if len(self.readings) >= MAX_READINGS:
                self.readings.clear()
            found = self.readings[first, last] = read(self.words_between(first, last))
        return found

    def is_row(self, index: int) -> bool:
        return self.plain.text.startswith("|", self.bounds[index][0])

    def head_of(self, index: int) -> int:
        """The first row of a table, for one of its rows; else -1."""
        if not self.is_row(index):
            return -1
        while index and self.is_row(index - 1):
            index -= 1
        return index

    def words_between(self, first: int, last: int) -> str:
        """The plain text from one sentence to another, both included."""
        return self.plain.text[self.bounds[first][0] : self.bounds[last][1]]

    def stored_between(self, first: int, last: int) -> tuple[int, int]:
        """The same as offsets into the stored text."""
        start, end = self.bounds[first][0], self.bounds[last][1]
        return self.plain.stored(start), min(len(self.text), self.plain.stored(end - 1) + 1)

    def page_at(self, place: int) -> int:
        """The page of a PDF that an offset lies on, or 0."""
        marks = [(m.start(), int(m[1])) for m in _PAGE.finditer(self.text)] if "[page " in self.text else []
        index = bisect_right(marks, (place, 1 << 30)) - 1
        return marks[index][1] if index >= 0 else 0


def prepare(text: str, url: str = "", digest: str = "") -> Snapshot:
    """Read a page's stored text once."""
    seen = plain(text[:MAX_CHARS])
    bounds, above = _sentences(seen.text)
    places: dict[str, list[int]] = {}
    for number, (start, end) in enumerate(bounds):
        for word in set(WORD.findall(seen.text, start, end)):
            for term in terms(word) or digits(word):
                found = places.setdefault(term, [])
                if not found or found[-1] != number:
                    found.append(number)
    return Snapshot(text, url, digest or content_digest(text), seen, bounds, above, places, min(len(text), MAX_CHARS))


def digits(word: str) -> tuple[str, ...]:
    """Bare digits are no term of a text, but they say where to look."""
    return (flat(word),) if word[0].isdecimal() else ()


def _sentences(text: str) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    bounds: list[tuple[int, int]] = []
    above: list[int] = []
    heading = -1
    for start, end, is_heading in _blocks(text):
        for first, last in sentence_bounds(text[start:end], LONGEST):
            above.append(heading)
            bounds.append((start + first, start + last))
        if is_heading and bounds:
            heading = len(bounds) - 1
    return tuple(bounds), tuple(above)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Paragraphs, and lines that stand alone: headings, items, rows, code."""
    held = -1
    fenced = False
    for line in _LINE.finditer(text):
        start, end = line.span()
        alone = fenced or _OWN_LINE.match(text, start, end)
        mark = _FENCE.match(text, start, end)
        if held >= 0 and (alone or mark or not line[0].strip()):
            yield held, start, False
            held = -1
        if mark:
            fenced = not fenced
        elif fenced or (alone and not _is_item(text, start)):
            yield start, end, bool(_HEADING.match(text, start, end)) and not fenced
        elif line[0].strip():
            held = start if held < 0 or alone else held
    if held >= 0:
        yield held, len(text), False


def _is_item(text: str, start: int) -> bool:
    """List items may go on over several lines; headings and rows do not."""
    return not re.match(r"\s*[#|\[]", text[start : start + 40])
