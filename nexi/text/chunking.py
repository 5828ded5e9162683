"""Markdown cut into chunks that can be found and read alone.

Above it are indexing and `excerpts`; below it, nothing. It knows neither stores nor models. Chunks are spans of the text, in
order and without holes, so joining the spans gives the text back. A closed code fence is never cut; other text is cut between
blocks, then lines, then sentences, then words, and inside a word only when nothing else is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

SIZE = 1_200
LEAST_SHARE = 0.4  # a heading closes a chunk once it is this full; smaller sections share one
MAX_FENCE = 100_000  # a longer one is a file, not an example, and is cut between its lines
MAX_HEADING = 200
MAX_UNCLOSED = 20

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*([^\s`{]*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*#*[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_LINE_END = re.compile(r"\n+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_`]*\s+|[。！？]+\s*")
_SPACE = re.compile(r"\s+")
_LEVELS = (_LINE_END, _SENTENCE_END, _SPACE)


class TextChunk(Struct, frozen=True):
    """A chunk of one text: its span, the headings it stands under, and the languages of its code fences."""

    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    has_code: bool = False


class _Block(Struct, frozen=True):
    """A run of lines that belong together, with what follows it up to the next block."""

    start: int
    end: int
    kind: str = "prose"
    level: int = 0
    label: str = ""


def chunk_markdown(text: str, size: int = SIZE, *, max_fence: int = MAX_FENCE) -> list[TextChunk]:
    """The chunks of a text; none is longer than `size` except a code fence that is longer itself."""
    if size < 1:
        raise ValueError(f"a chunk size of {size} cannot hold anything")
    packer = _Packer(text, size, max_fence)
    for block in _split_blocks(text):
        packer.add(block)
    packer.flush()
    return packer.pieces


def heading_path(headings: Sequence[str]) -> str:
    """The headings above a chunk on one line."""
    return " > ".join(headings)


def headings_of(text: str) -> list[str]:
    """Every heading of a text, in order."""
    return [b.label for b in _split_blocks(text) if b.kind == "heading" and b.label]


def code_languages(text: str) -> list[str]:
    """The languages that the closed code fences of a text name, each once."""
    return list(count_code_blocks(text))


def count_code_blocks(text: str) -> Counter[str]:
    """The closed code fences of a text by the language they name."""
    return Counter(b.label for b in _split_blocks(text) if b.kind == "fence" and b.label)


# --- packing


class _Packer:
    """Puts blocks together as long as they fit, and knows the headings that hold where each chunk begins."""

    def __init__(self, text: str, size: int, max_fence: int) -> None:
        self.pieces: list[TextChunk] = []
        self._text = text
        self._size = size
        self._max_fence = max_fence
        self._held: list[_Block] = []
        self._path: list[tuple[int, str]] = []
        self._under: tuple[str, ...] = ()

    def add(self, block: _Block) -> None:
        if block.kind == "heading" and self._is_full_enough(block):
            self.flush()
        if self._length_with(block) > self._size:
            self._flush_but_headings()
        if block.kind == "heading":
            _enter_heading(self._path, block)
        if all(b.kind == "heading" for b in self._held):
            self._under = tuple(label for _, label in self._path)
        if self._length_with(block) <= self._size:
            self._held.append(block)
        elif block.kind == "fence" and block.end - block.start <= self._max_fence:
            self.flush()
            self._held = [block]
        else:
            self._add_in_parts(block)

    def flush(self) -> None:
        if self._held:
            piece = _build_chunk(self._text, self._held, self._under)
            self.pieces += [piece] if piece.text else []
        self._held = []

    def _flush_but_headings(self) -> None:
        """A heading at the end of a chunk goes with what it announces."""
        at = len(self._held)
        while at and self._held[at - 1].kind == "heading":
            at -= 1
        self._held, announcing = self._held[:at], self._held[at:]
        self.flush()
        self._held = announcing

    def _add_in_parts(self, block: _Block) -> None:
        start = self._held[0].start if self._held else block.start
        for begin, end in _split_span(self._text, start, block.end, self._size, 0):
            self._held = [_Block(begin, end, block.kind, 0, block.label)]
            if end < block.end:
                self.flush()

    def _length_with(self, block: _Block) -> int:
        return _chunk_length(self._text, self._held[0].start if self._held else block.start, block.end)

    def _is_full_enough(self, block: _Block) -> bool:
        begins = self._held[0].start if self._held else block.start
        return _chunk_length(self._text, begins, block.start) >= self._size * LEAST_SHARE


def _enter_heading(path: list[tuple[int, str]], heading: _Block) -> None:
    while path and path[-1][0] >= heading.level:
        path.pop()
    if heading.label:
        path.append((heading.level, heading.label))


def _chunk_length(text: str, start: int, end: int) -> int:
    """How long a chunk of this span would be: what is white at its end does not count."""
    while end > start and text[end - 1].isspace():
        end -= 1
    return end - start


def _build_chunk(text: str, held: Sequence[_Block], under: tuple[str, ...]) -> TextChunk:
    start, end = held[0].start, held[-1].end
    fences = [b for b in held if b.kind == "fence"]
    languages = tuple(dict.fromkeys(b.label for b in fences if b.label))
    return TextChunk(start, end, text[start:end].strip("\n").rstrip(), under, languages, bool(fences))


# --- cutting what is too long


def _split_span(text: str, start: int, end: int, size: int, level: int) -> list[tuple[int, int]]:
    if _chunk_length(text, start, end) <= size:
        return [(start, end)]
    if level == len(_LEVELS):
        return [(at, min(at + size, end)) for at in range(start, end, size)]
    out: list[tuple[int, int]] = []
    for unit_start, unit_end in _split_units(text, start, end, _LEVELS[level]):
        if _chunk_length(text, unit_start, unit_end) > size:
            out += _split_span(text, unit_start, unit_end, size, level + 1)
        elif out and _chunk_length(text, out[-1][0], unit_end) <= size:
            out[-1] = (out[-1][0], unit_end)
        else:
            out.append((unit_start, unit_end))
    return out


def _split_units(text: str, start: int, end: int, boundary: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    at = start
    for match in boundary.finditer(text, start, end):
        if match.end() > at:
            yield at, match.end()
            at = match.end()
    if at < end:
        yield at, end


# --- blocks


def _split_blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text; together they cover all of it."""
    lines = list(_line_spans(text))
    closing = _closing_fences(text, lines)
    at = begin = 0
    while at < len(lines):
        kind, after, level, label = _block_at(text, lines, at, closing)
        while after < len(lines) and not text[slice(*lines[after])].strip():
            after += 1
        end = lines[after][0] if after < len(lines) else len(text)
        yield _Block(begin, end, kind, level, label)
        at, begin = after, end


