"""Stored Markdown as typed blocks: the one parser for everything that cuts, ranks, quotes or checks a text.

Above sit chunking, the built-in model and the check; below, nothing. `docs/stored-text.md` has the rules of the Markdown that
nexi stores. Blocks stand in the order of the text and do not overlap; between them are only line ends and blanks. A line of
text never becomes two blocks, and a closed code fence is always one. Work is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

MAX_HEADING_CHARS = 200
MAX_UNCLOSED_FENCES = 20  # after which the text is looked at again

BlockKind = Literal["heading", "prose", "item", "caption", "head", "row", "code", "formula", "note", "mark", "rule"]

_FENCE = re.compile(r"\n(?:[ \t>]*(`{3,}|~{3,})[ \t]*([^\s`{]*)([^\n]*)|\[parts? \d[^\n]*\]$)", re.MULTILINE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_LINE = re.compile(
    r"(?P<blank>\s*$)"
    r"|(?P<heading> {0,3}#{1,6}(?![^ \t]))"
    r"|(?P<rule>[ \t>]*+(?:=++[ \t]*+|(?=[^\n]*--)[:|+ \t-]++|(?:[-*_=][ \t]*+){3,}+|(?:`{3,}|~{3,})[^`\n]*+)$)"
    r"|(?P<row>[ \t>]*\|)"
    r"|(?P<item>[ \t>]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S)"
    r"|(?P<note>[ \t>]*\[\^[^\]\s]{1,40}\]:)"
    r"|(?P<mark>\[(?:page|parts?) \d[^\n]*\][ \t]*$)"
)
_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+[:|+ \t-]*(?:\n|\Z)")
_MARKER = re.compile(r"([ \t>]*)([-*+•]|\d{1,3}[.)])[ \t]+")
_FIGURE = re.compile(r"(?!(?:1\d|20)\d\d$)[(+−-]?[$€£¥]?-?\d(?:[\d.,'\u00a0 ]*\d%?|%)\)?")  # a year may name a column

_CELL_END = re.compile(r"(?<!\\)\|")
_CAPTION = re.compile(r"([*_])(?![*_\s])[^\n]{1,500}(?<![*_\s])\1")
_TABLE_BELOW = re.compile(r"\s{1,9}\|")
_PREFIX = re.compile(r"^[ \t>]+", re.MULTILINE)


class Block(Struct, frozen=True):
    """One block and its place: `start` and `end` are offsets into the text, without the line end."""

    # `trail` has the headings above. `level` is of a heading, or the indent of an item; `heads` names the columns of a row.

    kind: BlockKind
    start: int
    end: int
    trail: tuple[str, ...] = ()
    level: int = 0
    label: str = ""
    heads: tuple[str, ...] = ()


def parse_blocks(text: str) -> Iterator[Block]:
    """The blocks of a text, in order; a fence that is never closed is a rule, and what follows it is read like other text."""
    return _Parser(text).parse()


def read_block(text: str, block: Block) -> str:
    """What a block of a text says: without the marks of headings, items and quotations, and code without its fence."""
    body = text[block.start : block.end]
    if block.kind == "heading":
        line, _, underline = body.partition("\n")
        return line.strip() if underline else _read_title(line)
    if block.kind == "code":
        return body.partition("\n")[2].rpartition("\n")[0]
    if block.kind == "item":
        marker = _MARKER.match(body)
        body = body[marker.end() :] if marker else body
    return _PREFIX.sub("", body)


def list_cells(row: str) -> tuple[str, ...]:
    """The cells of a row, empty ones too."""
    cells = _CELL_END.split(row.strip(" \t>"))
    first, last = not cells[0].strip(), len(cells) > 1 and not cells[-1].strip()
    return tuple(cell.strip().replace("\\|", "|") for cell in cells[first : len(cells) - last])


def _read_title(line: str) -> str:
    """A heading without its number signs; those at its end stay where they touch a word: C#."""
    title = line.strip().lstrip("#").strip()
    words = title.rstrip("#")
    return title if words and not words[-1].isspace() else words.rstrip()


