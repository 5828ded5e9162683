"""Writes workbooks as Excel 97 (BIFF8 in a compound file) and as binary Excel (records in a zip) do."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.formats.archives import zipped
from tests.formats.compound_files import write_compound_file

Cell = str | float
GENERAL, DATE = 0, 1  # the two cell formats of a workbook
_RELATION = '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.bin"/></Relationships>'


def an_excel_97_workbook(name: str, rows: Sequence[Sequence[Cell]], *, dates: int = -1, summary: bytes = b"") -> bytes:
    """One sheet; the numbers of the column `dates` are days. `summary` is what the program says of the file."""
    sheet = _biff(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 1997, 0, 0))
    for row, cells in enumerate(rows):
        for column, value in enumerate(cells):
            place = struct.pack("<HHH", row, column, DATE if column == dates else GENERAL)
            if isinstance(value, str):
                sheet += _biff(0x0204, place + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))
            else:
                sheet += _biff(0x0203, place + struct.pack("<d", value))
    formats = b"".join(_biff(0x00E0, struct.pack("<HH", 0, number) + bytes(16)) for number in (0, 14))
    begin = _biff(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 1997, 0, 0)) + formats
    title = struct.pack("<BB", len(name), 1) + name.encode("utf-16-le")
    end = _biff(0x000A, b"")
    start = len(begin) + 4 + 6 + len(title) + len(end)
    book = begin + _biff(0x0085, struct.pack("<IBB", start, 0, 0) + title) + end + sheet + end
    return write_compound_file({"Workbook": book, **({"\x05SummaryInformation": summary} if summary else {})})


def _biff(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def a_binary_workbook(name: str, rows: Sequence[Sequence[Cell]]) -> bytes:
    sheet = _record(0x0094, struct.pack("<IIII", 0, len(rows) - 1, 0, max(map(len, rows)) - 1)) + _record(0x0091, b"")
    for row, cells in enumerate(rows):
        sheet += _record(0x0000, struct.pack("<I", row) + bytes(13))
        for column, value in enumerate(cells):
            place = struct.pack("<II", column, GENERAL)
            if isinstance(value, str):
                sheet += _record(0x0006, place + _wide(value))
            else:
                sheet += _record(0x0005, place + struct.pack("<d", value))
    book = _record(0x009C, struct.pack("<II", 0, 1) + _wide("r1") + _wide(name)) + _record(0x0090, b"") + _record(0x0084, b"")
    return zipped(
        {
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": _RELATION,
            "xl/worksheets/sheet1.bin": sheet + _record(0x0092, b""),
        }
    )


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _record(kind: int, data: bytes) -> bytes:
    """The kind and the length take seven bits of each byte; the eighth says that another follows."""
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(data)
    assert size < 0x4000
    return head + (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + data


def a_summary(*, created: int = 0, modified: int = 0) -> bytes:
    """The stream in which programs note when a file was made and last changed, in ticks of Windows."""
    values = [(number, struct.pack("<IQ", 64, ticks)) for number, ticks in ((12, created), (13, modified)) if ticks]
    places = [8 + 8 * len(values) + 12 * n for n in range(len(values))]
    table = b"".join(struct.pack("<II", key, place) for (key, _), place in zip(values, places, strict=True))
    section = struct.pack("<II", 0, len(values)) + table + b"".join(value for _, value in values)
    return struct.pack("<HHI", 0xFFFE, 0, 0) + bytes(16) + struct.pack("<I", 1) + bytes(16) + struct.pack("<I", 48) + section
