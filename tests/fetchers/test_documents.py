"""Books and Word documents are fetched like pages, whole or not at all."""

from __future__ import annotations

import pytest

from nexi.types import FetchLimits
from tests.fetchers.site import response
from tests.fetchers.test_http import failure, fetching
from tests.formats.archives import docx, epub, paragraph, zipped

EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize("kind", [DOCX, "application/octet-stream", "application/zip", ""])
async def test_a_word_document_is_read_whatever_it_is_called(kind: str) -> None:
    async with fetching({"/a.docx": response(docx(paragraph("Tea")), content_type=kind)}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/a.docx"), FetchLimits(timeout_s=300.0))
    assert (got.text, got.title, got.author, got.content_type) == ("Tea", "A Paper", "B. Writer", DOCX)


async def test_a_book_is_read() -> None:
    async with fetching({"/book": response(epub(), content_type=EPUB)}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/book"), FetchLimits(timeout_s=300.0))
    assert (got.title, got.content_type, got.text.startswith("# One")) == ("A Book", EPUB, True)


async def test_a_document_beyond_its_size_is_too_large_and_not_cut() -> None:
    error = await failure({"/": response(epub(), content_type=EPUB)}, limits=FetchLimits(max_pdf_bytes=1_000))
    assert (error.reason, error.cause) == ("too_large", "EPUB book: more than 1,000 bytes are not read")


async def test_an_archive_that_is_no_document_is_refused_by_type() -> None:
    assert (
        await failure({"/a.zip": response(zipped({"a": "\0" * 9}), content_type="application/zip")}, "/a.zip")
    ).reason == "content_type"
    assert (await failure({"/a.docx": response(zipped({"a": "\0" * 9}), content_type="")}, "/a.docx")).reason == "content_type"


async def test_a_broken_document_is_an_error_with_its_cause() -> None:
    error = await failure({"/": response(epub()[:-30], content_type=EPUB)})
    assert (error.reason, error.message) == ("error", "the EPUB book is broken")
