"""OpenDocument texts, spreadsheets and presentations to Markdown.

Above sits `extract`; below, `containers` hands over elements as they are read and `writer` takes the blocks. All three kinds
have one markup. Changes that were taken back, comments, scripts and linked files are not looked at; a row or cell that says it
is repeated is, as far as a reader could want it.
"""

from __future__ import annotations

from collections.abc import Callable

from nexi.extract import Extracted, notation, parse_number
from nexi.extract.writer import MAX_COLUMNS, MarkdownWriter
from nexi.formats._containers import Attributes, BoundedArchive, XmlHandler, broken_error, encrypted_error

MAX_ELEMENTS = 4_000_000
MAX_REPEATED_ROWS = 100
MAX_LIST_STYLES = 5_000

_SILENT = frozenset(
    ("annotation", "tracked-changes", "script", "event-listeners", "forms", "settings", "shapes", "note-citation")
)
_CELLS = ("table-cell", "covered-table-cell")
_VALUES = ("date-value", "time-value", "boolean-value", "string-value", "value")
_SPACES = {"tab": " ", "line-break": " ", "s": " "}


def read_odf(data: bytes, max_chars: int) -> Extracted:
    """The text of a document. Raises FetchError."""
    archive = BoundedArchive(data)
    if "content.xml" not in archive:
        raise broken_error("it has no text part")
    if archive.find_elements("META-INF/manifest.xml", "encryption-data"):
        raise encrypted_error()
    lists = _ListStyles()
    archive.parse_member("styles.xml", lists)

    def read_formula(href: str) -> str:
        formula = _Formula()
        archive.parse_member(f"{href.removeprefix('./').rstrip('/')}/content.xml", formula)
        return formula.written

    with MarkdownWriter(max_chars) as writer:
        archive.parse_member("content.xml", _Content(writer, lists, read_formula), MAX_ELEMENTS)
    return writer.build_extracted(archive.read_properties("meta.xml"))


class _Formula(XmlHandler):
    """The first formula of an embedded object; "" in an object of another kind."""

    def __init__(self) -> None:
        self.written = ""
        self._builder = notation.FormulaBuilder()

    def start(self, name: str, attributes: Attributes) -> None:
        if self._builder.is_open or (name == "math" and not self.written):
            self._builder.start(name)

    def text(self, text: str) -> None:
        self._builder.text(text)

    def end(self, name: str) -> None:
        if self._builder.is_open:
            self.written = self._builder.end() or ""


class _ListStyles(XmlHandler):
    """Which levels of which list styles are numbered, and which styles of text raise ("super") or lower it ("sub")."""

    def __init__(self) -> None:
        self.ordered: set[tuple[str, str]] = set()
        self.positions: dict[str, str] = {}
        self._style = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name in ("list-style", "style"):
            self._style = attributes.get("name", "")[:200]
        elif name == "text-properties" and "text-position" in attributes and len(self.positions) < MAX_LIST_STYLES:
            position = attributes["text-position"].strip()
            self.positions[self._style] = "sub" if position.startswith(("sub", "-")) else "super"
        elif name == "list-level-style-number" and attributes.get("num-format") and len(self.ordered) < MAX_LIST_STYLES:
            self.ordered.add((self._style, attributes.get("level", "1")))


class _List:
    """An open list: its style, which the lists inside share, and the number of its last item."""

    def __init__(self, style: str) -> None:
        self.style, self.count, self.is_new = style, 0, False


