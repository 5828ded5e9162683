"""A table of values in the forms people keep it in: Markdown, CSV, JSON, a workbook.

Every form has the quote of each value; the same table gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from nexi.tables.cells import NOT_STATED, Cell, Row, ValueTable
from nexi.text.controls import clean_line
from nexi.text.scope import find_periods

MAX_SHEET_TEXT = 32_767  # characters that a cell of a workbook may have
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r")
_NUMERIC = re.compile(r"[+-]?[\d.,]+\s?%?$")
_AS_OF = re.compile(r"\b(?:as of|as at|valid from|since)\b(.{0,40})", re.IGNORECASE)
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_XML_INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def render_table(table: ValueTable, form: str) -> bytes:
    if form == "xlsx":
        return table_workbook(table)
    if form == "json":
        return (json.dumps(table_json(table), ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
    return (_table_csv(table) if form == "csv" else table_markdown(table)).encode("utf-8", "replace")


def table_json(table: ValueTable) -> dict[str, Any]:
    return {
        "schema": "nexi-table-1",
        "columns": [column.text for column in table.columns],
        "model": table.model,
        "gap": table.gap,
        "rows": [
            {
                "document": row.name,
                "url": row.url,
                "title": row.title,
                "date": row.date,
                "digest": row.digest,
                "problem": row.problem,
                "cells": [
                    {"value": c.value, "quote": c.quote, "page": c.page or None, "heading": c.heading}
                    | {"date": _date_of(row, c), "stated": c.is_stated}
                    for c in row.cells
                ],
            }
            for row in table.rows
        ],
    }


def table_markdown(table: ValueTable) -> str:
    """The table for people: values first, then the words that each was taken from."""
    heads = ["Document", *(column.text for column in table.columns)]
    lines = [_markdown_row(heads), _markdown_row(["---"] * len(heads))]
    for row in table.rows:
        name = clean_line(row.name) + (f" ({row.date[:10]})" if row.date else "")
        lines.append(_markdown_row([name, *(_shown(row, cell) for cell in row.cells)]))
    quotes = []
    for row, name, cell in _stated(table):
        page, heading = f"page {cell.page}" if cell.page else "", f"under “{clean_line(cell.heading)}”" if cell.heading else ""
        place = ", ".join(filter(None, (page, heading, _date_of(row, cell))))
        quote = f"- {clean_line(row.name)}, {clean_line(name)}: “{clean_line(cell.quote)}”"
        quotes.append(f"{quote} ({place})" if place else quote)
    if quotes:
        lines += ["", "## Where each value stands", "", *quotes]
    if unread := [row for row in table.rows if row.problem]:
        lines += ["", "## Not read", "", *(f"- {clean_line(row.name)}: {clean_line(row.problem)}" for row in unread)]
    if table.gap:
        lines += ["", f"Note: {table.gap}."]
    return "\n".join(lines) + "\n"


def _table_csv(table: ValueTable) -> str:
    """One line for each document, with the quote beside each value. Text that a spreadsheet would run is kept as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["document", "date", *(f"{c.text}{more}" for c in table.columns for more in ("", " (quote)", " (date)"))])
    for row in table.rows:
        cells = [part for cell in row.cells for part in (cell.value if cell.is_stated else "", cell.quote, _date_of(row, cell))]
        parts = (row.name, row.date, *cells)
        writer.writerow([f"'{p}" if p.startswith(_FORMULA_START) and not _NUMERIC.match(p) else p for p in parts])
    return out.getvalue()


def table_workbook(table: ValueTable) -> bytes:
    """A workbook of two sheets: the values, and the words that each was taken from."""
    values = [["Document", "Date", *(c.text for c in table.columns)]]
    values += [[row.name, row.date, *(_shown(row, cell) for cell in row.cells)] for row in table.rows]
    quotes = [["Document", "Column", "Value", "Quote", "Page", "Heading", "Date"]]
    quotes += [[r.name, name, c.value, c.quote, str(c.page or ""), c.heading, _date_of(r, c)] for r, name, c in _stated(table)]
    # the parts beside the sheets are those that every program wants and no more
    parts: dict[str, str] = json.loads(Path(__file__).with_name("workbook.json").read_bytes())
    parts |= {f"xl/worksheets/sheet{n}.xml": _render_sheet(rows) for n, rows in enumerate((values, quotes), 1)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_DATE), body, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _stated(table: ValueTable) -> Iterator[tuple[Row, str, Cell]]:
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell.is_stated:
                yield row, column.text, cell


def _shown(row: Row, cell: Cell) -> str:
    if row.problem:
        return "not read"
    return clean_line(cell.value) if cell.is_stated else NOT_STATED


def _date_of(row: Row, cell: Cell) -> str:
    """The time that a value is of: what its quote says ("as of March 2024"), else the day of the document."""
    if not cell.is_stated:
        return ""
    periods = find_periods(match[1]) if (match := _AS_OF.search(cell.quote)) else ()
    return str(periods[0]) if periods else row.date[:10]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _render_sheet(rows: Sequence[Sequence[str]]) -> str:
    body = ""
    for row in rows:
        texts = (escape(_XML_INVALID.sub("", text)[:MAX_SHEET_TEXT]) for text in row)
        # text stays text: no program computes it
        cells = (f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>' for text in texts)
        body += f"<row>{''.join(cells)}</row>"
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{body}</sheetData></worksheet>"
    )
