"""Tables of PDFs: cells by row and column, and prose that stays prose."""

from __future__ import annotations

import pytest

from evals.table_cells import count_right_cells, parse_tables
from evals.table_documents import PDF_TABLES, PROSE, SampleTable, draw_pages, show_text, table_pdf, write_pdf
from nexi.formats.pdf import read_pdf


def page_of(*lines: tuple[float, float, str]) -> str:
    """The text of a page with these texts at these places."""
    return read_pdf(write_pdf(["\n".join(show_text(text, x, y) for x, y, text in lines)])).text


def lines_at(x: float, texts: list[str]) -> list[tuple[float, float, str]]:
    return [(x, 700 - 14 * n, text) for n, text in enumerate(texts)]


@pytest.mark.parametrize("table", PDF_TABLES, ids=lambda table: table.name)
def test_every_cell_stands_under_its_head_and_beside_its_label(table: SampleTable) -> None:
    cells = table.cells()
    assert count_right_cells(read_pdf(table_pdf(table)).text, cells) == len(cells)


def test_a_caption_and_the_prose_around_a_table_stay_in_their_order() -> None:
    table = next(table for table in PDF_TABLES if table.prose)
    text = read_pdf(table_pdf(table)).text
    before, caption, after = text.partition(table.caption)
    assert caption
    assert [line in before for line in PROSE] == [line in after for line in PROSE] == [True] * 3
    assert after.index("| Wheat |") < after.index(PROSE[0])


def test_a_table_that_goes_on_over_the_page_has_its_head_again() -> None:
    table = next(table for table in PDF_TABLES if len(draw_pages(table)) > 1)
    _, _, second = read_pdf(table_pdf(table)).text.partition("[page 2]")
    assert parse_tables(second)[0][0] == list(table.head)


def test_a_table_of_the_next_page_with_other_columns_keeps_to_itself() -> None:
    one = SampleTable("", ["", "2023", "2024"], [[f"Row {n}", "5", "7"] for n in range(40)], edges=(300, 400))
    other = SampleTable("", [""] * 4, [[f"Line {n}", "1", "2", "3"] for n in range(9)], edges=(200, 300, 500))
    _, _, second = read_pdf(write_pdf([*draw_pages(one), *draw_pages(other)])).text.partition("[page 2]")
    assert parse_tables(second)[0][:2] == [[""] * 4, ["Line 0", "1", "2", "3"]]
    assert "2023" not in second


PARAGRAPH = [
    "The canal was dug between",
    "the two rivers in four years",
    "by hand, and it needed 200",
    "men and 12 horses a day.",
]


@pytest.mark.parametrize(
    "page",
    [
        lines_at(60, list(PROSE)),
        [*lines_at(60, PARAGRAPH * 3), *lines_at(320, PARAGRAPH * 3)],  # two columns
        [part for two in zip(lines_at(60, PARAGRAPH), lines_at(320, PARAGRAPH), strict=True) for part in two],  # line by line
        [*lines_at(60, ["1.", "2.", "3.", "4."]), *lines_at(90, ["Apples", "Pears", "Plums", "Figs"])],
        [
            *lines_at(60, ["[1]", "[2]", "[3]"]),
            *lines_at(90, ["Velling, M. 1987. On paint. Journal of Lighthouses 12, 40-58."] * 3),
        ],
        [*lines_at(60, ["To the treasurer", "Quibberton"]), *lines_at(400, ["5 May 2024", "Our ref. 12"])],
        [(60.0 + 30 * n, 700.0 - 14 * m, "/\\|"[(n + m) % 3]) for m in range(5) for n in range(4)],
    ],
    ids=["prose", "two columns", "two columns line by line", "list", "references", "letter", "drawing"],
)
def test_prose_is_no_table(page: list[tuple[float, float, str]]) -> None:
    text = page_of(*page)
    assert "---" not in text
    assert all(word in text for _, _, line in page for word in line.split())


LEFT = [
    "The Danvers tunnel was",
    "dug by hand between the",
    "years 1871 and 1874. It",
    "is 412 metres long and",
    "leads under the river.",
]
RIGHT = [
    "In contrast, the Ewell",
    "canal needed no tunnel.",
    "It was opened in 1869,",
    "and its eleven locks are",
    "still worked by hand.",
]


def test_two_columns_that_were_written_line_by_line_are_read_one_after_the_other() -> None:
    heads = [(60.0, 730.0, "Tunnels and canals of the coast, a history of both in two columns of this report")]
    both = [part for two in zip(lines_at(60, LEFT), lines_at(320, RIGHT), strict=True) for part in two]
    last = [(320.0, 700.0 - 14 * 5, "Nobody lives there now.")]
    assert page_of(*heads, *both, *last).split("\n\n")[1:] == [
        "\n".join([heads[0][2], *LEFT]),
        "\n".join([*RIGHT, last[0][2]]),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([("Depth of the river here", "412"), ("Length of the tunnel", "88")] * 3, id="figures"),
        pytest.param([("To the treasurer of the town", "5 May 2024"), ("Quibberton on the coast", "Our ref. 12")], id="letter"),
        pytest.param([("Item", "What was said of it at the meeting")] * 6, id="labels"),
    ],
)
def test_what_may_be_no_column_is_read_line_by_line(rows: list[tuple[str, str]]) -> None:
    text = page_of(*(part for n, (a, b) in enumerate(rows) for part in ((60.0, 700.0 - 14 * n, a), (320.0, 700.0 - 14 * n, b))))
    assert text.index(rows[0][1]) < text.index(rows[1][0], text.index(rows[0][0]) + 1)


def test_a_compound_keeps_its_hyphen_at_the_end_of_a_line_where_the_page_has_it_elsewhere() -> None:
    lines = ["These are the high-", "dimensional spaces of the moun-", "tain, and a high-dimensional space is large."]
    assert page_of(*lines_at(60, lines)).partition("\n\n")[2].replace("\n", " ") == (
        "These are the high-dimensional spaces of the mountain, and a high-dimensional space is large."
    )


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    rows = [(("a|b", "Two", "Three")[n], str(5 + n), str(70 + n)) for n in range(3)]
    page = [(x, 700 - 14 * n, text) for n, row in enumerate(rows) for x, text in zip((60, 200, 300), row, strict=True)]
    assert parse_tables(page_of(*page)) == [[[""] * 3, ["a|b", "5", "70"], ["Two", "6", "71"], ["Three", "7", "72"]]]
