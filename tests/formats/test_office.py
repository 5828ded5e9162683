"""Files that the libraries of their formats wrote become Markdown: Word, Excel, PowerPoint and OpenDocument."""

from __future__ import annotations

import openpyxl

from nexi.extract import Extracted
from nexi.formats import extract, sniff_type, type_of_name
from tests.formats import samples


def read(data: bytes, name: str) -> Extracted:
    assert sniff_type(data) == type_of_name(name)
    return extract(data, type_of_name(name), "")


def test_the_lists_of_word_keep_their_bullets_and_numbers() -> None:
    assert read(samples.a_word_document(), "a.docx").text == (
        "# Making tea\n\n- Kettle\n- Leaves\n  - Green ones\n\n1. Boil\n2. Pour\n\nDrink it.\n\n"
        "| Leaf | Minutes |\n| --- | --- |\n| Sencha | 2 |"
    )


def test_the_sheets_of_a_workbook_are_tables_under_their_names() -> None:
    book = samples.a_workbook()  # it holds the second at which it was made
    assert read(book, "a.xlsx") == Extracted(
        text=(
            "## Yields\n\n| Field | Picked on | Share | Kilograms | Sold |\n| --- | --- | --- | --- | --- |\n"
            "| North \\| upper | 2026-05-04 | 12.5% | 1234.5 | TRUE |\n"
            "| South | 2026-05-06 07:30 | 50% | 0.3 | FALSE |\n\n"
            "| Total | =SUM(D2:D3) |\n| --- | --- |\n\n## Empty\n\n## Notes\n\n| One line |\n| --- |"
        ),
        title="Harvest",
        author="A. Leaf",
        published=read(book, "a.xlsx").published,
        updated=read(book, "a.xlsx").updated,
        headings=("Yields", "Empty", "Notes"),
    )


def test_a_long_table_repeats_its_header_so_that_a_passage_of_it_can_be_read_alone() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.append(["Number", "Square"])
    for number in range(1, 501):
        sheet.append([number, number**2])
    blocks = read(samples.saved(workbook), "a.xlsx").text.split("\n\n")[1:]
    rows = [line for block in blocks for line in block.split("\n")[2:]]
    assert {block.split("\n")[0] for block in blocks} == {"| Number | Square |"}
    assert rows == [f"| {number} | {number**2} |" for number in range(1, 501)]
    assert max(map(len, blocks)) < 1_200


def test_a_sheet_that_the_workbook_hides_says_so() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["shown"])
    for state in ("hidden", "veryHidden"):
        workbook.create_sheet(state).sheet_state = state
        workbook[state].append([f"in {state}"])
    headings = [line for line in read(samples.saved(workbook), "a.xlsx").text.split("\n") if line.startswith("#")]
    assert headings == ["## Sheet", "## hidden (hidden)", "## veryHidden (hidden)"]


def test_a_workbook_of_more_text_than_is_kept_says_that_it_was_cut() -> None:
    found = extract(samples.a_workbook(), type_of_name("a.xlsx"), "", max_chars=100)
    assert (found.truncated, len(found.text)) == (True, 99)
    assert not read(samples.a_workbook(), "a.xlsx").truncated


def test_the_slides_of_a_presentation_have_titles_points_tables_and_notes() -> None:
    found = read(samples.a_presentation(), "a.pptx")
    assert (found.title, found.headings) == ("Tea for all", ("Slide 1: Why tea", "Slide 2"))
    assert found.text == (
        "## Slide 1: Why tea\n\n- It is warm\n  - Even in winter\n\nNotes: Smile here.\n\n"
        "## Slide 2\n\nA loose remark\n\n| Leaf | Minutes |\n| --- | --- |\n| Sencha | 2 |"
    )


def test_an_open_document_text_keeps_headings_links_and_lists() -> None:
    found = read(samples.open_text(), "a.odt")
    assert (found.author, found.headings) == ("A. Leaf", ("Water",))
    assert found.text == "## Water\n\nBoil [it](https://tea.test/) well.\n\n- Cup\n- Pot\n\n1. First\n2. Second"


def test_an_open_document_spreadsheet_is_tables_without_its_empty_millions() -> None:
    found = read(samples.open_sheet(), "a.ods")
    assert found.text == "## Yields\n\n| Field | Kilograms |\n| --- | --- |\n| North | 12.5 |\n| South | 3 |"
    assert not found.truncated


def test_an_open_document_presentation_has_a_heading_for_each_slide() -> None:
    found = read(samples.open_slides(), "a.odp")
    assert found.text == "## Slide 1: Why tea\n\nIt is warm.\n\n## Slide 2\n\nNo title here."
