"""Markdown written block by block, up to a number of characters: headings, paragraphs, lists, tables, code.

Above sit the readers of documents, which call it as they meet the parts of one; below, `words`. It keeps only the text it has
written and the first rows of a table, so a document may be larger than memory likes. What does not fit ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress, count

from msgspec.structs import replace

from nexi.errors import FetchError
from nexi.extract import Extracted, read_outline

MAX_COLUMNS = 256
MAX_CELL_CHARS = 20_000
MAX_LIST_DEPTH = 8
MAX_UNWRITTEN_CHARS = 1_000_000  # of paragraphs without an end
LOOKAHEAD_ROWS = 64  # the columns that a table uses are known after these
TABLE_CHARS = 1_000  # after so many the header is written again, so that a passage of a long table can be read alone
MAX_REPEATED_HEADER = 300
MAX_TITLE_ROWS = 3
MIN_HEADS = 2  # cells that make a row a head
MIN_ROWS_OF_TWO_HEADS = 3

_FIGURE = re.compile(r"(?!(?:19|20)\d\d$)[(+−-]?[$€£¥]?-?\d[\d.,' ]*%?\)?")
_FENCES = re.compile(r"`{3,}")


class EnoughText(Exception):  # noqa: N818 - it ends the reading and is no error
    """As much was written as may be."""


class MarkdownWriter:
    """Writes at most `max_chars`; `truncated` says that there was more. A block of it ends where enough was written."""

    def __init__(self, max_chars: int) -> None:
        self.truncated = False
        self._max_chars = self._left = max_chars
        self._unwritten = max_chars + MAX_UNWRITTEN_CHARS
        self._parts: list[str] = []
        self._markers: list[str] = []  # of the open lists
        self._table = _Table(self)

    def __enter__(self) -> MarkdownWriter:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        return isinstance(error, EnoughText)

    def markdown(self) -> str:
        """All that was written."""
        with suppress(EnoughText):
            self._table.close()
        return "".join(self._parts)

    def build_extracted(self, about: dict[str, str]) -> Extracted:
        """What was written, and what the document says of itself by the names of `Extracted`. Raises FetchError for no text."""
        text = self.markdown()
        if not text.strip():
            raise FetchError("the document has no text", reason="content_type", cause="it is empty, or its pages are pictures")
        headings, code_languages = read_outline(text)
        page = Extracted(text, headings=headings, code_languages=code_languages, truncated=self.truncated)
        return replace(page, **about)

    def begin_part(self) -> int:
        """Where the next block will stand in the text."""
        self._table.close()
        length = self._max_chars - self._left
        return length + len("\n\n") if length else 0

    def count_text(self, text: str) -> None:
        """Count text that is still to be written; a reader calls it before it keeps the text of an open paragraph."""
        self._unwritten -= len(text)
        if self._unwritten < 0:
            self.truncated = True
            raise EnoughText

    def add_heading(self, level: int, text: str) -> None:
        if line := " ".join(text.split()):
            self.add_block(f"{'#' * min(max(level, 1), 6)} {line}")

    def add_paragraph(self, text: str) -> None:
        self.add_block(" ".join(text.split()))

    def add_code(self, text: str, language: str = "") -> None:
        if text.strip():
            fence = "`" * max(3, 1 + max(map(len, _FENCES.findall(text)), default=0))
            self.add_block("\n".join((f"{fence}{language}", text.strip("\n"), fence)))

    def add_item(self, text: str, depth: int = 0, marker: str = "-") -> None:
        """An item of a list; `marker` is a dash or a number with its point."""
        if not (line := " ".join(text.split())):
            return
        self._table.close()
        depth = min(depth, len(self._markers), MAX_LIST_DEPTH)
        is_other_list = not depth and self._markers and (self._markers[0] == "-") != (marker == "-")
        gap = "\n" if self._markers and not is_other_list else "\n\n"
        indent = " " * sum(len(above) + 1 for above in self._markers[:depth])
        self._markers = [*self._markers[:depth], marker]
        self.append(f"{indent}{marker} {line}", gap)

    def add_row(self, cells: Sequence[str]) -> None:
        """A row of the table that is being written, or the first one of a new table."""
        if len(cells) > MAX_COLUMNS:
            self.truncated = True
        self._markers = []
        self._table.add([" ".join(cell[:MAX_CELL_CHARS].split()).replace("|", "\\|") for cell in cells[:MAX_COLUMNS]])

    def end_table(self) -> None:
        self._table.close()

    def add_block(self, text: str) -> None:
        """Any block of Markdown as it is."""
        self._table.close()
        if text := text.strip("\n"):
            self._markers = []
            self.append(text, "\n\n")

    def append(self, text: str, gap: str) -> None:
        """A piece of Markdown behind a gap, which the first one does not have."""
        text = f"{gap if self._parts else ''}{text}"
        if len(text) > self._left:
            self.truncated = True
            self._parts.append(text[: self._left])
            self._left = 0
            raise EnoughText
        self._left -= len(text)
        self._parts.append(text)


class _Table:
    """The rows of one table; those that come first decide which columns it has."""

    def __init__(self, writer: MarkdownWriter) -> None:
        self._writer = writer
        self._waiting: list[list[str]] = []
        self._columns: list[int] = []
        self._header, self._chars = "", 0

    def add(self, cells: list[str]) -> None:
        if self._columns and set(compress(count(), cells)).difference(self._columns):
            self.close()  # it has columns that this table has not
        self._waiting.append(cells)
        if self._columns or len(self._waiting) >= LOOKAHEAD_ROWS:
            self._write_waiting()

    def close(self) -> None:
        try:
            if self._waiting:
                self._write_waiting()
        finally:
            self._waiting, self._columns, self._header = [], [], ""

    def _write_waiting(self) -> None:
        rows, self._waiting = self._waiting, []
        if not self._columns:
            self._columns = sorted({column for row in rows for column, cell in enumerate(row) if cell})
            title = 0  # rows of one cell above the head are the title of a table and no head
            while title < MAX_TITLE_ROWS and title + 2 < len(rows) and sum(map(bool, rows[title])) == 1:
                title += 1
            if title and sum(map(bool, rows[title])) >= MIN_HEADS:
                for row in rows[:title]:
                    self._writer.append("".join(row), "\n\n")
                rows = rows[title:]
            rows = _join_heads(rows, self._columns)
        for row in filter(any, rows):
            line = " | ".join(row[column] if column < len(row) else "" for column in self._columns)
            is_first, self._header = not self._header, self._header or line
            if is_first or (self._chars > TABLE_CHARS and len(self._header) <= MAX_REPEATED_HEADER):
                self._chars = 0
                self._append_row(self._header, "\n\n")
                self._append_row(" | ".join("---" for _ in self._columns))
            if not is_first:
                self._append_row(line)

    def _append_row(self, line: str, gap: str = "\n") -> None:
        self._chars += len(line) + 5
        self._writer.append(f"| {line} |", gap)


def _join_heads(rows: list[list[str]], columns: Sequence[int]) -> list[list[str]]:
    """Make one head of two: "2023" over two columns and "H1", "H2" below it are "2023 H1" and "2023 H2"."""
    if len(rows) < MIN_ROWS_OF_TWO_HEADS or not columns:
        return rows
    top, second, third = ([*row, *[""] * (columns[-1] + 1 - len(row))] for row in rows[:3])
    beside = columns[1:]
    has_gaps = any(second[column] and not top[column] and any(top[c] for c in beside if c < column) for column in beside)
    is_head = not any(map(_FIGURE.fullmatch, (*top, *second))) and any(_FIGURE.fullmatch(third[column]) for column in beside)
    if not (has_gaps and is_head) or (top[columns[0]] and second[columns[0]]):
        return rows
    above = ""
    for column in beside:
        above = top[column] or above
        second[column] = f"{above if second[column] else top[column]} {second[column]}".strip()
    second[columns[0]] = second[columns[0]] or top[columns[0]]
    return [second, *rows[2:]]
