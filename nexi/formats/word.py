"""Word documents to Markdown: headings, paragraphs, lists with their bullets and numbers, tables and links.

Above sits `extract`; below, `containers` hands over elements as they are read, or streams, and `writer` takes blocks. Fonts,
pictures, fields, deleted text and the second forms of drawings are not text and are left out. No tree is kept. Of documents of
Word 97 styles are not read.
"""

from __future__ import annotations

import re
import struct
from itertools import pairwise

from nexi.extract import Extracted, notation, parse_number
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import Attributes, BoundedArchive, CompoundFile, XmlHandler, broken_error, encrypted_error

MAX_LEVEL = 8
MAX_STYLES = 5_000
MAX_STYLE_DEPTH = 10  # styles based on one another
MAX_NOTE_CHARS = 5_000

_PROPERTIES = {"pStyle": "style", "outlineLvl": "outline", "ilvl": "level", "numId": "number"}
_STYLE_PROPERTIES = {"name": "name", "basedOn": "base", "outlineLvl": "outline", "ilvl": "level", "numId": "number"}
_SILENT = ("Fallback", "moveFrom")  # a second form of a drawing; text that stands elsewhere now
_WRITE_POSITION = {"superscript": notation.write_raised, "subscript": notation.write_lowered}
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_FIELD_CODE = re.compile(r"\x13[^\x13-\x15]*\x14?|\x15")  # HYPERLINK "…", and the marks around what it shows
_SPECIAL_CHAR = re.compile(r"[\x00-\x06\x08\x0e-\x1f]")


def read_docx(data: bytes, max_chars: int) -> Extracted:
    """The paragraphs, lists and tables of a document. Raises FetchError."""
    archive = BoundedArchive(data)
    if "word/document.xml" not in archive:
        raise broken_error("it has no text part")
    targets = archive.relationships("word/document.xml")
    links = {key: about.get("Target", "") for key, about in targets.items() if about.get("TargetMode") == "External"}
    styles, numbering, notes = _Styles(), _Numbering(), _Notes()
    archive.parse_member("word/styles.xml", styles)
    archive.parse_member("word/numbering.xml", numbering)
    archive.parse_member("word/footnotes.xml", notes)
    archive.parse_member("word/endnotes.xml", notes)
    with MarkdownWriter(max_chars) as writer:
        archive.parse_member("word/document.xml", _Paragraphs(writer, links, styles, numbering, notes))
    return writer.build_extracted(archive.read_properties())


class _Styles(XmlHandler):
    """The styles by id; one says what it does not say itself through the style it is based on."""

    def __init__(self) -> None:
        self._styles: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "style":
            self._open = {}
            if len(self._styles) < MAX_STYLES:
                self._styles[attributes.get("styleId", "")[:200]] = self._open
        elif name in _STYLE_PROPERTIES:
            self._open[_STYLE_PROPERTIES[name]] = attributes.get("val", "")[:200]

    def resolve(self, style_id: str) -> dict[str, str]:
        """What a style says of its paragraphs, by the words for it here."""
        result: dict[str, str] = {}
        for _ in range(MAX_STYLE_DEPTH):
            style = self._styles.get(style_id)
            if style is None:
                break
            result = style | {key: value for key, value in result.items() if value}
            style_id = style.get("base", "")
        return result


class _Numbering(XmlHandler):
    """Which lists are numbered, level by level."""

    def __init__(self) -> None:
        self._formats: dict[tuple[str, str], str] = {}
        self._levels: dict[tuple[str, str], str] = {}  # by the style of the paragraph
        self._abstract: dict[str, str] = {}
        self._in_abstract = self._in_number = self._in_level = ""

    def start(self, name: str, attributes: Attributes) -> None:
        value = attributes.get("val", "")
        if name == "abstractNum":
            self._in_abstract = attributes.get("abstractNumId", "")
        elif name == "num":
            self._in_number = attributes.get("numId", "")
        elif name == "lvl":
            self._in_level = attributes.get("ilvl", "0")
        elif name == "numFmt" and self._in_abstract:
            self._formats.setdefault((self._in_abstract, self._in_level or "0"), value)
        elif name == "pStyle" and self._in_abstract:
            self._levels.setdefault((self._in_abstract, value), self._in_level)
        elif name == "abstractNumId" and self._in_number:
            self._abstract[self._in_number] = value

    def end(self, name: str) -> None:
        if name == "abstractNum":
            self._in_abstract = self._in_level = ""
        elif name == "num":
            self._in_number = ""

    def is_ordered(self, number: str, level: int) -> bool:
        abstract = self._abstract.get(number, "")
        form = self._formats.get((abstract, str(level))) or self._formats.get((abstract, "0"), "")
        return form not in ("", "bullet", "none")

    def level_of_style(self, number: str, style: str) -> str:
        return self._levels.get((self._abstract.get(number, ""), style), "")


