"""Books and Word documents become Markdown; broken, locked and exploding ones say what is wrong."""

from __future__ import annotations

import resource

import pytest

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.formats import MAX_CHARS, _containers, extract, sheets, sniff_type, to_text
from tests.formats.archives import CONTAINER, W, docx, epub, paragraph, table, zipped
from tests.raising import has_code

EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def test_a_book_is_its_chapters_in_their_order() -> None:
    assert extract(epub(), EPUB, "") == Extracted(
        text="# One\n\nThe first chapter.\n\n# Two\n\n- x",
        title="A Book",
        author="A. Writer",
        language="en",
        published="2026-01-02",
        headings=("One", "Two"),
    )


def test_a_word_document_keeps_headings_lists_tables_and_links() -> None:
    link = '<w:p><w:hyperlink r:id="r1"><w:r><w:t>A link</w:t></w:r></w:hyperlink><w:r><w:t> &lt;b&gt;</w:t></w:r></w:p>'
    body = [
        paragraph("Title here", "Title"),
        paragraph("Part", "Heading2"),
        link,
        paragraph("one", number="2"),
        paragraph("inner", number="2", level=1),
        paragraph("two", number="2"),
        paragraph("first", number="1"),
        paragraph("second", number="1"),
        table([["a", "b"], ["1", "2"]]),
        paragraph("End."),
    ]
    assert extract(docx("".join(body)), DOCX, "") == Extracted(
        text=(
            "# Title here\n\n## Part\n\n[A link](https://x.test/?a=1&b=2) <b>\n\n- one\n  - inner\n- two\n\n"
            "1. first\n2. second\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nEnd."
        ),
        title="A Paper",
        author="B. Writer",
        headings=("Title here", "Part"),
    )


def test_deleted_text_fields_and_second_forms_of_drawings_are_left_out() -> None:
    body = (
        "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<mc:AlternateContent><mc:Choice><w:r><w:t>shown</w:t></w:r></mc:Choice>"
        "<mc:Fallback><w:r><w:t>again</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>"
    )
    assert extract(docx(body), DOCX, "").text == "shown"


def test_a_file_is_read_by_its_type_its_name_or_its_bytes() -> None:
    assert to_text(epub(), name="books/some.epub").title == "A Book"
    assert to_text(docx(paragraph("x"))).text == "x"
    assert to_text(b"<p>x</p>", name="a/page.HTM") == Extracted(text="x", title="page.HTM")
    assert to_text(b"plain <p>", name="notes") == Extracted(text="plain <p>", title="notes")
    assert to_text(b'{"a":1}', content_type="application/json; charset=utf-8", name="x.txt").text == '{\n  "a": 1\n}'
    for data in (b"\x89PNG\0", zipped({"a.bin": "\0" * 9})):
        with pytest.raises(FetchError) as raised:
            to_text(data, name="x.bin")
        assert raised.value.reason == "content_type"


def test_the_bytes_of_archives_tell_what_they_are() -> None:
    assert [sniff_type(data) for data in (epub(), docx(""), zipped({"a": "b"}))] == [EPUB, DOCX, "application/zip"]


LOCKED = '<encryption><EncryptedData><CipherReference URI="OEBPS/text/one.xhtml"/></EncryptedData></encryption>'
FONTS = '<encryption><EncryptedData><CipherReference URI="OEBPS/font.otf"/></EncryptedData></encryption>'
BOMB = b"<w:document><w:x>" + b"a" * (_containers.MAX_BYTES + 1)
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><w:document><w:p><w:t>&b;</w:t></w:p></w:document>'


def test_locked_fonts_do_not_matter() -> None:
    assert extract(epub(encryption=FONTS), EPUB, "").title == "A Book"


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", EPUB, "error"),
        (b"PK\x03\x04 nonsense", DOCX, "error"),
        (epub()[:-40], EPUB, "error"),
        (zipped({"META-INF/container.xml": CONTAINER}), EPUB, "error"),
        (zipped({"META-INF/container.xml": "<container"}), EPUB, "error"),
        (epub(encryption=LOCKED), EPUB, "content_type"),
        (zipped({"other.xml": "<a/>"}), DOCX, "error"),
        (docx(""), DOCX, "content_type"),
        (docx("<w:p>"), DOCX, "error"),
        (docx("", document=BOMB), DOCX, "too_large"),
        (docx("", document=ENTITIES), DOCX, "error"),
        (zipped({str(n): "" for n in range(_containers.MAX_MEMBERS + 1)}), DOCX, "too_large"),
        (docx("<w:tab/>" * (_containers.MAX_ELEMENTS + 1)), DOCX, "too_large"),
        (docx("<w:p>" * _containers.MAX_DEPTH), DOCX, "too_large"),
        (docx("<w:p " + " ".join(f'a{n}=""' for n in range(_containers.MAX_ATTRIBUTES + 1)) + "/>"), DOCX, "too_large"),
        (epub(encryption="<e>" + "<CipherReference/>" * (_containers.MAX_ENTRIES + 1) + "</e>"), EPUB, "too_large"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, kind: str, reason: str) -> None:
    with pytest.raises(FetchError) as raised:
        extract(data, kind, "")
    assert raised.value.reason == reason


def test_a_sheet_may_have_more_elements_than_other_parts_and_not_any_number() -> None:
    sheet = f"<worksheet>{'<row/>' * (_containers.MAX_ELEMENTS + 1)}</worksheet>"
    workbook = {
        "xl/workbook.xml": '<workbook><sheets><sheet name="S" id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="s.xml"/></Relationships>',
    }
    assert sheets.read_xlsx(zipped({**workbook, "xl/s.xml": sheet}), 1_000).text.startswith("## S")
    with pytest.raises(FetchError, check=has_code("too_large")):
        _containers.parse_xml((b"<a><b/><b/></a>",), _containers.Elements("b"), max_elements=2)


def test_a_bomb_is_not_unpacked() -> None:
    huge = zipped({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": b" " * 60_000_000})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FetchError, check=has_code("too_large")):
        extract(huge, EPUB, "")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_a_document_of_endless_text_is_cut() -> None:
    body = paragraph("word " * 1_000) * 200
    assert len(extract(docx(body), DOCX, "").text) <= MAX_CHARS + 5_000


def test_a_title_of_many_megabytes_is_cut() -> None:
    core = {"docProps/core.xml": f"<c><title>{'t' * 7_000_000}</title></c>"}
    document = zipped({"word/document.xml": f"<w:document {W}>{paragraph('Tea')}</w:document>", **core})
    found = extract(document, DOCX, "")
    assert (found.text, len(found.title) <= _containers.MAX_ENTRY_CHARS) == ("Tea", True)


def test_a_table_of_empty_rows_costs_a_document_nothing() -> None:
    found = extract(docx(paragraph("Before.") + table([["", ""]] * 40) + paragraph("After.")), DOCX, "")
    assert found.text == "Before.\n\nAfter."