def _line_spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield at, end
        at = end


def _block_at(
    text: str, lines: Sequence[tuple[int, int]], at: int, closing: dict[int, tuple[int, str]]
) -> tuple[str, int, int, str]:
    """(kind, the line after it, heading level, heading or language) of the block that begins at a line."""
    if at in closing:
        last, language = closing[at]
        return "fence", last + 1, 0, language
    line = text[slice(*lines[at])].rstrip("\n")
    if heading := _ATX.match(line):
        return "heading", at + 1, len(heading[1]), " ".join((heading[2] or "").split())[:MAX_HEADING]
    if line.strip() and at + 1 < len(lines) and (under := _SETEXT.match(text[slice(*lines[at + 1])].rstrip("\n"))):
        return "heading", at + 2, 1 if under[1][0] == "=" else 2, " ".join(line.split())[:MAX_HEADING]
    after = at + 1
    while after < len(lines) and _goes_on(text[slice(*lines[after])], after, closing):
        after += 1
    return "prose", after, 0, ""


def _goes_on(line: str, number: int, closing: dict[int, tuple[int, str]]) -> bool:
    """Whether a line belongs to the paragraph, list or table above it."""
    return bool(line.strip()) and number not in closing and not _ATX.match(line.rstrip("\n"))


def _closing_fences(text: str, lines: Sequence[tuple[int, int]]) -> dict[int, tuple[int, str]]:
    """For each line that opens a fence: the line that closes it, and the language.

    An unclosed fence is plain text, and what follows it is looked at again, a bounded number of times.
    """
    fences: dict[int, tuple[int, str]] = {}
    start = 0
    for _ in range(MAX_UNCLOSED):
        opened = _scan_fences(text, lines, start, fences)
        if opened is None:
            break
        start = opened + 1
    return fences


def _scan_fences(text: str, lines: Sequence[tuple[int, int]], first: int, fences: dict[int, tuple[int, str]]) -> int | None:
    """Note the closed fences from a line on; the line of one left open, if there is one."""
    opened: tuple[int, str, str] | None = None
    for number in range(first, len(lines)):
        start, end = lines[number]
        found = _FENCE.match(text, start, end)
        if found is None:
            continue
        if opened is None:
            opened = (number, found[1], found[2].lower())
        elif found[1][0] == opened[1][0] and len(found[1]) >= len(opened[1]) and not text[found.end(1) : end].strip():
            fences[opened[0]] = (number, opened[2])
            opened = None
    return opened[0] if opened else None
