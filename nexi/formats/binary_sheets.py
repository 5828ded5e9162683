"""Excel 97 workbooks and binary ones to Markdown: a heading for each sheet and its rows as tables.

Above sits `extract`; below, `python_calamine` parses the bytes. It lays a sheet out whole, so what a hostile file can cost is
bounded by the worker's memory and time. Formats of numbers are not known here: values are shown as they are stored.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetTypeEnum

from nexi.extract.words import Extracted
from nexi.extract.writer import MAX_COLUMNS, MarkdownWriter
from nexi.formats._containers import BoundedArchive, broken_error, build_extracted, encrypted_error
from nexi.formats.compound import CompoundFile, read_summary

MAX_SHEETS = 500


def read_workbook(data: bytes, max_chars: int) -> Extracted:
    """The sheets of a workbook in their order. Raises FetchError."""
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = [sheet.name for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        with MarkdownWriter(max_chars) as writer:
            writer.truncated = len(sheets) > MAX_SHEETS
            for name in sheets[:MAX_SHEETS]:
                writer.add_heading(2, name)
                for row in book.get_sheet_by_name(name).iter_rows():
                    cells = [_show_value(value) for value in row[: MAX_COLUMNS + 1]]
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
    about = BoundedArchive(data).read_properties() if data.startswith(b"PK") else read_summary(CompoundFile(data))
    return build_extracted(writer, about)


def _show_value(value: Any) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime() if not (value.hour or value.minute or value.second):
            return value.date().isoformat()
        case datetime():
            return value.isoformat(" ", "minutes" if not value.second else "seconds")
    return str(value)
