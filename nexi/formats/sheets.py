"""Excel workbooks to Markdown, a heading for each sheet and its rows as tables; and comma- and tab-separated values.

Above sits `extract`; below, `containers` hands over elements as they are read, `python_calamine` parses Excel 97 and binary
workbooks, and `writer` takes the rows. Formulas are not computed: the value that the program stored is shown, or the formula
where it stored none. Macros and data connections are not looked at.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum

from nexi.extract import Extracted, charset, parse_number
from nexi.extract.writer import MAX_CELL_CHARS, MAX_COLUMNS, EnoughText, MarkdownWriter
from nexi.formats._containers import Attributes, BoundedArchive, CompoundFile, XmlHandler, broken_error, encrypted_error

MAX_SHEETS = 500
MAX_STRINGS = 150_000
MAX_STRING_CHARS = 8_000_000  # of all that cells share
MAX_SHEET_ELEMENTS = 4_000_000
MAX_FORMATS = 20_000
MAX_SHOWN_NUMBER = 1e15  # a greater one is shown as it is stored
MAX_CELLS = 600_000  # of a workbook; each costs time, however little text it ends in
MAX_UNSHOWN_CELLS = 150_000  # of a sheet: empty, or beyond the last column; they cost time and end in no text
SAMPLE_LINES = 50  # of separated values, by which the separator is known
MAX_FIELD_CHARS = 1_000_000
MAX_CODE_CHARS = 500
MAX_DECIMALS = 12

_SEPARATORS = ",;\t|"
_ShownAs: TypeAlias = Literal["date", "percent"] | Callable[[float], str] | None
_NOT_LETTERS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_COLUMN = re.compile(r"([A-Z]{1,3})\d")
_BUILT_IN_FORMATS = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    **dict.fromkeys((37, 38), "#,##0;(#,##0)"),
    **dict.fromkeys((39, 40), "#,##0.00;(#,##0.00)"),
    **dict.fromkeys((41, 42), '#,##0;(#,##0);"-"'),
    **dict.fromkeys((43, 44), '#,##0.00;(#,##0.00);"-"'),
    **dict.fromkeys((9, 10), "0%"),
    **dict.fromkeys((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)), "d"),
}  # the codes that a workbook uses by number; 42 and 44 have the currency of the machine that shows them

_FORMAT_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+)|(?P<sign>.)",
    re.DOTALL,
)
_SIGNS = frozenset((*"$€£¥+-−() :'", None))


def read_xlsx(data: bytes, max_chars: int) -> Extracted:
    """The sheets of a workbook in their order. Raises FetchError."""
    archive = BoundedArchive(data)
    if "xl/workbook.xml" not in archive:
        raise broken_error("it has no list of sheets")
    parts = archive.find_elements("xl/workbook.xml", "sheet", "workbookPr")
    targets = archive.relationships("xl/workbook.xml")
    since_1904 = any(a.get("date1904") in ("1", "true") for name, a, _ in parts if name == "workbookPr")
    strings, formats = _SharedStrings(), _NumberFormats()
    with suppress(EnoughText):
        archive.parse_member("xl/sharedStrings.xml", strings, MAX_SHEET_ELEMENTS)
    archive.parse_member("xl/styles.xml", formats)
    values = _Values(strings, formats, since_1904=since_1904)
    sheets = [(a, targets.get(a.get("id", ""), {}).get("Target", "")) for name, a, _ in parts if name == "sheet"]
    with MarkdownWriter(max_chars) as writer:
        writer.truncated = len(sheets) > MAX_SHEETS
        for about, path in sheets[:MAX_SHEETS]:
            is_hidden = about.get("state") in ("hidden", "veryHidden")
            writer.add_heading(2, f"{about.get('name', '')}{' (hidden)' * is_hidden}")
            archive.parse_member(path, _Rows(writer, values), MAX_SHEET_ELEMENTS)
            writer.end_table()
    writer.truncated = writer.truncated or values.is_cut
    return writer.build_extracted(archive.read_properties())


class _SharedStrings(XmlHandler):
    """The texts that cells refer to by number; `is_cut` says that not all of them were kept."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_cut = self._in_text = False
        self._parts: list[str] | None = None
        self._silent, self._left = 0, MAX_STRING_CHARS

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "si":
            self._parts = []
        self._silent += name == "rPh"  # how a Japanese word is read
        self._in_text = name == "t" and not self._silent

    def text(self, text: str) -> None:
        if self._in_text and self._parts is not None and self._left > 0:
            self._left -= len(text)
            self._parts.append(text)

    def end(self, name: str) -> None:
        self._in_text = False
        self._silent -= name == "rPh"
        if name == "si" and self._parts is not None:
            self.is_cut = self._left <= 0 or len(self.texts) >= MAX_STRINGS
            if self.is_cut:
                raise EnoughText
            self.texts.append("".join(self._parts)[:MAX_CELL_CHARS])
            self._parts = None


