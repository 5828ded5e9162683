"""Markdown cut into chunks that can be found and read alone.

Above it are indexing and `excerpts`; below it, `blocks` and `sentences`. It knows neither stores nor models. Chunks are spans
of the text, in order and without holes, so joining the spans gives the text back. A closed code fence is never cut; other text
is cut between blocks, then lines, then sentences, then words, and inside a word only when nothing else is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from msgspec import Struct

from nexi.text.blocks import Block, parse_blocks
from nexi.text.sentences import sentence_bounds

SIZE = 1_200
MIN_SHARE = 0.4  # a heading closes a chunk once it is this full; smaller sections share one
MAX_LEAD_CHARS = 300  # of a paragraph that goes with the list it announces
MAX_HEAD_CHARS = 600  # of a table that is repeated where the rest of it is read alone
MAX_FENCE = 100_000  # a longer one is a file, not an example, and is cut between its lines

_ALONE = ("heading", "code")
_ANNOUNCING = ("heading", "caption")  # what goes with the text after it, as does a short paragraph that ends in a colon
_LINE_END = re.compile(r"\n+")
_SPACE = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class TextChunk(Struct, frozen=True):
    """A chunk of one text; `head` has the two lines that begin the table in whose middle the chunk begins."""

    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    has_code: bool = False
    head: str = ""


class _Unit(Struct, frozen=True):
    """What is not cut where it fits: a heading, a code fence, or a paragraph, list or table, each up to the next unit."""

    start: int
    end: int
    kind: str
    label: str = ""
    under: tuple[str, ...] = ()
    head: str = ""


def chunk_markdown(text: str, size: int = SIZE, *, max_fence: int = MAX_FENCE) -> list[TextChunk]:
    """The chunks of a text; none is longer than `size` except a code fence that is longer itself."""
    if size < 1:
        raise ValueError(f"a chunk size of {size} cannot hold anything")
    packer = _Packer(text, size, max_fence)
    firsts: list[Block] = []  # of each unit: blocks without an empty line between them are one
    end = 0
    for block in parse_blocks(text):
        if not firsts or block.kind in _ALONE or firsts[-1].kind in _ALONE or block.start > end + 1:
            firsts.append(block)
        end = block.end
    bounds = pairwise((0, *(first.start for first in firsts[1:]), len(text)))  # units cover the text
    for first, (start, end) in zip(firsts, bounds, strict=False):
        under = (*first.trail, first.label) if first.kind == "heading" and first.label else first.trail
        packer.add(_Unit(start, end, first.kind, first.label if first.kind == "code" else "", under))
    packer.flush()
    return packer.pieces


def heading_path(headings: Sequence[str]) -> str:
    """The headings above a chunk on one line."""
    return " > ".join(headings)


def ends_in_colon(text: str) -> bool:
    """Whether a text announces what follows it."""
    return text.endswith((":", "："))


def headings_of(text: str) -> list[str]:
    """Every heading of a text, in order."""
    return [b.label for b in parse_blocks(text) if b.kind == "heading" and b.label]


def count_code_blocks(text: str) -> Counter[str]:
    """The closed code fences of a text by the language they name."""
    return Counter(b.label for b in parse_blocks(text) if b.kind == "code" and b.label)


class _Packer:
    """Puts units together as long as they fit, and knows the headings that hold where each chunk begins."""

    def __init__(self, text: str, size: int, max_fence: int) -> None:
        self.pieces: list[TextChunk] = []
        self._text = text
        self._size = size
        self._max_fence = max_fence
        self._held: list[_Unit] = []
        self._under: tuple[str, ...] = ()

    def add(self, unit: _Unit) -> None:
        begins = self._held[0].start if self._held else unit.start
        if unit.kind == "heading" and _chunk_length(self._text, begins, unit.start) >= self._size * MIN_SHARE:
            self.flush()
        if self._length_with(unit) > self._size:
            # A heading, the caption of a table or "They are:" at the end of a chunk goes with what it announces.
            at = len(self._held)
            while at and self._announces(self._held[at - 1]):
                at -= 1
            self._held, announcing = self._held[:at], self._held[at:]
            self.flush()
            self._held = announcing
        if all(map(self._announces, self._held)):
            self._under = unit.under
        if self._length_with(unit) <= self._size:
            self._held.append(unit)
        elif unit.kind == "code" and unit.end - unit.start <= self._max_fence:
            self.flush()
            self._held = [unit]
        else:
            start = self._held[0].start if self._held else unit.start
            head = "\n".join(self._text[unit.start : unit.end].split("\n", 2)[:2]) if unit.kind == "head" else ""
            head = head if len(head) <= MAX_HEAD_CHARS else ""
            for begin, end in _split_span(self._text, start, unit.end, self._size, 0):
                self._held = [_Unit(begin, end, unit.kind, unit.label, head=head if begin > unit.start else "")]
                if end < unit.end:
                    self.flush()

    def flush(self) -> None:
        units, self._held = self._held, []
        text = self._text[units[0].start : units[-1].end].rstrip() if units else ""
        if text := _BLANK_LINES.sub("", text, count=1):
            fences = [unit for unit in units if unit.kind == "code"]
            languages = tuple(dict.fromkeys(unit.label for unit in fences if unit.label))
            start, end, head = units[0].start, units[-1].end, units[0].head
            self.pieces.append(TextChunk(start, end, text, self._under, languages, bool(fences), head))

    def _announces(self, unit: _Unit) -> bool:
        text = self._text[unit.start : unit.end].rstrip() if unit.kind == "prose" else ""
        return unit.kind in _ANNOUNCING or (ends_in_colon(text) and len(text) <= MAX_LEAD_CHARS)

    def _length_with(self, unit: _Unit) -> int:
        return _chunk_length(self._text, self._held[0].start if self._held else unit.start, unit.end)


def _chunk_length(text: str, start: int, end: int) -> int:
    """How long a chunk of this span would be: what is white at its end does not count."""
    while end > start and text[end - 1].isspace():
        end -= 1
    return end - start


def _split_span(text: str, start: int, end: int, size: int, level: int) -> list[tuple[int, int]]:
    if _chunk_length(text, start, end) <= size:
        return [(start, end)]
    if level == len(_CUTS):
        return [(at, min(at + size, end)) for at in range(start, end, size)]
    out: list[tuple[int, int]] = []
    for unit_start, unit_end in pairwise((start, *_CUTS[level](text, start, end), end)):
        # What is short with the white at its end need not be measured without it: there is a step for every word.
        is_long = unit_end - unit_start > size and _chunk_length(text, unit_start, unit_end) > size
        if out and level == 0:
            # A line that is a heading, or a short one that ends in a colon, is not left alone.
            line = text[slice(*out[-1])].strip()
            is_lead = "\n" not in line and len(line) <= MAX_LEAD_CHARS and (line.startswith("#") or ends_in_colon(line))
            if is_lead and _chunk_length(text, out[-1][0], unit_end) > size:
                is_long, unit_start = True, out.pop()[0]
        if is_long:
            out += _split_span(text, unit_start, unit_end, size, level + 1)
        elif out and (unit_end - out[-1][0] <= size or _chunk_length(text, out[-1][0], unit_end) <= size):
            out[-1] = (out[-1][0], unit_end)
        elif unit_end > unit_start:
            out.append((unit_start, unit_end))
    return out


# After lines, then where each sentence but the first begins, then after words.
_CUTS: tuple[Callable[[str, int, int], Iterator[int]], ...] = (
    lambda text, start, end: (match.end() for match in _LINE_END.finditer(text, start, end)),
    lambda text, start, end: (start + at for at, _ in islice(sentence_bounds(text[start:end], end - start), 1, None)),
    lambda text, start, end: (match.end() for match in _SPACE.finditer(text, start, end)),
)
