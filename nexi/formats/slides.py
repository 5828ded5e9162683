"""PowerPoint presentations to Markdown: a heading for each slide, its paragraphs, lists, tables, charts and notes.

Above sits `extract`; below, `containers` hands over elements as they are read and `writer` takes the blocks. Pictures, layouts
and embedded files are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest

from nexi.extract import Extracted, notation
from nexi.extract.writer import MAX_COLUMNS, EnoughText, MarkdownWriter
from nexi.formats._containers import Attributes, BoundedArchive, XmlHandler, broken_error

MAX_SLIDES = 2_000
MAX_ELEMENTS = 300_000  # of all slides and their notes; a slide has some hundreds
MAX_CHART_VALUES = 20_000  # of one chart

_TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "sldNum", "hdr", "sldImg")
_LISTS = ("body", "obj", "")  # placeholders whose paragraphs are points of a list


def read_pptx(data: bytes, max_chars: int) -> Extracted:
    """The slides in their order. Raises FetchError."""
    archive = BoundedArchive(data)
    if "ppt/presentation.xml" not in archive:
        raise broken_error("it has no list of slides")
    targets = archive.relationships("ppt/presentation.xml")
    entries = archive.find_elements("ppt/presentation.xml", "sldId")
    paths = [targets.get(attributes.get("id", ""), {}).get("Target", "") for _, attributes, _ in entries]
    allowance = iter(range(MAX_ELEMENTS))
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(paths) > MAX_SLIDES
        for number, path in enumerate(paths[:MAX_SLIDES], 1):
            _write_slide(archive, path, number, writer, allowance)
    return writer.build_extracted(archive.read_properties())


def _write_slide(archive: BoundedArchive, path: str, number: int, writer: MarkdownWriter, allowance: Iterator[int]) -> None:
    slide, is_whole = _Shapes(writer, allowance), False
    with suppress(EnoughText):
        archive.parse_member(path, slide)
        is_whole = True
    title = " ".join(text for shape in slide.shapes if shape.kind in _TITLES for text in shape.texts())
    writer.add_heading(2, f"Slide {number}: {title}" if title.strip() else f"Slide {number}")
    for shape in slide.shapes:
        if shape.kind not in _TITLES:
            shape.write(writer)
    if not is_whole:
        raise EnoughText
    for about in archive.relationships(path).values():
        if about.get("Type", "").endswith("/notesSlide"):
            notes = _Shapes(writer, allowance)
            archive.parse_member(about.get("Target", ""), notes)
            speech = " ".join(text for shape in notes.shapes for text in shape.texts())
            writer.add_paragraph(f"Notes: {speech}" if speech.strip() else "")
        elif about.get("Type", "").endswith("/chart"):
            chart = _Chart()
            archive.parse_member(about.get("Target", ""), chart)
            chart.write(writer)


class _Chart(XmlHandler):
    """The data behind a chart: a row for each category, a column for each series."""

    def __init__(self) -> None:
        self._title: list[str] = []
        self._series: list[dict[str, list[str]]] = []
        self._part = ""  # tx, cat or val of the open series
        self._in_title = self._in_text = False
        self._values = 0

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "ser" and len(self._series) < MAX_COLUMNS:
            self._series.append({"tx": [], "cat": [], "val": []})
        elif name in ("tx", "cat", "val", "xVal", "yVal"):
            self._part = {"xVal": "cat", "yVal": "val"}.get(name, name)
        elif name == "title" and not self._series:
            self._in_title = True
        self._in_text = name in ("v", "t")

    def text(self, text: str) -> None:
        if not self._in_text:
            return
        if self._in_title:
            self._title.append(text)
        elif self._series and self._part and self._values < MAX_CHART_VALUES:
            self._values += 1
            self._series[-1][self._part].append(text)

    def end(self, name: str) -> None:
        self._in_text = False
        if name in ("tx", "cat", "val", "xVal", "yVal"):
            self._part = ""
        self._in_title = self._in_title and name != "title"

    def write(self, writer: MarkdownWriter) -> None:
        if not self._series:
            return
        writer.add_paragraph(f"Chart: {' '.join(self._title)}")
        writer.add_row(["", *(" ".join(series["tx"]) for series in self._series)])
        categories = max((series["cat"] for series in self._series), key=len)
        for row in zip_longest(categories, *(series["val"] for series in self._series), fillvalue=""):
            writer.add_row(row)
        writer.end_table()


class _Shape:
    """One box of a slide: paragraphs with their depth and marker, or the rows of a table."""

    def __init__(self) -> None:
        self.kind = "none"  # of the placeholder, where it is one
        self.rows: list[list[str]] = []
        self.paragraphs: list[tuple[int, str, str]] = []
        self._numbers: dict[int, int] = {}

    def texts(self) -> list[str]:
        return [text for _, _, text in self.paragraphs if text.strip()]

    def add(self, text: str, about: Attributes) -> None:
        depth = int(about["lvl"]) if about.get("lvl", "").isdecimal() and len(about["lvl"]) == 1 else 0
        if about.get("bullet") == "buAutoNum":
            self._numbers[depth] = self._numbers.get(depth, 0) + 1
            marker = f"{self._numbers[depth]}."
        else:
            self._numbers.pop(depth, None)
            is_point = about.get("bullet") == "buChar" or (self.kind in _LISTS and about.get("bullet") != "buNone")
            marker = "-" if is_point else ""
        self.paragraphs.append((depth, marker, text))

    def write(self, writer: MarkdownWriter) -> None:
        writer.end_table()
        for row in self.rows:
            writer.add_row(row)
        writer.end_table()
        for depth, marker, text in self.paragraphs:
            if marker:
                writer.add_item(text, depth, marker)
            else:
                writer.add_paragraph(text)


class _Shapes(XmlHandler):
    """Collects the shapes of one slide in their order; the furniture of the page is left out."""

    def __init__(self, writer: MarkdownWriter, allowance: Iterator[int]) -> None:
        self._writer, self._allowance = writer, allowance
        self.shapes: list[_Shape] = []
        self._shape = _Shape()
        self._text: list[str] = []
        self._about: Attributes = {}
        self._cell: list[str] | None = None
        self._in_text, self._silent = False, 0
        self._formula = notation.FormulaBuilder()
        self._baseline = ""  # of the open run, in thousandths of a line: raised above zero, lowered below

    def start(self, name: str, attributes: Attributes) -> None:
        if next(self._allowance, None) is None:
            self._writer.truncated = True
            raise EnoughText
        if self._silent or name == "Fallback":  # a picture of the formula before it
            self._silent += 1
        elif name == "oMath" or self._formula.is_open:
            self._formula.start(name)
        elif name in ("sp", "graphicFrame"):
            self._shape = _Shape()
            self.shapes.append(self._shape)
        elif name == "ph":
            self._shape.kind = attributes.get("type", "")
            if self._shape.kind in _FURNITURE and self.shapes:
                self.shapes.pop()
        elif name == "p":
            self._text, self._about = [], {}
        elif name == "pPr":
            self._about["lvl"] = attributes.get("lvl", "")
        elif name in ("buNone", "buChar", "buAutoNum"):
            self._about["bullet"] = name
        elif name == "t":
            self._in_text = True
        elif name == "rPr":
            self._baseline = attributes.get("baseline", "")
        elif name in ("br", "tab"):
            self._text.append(" ")
        elif name == "tr":
            self._shape.rows.append([])
        elif name == "tc":
            self._cell = []

    def text(self, text: str) -> None:
        if self._formula.is_open:
            self._formula.text(text)
        elif self._in_text and not self._silent:
            self._writer.count_text(text)
            if self._baseline not in ("", "0"):
                write = notation.write_lowered if self._baseline.startswith("-") else notation.write_raised
                text = write("".join(self._text), text)
            self._text.append(text)

    def end(self, name: str) -> None:
        if self._silent:
            self._silent -= 1
        elif self._formula.is_open:
            if (formula := self._formula.end()) is not None:
                self._writer.count_text(formula)
                self._text.append(formula)
        elif name == "t":
            self._in_text = False
        elif name == "r":
            self._baseline = ""
        elif name == "p":
            text, self._text = "".join(self._text), []
            if self._cell is not None:
                self._cell.append(text)
            elif text.strip():
                self._shape.add(text, self._about)
        elif name == "tc" and self._cell is not None and self._shape.rows:
            self._shape.rows[-1].append(" ".join(self._cell))
            self._cell = None