class _NumberFormats(XmlHandler):
    """Which styles of cells show dates, which show percentages, and how others show their numbers."""

    def __init__(self) -> None:
        self.kinds: list[_ShownAs] = []  # by the number of the style
        self._own: dict[int, _ShownAs] = {}
        self._in_cells = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "numFmt" and len(self._own) < MAX_FORMATS:
            self._own[parse_number(attributes.get("numFmtId", ""))] = _parse_format(attributes.get("formatCode", ""))
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells and len(self.kinds) < MAX_FORMATS:
            number = parse_number(attributes.get("numFmtId", ""))
            if number not in self._own:  # the workbook does not describe it
                self._own[number] = _parse_format(_BUILT_IN_FORMATS.get(number, ""))
            self.kinds.append(self._own[number])

    def end(self, name: str) -> None:
        self._in_cells = self._in_cells and name != "cellXfs"


class _Values:
    def __init__(self, strings: _SharedStrings, formats: _NumberFormats, *, since_1904: bool) -> None:
        self.is_cut = False
        self.cells_left = MAX_CELLS
        self._strings, self._formats = strings, formats
        self._day_zero = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)

    def show(self, kind: str, style: str, value: str, formula: str) -> str:
        if not value and formula:
            return f"={formula}"
        if kind == "s":
            place = parse_number(value)
            self.is_cut = self.is_cut or (place >= len(self._strings.texts) and self._strings.is_cut)
            return self._strings.texts[place] if place < len(self._strings.texts) else ""
        if kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, value)
        if kind in ("str", "inlineStr", "e", "d"):
            return value
        style_number, kinds = parse_number(style), self._formats.kinds
        shown_as = kinds[style_number] if style_number < len(kinds) else None
        try:
            number = float(value[:100])
            if shown_as == "date":
                moment = self._day_zero + timedelta(seconds=round(number * 86_400))
                if 0 <= number < 1:
                    return moment.strftime("%H:%M:%S").removesuffix(":00")
                return _show_moment(moment)
            if shown_as == "percent":
                return f"{number * 100:.12g}%"
            if abs(number) >= MAX_SHOWN_NUMBER:
                return value
            return shown_as(number) if shown_as else f"{number:.15g}"
        except (ValueError, OverflowError):
            return value


class _Rows(XmlHandler):
    def __init__(self, writer: MarkdownWriter, values: _Values) -> None:
        self._writer, self._values = writer, values
        self._last_row = self._column = self._silent = self._unshown = 0
        self._row: list[str] = []
        self._cell: Attributes = {}
        self._value: list[str] = []
        self._formula: list[str] = []
        self._into: list[str] | None = None

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "row":
            here = parse_number(attributes.get("r", "")) or self._last_row + 1
            if here > self._last_row + 1 or not any(self._row):
                self._writer.end_table()  # a row that is left out ends a table
            self._last_row, self._row, self._column = here, [], 0
        elif name == "c":
            self._cell, self._value, self._formula = attributes, [], []
            if match := _COLUMN.match(attributes.get("r", "")):  # 27 of `AB5`; the next one where it does not say
                number = 0
                for letter in match[1]:
                    number = number * 26 + ord(letter) - 64
                self._column = number - 1
        elif name in ("v", "t") and not self._silent:
            self._into = self._value
        elif name == "f":
            self._into = self._formula
        self._silent += name == "rPh"

    def text(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text[:MAX_CELL_CHARS])

    def end(self, name: str) -> None:
        self._silent -= name == "rPh"
        if name in ("v", "t", "f"):
            self._into = None
        elif name == "c":
            kind, style = self._cell.get("t", ""), self._cell.get("s", "")
            text = self._values.show(kind, style, "".join(self._value), "".join(self._formula))
            if text and self._column < MAX_COLUMNS:
                self._row += [""] * (self._column + 1 - len(self._row))
                self._row[self._column] = text
            else:
                self._values.is_cut = self._values.is_cut or bool(text)
                self._unshown += 1
            self._column += 1
            self._values.cells_left -= 1
            if self._values.cells_left < 0 or self._unshown > MAX_UNSHOWN_CELLS:
                self._values.is_cut = True
                raise EnoughText
        elif name == "row" and self._row:
            self._writer.add_row(self._row)


class _Section(Struct, frozen=True):
    before: str
    after: str
    digits: str

    def show(self, number: float) -> str:
        if not self.digits:
            return self.before.strip()
        whole, _, decimals = self.digits.rstrip(",").partition(".")
        thousands = len(self.digits) - len(self.digits.rstrip(","))
        places = min(len(decimals), MAX_DECIMALS)
        text = f"{abs(number) / 1000**thousands:{',' if ',' in whole else ''}.{places}f}"
        if optional := len(decimals) - len(decimals.rstrip("#")):
            text = text[:-optional] + text[-optional:].rstrip("0") if places == len(decimals) else text
            text = text.rstrip(".")
        return f"{self.before}{text.zfill(whole.count('0')) if ',' not in whole else text}{self.after}".strip()


