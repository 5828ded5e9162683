"""Word documents to Markdown: headings, paragraphs, lists with their bullets and numbers, tables and links.

Above sits `extract`; below, `containers` hands over elements as they are read and `writer` takes the blocks. Fonts, pictures,
fields, deleted text and the second forms of drawings are not text and are left out. No tree is kept.
"""

from __future__ import annotations

from nexi.extract import notation
from nexi.extract.words import Extracted
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import Attributes, BoundedArchive, XmlHandler, broken_error, build_extracted

MAX_LEVEL = 8
MAX_STYLES = 5_000
MAX_STYLE_DEPTH = 10  # styles based on one another
MAX_NOTE_CHARS = 5_000

_PROPERTIES = {"pStyle": "style", "outlineLvl": "outline", "ilvl": "level", "numId": "number"}
_STYLE_PROPERTIES = {"name": "name", "basedOn": "base", "outlineLvl": "outline", "ilvl": "level", "numId": "number"}
_SILENT = ("Fallback", "moveFrom")  # a second form of a drawing; text that stands elsewhere now
_WRITE_POSITION = {"superscript": notation.write_raised, "subscript": notation.write_lowered}


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
    return build_extracted(writer, archive.read_properties())


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
        level = _parse_number(outline) + 1 if outline.isdecimal() and int(outline[:2]) < 6 else 0
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
            depth = min(_parse_number(depth_level), MAX_LEVEL)
            counts = self._counts.setdefault(number, [0] * (MAX_LEVEL + 1))
            counts[depth] += 1
            counts[depth + 1 :] = [0] * (MAX_LEVEL - depth)
            marker = f"{counts[depth]}." if self._numbering.is_ordered(number, depth) else "-"
            self._writer.add_item(text, depth, marker)
        else:
            self._writer.add_paragraph(text)


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 3 else 0
