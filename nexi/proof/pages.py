"""A page's stored text, prepared once so that many sentences can be compared with it cheaply.

Below `retrieval` and `literals`, above `plain` and `terms`. The text is cut into sentences by paragraph, list item, table row,
heading and line of code, and every term knows the sentences it stands in. Work and memory are linear and capped: of a page
beyond the cap the beginning is read, and the verdict says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from nexi.proof.parsed import ParsedText, parse_text
from nexi.text.plain import Plain, fold_text, plain
from nexi.text.sentences import sentence_bounds
from nexi.text.wordforms import WORD, word_terms
from nexi.types import content_digest

MAX_CHARS = 1_500_000  # five times what a fetched page may have
MAX_PARSED = 400  # sentences kept as they were parsed, about 2 MB
MAX_SENTENCE_CHARS = 700  # longer ones are read in pieces
PREFIX_CHARS = 5

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_OWN_LINE = re.compile(r"\s*(?:#{1,6}\s|\||[-*+•]\s|\d{1,3}[.)]\s|\[page \d+\])")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_NO_ITEM = re.compile(r"\s*[#|\[]")


@dataclass(frozen=True)
class Snapshot:
    """The stored text of a page, ready to be searched. `bounds` are its sentences in `plain`, `above` the heading of each."""

    text: str
    url: str = ""
    digest: str = ""
    plain: Plain = field(default=Plain(""), repr=False, compare=False)
    bounds: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    above: tuple[int, ...] = field(default=(), repr=False, compare=False)
    places: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)
    read_chars: int = field(default=0, compare=False)
    parsed: dict[tuple[int, int], ParsedText] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether all of the page was read."""
        return self.read_chars >= len(self.text)

    @cached_property
    def folded_text(self) -> str:
        """The plain text in one spelling and without case."""
        return fold_text(self.plain.text).casefold()

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(term[:PREFIX_CHARS] for term in self.places)

    def has_prefix(self, term: str) -> bool:
        """Whether some word of the page begins as this term does: Norway, Norwegian."""
        return term[:PREFIX_CHARS] in self._prefixes

    def parse_between(self, first: int, last: int) -> ParsedText:
        """The sentences from one to another as one text, each stretch parsed once."""
        found = self.parsed.get((first, last))
        if found is None:
            if len(self.parsed) >= MAX_PARSED:
                self.parsed.clear()
            found = self.parsed[first, last] = parse_text(self.words_between(first, last))
        return found

    def is_row(self, index: int) -> bool:
        return self.plain.text.startswith("|", self.bounds[index][0])

    def head_of_table(self, index: int) -> int:
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
        return self.plain.stored_place(start), min(len(self.text), self.plain.stored_place(end - 1) + 1)


def prepare(text: str, url: str = "", digest: str = "") -> Snapshot:
    """Read a page's stored text once."""
    seen = plain(text[:MAX_CHARS])
    bounds, above = _find_sentences(seen.text)
    places: dict[str, list[int]] = {}
    for number, (start, end) in enumerate(bounds):
        for word in set(WORD.findall(seen.text, start, end)):
            for term in word_terms(word):
                found = places.setdefault(term, [])
                if not found or found[-1] != number:
                    found.append(number)
    return Snapshot(text, url, digest or content_digest(text), seen, bounds, above, places, min(len(text), MAX_CHARS))


def _find_sentences(text: str) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    bounds: list[tuple[int, int]] = []
    above: list[int] = []
    heading = -1
    for start, end, is_heading in _find_blocks(text):
        for first, last in sentence_bounds(text[start:end], MAX_SENTENCE_CHARS):
            above.append(heading)
            bounds.append((start + first, start + last))
        if is_heading and bounds:
            heading = len(bounds) - 1
    return tuple(bounds), tuple(above)


def _find_blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Paragraphs, and lines that stand alone: headings, items, rows, code. List items may go on over several lines."""
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
        elif fenced or (alone and _NO_ITEM.match(text, start, start + 40)):
            yield start, end, bool(_HEADING.match(text, start, end)) and not fenced
        elif line[0].strip():
            held = start if held < 0 or alone else held
    if held >= 0:
        yield held, len(text), False
