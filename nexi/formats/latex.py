r"""LaTeX to Markdown: headings, lists, tables, code and links; formulas stay as they are written.

Above sits `extract`; below, `writer`. The source is read from front to back once; no macro is expanded and no file that it
names is opened.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import msgspec
from msgspec import Struct

from nexi.extract import Extracted, charset, notation, one_line
from nexi.extract.writer import MarkdownWriter
from nexi.text.dates import normalise_date

MAX_DEPTH = 50
MAX_ARGUMENT_CHARS = 20_000

_BRACE = re.compile(r"(?<!\\)[{}]")
_TOKEN = re.compile(
    r"\\(begin|end)\s*\{([A-Za-z*]{1,40})\}|\\([A-Za-z]+)\*?[ \t]*|\\(.)|(\$\$?)|([{}&~])|(\n[ \t]*\n\s*)|([^\\${}&~\n]+|\n)",
    re.DOTALL,
)
_CODE = frozenset(("verbatim", "lstlisting", "minted", "Verbatim"))
_FORMULAS = frozenset(("equation", "align", "gather", "multline", "eqnarray", "displaymath", "math"))
_TABLES = frozenset(("tabular", "tabularx", "longtable", "array"))
_LISTS = frozenset(("itemize", "enumerate", "description"))
_LANGUAGE = re.compile(r"\s*(?:\[[^\]]{0,200}?language=\{?(\w+)[^\]]{0,200}\]|\[[^\]]{0,200}\])?(?:\{(\w+)\})?")
_DEFINITION = re.compile(r"\\def\s?\\[A-Za-z]{1,40}[^{}\n]{0,20}\{(?:[^{}]|\{[^{}]{0,200}\}){0,2000}\}")


class _Commands(Struct, frozen=True):
    """The levels of headings, how many arguments of a command are dropped, and what commands and accents stand for."""

    headings: dict[str, int]
    dropped: dict[str, int]
    signs: dict[str, str]
    accents: dict[str, str]


_COMMANDS = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Commands)


def read_latex(data: bytes, max_chars: int) -> Extracted:
    """The text of a source. Raises FetchError."""
    source = _DEFINITION.sub("", charset.decode_body(data).replace("\r\n", "\n"))
    head, begin, body = source.partition(r"\begin{document}")
    about = {name: one_line(plain_latex(_find_argument(source, name))) for name in ("title", "author")}
    with MarkdownWriter(max_chars) as writer:
        _Source(writer, body if begin else head).read()
    return writer.build_extracted({**about, "published": normalise_date(plain_latex(_find_argument(source, "date")))})


def _find_argument(source: str, command: str) -> str:
    place = source.find(f"\\{command}{{")
    start = place + len(command) + 2
    piece = source[start - 1 : start + MAX_ARGUMENT_CHARS] if place >= 0 else ""
    return piece[1 : _match_braces(piece).get(0, 1)]


def _match_braces(source: str) -> dict[int, int]:
    """Where each brace that opens is closed."""
    ends: dict[int, int] = {}
    starts: list[int] = []
    for brace in _BRACE.finditer(source):
        if brace[0] == "{":
            starts.append(brace.start())
        elif starts:
            ends[starts.pop()] = brace.start()
    return ends


def plain_latex(source: str) -> str:
    """An argument as one line, as deep as anybody writes."""
    return _read_line(source.replace(r"\and", ", "), 1)


def _read_line(source: str, depth: int) -> str:
    if depth > MAX_DEPTH:
        return ""
    with MarkdownWriter(MAX_ARGUMENT_CHARS) as writer:
        _Source(writer, source[:MAX_ARGUMENT_CHARS], depth).read()
    return " ".join(writer.markdown().split())


class _Source:
    def __init__(self, writer: MarkdownWriter, source: str, depth: int = 0) -> None:
        self._writer, self._source, self._depth = writer, source, depth
        self._braces = _match_braces(source)
        self._text: list[str] = []
        self._lists: list[int] = []  # the number of the last item, or -1 for bullets
        self._row: list[str] | None = None
        self._item = self._formula = self._accent = ""

    def read(self) -> None:
        source, place = self._source, 0
        while token := _TOKEN.match(source, place):
            place = token.end()
            change, name, command, sign, dollars, mark, gap, plain = token.groups()
            if self._formula:
                self._add(token[0])
                ends = (dollars or f"\\{sign or ''}") == self._formula or (change, name) == ("end", self._formula)
                self._formula = "" if ends else self._formula
            elif change == "begin":
                place = self._begin(name, place)
            elif change == "end" and name.rstrip("*") in _TABLES and self._row is not None:
                self._end_line()
                self._row = None
                self._writer.end_table()
            elif change == "end":
                self._end_paragraph()
                if name.rstrip("*") in _LISTS and self._lists:
                    self._lists.pop()
            elif command:
                place = self._read_command(command, source, place)
            elif sign == "\\":
                self._end_line() if self._row is not None else self._add(" ")
            elif sign in ("[", "("):
                self._formula = "\\]" if sign == "[" else "\\)"
                self._add(f"\\{sign}")
            elif sign in _COMMANDS.accents:
                self._accent = _COMMANDS.accents[sign]
            elif sign:
                self._add(sign if sign in "%&$#_{}" else " " if sign in " ,;:!\n" else "")
            elif dollars:
                self._formula = dollars
                self._add(dollars)
            elif mark == "&" and self._row is not None:
                self._row.append(self._take_text())
            elif mark:
                self._add(" " if mark == "~" else "&" if mark == "&" else "")
            elif gap:
                self._end_paragraph()
            else:
                text, percent, comment = plain.partition("%")
                self._add(text)
                if percent:
                    place = source.find("\n", place - len(comment)) + 1 or len(source)
        self._end_paragraph()

    def _add(self, text: str) -> None:
        if self._accent and text.strip():
            text, self._accent = unicodedata.normalize("NFC", text[:1] + self._accent) + text[1:], ""
        self._writer.count_text(text)
        self._text.append(text)

    def _take_text(self) -> str:
        text, self._text = " ".join("".join(self._text).split()), []
        return text.replace("---", "—").replace("--", "–").replace("``", "“").replace("''", "”")

    def _end_paragraph(self) -> None:
        if self._row is not None:
            return
        text, item, self._item = self._take_text(), self._item, ""
        if item:
            self._writer.add_item(text, max(len(self._lists) - 1, 0), item)
        else:
            self._writer.add_paragraph(text)

    def _begin(self, name: str, place: int) -> int:
        source, base = self._source, name.rstrip("*")
        if base in _CODE:
            self._end_paragraph()
            about = next(_LANGUAGE.finditer(source, place))  # which may be empty
            end = source.find(f"\\end{{{name}}}", about.end())
            language = (about[1] or about[2] or "").lower()
            self._writer.add_code(source[about.end() : end if end >= 0 else len(source)], language)
            return end + len(name) + 6 if end >= 0 else len(source)
        if base in _FORMULAS:
            self._formula = name
            self._add(f"\\begin{{{name}}}")
            return place
        if base in _LISTS:
            self._end_paragraph()
            self._lists.append(0 if base == "enumerate" else -1)
        elif base in _TABLES:
            self._end_paragraph()
            self._row = []
            if base == "tabularx":
                place = self._argument(place)[1]
            place = self._argument(_skip_option(source, place))[1]
        elif base == "abstract":
            self._writer.add_heading(2, "Abstract")
        return _skip_option(source, place)

    def _end_line(self) -> None:
        """End the row of a table, or the paragraph where there is none."""
        if self._row is None:
            self._end_paragraph()
            return
        row = [*self._row, self._take_text()]
        if any(row):
            self._writer.add_row(row)
        self._row = []

    def _read_command(self, command: str, source: str, place: int) -> int:
        if command in _COMMANDS.headings:
            title, place = self._argument(_skip_option(source, place))
            self._end_paragraph()
            self._writer.add_heading(_COMMANDS.headings[command], self._inner(title))
        elif command == "item":
            self._end_paragraph()
            self._item = "-"
            if self._lists and self._lists[-1] >= 0:
                self._lists[-1] += 1
                self._item = f"{self._lists[-1]}."
            if source[place : place + 1] == "[":
                end = _skip_option(source, place)
                self._add(self._inner(source[place + 1 : end - 1]) + ": ")
                place = end
        elif command in ("href", "url"):
            address, place = self._argument(place)
            words, place = self._argument(place) if command == "href" else ("", place)
            self._add(f"[{self._inner(words)}]({address})" if command == "href" else address)
        elif command in ("cite", "citep", "citet", "ref", "eqref", "autoref"):
            key, place = self._argument(_skip_option(source, place))
            self._add(f"[{key}]" if command.startswith("cite") else key)
        elif command in ("footnote", "caption"):
            note, place = self._argument(_skip_option(source, place))
            self._add(f" ({self._inner(note)})" if command == "footnote" else f"{self._inner(note)} ")
        elif command in ("textsuperscript", "textsubscript"):
            script, place = self._argument(place)
            write = notation.write_raised if command == "textsuperscript" else notation.write_lowered
            self._add(write("".join(self._text[-8:]), self._inner(script)))
        elif command in _COMMANDS.dropped:
            place = _skip_option(source, place)
            for _ in range(_COMMANDS.dropped[command]):
                place = self._argument(_skip_option(source, place))[1]
        elif command in ("tabularnewline", "par"):
            self._end_line()
        elif command == "multicolumn":
            for _ in range(2):
                place = self._argument(place)[1]
        else:
            self._add(_COMMANDS.signs.get(command, ""))
        return place

    def _argument(self, place: int) -> tuple[str, int]:
        """The text of the braces that open at a place, and where they end; nothing where none open."""
        end = self._braces.get(place)
        if end is None:
            return "", place + (self._source[place : place + 1] == "{")
        return self._source[place + 1 : min(end, place + MAX_ARGUMENT_CHARS)], end + 1

    def _inner(self, source: str) -> str:
        return _read_line(source, self._depth + 1)


def _skip_option(source: str, place: int) -> int:
    """Where an argument in square brackets ends, if there is one."""
    if source[place : place + 1] != "[":
        return place
    end = source.find("]", place, place + 1_000)
    return end + 1 if end >= 0 else place
