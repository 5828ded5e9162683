"""A PDF, EPUB or DOCX is read in a process of its own, which may hang, crash or swallow memory."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from evals import format_bodies
from nexi.errors import FetchError
from nexi.extract import Extracted
from nexi.fetchers import apart
from nexi.formats import PDF, archives, word
from tests.fetchers.site import response
from tests.fetchers.test_http import LIMITS, failure, fetching
from tests.formats.archives import CONTAINER, docx, epub, paragraph, zipped
from tests.formats.documents import encrypted_pdf, pdf, pdf_of
from tests.formats.test_costs import XLSX

EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


async def test_a_document_comes_back_with_its_metadata() -> None:
    assert await apart.read_apart(pdf(["Tea"], "/Title (T)"), PDF, 1_000, origin="web") == Extracted(
        "[page 1]\n\nTea", title="T"
    )


async def test_a_small_document_that_holds_200_megabytes_is_refused_in_little_memory() -> None:
    inner = zlib.compressobj(1)
    layer = b"".join(inner.compress(b" " * 1_000_000) for _ in range(200)) + inner.flush()
    bomb = pdf_of([zlib.compress(layer)], filters="/Filter [/FlateDecode /FlateDecode]")
    with pytest.raises(FetchError) as caught:
        await apart.read_apart(bomb, PDF, 1_000, origin="web")
    assert (caught.value.reason, len(bomb) < 10_000) == ("too_large", True)


async def test_a_reader_that_hangs_is_killed_at_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await apart.read_apart(b"x" * 1_000_000, PDF, 1_000, origin="web", program="import time; time.sleep(60)")


async def test_a_reader_that_crashes_is_an_error() -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    with pytest.raises(FetchError) as caught:
        await apart.read_apart(b"x" * 1_000_000, PDF, 1_000, origin="web", program=crash)
    assert (caught.value.reason, caught.value.cause) == ("error", "its reader ended with code -11")


@pytest.mark.parametrize("kind", ["application/pdf", "application/octet-stream", "text/html", ""])
async def test_a_pdf_is_read_whatever_it_is_called(kind: str) -> None:
    async with fetching({"/a.pdf": response(pdf(["Tea"], "/Title (T)"), content_type=kind)}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/a.pdf"), LIMITS)
    assert (got.text, got.title, got.content_type) == ("[page 1]\n\nTea", "T", "application/pdf")


async def test_bytes_called_pdf_that_are_none_are_refused_by_type() -> None:
    error = await failure({"/a.pdf": response(b"\0\1", content_type="application/octet-stream")}, "/a.pdf")
    assert error.reason == "content_type"


async def test_a_pdf_beyond_its_size_is_too_large_and_not_cut() -> None:
    error = await failure(
        {"/": response(pdf(["x"]), content_type="application/pdf")}, limits=replace(LIMITS, max_pdf_bytes=100)
    )
    assert (error.reason, error.cause) == ("too_large", "PDF: more than 100 bytes are not read")


async def test_an_encrypted_pdf_says_what_it_needs() -> None:
    error = await failure({"/": response(encrypted_pdf(), content_type="application/pdf")})
    assert (error.reason, error.cause) == ("content_type", "encrypted: needs a password")


async def test_who_does_not_want_pdf_gets_none() -> None:
    limits = replace(LIMITS, content_types=("text/html",))
    assert (await failure({"/": response(pdf(["x"]), content_type="application/pdf")}, limits=limits)).reason == "content_type"


@pytest.mark.parametrize(
    ("data", "kind", "text"), [(epub(), EPUB, "The first chapter."), (docx(paragraph("Tea")), DOCX, "Tea")]
)
async def test_an_archive_is_read_outside_of_this_process(
    monkeypatch: pytest.MonkeyPatch, data: bytes, kind: str, text: str
) -> None:
    monkeypatch.setattr(archives, "read_epub", None)
    monkeypatch.setattr(word, "read_docx", None)
    async with fetching({"/a": response(data, content_type=kind)}) as (fetcher, site):
        got = await fetcher.fetch(site.url("/a"), LIMITS)
    assert text in got.text


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/json", "application/xml"])
async def test_text_is_read_inside_of_this_process(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(apart, "_start_python", None)
    body = '"Tea"' if kind == "application/json" else "<p>Tea</p>"
    async with fetching({"/a": response(body, content_type=kind)}) as (fetcher, site):
        assert "Tea" in (await fetcher.fetch(site.url("/a"), LIMITS)).text


async def test_a_small_book_of_a_million_entries_is_refused_in_the_other_process() -> None:
    opf = "<package>" + "<item/>" * 1_100_000 + "</package>"
    book = zipped({"mimetype": EPUB, "META-INF/container.xml": CONTAINER, "OEBPS/content.opf": opf})
    error = await failure({"/": response(book, content_type=EPUB)})
    assert (error.reason, error.cause, len(book) < 20_000) == ("too_large", "it lists more than 20,000 things", True)


async def test_a_document_that_needs_more_memory_than_its_process_has_is_too_large() -> None:
    crowded = docx("<w:p " + " ".join(f'a{n}=""' for n in range(720_000)) + "/>")
    error = await failure({"/": response(crowded, content_type=DOCX)})
    assert (error.reason, error.cause) == ("too_large", "it needs more memory than a page may take")


async def test_a_presentation_of_700_000_shapes_is_too_large_although_no_memory_is_left_to_say_so() -> None:
    kind, slides, _ = format_bodies.BODIES["pptx: 700,000 shapes"]()
    with pytest.raises(FetchError) as caught:
        await apart.read_apart(slides, kind, 1_000, origin="web")
    error = caught.value
    assert (error.message, error.reason) == ("the PowerPoint presentation is too large", "too_large")


async def test_a_text_that_its_process_has_no_memory_to_hand_over_is_too_large() -> None:
    reads = (
        "from nexi.extract import Extracted; from nexi.formats import worker; "
        "worker.extract = lambda *_, **__: Extracted(chr(0) * 8_000_000); "
    )
    with pytest.raises(FetchError) as caught:
        await apart.read_apart(b"", EPUB, 1_000, origin="web", program=f"{apart._FIND_NEXI}{reads}worker.main()")
    assert (caught.value.reason, caught.value.cause) == ("too_large", "it needs more memory than a page may take")


async def test_a_workbook_whose_text_can_be_made_and_not_written_is_too_large() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 200_000))
    workbook = zipped(
        {
            "xl/workbook.xml": '<workbook><sheets><sheet name="S" id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="s.xml"/></Relationships>',
            "xl/s.xml": f"<worksheet><sheetData>{rows}</sheetData></worksheet>",
            "xl/sharedStrings.xml": f"<sst><si><t>{'A' * 7_000_000}</t></si></sst>",
        }
    )
    with pytest.raises(FetchError) as caught:
        await apart.read_apart(workbook, XLSX, 8_000_000, origin="file")
    assert (caught.value.reason, caught.value.cause) == ("too_large", "it needs more memory than a page may take")


@pytest.mark.parametrize(("origin", "at_once"), [("web", 1), ("file", 2)])
async def test_few_documents_are_read_at_once_and_the_others_wait(
    monkeypatch: pytest.MonkeyPatch, origin: Literal["web", "file"], at_once: int
) -> None:
    running = most = 0

    async def work(*_: Any) -> dict[str, Any]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return {"read": {"text": "x"}}

    monkeypatch.setattr(apart, "_run_worker", work)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(apart.read_apart(b"", EPUB, 1_000, origin=origin)) for _ in range(20)]
    assert ([task.result().text for task in tasks], most) == (["x"] * 20, at_once)


async def test_documents_of_several_people_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    async def work(data: bytes, *_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        read.append(data.decode())
        return {"read": {"text": "x"}}

    monkeypatch.setattr(apart, "_run_worker", work)
    async with asyncio.TaskGroup() as group:
        for whose in [*["bob"] * 6, "grace", "ada"]:
            group.create_task(apart.read_apart(whose.encode(), EPUB, 1_000, origin="web", whose=whose))
    assert read == ["bob", "bob", "grace", "ada", "bob", "bob", "bob", "bob"]