class _Content(XmlHandler):
    """Writes the blocks; a table inside a table is text of its cell."""

    def __init__(self, writer: MarkdownWriter, lists: _ListStyles, read_formula: Callable[[str], str]) -> None:
        self._writer, self._styles, self._read_formula = writer, lists, read_formula
        self._silent = self._heading = self._slides = self._tables = self._column = 0
        self._row_repeats = self._cell_repeats = 1
        self._frame = self._value = ""
        self._is_spreadsheet = False
        self._text: list[list[str]] = []  # of the open paragraphs; a note stands inside another
        self._links: list[str] = []
        self._spans: list[tuple[str, int]] = []  # the position of each open one, and where its text begins
        self._lists: list[_List] = []
        self._notes: list[str] | None = None
        self._row: list[str] = []
        self._cell: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if self._silent or name in _SILENT:
            self._silent += 1
        elif name in ("p", "h"):
            self._text.append([])
            self._heading = parse_number(attributes.get("outline-level", ""), default=1) if name == "h" else 0
        elif name in _SPACES and self._text:
            self._text[-1].append(_SPACES[name])
        elif name == "a" and self._text:
            href = attributes.get("href", "")
            self._links.append(href if href.startswith(("http://", "https://", "mailto:")) else "")
            self._text[-1].append("[" if self._links[-1] else "")
        elif name == "span" and self._text:
            self._spans.append((self._styles.positions.get(attributes.get("style-name", ""), ""), len(self._text[-1])))
        elif name == "object" and self._text:
            self._text[-1].append(self._read_formula(attributes.get("href", "")))
        elif name == "list":
            self._lists.append(_List(attributes.get("style-name", "") or (self._lists[-1].style if self._lists else "")))
        elif name == "list-item" and self._lists:
            self._lists[-1].count += 1
            self._lists[-1].is_new = True
        elif name == "table":
            self._tables += 1
            if self._tables == 1:
                self._writer.end_table()
                self._writer.add_heading(2, attributes.get("name", "") if self._is_spreadsheet else "")
        elif name == "table-row" and self._tables == 1:
            self._row, self._column = [], 0
            self._row_repeats = parse_number(attributes.get("number-rows-repeated", ""), default=1)
        elif name in _CELLS and self._tables == 1:
            self._cell, self._value = [], next((attributes[key] for key in _VALUES if attributes.get(key)), "")
            self._cell_repeats = parse_number(attributes.get("number-columns-repeated", ""), default=1)
        elif name == "spreadsheet":
            self._is_spreadsheet = True
        elif name == "page":
            self._slides += 1
            self._frame = "untitled"
        elif name == "frame" and self._frame == "untitled" and attributes.get("class") == "title":
            self._frame = "title"
        elif name == "notes":
            self._notes = []
        else:
            self._styles.start(name, attributes)

    def text(self, text: str) -> None:
        if self._text and not self._silent:
            self._writer.count_text(text)
            self._text[-1].append(text)

    def end(self, name: str) -> None:
        if self._silent:
            self._silent -= 1
        elif name in ("p", "h") and self._text:
            self._add_paragraph(" ".join("".join(self._text.pop()).split()))
        elif name == "a" and self._links and self._text:
            href = self._links.pop()
            self._text[-1].append(f"]({href})" if href else "")
        elif name == "span" and self._spans and self._text:
            position, start = self._spans.pop()
            if position:
                before, script = "".join(self._text[-1][:start]), "".join(self._text[-1][start:])
                write = notation.write_raised if position == "super" else notation.write_lowered
                self._text[-1][start:] = [write(before, script)]
        elif name == "list" and self._lists:
            self._lists.pop()
        elif name == "table":
            self._tables -= 1
            if not self._tables:
                self._writer.end_table()
        elif name == "table-row" and self._tables == 1:
            if not self._row and self._is_spreadsheet:
                self._writer.end_table()  # an empty row of a sheet ends a table
            elif self._row:
                self._writer.truncated = self._writer.truncated or self._row_repeats > MAX_REPEATED_ROWS
                for _ in range(min(self._row_repeats, MAX_REPEATED_ROWS)):
                    self._writer.add_row(self._row)
        elif name in _CELLS and self._tables == 1:
            text, last = " ".join(self._cell) or self._value, self._column + self._cell_repeats
            self._writer.truncated = self._writer.truncated or (bool(text) and last > MAX_COLUMNS)
            if text and self._column < MAX_COLUMNS:
                self._row += [""] * (self._column - len(self._row))
                self._row += [text] * (min(last, MAX_COLUMNS) - self._column)
            self._column = last
        elif name == "notes" and self._notes is not None:
            notes, self._notes = " ".join(self._notes), None
            self._writer.add_paragraph(f"Notes: {notes}" if notes else "")
        elif name == "page":
            self._title_slide("")

    def _add_paragraph(self, text: str) -> None:
        if not text:
            return
        if self._text:  # a note: it is read where it stands
            self._text[-1].append(f" ({text}) ")
        elif self._tables:
            self._cell.append(text)
        elif self._notes is not None:
            self._notes.append(text)
        elif self._slides and self._frame in ("title", "untitled"):
            self._title_slide(text if self._frame == "title" else "", text)
        elif self._heading:
            self._writer.add_heading(self._heading, text)
        elif self._lists and self._lists[-1].is_new:
            inner, depth = self._lists[-1], len(self._lists)
            marker = f"{inner.count}." if (inner.style, str(depth)) in self._styles.ordered else "-"
            self._writer.add_item(text, depth - 1, marker)
            inner.is_new = False
        else:
            self._writer.add_paragraph(text)

    def _title_slide(self, title: str, text: str = "") -> None:
        """The heading of a slide, once; `text` that is no title follows it."""
        if self._frame not in ("title", "untitled"):
            return
        self._frame = "other"
        self._writer.add_heading(2, f"Slide {self._slides}: {title}" if title else f"Slide {self._slides}")
        if text and not title:
            self._add_paragraph(text)
