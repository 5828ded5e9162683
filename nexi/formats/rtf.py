"""Rich Text Format to Markdown: paragraphs, headings, lists and tables.

Above sits `extract`; below, `writer`. The file is read from front to back in one pass; groups that are no text (fonts,
pictures, embedded objects, headers) are passed over, and what a field would compute is not computed.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.extract import Extracted, notation, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.formats._containers import broken_error

MAX_GROUPS = 500  # inside one another
MAX_FONTS = 5_000
MAX_TOKENS = 750_000  # control words, braces and stretches of text; a book has a third of that

_TOKEN = re.compile(r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.DOTALL)
_TABLES = {"fonttbl": "fonts", "stylesheet": "styles"}
_ABOUT = {"title": "title", "author": "author", "subject": "description"}
_HEADING_STYLE = re.compile(r"\bheading ([1-6])\b", re.IGNORECASE)
_STAMP = re.compile(r"\\(revtim|creatim)\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")  # last changed, made
_NUMBER = re.compile(r"\s*\(?(\d{1,4})[.)]")


class _Words(Struct, frozen=True):
    """The words whose groups are no text, those that stand for a sign, and the codec of each charset of fonts."""

    silent: frozenset[str]
    signs: dict[str, str]
    codecs: dict[int, str]


_WORDS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Words)


class _Group(Struct, frozen=True):
    """What holds inside a pair of braces; `into` is where its text goes."""

    into: str = "text"
    codec: str = ""
    position: str = ""  # super, sub
    skip: int = 1  # characters that stand in for one that is written by its number


def read_rtf(data: bytes, max_chars: int) -> Extracted:
    """The text of a document. Raises FetchError."""
    if not data.lstrip()[:5] == b"{\\rtf":
        raise broken_error("it does not begin as such a file does")
    source = data.decode("latin-1")
    with MarkdownWriter(max_chars) as writer:
        reader = _Reader(writer)
        reader.read(source)
    about = {name: one_line("".join(parts)) for name, parts in reader.about.items()}
    stamps = {match[1]: f"{match[2]}-{int(match[3]):02}-{int(match[4]):02}" for match in _STAMP.finditer(source)}
    update = stamps.get("revtim", "")
    return writer.build_extracted({**about, "published": update or stamps.get("creatim", ""), "updated": update})


class _Reader:
    def __init__(self, writer: MarkdownWriter) -> None:
        self.about: dict[str, list[str]] = {}
        self._writer = writer
        self._groups = [_Group()]
        self._codec, self._position, self._level = "cp1252", "", -1
        self._font = self._style = self._skip = 0
        self._is_optional = self._in_table = False
        self._fonts: dict[int, str] = {}
        self._styles: dict[int, int] = {}  # the level of a heading, by the number of its style
        self._style_name: list[str] = []
        self._bytes = bytearray()
        self._paragraph: list[str] = []
        self._moved: list[str] = []  # raised or lowered text that goes on
        self._note: list[str] = []
        self._marker: list[str] = []
        self._cells: list[str] = []

    def read(self, text: str) -> None:
        place = tokens = 0
        while token := _TOKEN.match(text, place):
            tokens += 1
            if tokens > MAX_TOKENS:
                self._writer.truncated = True
                break
            place = token.end()
            word, number, code, sign, brace, plain = token.groups()
            if code:
                if not self._skip:
                    self._bytes.append(int(code, 16))
                self._skip = max(0, self._skip - 1)
                continue
            self._end_bytes()
            if word == "bin":
                place += max(0, int(number or 0))
            elif word:
                self._read_word(word, int(number) if number else None)
            elif brace == "{":
                if len(self._groups) > MAX_GROUPS:
                    raise broken_error("its groups stand too deep inside one another")
                self._groups.append(self._groups[-1])
                self._is_optional = False
            elif brace:
                self._leave_group()
            elif sign:
                self._read_sign(sign)
            elif plain:
                self._read_plain(plain)
        self._end_bytes()
        self._end_paragraph()
        self._writer.end_table()

    def _leave_group(self) -> None:
        if self._groups[-1].into == "styles" and self._style_name:
            if heading := _HEADING_STYLE.search("".join(self._style_name)[:500]):
                self._styles[self._style] = int(heading[1])
            self._style_name = []
        group = self._groups.pop() if len(self._groups) > 1 else self._groups[-1]
        if group.into == "note" and self._groups[-1].into != "note":
            self._end_position()
            note, self._note = " ".join("".join(self._note).split()), []
            self._paragraph.append(f" ({note})" if note else "")

    def _read_word(self, word: str, number: int | None) -> None:
        group = self._groups[-1]
        if word in _TABLES:
            self._groups[-1] = replace(group, into=_TABLES[word])
        elif word == "footnote" and group.into == "text":
            self._groups[-1] = replace(group, into="note", position="")
        elif word in _ABOUT and not group.into:
            self._groups[-1] = replace(group, into=_ABOUT[word])
        elif word in ("listtext", "pntext"):
            self._marker = []
            self._groups[-1] = replace(group, into="marker")
        elif word in _WORDS.silent or (self._is_optional and word != "shppict"):
            self._groups[-1] = replace(group, into="")
        elif word in _WORDS.signs:
            self._add_text(_WORDS.signs[word])
        else:
            self._read_layout(word, number or 0, has_number=number is not None)
        self._is_optional = False

    def _read_layout(self, word: str, number: int, *, has_number: bool) -> None:
        match word:
            case "u":
                self._add_text(chr(number % 65_536))
                self._skip = self._groups[-1].skip
            case "uc":
                self._groups[-1] = replace(self._groups[-1], skip=min(max(number, 0), 10))
            case "ansicpg":
                with suppress(LookupError):
                    self._codec = codecs.lookup(f"cp{number}").name
            case "f" | "deff":
                self._font = number
                if self._groups[-1].into != "fonts":
                    self._groups[-1] = replace(self._groups[-1], codec=self._fonts.get(number, ""))
            case "fcharset":
                if self._groups[-1].into == "fonts" and len(self._fonts) < MAX_FONTS:
                    self._fonts[self._font] = _WORDS.codecs.get(number, "")
            case "s":
                self._style = number
                if self._groups[-1].into == "text":
                    self._level = self._styles.get(number, self._level)
            case "outlinelevel":
                self._level = number + 1 if has_number and 0 <= number < 6 else self._level
            case "super" | "sub" | "nosupersub" | "plain":
                self._groups[-1] = replace(self._groups[-1], position=word if word in ("super", "sub") else "")
            case "pard" if self._groups[-1].into != "note":
                self._in_table, self._level, self._marker = False, -1, []
            case "intbl":
                self._in_table = True
            case "par" | "sect" | "page":
                self._end_paragraph()
            case "cell" | "nestcell":
                self._end_position()
                self._cells.append("".join(self._paragraph))
                self._paragraph = []
            case "row":
                if self._cells:
                    self._writer.add_row(self._cells)
                self._cells, self._in_table = [], False

    def _read_sign(self, sign: str) -> None:
        if sign == "*":
            self._is_optional = True
        elif sign in "\\{}":
            self._read_plain(sign)
        elif sign in "~_":
            self._add_text(" " if sign == "~" else "-")
        elif sign in "\r\n":
            self._end_paragraph()

    def _end_bytes(self) -> None:
        if self._bytes:
            self._add_text(self._bytes.decode(self._groups[-1].codec or self._codec, "replace"))
            self._bytes.clear()

    def _read_plain(self, text: str) -> None:
        text, self._skip = text[self._skip :], max(0, self._skip - len(text))
        if not text.isascii():
            text = text.encode("latin-1").decode(self._groups[-1].codec or self._codec, "replace")
        self._add_text(text)

    def _add_text(self, text: str) -> None:
        into = self._groups[-1].into
        if into == "text":
            self._writer.count_text(text)
            if self._position != self._groups[-1].position:
                self._end_position()
                self._position = self._groups[-1].position
            (self._moved if self._position else self._paragraph).append(text)
        elif into == "note":
            self._writer.count_text(text)
            self._note.append(text)
        elif into == "marker":
            self._marker.append(text[:20])
        elif into == "styles":
            self._style_name.append(text[:200])
        elif into in _ABOUT.values():
            self.about.setdefault(into, []).append(text[:1_000])

    def _end_position(self) -> None:
        """Write the raised or lowered text that has come to its end."""
        if self._moved:
            write = notation.write_raised if self._position == "super" else notation.write_lowered
            self._paragraph.append(write("".join(self._paragraph[-8:]), "".join(self._moved)))
        self._position, self._moved = "", []

    def _end_paragraph(self) -> None:
        if self._groups[-1].into == "note":
            self._note.append(" ")
            return
        self._end_position()
        text, self._paragraph = "".join(self._paragraph), []
        marker, self._marker = "".join(self._marker).strip(), []
        if self._in_table:
            self._paragraph = [text, " "]
        elif self._level > 0:
            self._writer.add_heading(self._level, text)
        elif marker:
            number = _NUMBER.match(marker)
            self._writer.add_item(text, 0, f"{number[1]}." if number else "-")
        else:
            self._writer.add_paragraph(text)
