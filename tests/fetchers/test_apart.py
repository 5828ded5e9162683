"""A PDF is read in a process of its own, which may hang, crash or swallow memory."""

from __future__ import annotations

import asyncio
import zlib

import pytest

from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.fetchers import apart
from nexi.types import FetchLimits
from tests.extract.documents import encrypted_pdf, pdf, pdf_of
from tests.fetchers.site import response
from tests.fetchers.test_http import failure, fetching


async def test_a_document_comes_back_with_its_metadata() -> None:
    assert await apart.read_pdf(pdf(["Tea"], "/Title (T)"), 1_000) == Extracted("[page 1]\n\nTea", title="T")


async def test_a_small_document_that_holds_200_megabytes_is_refused_in_little_memory() -> None:
    inner = zlib.compressobj(1)
    layer = b"".join(inner.compress(b" " * 1_000_000) for _ in range(200)) + inner.flush()
    bomb = pdf_of([zlib.compress(layer)], filters="/Filter [/FlateDecode /FlateDecode]")
    with pytest.raises(FetchError) as caught:
        await apart.read_pdf(bomb, 1_000)
    assert (caught.value.reason, len(bomb) < 10_000) == ("too_large", True)


async def test_a_reader_that_hangs_is_killed_at_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await apart.read_pdf(b"x" * 1_000_000, 1_000, program="import time; time.sleep(60)")


async def test_a_reader_that_crashes_is_an_error() -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    with pytest.raises(FetchError) as caught:
        await apart.read_pdf(b"x" * 1_000_000, 1_000, program=crash)
    assert (caught.value.reason, caught.value.cause) == ("error", "its reader ended with code -11")


@pytest.mark.parametrize("kind", ["application/pdf", "application/octet-stream", "text/html", ""])
async def test_a_pdf_is_read_whatever_it_is_called(kind: str) -> None:
    async with fetching({"/a.pdf": response(pdf(["Tea"], "/Title (T)"), content_type=kind)}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/a.pdf"), FetchLimits())
    assert (got.text, got.title, got.content_type) == ("[page 1]\n\nTea", "T", "application/pdf")


async def test_bytes_called_pdf_that_are_none_are_refused_by_type() -> None:
    error = await failure({"/a.pdf": response(b"\0\1", content_type="application/octet-stream")}, "/a.pdf")
    assert error.reason == "content_type"


async def test_a_pdf_beyond_its_size_is_too_large_and_not_cut() -> None:
    error = await failure({"/": response(pdf(["x"]), content_type="application/pdf")}, limits=FetchLimits(max_pdf_bytes=100))
    assert (error.reason, error.cause) == ("too_large", "a PDF, EPUB or DOCX of more than 100 bytes is not read")


async def test_an_encrypted_pdf_says_what_it_needs() -> None:
    error = await failure({"/": response(encrypted_pdf(), content_type="application/pdf")})
    assert (error.reason, error.cause) == ("content_type", "encrypted: needs a password")


async def test_who_does_not_want_pdf_gets_none() -> None:
    limits = FetchLimits(content_types=("text/html",))
    assert (await failure({"/": response(pdf(["x"]), content_type="application/pdf")}, limits=limits)).reason == "content_type"