def _parse_format(code: str) -> _ShownAs:
    """How cells in the format of this code show a number; None for one that is plain, or in a way that is not known here."""
    # Fractions, powers of ten and formats with conditions are not known: numbers in them are shown plainly.
    code = code[:MAX_CODE_CHARS]
    letters = _NOT_LETTERS.sub("", code).lower()
    if "%" in letters:
        return "percent"
    if any(letter in letters for letter in "ymdhs") and "general" not in letters:
        return "date"
    # At its semicolons, but not at those inside quotation marks.
    codes = re.findall(r'((?:"[^"]*"|\\.|[^;"\\])*)(?:;|$)', code)
    sections = [_parse_section(part) for part in codes[: min(3, code.count(";") + 1)]]
    parts = [section for section in sections if section]
    if len(parts) < len(sections) or not parts[0].digits:
        return None

    def show(number: float) -> str:
        # The sections are for numbers above zero, below it, and for zero.
        if number == 0 and len(parts) > 2:
            return parts[2].show(number)
        if number < 0 and len(parts) > 1:
            return parts[1].show(number)
        text = parts[0].show(number)
        return f"-{text}" if number < 0 and any(digit in text for digit in "123456789") else text

    return show


def _parse_section(code: str) -> _Section | None:
    words, digits = ["", ""], ""
    for token in _FORMAT_TOKEN.finditer(code):
        if token["digits"]:
            if digits:
                return None  # a fraction, a power of ten, or a number in parts
            digits = token["digits"]
        elif token["sign"] not in _SIGNS or any(condition in (token["bracket"] or "") for condition in "<>="):
            return None
        else:
            words[bool(digits)] += token["quoted"] or token["escaped"] or token["currency"] or token["sign"] or ""
    return _Section(words[0], words[1], digits)


def read_binary_workbook(data: bytes, max_chars: int) -> Extracted:
    """The same of a workbook of Excel 97 or of a binary one; values are shown as they are stored. Raises FetchError."""
    # The library lays a sheet out whole: what a hostile file can cost is bounded by the worker's memory and time.
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = [sheet.name for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        with MarkdownWriter(max_chars) as writer:
            writer.truncated = len(sheets) > MAX_SHEETS
            for name in sheets[:MAX_SHEETS]:
                writer.add_heading(2, name)
                for row in book.get_sheet_by_name(name).iter_rows():
                    cells = [_show_stored(value) for value in row[: MAX_COLUMNS + 1]]
                    if any(cells):
                        writer.add_row(cells)
                writer.end_table()
    except PasswordError as error:
        raise encrypted_error() from error
    except (CalamineError, ValueError, OSError) as error:
        raise broken_error(str(error)[:200]) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the parser's Rust, which is no Exception and has no module to import
            raise
        raise broken_error(str(error)[:200]) from error
    about = BoundedArchive(data).read_properties() if data.startswith(b"PK") else CompoundFile(data).read_properties()
    return writer.build_extracted(about)


def _show_stored(value: Any) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float():
            return f"{value + 0.0:.15g}"  # which makes -0.0 a plain 0
        case datetime():
            return _show_moment(value)
    return str(value)


def _show_moment(moment: datetime) -> str:
    """A day, with its time where that is not midnight, to the second where it needs one."""
    return moment.isoformat(" ", "seconds").removesuffix(" 00:00:00").removesuffix(":00")


def read_csv(data: bytes, max_chars: int) -> Extracted:
    """The rows as a table, with the separator that most lines of the beginning share. Raises FetchError."""
    text = charset.decode_body(data)
    lines = [line for line in islice(_lines_of(text), SAMPLE_LINES) if line.strip()]
    line_counts = {sign: sum(sign in line for line in lines) for sign in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda sign: (line_counts[sign], sum(line.count(sign) for line in lines)))
    return _write_rows(text, separator, max_chars)


def read_tsv(data: bytes, max_chars: int) -> Extracted:
    """The same where tabs separate the values. Raises FetchError."""
    return _write_rows(charset.decode_body(data), "\t", max_chars)


def _write_rows(text: str, separator: str, max_chars: int) -> Extracted:
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        with MarkdownWriter(max_chars) as writer:
            for row in csv.reader(_lines_of(text), delimiter=separator):
                writer.add_row(row)
    except csv.Error as error:
        raise broken_error(str(error)) from error
    return writer.build_extracted({})


def _lines_of(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end].replace("\0", "")
        start = end
