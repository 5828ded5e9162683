"""A table in the forms people keep it in: nothing is lost, nothing is computed, the same table gives the same bytes."""

from __future__ import annotations

import csv
import io

from openpyxl import load_workbook

from nexi.output.value_table import _table_csv, table_json, table_markdown, table_workbook
from nexi.tables.cells import Cell, Column, Row, ValueTable

TABLE = ValueTable(
    (Column("price"), Column("note")),
    (
        Row("a.pdf", "a.pdf", "A", "2024-03-01", "d", (Cell("40 €", "The price is 40 €.", 2, "Costs"), Cell("=1+1", "=1+1"))),
        Row("b|c.md", "b.md", "B", "", "e", (Cell(), Cell("x | y", "x | y"))),
        Row("c.bin", "c.bin", cells=(Cell(), Cell()), problem="its format is not read"),
    ),
    gap="only the first 500 documents were read",
)


def test_the_markdown_has_values_quotes_places_and_what_was_not_read() -> None:
    assert table_markdown(TABLE) == (
        "| Document | price | note |\n"
        "| --- | --- | --- |\n"
        "| a.pdf (2024-03-01) | 40 € | =1+1 |\n"
        "| b\\|c.md | not stated | x \\| y |\n"
        "| c.bin | not read | not read |\n"
        "\n## Where each value stands\n\n"
        "- a.pdf, price: “The price is 40 €.” (page 2, under “Costs”, 2024-03-01)\n"
        "- a.pdf, note: “=1+1” (2024-03-01)\n"
        "- b|c.md, note: “x | y”\n"
        "\n## Not read\n\n"
        "- c.bin: its format is not read\n"
        "\nNote: only the first 500 documents were read.\n"
    )


def test_the_csv_keeps_what_a_spreadsheet_would_run_as_text() -> None:
    rows = list(csv.reader(io.StringIO(_table_csv(TABLE))))
    assert rows[0] == ["document", "date", "price", "price (quote)", "price (date)", "note", "note (quote)", "note (date)"]
    assert rows[1] == ["a.pdf", "2024-03-01", "40 €", "The price is 40 €.", "2024-03-01", "'=1+1", "'=1+1", "2024-03-01"]
    assert rows[2][2:5] == ["", "", ""]


def test_the_workbook_opens_and_computes_nothing() -> None:
    book = load_workbook(io.BytesIO(table_workbook(TABLE)))
    assert book.sheetnames == ["Values", "Quotes"]
    assert [cell.value for cell in book["Values"][2]] == ["a.pdf", "2024-03-01", "40 €", "=1+1"]
    assert book["Values"]["D2"].data_type == "s"
    assert [cell.value for cell in book["Quotes"][2]] == [
        "a.pdf",
        "price",
        "40 €",
        "The price is 40 €.",
        "2",
        "Costs",
        "2024-03-01",
    ]
    assert table_workbook(TABLE) == table_workbook(TABLE)


def test_the_json_says_of_each_cell_whether_it_is_stated() -> None:
    rows = table_json(TABLE)["rows"]
    assert rows[0]["cells"][0] == {
        "value": "40 €", "quote": "The price is 40 €.", "page": 2, "heading": "Costs", "date": "2024-03-01", "stated": True,
    }  # fmt: skip
    assert rows[1]["cells"][0]["stated"] is False


def test_a_value_is_of_the_time_that_its_quote_names() -> None:
    cell = Cell("40 €", "As of March 2023, the price is 40 €.")
    table = ValueTable((Column("price"),), (Row("a.pdf", "a.pdf", "A", "2024-03-01", "d", (cell,)),))
    assert table_json(table)["rows"][0]["cells"][0]["date"] == "March 2023"
