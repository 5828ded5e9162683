"""PDF to text: pages by number, metadata, and documents that cannot be read."""

from __future__ import annotations

import pytest

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats import extract, pdf, sniff_type, to_text
from tests.formats import documents


def failure(data: bytes) -> tuple[str, str]:
    with pytest.raises(FetchError) as caught:
        pdf.read_pdf(data)
    assert caught.value.fix
    return caught.value.reason, caught.value.cause


def test_pages_are_numbered_and_the_document_says_what_it_is() -> None:
    info = "/Title (On \x02Tea) /Author (A. Leaf) /CreationDate (D:20260305120000Z) /Subject (Leaves and water)"
    assert extract(documents.pdf(["Water first", "", "Then leaves"], info), "application/pdf", "") == Extracted(
        text="[page 1]\n\nWater first\n\n[page 3]\n\nThen leaves",
        title="On Tea",
        author="A. Leaf",
        published="2026-03-05",
        description="Leaves and water",
    )


def test_a_pdf_is_known_by_its_first_bytes() -> None:
    assert sniff_type(b"\r\n%PDF-1.7 ...") == "application/pdf"


def test_a_document_with_a_password_says_so() -> None:
    assert failure(documents.encrypted_pdf()) == ("content_type", "encrypted: needs a password")


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4 nonsense", documents.pdf(["x"])[:60], b"%PDF-1.4\n%%EOF"])
def test_a_broken_document_is_an_error(data: bytes) -> None:
    assert failure(data)[0] == "error"


def test_pages_of_pictures_have_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no tesseract
    assert failure(documents.pdf(["", ""])) == ("content_type", "its pages are pictures")


def test_reading_ends_where_enough_was_read() -> None:
    assert (
        pdf.read_pdf(documents.pdf(["abc"] * 50), max_chars=30).text == "[page 1]\n\nabc\n\n[page 2]\n\nabc\n\n[page 3]\n\nabc"
    )


def test_a_very_long_document_says_which_pages_were_left_out() -> None:
    text = pdf.read_pdf(documents.pdf(["a", "b", "c", "d"]), max_pages=2).text
    assert text == "[page 1]\n\na\n\n[page 2]\n\nb\n\n[pages 3 to 4 were not read]"


@pytest.mark.parametrize(("said", "date"), [("D:2026", "2026"), ("20260305", "2026-03-05"), ("yesterday", ""), ("", "")])
def test_a_date_is_read_as_far_as_it_goes(said: str, date: str) -> None:
    assert pdf.read_pdf(documents.pdf(["x"], f"/CreationDate ({said})")).published == date


@pytest.mark.parametrize(
    ("title", "large", "named"),
    [
        ("(anonymous)", 24, "Harvest of the north field"),
        ("0001018724-20-000004", 24, "Harvest of the north field"),
        ("about:blank", 24, "Harvest of the north field"),
        ("", 24, "Harvest of the north field"),
        ("Barley", 24, "Barley"),
        ("untitled", 10, "harvest.pdf"),
    ],
)
def test_a_document_is_called_what_it_says_else_by_its_largest_line_else_by_its_name(
    title: str, large: int, named: str
) -> None:
    stream = (
        f"BT /F1 {large} Tf 72 720 Td (Harvest of the north field) Tj ET "
        "BT /F1 10 Tf 72 680 Td (Nine tonnes of barley came from it in the year after the flood.) Tj ET"
    )
    escaped = title.replace("(", "\\(").replace(")", "\\)")
    data = documents.pdf_of([stream.encode()], f"/Title ({escaped})" if title else "")
    assert to_text(data, name="harvest.pdf").title == named
