"""Word 97, Excel 97, binary Excel, Outlook, zip archives and charts are read; hostile ones end in an error of ours."""

from __future__ import annotations

import io
import struct
import zipfile
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats import find_type, to_text
from tests.formats.binary_workbooks import a_binary_workbook, a_summary, an_excel_97_workbook
from tests.formats.compound_files import a_word_97_document, an_outlook_message

WORD = a_word_97_document(
    'Harvest\rThe north field gave \x13 HYPERLINK "https://x.example" \x14nine tonnes\x15.\r'
    "Field\x07Tonnes\x07\x07North\x079\x07\x07\r",
    "Weighed in May.\r",
)
YIELDS = [["Field", "Picked on", "Tonnes"], ["North", 46146.0, 9.25], ["South", 46148.0, -3.0]]
SUMMARY = a_summary(created=130_000_000_000_000_000, modified=135_000_000_000_000_000)
BOOK = an_excel_97_workbook("Yields", YIELDS, dates=1, summary=SUMMARY)
BINARY_BOOK = a_binary_workbook("Yields", YIELDS)
MESSAGE = an_outlook_message("The ferry", "It sails at noon.\r\nBring the map.", "map.pdf")


def read(data: bytes, name: str) -> Extracted:
    return to_text(data, name=name)


def zip_of(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return stream.getvalue()


def test_the_text_of_a_word_97_document_comes_with_its_tables_and_footnotes() -> None:
    assert read(WORD, "a.doc").text == (
        "Harvest\n\nThe north field gave nine tonnes.\n\n| Field | Tonnes |\n| --- | --- |\n| North | 9 |\n\n"
        "[1] Weighed in May."
    )


def test_an_outlook_message_names_its_sender_its_day_and_its_attachments() -> None:
    found = read(MESSAGE, "a.msg")
    assert (found.title, found.author, found.published[:10]) == ("The ferry", "A. Leaf <leaf@garden.example>", "2028-10-19")
    assert "It sails at noon.\nBring the map." in found.text
    assert "[attachments, not read: map.pdf]" in found.text


def test_the_sheets_of_excel_97_are_tables_dated_by_their_last_change() -> None:
    found = read(BOOK, "a.xls")
    assert found.text == (
        "## Yields\n\n| Field | Picked on | Tonnes |\n| --- | --- | --- |\n| North | 2026-05-04 | 9.25 |\n"
        "| South | 2026-05-06 | -3 |"
    )
    assert (found.published[:10], found.updated[:10]) == ("2028-10-19", "2028-10-19")


def test_the_sheets_of_binary_excel_are_tables() -> None:
    assert read(BINARY_BOOK, "a.xlsb").text == (
        "## Yields\n\n| Field | Picked on | Tonnes |\n| --- | --- | --- |\n| North | 46146 | 9.25 |\n| South | 46148 | -3 |"
    )


def test_a_workbook_whose_damage_makes_its_parser_panic_is_refused_as_broken() -> None:
    place = BOOK.index(b"\x85\x00") + 4  # where the record of the sheet says that it begins
    damaged = BOOK[:place] + b"\xff\xff\xff\x00" + BOOK[place + 4 :]
    with pytest.raises(FetchError, match="the document is broken") as refused:
        read(damaged, "a.xls")
    assert "out of range" in refused.value.cause
    found = read(zip_of(a_md=b"# Boat", b_xls=damaged), "papers.zip")
    assert found.text == "# a.md\n\n# Boat\n\n[not read: b.xls]"


def test_old_office_files_are_known_by_their_bytes() -> None:
    assert [find_type(data, "") for data in (WORD, MESSAGE, BOOK, BINARY_BOOK)] == [
        "application/msword",
        "application/vnd.ms-outlook",
        "application/vnd.ms-excel",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    ]


def test_the_documents_of_a_zip_are_read_and_the_others_named() -> None:
    inner = zip_of(deep_md=b"# Deep")
    found = read(zip_of(a_md=b"# Boat\n\nIt is red.", b_doc=WORD, c_zip=inner, d_bin=b"\0\1" * 99), "papers.zip")
    assert found.text.startswith("# a.md\n\n# Boat\n\nIt is red.\n\n# b.doc\n\nHarvest")
    assert found.text.endswith("[not read: c.zip, d.bin]")


def test_a_zip_without_a_document_is_refused_with_what_it_holds() -> None:
    with pytest.raises(FetchError, match="holds no document") as refused:
        read(zip_of(d_bin=b"\0\1" * 99, e_zip=zip_of(a_md=b"# Deep")), "a.zip")
    assert refused.value.cause == "it holds d.bin, e.zip"


def test_a_zip_that_unpacks_to_too_much_names_what_was_not_read() -> None:
    bomb = zip_of(a_txt=b"It is red.", b_txt=b"a" * 9_000_000)
    assert read(bomb, "a.zip").text == "# a.txt\n\nIt is red.\n\n[not read: b.txt]"


@given(
    st.lists(st.tuples(st.integers(0, len(WORD) - 4), st.integers(0, 2**32 - 1)), max_size=6),
    st.sampled_from((WORD, MESSAGE, BOOK)),
)
def test_a_broken_compound_file_gives_text_or_an_error_of_ours(changes: list[tuple[int, int]], whole: bytes) -> None:
    data = bytearray(whole)
    for place, word in changes:
        if place + 4 <= len(data):
            struct.pack_into("<I", data, place, word)
    with suppress(FetchError):
        assert isinstance(read(bytes(data), "a.doc").text, str)


def test_the_data_of_a_chart_is_a_table() -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Sales"
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["2024", "2025"]
    data.add_series("Tea", (5, 7.5))
    data.add_series("Coffee", (3, 4))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(1), Inches(5), Inches(4), data)
    stream = io.BytesIO()
    deck.save(stream)
    text = read(stream.getvalue(), "a.pptx").text
    assert "|  | Tea | Coffee |\n| --- | --- | --- |\n| 2024 | 5 | 3 |\n| 2025 | 7.5 | 4 |" in text


@pytest.mark.parametrize("title", ["(anonymous)", "untitled", "0001018724-20-000004", "about:blank", "PowerPoint Presentation"])
def test_a_title_that_says_nothing_gives_way_to_the_heading_or_the_name(title: str) -> None:
    import docx

    titles = []
    for heading in ("Harvest of the north field", ""):
        document = docx.Document()
        document.core_properties.title = title
        if heading:
            document.add_heading(heading, 1)
        document.add_paragraph("Nine tonnes.")
        stream = io.BytesIO()
        document.save(stream)
        titles.append(read(stream.getvalue(), "papers/harvest.docx").title)
    assert titles == ["Harvest of the north field", "harvest.docx"]