class _Notes(XmlHandler):
    """Footnotes and endnotes by kind and id."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], list[str]] = {}
        self._open: list[str] = []
        self._in_text = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name in ("footnote", "endnote"):
            self._open = self.texts.setdefault((name, attributes.get("id", "")), [])
        elif name in ("p", "tab", "br") and self._open:
            self._open.append(" ")
        self._in_text = name == "t"

    def text(self, text: str) -> None:
        if self._in_text:
            self._open.append(text[:MAX_NOTE_CHARS])

    def end(self, name: str) -> None:
        self._in_text = False


class _Paragraphs(XmlHandler):
    """Writes the blocks; `links` are addresses by their ids."""

    def __init__(
        self, writer: MarkdownWriter, links: dict[str, str], styles: _Styles, numbering: _Numbering, notes: _Notes
    ) -> None:
        self._writer, self._links, self._styles, self._numbering, self._notes = writer, links, styles, numbering, notes
        self._formula = notation.FormulaBuilder()
        self._position = self._link = ""  # the position of the open run: superscript, subscript
        self._run_start = self._silent = self._tables = 0
        self._in_text = False
        self._paragraphs: list[list[str]] = []  # open ones; a text box stands inside another
        self._about: dict[str, str] = {}
        self._row: list[str] = []
        self._cell: list[str] = []
        self._counts: dict[str, list[int]] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name in _SILENT or self._silent:
            self._silent += name in _SILENT
        elif name == "oMath" or self._formula.is_open:
            self._formula.start(name)
        elif name == "p":
            self._paragraphs.append([])
            self._about = {}
        elif name in _PROPERTIES:
            self._about.setdefault(_PROPERTIES[name], attributes.get("val", ""))
        elif name == "t":
            self._in_text = True
        elif name == "r" and self._paragraphs:
            self._position, self._run_start = "", len(self._paragraphs[-1])
        elif name == "vertAlign":
            self._position = attributes.get("val", "")
        elif name in ("footnoteReference", "endnoteReference") and self._paragraphs:
            parts = self._notes.texts.get((name.removesuffix("Reference"), attributes.get("id", "")), ())
            note, self._position = " ".join("".join(parts).split())[:MAX_NOTE_CHARS], ""
            self._paragraphs[-1].append(f" ({note})" if note else "")
        elif name in ("tab", "br", "cr") and self._paragraphs:
            self._paragraphs[-1].append(" ")
        elif name == "hyperlink" and self._paragraphs:
            self._link = self._links.get(attributes.get("id", ""), "")
            self._paragraphs[-1].append("[" if self._link else "")
        elif name == "tbl":
            if not self._tables:  # a table inside a table is text of its cell
                self._writer.end_table()
            self._tables += 1

    def end(self, name: str) -> None:
        if self._silent:
            self._silent -= name in _SILENT
        elif self._formula.is_open:
            if (formula := self._formula.end()) is not None and self._paragraphs:
                self._writer.count_text(formula)
                self._paragraphs[-1].append(formula)
        elif name == "r" and self._paragraphs and self._position in _WRITE_POSITION:
            paragraph = self._paragraphs[-1]
            before, script = "".join(paragraph[: self._run_start]), "".join(paragraph[self._run_start :])
            paragraph[self._run_start :] = [_WRITE_POSITION[self._position](before, script)]
        elif name == "t":
            self._in_text = False
        elif name == "hyperlink" and self._paragraphs:
            self._paragraphs[-1].append(f"]({self._link})" if self._link else "")
            self._link = ""
        elif name == "p" and self._paragraphs:
            self._add_paragraph("".join(self._paragraphs.pop()))
        elif name == "tc" and self._tables == 1:
            self._row.append(" ".join(self._cell))
            self._cell = []
        elif name == "tr" and self._tables == 1:
            self._writer.add_row(self._row)
            self._row = []
        elif name == "tbl":
            self._tables -= 1
            if not self._tables:
                self._writer.end_table()

    def text(self, text: str) -> None:
        if self._formula.is_open:
            self._formula.text(text)
        elif self._in_text and not self._silent and self._paragraphs:
            self._writer.count_text(text)
            self._paragraphs[-1].append(text)

    def _add_paragraph(self, text: str) -> None:
        if not text.strip():
            return
        if self._tables:
            self._cell.append(text)
            return
        about, style = self._about, self._styles.resolve(self._about.get("style", ""))
        number, outline = (about.get(key, style.get(key, "")) for key in ("number", "outline"))
        level = int(outline[:2]) + 1 if outline.isdecimal() and int(outline[:2]) < 6 else 0
        for name in (style.get("name", ""), about.get("style", "")):  # in English, whatever the language of the program
            name = name.lower().replace(" ", "")
            if name == "title":
                level = 1
            elif name.startswith("heading") and name[7:8].isdecimal():
                level = min(int(name[7:8]) or 1, 6)
        if level:
            self._writer.add_heading(level, text)
        elif number not in ("", "0"):
            words = style.get("name", "").split()  # `List Bullet 2`: Word has a list of its own for each depth
            is_deep = words[:1] == ["List"] and len(words) == 3 and words[2] in "2345"
            depth_level = about.get("level") or style.get("level") or (str(int(words[2]) - 1) if is_deep else "")
            depth_level = depth_level or self._numbering.level_of_style(number, about.get("style", ""))
            depth = min(parse_number(depth_level), MAX_LEVEL)
            counts = self._counts.setdefault(number, [0] * (MAX_LEVEL + 1))
            counts[depth] += 1
            counts[depth + 1 :] = [0] * (MAX_LEVEL - depth)
            marker = f"{counts[depth]}." if self._numbering.is_ordered(number, depth) else "-"
            self._writer.add_item(text, depth, marker)
        else:
            self._writer.add_paragraph(text)


def read_doc(data: bytes, max_chars: int) -> Extracted:
    """The paragraphs, rows and footnotes of a document of Word 97. Raises FetchError."""
    file = CompoundFile(data)
    head = file.read("WordDocument")
    try:
        text, notes = _join_pieces(file, head)
    except struct.error as error:
        raise broken_error("its list of pieces is cut") from error
    with MarkdownWriter(max_chars) as writer:
        for line in _drop_signs(text).split("\r"):
            # Each cell of a table ends with a mark, and each row with one more.
            *rows, rest = line.split("\x07\x07")
            for row in [*rows, rest] if "\x07" in rest else rows:
                writer.add_row(row.split("\x07"))
            if "\x07" not in rest and rest.strip():
                writer.end_table()
                writer.add_paragraph(rest)
        writer.end_table()
        for number, note in enumerate(filter(None, map(str.strip, _drop_signs(notes).split("\r"))), 1):
            writer.add_paragraph(f"[{number}] {note}")
    return writer.build_extracted(file.read_properties())


def _join_pieces(file: CompoundFile, head: bytes) -> tuple[str, str]:
    """The text and its notes, from pieces all over a stream; their list is believed only as far as it fits into the file."""
    flags, main_size, note_size = *struct.unpack_from("<H", head, 10), *struct.unpack_from("<II", head, 76)
    if flags & _ENCRYPTED:
        raise encrypted_error()
    place, size = struct.unpack_from("<II", head, 418)
    table = file.read("1Table" if flags & _SECOND_TABLE else "0Table")[place : place + size]
    at = 0
    while table[at : at + 1] == b"\x01":  # properties of paragraphs
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    if table[at : at + 1] != b"\x02":
        raise broken_error("it has no list of pieces")
    count = (struct.unpack_from("<I", table, at + 1)[0] - 4) // 12
    if not 0 < count <= len(table):
        raise broken_error("its list of pieces is cut")
    bounds = struct.unpack_from(f"<{count + 1}I", table, at + 5)
    pieces, room = list[str](), len(head)  # they lie side by side
    for number, (start, end) in enumerate(pairwise(bounds)):
        (place,) = struct.unpack_from("<I", table, at + 5 + 4 * (count + 1) + 8 * number + 2)
        is_narrow, size = place & 0x40000000, max(0, end - start)
        place &= 0x3FFFFFFF
        raw = head[place // 2 : place // 2 + size] if is_narrow else head[place : place + 2 * size]
        room -= len(raw)
        if room < 0:
            raise broken_error("its pieces overlap")
        pieces.append(raw.decode("cp1252" if is_narrow else "utf-16-le", "replace"))
    text = "".join(pieces)
    return text[:main_size], text[main_size : main_size + note_size]


def _drop_signs(text: str) -> str:
    text = _FIELD_CODE.sub("", text).replace("\x0b", "\n").replace("\x0c", "\r").replace("\x1e", "-").replace("\x1f", "")
    return _SPECIAL_CHAR.sub("", text)
