"""A small hostile document costs little computing time; CPU time is measured, which a busy machine does not change."""

from __future__ import annotations

import sys
import time

import pytest

from nexi.extract import Extracted
from nexi.formats import extract
from tests.formats import documents
from tests.formats.archives import zipped

pytestmark = pytest.mark.long

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MAX_CPU_S = 40.0 if sys.gettrace() else 10.0  # coverage makes every line dearer


def read_cheaply(data: bytes | str, kind: str) -> Extracted:
    started = time.process_time()
    read = extract(data, kind, "")
    assert time.process_time() - started < MAX_CPU_S
    return read


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        pytest.param(16_000, 100, id="beyond the last column"),
        pytest.param(200, 6_000, id="of one figure", marks=pytest.mark.long),
    ],
)
def test_a_sheet_of_a_million_cells_is_cut(columns: int, rows: int) -> None:
    sheet = ("<row>" + "<c><v>1</v></c>" * columns + "</row>") * rows
    data = zipped(
        {
            "xl/workbook.xml": '<workbook><sheets><sheet name="S" id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="s.xml"/></Relationships>',
            "xl/s.xml": f"<worksheet><sheetData>{sheet}</sheetData></worksheet>",
        }
    )
    read = read_cheaply(data, XLSX)
    assert (read.truncated, read.text.startswith("## S"), len(data) < 100_000) == (True, True, True)


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "zlib_codec"])
@pytest.mark.parametrize("byte", [b"", b"\xff"])
def test_a_message_in_what_is_no_charset_of_the_web_is_read_without_it(charset: str, byte: bytes) -> None:
    body = byte + b"a" * 400_000 + b"-" + b"zz9" * 500_000
    data = b'Subject: x\nContent-Type: text/plain; charset="' + charset.encode() + b'"\n\n' + body
    assert read_cheaply(data, "message/rfc822").title == "x"


def test_the_charset_of_a_message_holds_each_time_its_text_is_read() -> None:
    data = "Subject: x\nContent-Type: text/plain; charset=iso-8859-2\n\n\xa1\xb3\xea".encode("latin-1")
    assert extract(data, "message/rfc822", "").text == "# x\n\nĄłę"


@pytest.mark.parametrize(
    "header",
    [
        b"Subject: =?punycode?q?" + b"a" * 400_000 + b"-" + b"zz9" * 500_000 + b"?=",
        b"To: " + b"a <a@b.c>, " * 200_000,
        b"Content-Type: text/plain; " + b"; ".join(b"a*%d*=x" % number for number in range(60_000)),
    ],
    ids=["encoded word", "addresses", "parameters"],
)
def test_a_long_header_is_cut_before_it_is_taken_apart(header: bytes) -> None:
    assert read_cheaply(header + b"\nFrom: me\n\nhello", "message/rfc822").text.endswith("hello")


def test_many_encoded_lines_are_cut_in_linear_time() -> None:
    lines = (b"a" * 40 + b"\n") * 7_999 + b"-\n"
    assert read_cheaply(b"Subject: x\n\n" + lines * 12, "message/rfc822").truncated


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"\\u8364?\\b\\i0" * 1_200_000, id="controls"),
        pytest.param(b"{a}" * 2_000_000, id="groups", marks=pytest.mark.long),
        pytest.param(b"\\u1 " * 2_000_000, id="characters", marks=pytest.mark.long),
    ],
)
def test_rich_text_of_millions_of_parts_is_cut(part: bytes) -> None:
    assert read_cheaply(b"{\\rtf1 Hello. " + part + b"}", "application/rtf").truncated


@pytest.mark.parametrize(("slides", "shapes"), [(1, 70_000), pytest.param(300, 60_000, marks=pytest.mark.long)])
def test_a_presentation_of_many_shapes_is_cut(slides: int, shapes: int) -> None:
    said = "<sp><txBody><p><r><t>Hello</t></r></p></txBody></sp>"
    ids = "".join(f'<sldId id="r{number}"/>' for number in range(slides))
    links = "".join(f'<Relationship Id="r{number}" Target="s.xml"/>' for number in range(slides))
    data = zipped(
        {
            "ppt/presentation.xml": f"<presentation><sldIdLst>{ids}</sldIdLst></presentation>",
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{links}</Relationships>",
            "ppt/s.xml": f"<sld><spTree>{said * (shapes if slides == 1 else 1)}{'<sp/>' * shapes}</spTree></sld>",
        }
    )
    read = read_cheaply(data, PPTX)
    assert (read.truncated, read.text.startswith("## Slide 1\n\nHello")) == (True, True)


def test_a_book_of_millions_of_tags_is_cut() -> None:
    items = "".join(f'<item id="i{number}" href="c.xhtml" media-type="application/xhtml+xml"/>' for number in range(12))
    spine = "".join(f'<itemref idref="i{number}"/>' for number in range(12))
    data = zipped(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="o.opf"/></rootfiles></container>',
            "o.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
            "c.xhtml": "<html><body><p>Hello</p>" + "<div>" * 450_000 + "</body></html>",
        }
    )
    assert read_cheaply(data, "application/epub+zip").truncated


def test_the_table_of_a_page_with_a_million_cells_is_cut() -> None:
    rows = ("<tr>" + "<td>1</td>" * 100 + "</tr>") * 10_000
    found = read_cheaply(f"<body><h1>Counts</h1><p>All that was counted here follows.</p><table>{rows}</table>", "text/html")
    assert (found.truncated, found.text.startswith("# Counts"), "| 1 | 1 | 1 |" in found.text) == (True, True, True)


@pytest.mark.parametrize("paragraphs", [["Nine tonnes."], ["Nine tonnes.", "Ten tonnes."]], ids=["one", "two in turn"])
def test_a_page_that_says_the_same_over_and_over_costs_no_more_than_its_length(paragraphs: list[str]) -> None:
    body = "".join(f"<p>{text}</p>" for text in paragraphs) * (20_000 // len(paragraphs))
    assert read_cheaply(f"<main>{body}</main>".encode(), "text/html").text.startswith("Nine tonnes.")


def test_a_pdf_of_five_thousand_pages_is_read_in_part_and_says_which() -> None:
    found = read_cheaply(documents.pdf([f"Page {n} of the ledger" for n in range(1, 5_001)]), "application/pdf")
    assert (found.truncated, found.text.startswith("[page 1]\n\nPage 1 of the ledger\n\n[page 2]")) == (True, True)
    assert found.text.endswith("[page 2000]\n\nPage 2000 of the ledger\n\n[pages 2001 to 5000 were not read]")