class _Parser:
    """One pass over the lines of a text. What is open, a paragraph, an item or a note, takes the lines that go on with it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = _find_fences(text)
        self._outline: list[tuple[int, str]] = []
        self._trail: tuple[str, ...] = ()
        self._heads: tuple[str, ...] | None = None  # of the open table
        self._open: BlockKind | None = None
        self._start = self._end = self._level = 0
        self._delimiter = -1  # where the line under the head of the open table begins
        self._label = ""

    def parse(self) -> Iterator[Block]:
        at, size = 0, len(self._text)
        while at < size:
            end = self._text.find("\n", at)
            end = size if end < 0 else end
            if at in self._fences:
                kind, end = "code", self._fences[at][0]
            elif at == self._delimiter:
                kind = "rule"
            elif match := None if self._text[at].isalpha() else _LINE.match(self._text, at, end):
                kind = match.lastgroup or ""
            else:
                kind = "row" if self._heads and not self._open and self._text.find("|", at, end) >= 0 else ""
            if not kind:  # words, which go on with what is open
                if not self._open:
                    self._open, self._start, self._level, self._label, self._heads = "prose", at, 0, "", None
                self._end = end
            elif kind == "rule" and (heading := self._read_underlined(at, end)):
                yield heading
            else:
                if self._open:
                    yield self._close(self._open)
                if kind not in ("row", "rule"):
                    self._heads = None
                if block := self._begin(kind, at, end):
                    yield block
            at = end + 1
        if self._open:
            yield self._close(self._open)

    def _begin(self, kind: str, at: int, end: int) -> Block | None:
        """The block of a line, or None where it is open now, and for a line of blanks."""
        match kind:
            case "row" if self._heads is not None:
                return Block("row", at, end, self._trail, heads=self._heads)
            case "row":
                self._delimiter = end + 1 if _DELIMITER.match(self._text, end + 1) else -1
                cells = list_cells(self._text[at:end]) if self._delimiter > 0 else ()
                is_head = bool(cells) and not any(map(_FIGURE.fullmatch, cells))
                self._heads = cells if is_head else ()
                return Block("head" if is_head else "row", at, end, self._trail, heads=self._heads)
            case "item" if marker := _MARKER.match(self._text, at, end):
                self._open, self._start, self._end = "item", at, end
                self._level, self._label = len(marker[1]), marker[2]
            case "note":
                self._open, self._start, self._end, self._level, self._label = "note", at, end, 0, ""
            case "heading" if mark := _HEADING.match(self._text, at, end):
                return self._enter_heading(at, end, len(mark[1]), _read_title(self._text[at:end]))
            case "mark":
                if self._text.startswith("[part", at):  # of an excerpt: the headings that its text stands under
                    path = self._text[at:end].rstrip(" \t]").partition(": ")[2]
                    self._outline = [(level, title) for level, title in enumerate(path.split(" > "), 1) if title]
                    self._trail = tuple(title for _, title in self._outline)
                return Block("mark", at, end, self._trail)
            case "rule":
                return Block("rule", at, end, self._trail)
            case "code":
                return Block("code", at, end, self._trail, label=self._fences[at][1])
        return None

    def _read_underlined(self, at: int, end: int) -> Block | None:
        """The line above a rule as a heading; it may also turn out to be the head of a table whose rows begin without a bar."""
        line = self._text[self._start : self._end] if self._open == "prose" else ""
        if not line or "\n" in line:
            return None
        if underline := _UNDERLINE.match(self._text, at, end):
            self._open = None
            return self._enter_heading(self._start, end, 1 if underline[1][0] == "=" else 2, line)
        if "|" in line and self._text.find("|", at, end) >= 0:
            self._open, self._heads = "head", list_cells(line)
        return None

    def _enter_heading(self, start: int, end: int, level: int, title: str) -> Block:
        label = " ".join(title.split())[:MAX_HEADING_CHARS]
        while self._outline and self._outline[-1][0] >= level:
            self._outline.pop()
        above = tuple(title for _, title in self._outline)
        self._outline += [(level, label)] if label else []
        self._trail = (*above, label) if label else above
        return Block("heading", start, end, above, level, label)

    def _close(self, kind: BlockKind) -> Block:
        text, start, end = self._text, self._start, self._end
        self._open = None
        if kind == "prose" and text[start] == "$":  # one formula between dollar signs and nothing else?
            sign = "$$" if text.startswith("$$", start) else "$"
            is_formula = text.endswith("$", start, end) and text.find(sign, start + len(sign), end) == end - len(sign) > start
            kind = "formula" if is_formula else kind
        elif kind == "prose" and _CAPTION.fullmatch(text, start, end):
            kind = "caption" if _TABLE_BELOW.match(text, end) else kind
        heads = (self._heads or ()) if kind == "head" else ()
        return Block(kind, start, end, self._trail, self._level, self._label, heads)


def _find_fences(text: str) -> dict[int, tuple[int, str]]:
    """For each place where a closed fence begins: where it ends, and its language."""
    # One that is never closed is none, and none reaches from one part of an excerpt into the next.
    fences: dict[int, tuple[int, str]] = {}
    if "```" not in text and "~~~" not in text:
        return fences
    marks = list(_FENCE.finditer(f"\n{text}"))  # a search for line ends is faster than one that tries every place
    first = 0
    for _ in range(MAX_UNCLOSED_FENCES):
        opening: re.Match[str] | None = None
        for number in range(first, len(marks)):
            mark = marks[number]
            if mark[1] is None and opening is None:
                continue
            if opening is None:
                opening, first = mark, number + 1
            elif mark[1] is None:
                break
            elif mark[1].startswith(opening[1]) and not (mark[2] or mark[3].strip()):
                fences[opening.start()] = (mark.end() - 1, opening[2].lower())
                opening = None
        if opening is None:
            break
    return fences
