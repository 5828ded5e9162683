"""Tables with cells over several rows or columns, of pages and of sheets: each row can be read alone."""

from __future__ import annotations

import pytest

from evals.table_cells import count_right_cells, parse_tables
from evals.table_documents import SHEET_TABLES, SampleTable, table_sheet
from nexi.extract.text import to_markdown
from nexi.extract.writer import MarkdownWriter
from nexi.formats import to_text

STORY = "<p>" + "Some words of a page about tables, of which there are enough to make an article of it. " * 6 + "</p>"


def markdown_of(table: str) -> str:
    return to_markdown(f"<body><article><h1>Tables</h1>{STORY}<table>{table}</table>{STORY}</article></body>", "")


def rows_of(table: str) -> list[list[str]]:
    (rows,) = parse_tables(markdown_of(table))
    return rows


def test_a_head_of_two_rows_becomes_one() -> None:
    head = "<tr><th rowspan=2>Region</th><th colspan=2>2023</th><th colspan=2>2024</th></tr>"
    below = "<tr><th>Q1</th><th>Q2</th><th>Q1</th><th>Q2</th></tr>"
    assert rows_of(f"<thead>{head}{below}</thead><tr><td>North</td><td>1</td><td></td><td>(3)</td><td>4</td></tr>") == [
        ["Region", "2023 Q1", "2023 Q2", "2024 Q1", "2024 Q2"],
        ["North", "1", "", "(3)", "4"],
    ]


def test_a_label_beside_several_rows_stands_in_each() -> None:
    rows = "<tr><td rowspan=3>North</td><td>1</td></tr><tr><td>2</td></tr><tr><td>3</td></tr><tr><td>South</td><td>4</td></tr>"
    assert rows_of(f"<tr><th>Region</th><th>Sum</th></tr>{rows}")[1:] == [
        ["North", "1"],
        ["North", "2"],
        ["North", "3"],
        ["South", "4"],
    ]


def test_a_long_text_beside_several_rows_is_written_once_and_the_columns_stay() -> None:
    note = "A remark of many words that nobody would want to read in every single row of the table."
    rows = f"<tr><td>1</td><td rowspan=2>{note}</td><td>x</td></tr><tr><td>2</td><td>y</td></tr>"
    assert rows_of(f"<tr><th>A</th><th>B</th><th>C</th></tr>{rows}")[1:] == [["1", note, "x"], ["2", "", "y"]]


def test_a_value_of_several_columns_stands_in_each() -> None:
    head = "<tr><th rowspan=2>Route</th><th colspan=2>Child</th></tr><tr><th>single</th><th>return</th></tr>"
    rows = "<tr><td rowspan=2>Orsa</td><td colspan=2>6</td></tr><tr><td>7</td><td>11</td></tr>"
    assert rows_of(head + rows) == [
        ["Route", "Child single", "Child return"],
        ["Orsa", "6", "6"],
        ["Orsa", "7", "11"],
    ]


def test_a_first_row_over_all_columns_is_the_title_of_the_table() -> None:
    text = markdown_of("<tr><th colspan=2>Rivers</th></tr><tr><th>Name</th><th>km</th></tr><tr><td>Orrin</td><td>212</td></tr>")
    assert "Rivers\n\n| Name | km |\n| --- | --- |\n| Orrin | 212 |" in text


@pytest.mark.parametrize("span", ["0", "-3", "x", "99999999999", "1000"])
def test_a_senseless_span_breaks_nothing(span: str) -> None:
    text = markdown_of(f"<tr><th>A</th><th>B</th></tr><tr><td rowspan={span} colspan={span}>One</td><td>Two</td></tr>")
    assert "One" in text
    assert "Two" in text


@pytest.mark.parametrize("table", SHEET_TABLES, ids=lambda table: table.name)
def test_every_cell_of_a_sheet_stands_under_its_head_and_beside_its_label(table: SampleTable) -> None:
    data, name = table_sheet(table)
    cells = table.cells()
    assert count_right_cells(to_text(data, name=name).text, cells) == len(cells)


def test_a_sheet_of_one_column_and_one_without_a_second_head_stay_as_they_are() -> None:
    for rows in ([["Notes"], ["a"], ["b"], ["c"]], [["Name", "", "Town"], ["X", "y", "z"], ["X", "1", "z"]]):
        writer = MarkdownWriter(1_000)
        for row in rows:
            writer.add_row(row)
        assert parse_tables(writer.markdown()) == [rows]


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        ("<tr><td>Founded</td><td>1975</td></tr><tr><td>Seat</td><td>Bonn</td></tr>", ["", ""]),
        ("<tr><th>Seat</th><td>Bonn</td></tr><tr><th>Staff</th><td>100</td></tr>", ["", ""]),
        ("<tr><td>Town</td><td>People</td></tr><tr><td>Bonn</td><td>331,000</td></tr>", ["Town", "People"]),
        ("<tr><td><b>Town</b></td><td>Mayor</td></tr><tr><td>Bonn</td><td>Dörner</td></tr>", ["**Town**", "Mayor"]),
        ("<tr><th>Town</th><th>Mayor</th></tr><tr><th>Bonn</th><td>Dörner</td></tr>", ["Town", "Mayor"]),
    ],
)
def test_a_table_whose_first_row_is_like_the_others_has_empty_heads(rows: str, head: list[str]) -> None:
    assert rows_of(rows)[0] == head
