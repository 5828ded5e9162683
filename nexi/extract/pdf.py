"""PDF to text with page numbers, and what the document says of itself.

Above sits `extract`, and `worker`, which reads in a process of its own because the parser is native code and the documents
are strangers'. Below, pypdfium2. Nothing here fetches; a document that cannot be read is a FetchError.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from nexi.errors import FetchError
from nexi.extract.ocr import MAX_SECONDS, can_recognise, recognise_text
from nexi.extract.pdf_tables import PageTables
from nexi.extract.words import Extracted, one_line

__all__ = ["read_pdf"]


MAX_PAGES = 2_000
MAX_CHARS = 300_000
MAX_PAGE_CHARS = 100_000
SCAN_DPI = 200
MAX_PIXELS = 8_000_000  # of a page that is drawn

_PDFIUM = threading.Lock()  # the library is not for threads
_STRAY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_BROKEN_WORD = re.compile("(?<=\\w)[\x02\ufffe]\r?\n?")  # how the library marks a hyphen at the end of a line
_DATE = re.compile(r"D?:?(\d{4})(\d{2})?(\d{2})?")


def read_pdf(data: bytes, max_chars: int = MAX_CHARS, *, max_pages: int = MAX_PAGES) -> Extracted:
    """Text and metadata; each page begins with `[page 3]` on a line of its own. Raises FetchError."""
    import pypdfium2

    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise _unreadable_error(str(error)) from error
        try:
            return _read_document(document, max_chars, max_pages)
        except pypdfium2.PdfiumError as error:
            raise _unreadable_error(str(error)) from error
        finally:
            document.close()


def _read_document(document: Any, max_chars: int, max_pages: int) -> Extracted:
    about = document.get_metadata_dict(skip_empty=True)
    text = _page_texts(document, max_chars, max_pages)
    is_cut = len(document) > max_pages
    if not text:
        text, is_cut = _recognise_pages(document, max_chars)
    if not text:
        raise FetchError(
            "the PDF has no text",
            reason="content_type",
            cause="its pages are pictures",
            fix="install tesseract, and nexi reads scanned pages; or look for another version of it",
        )
    return Extracted(
        text=text,
        title=_clean_line(about.get("Title", "")),
        author=_clean_line(about.get("Author", "")),
        published=_parse_date(about.get("CreationDate", "") or about.get("ModDate", "")),
        updated=_parse_date(about.get("ModDate", "")),
        description=_clean_line(about.get("Subject", "")),
        truncated=is_cut,
    )


def _page_texts(document: Any, max_chars: int, max_pages: int) -> str:
    blocks: list[str] = []
    chars, count, tables = 0, len(document), PageTables()
    for number in range(1, min(count, max_pages) + 1):
        if body := _page_text(document, number - 1, tables):
            blocks.append(f"[page {number}]\n\n{body}")
            chars += len(blocks[-1])
        if chars > max_chars:
            break
    if blocks and chars <= max_chars and count > max_pages:
        blocks.append(f"[pages {max_pages + 1} to {count} were not read]")
    return "\n\n".join(blocks)


def _recognise_pages(document: Any, max_chars: int) -> tuple[str, bool]:
    """The words in pictures of pages, as many as there is time for, and whether some were left out."""
    if not can_recognise():
        return "", False
    deadline, blocks, chars, number = time.monotonic() + MAX_SECONDS, list[str](), 0, 0
    while number < len(document) and chars <= max_chars and time.monotonic() < deadline:
        number += 1
        if words := recognise_text(_draw_page(document, number - 1), deadline):
            blocks.append(f"[page {number}]\n\n{words}")
            chars += len(blocks[-1])
    return "\n\n".join(blocks), number < len(document)


def _draw_page(document: Any, index: int) -> bytes:
    """A page as a grey picture (PGM)."""
    page = document[index]
    width, height = page.get_size()
    scale = min(SCAN_DPI / 72, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    rows = memoryview(bitmap.buffer).cast("B")
    lines = (bytes(rows[at * bitmap.stride : at * bitmap.stride + bitmap.width]) for at in range(bitmap.height))
    picture = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(lines)
    page.close()
    return picture


def _page_text(document: Any, index: int, tables: PageTables) -> str:
    """A page that is broken has no text; the others may."""
    import pypdfium2

    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return ""
    try:
        words = page.get_textpage()
    except pypdfium2.PdfiumError:
        page.close()
        return ""
    count = min(words.count_chars(), MAX_PAGE_CHARS)
    text = words.get_text_range(0, count)
    if len(text) == count:  # else a character is two in the text, and places are not those of the words
        text = tables.write_page(text, lambda at: words.get_charbox(at, loose=True))
    words.close()
    page.close()
    return _clean_text(text)


def _clean_text(text: str) -> str:
    text = _BROKEN_WORD.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    lines = (line.rstrip() for line in _STRAY.sub("", text).split("\n"))
    return "\n".join(lines).strip()


def _clean_line(text: str) -> str:
    return one_line(_STRAY.sub("", text))


def _parse_date(text: str) -> str:
    """`2026-03-05` of `D:20260305120000Z`, as far as it is given."""
    found = _DATE.match(text.strip())
    return "-".join(part for part in found.groups() if part) if found else ""


def _unreadable_error(cause: str) -> FetchError:
    if "password" in cause.lower() or "security" in cause.lower():
        return FetchError(
            "the PDF is encrypted",
            reason="content_type",
            cause="encrypted: needs a password",
            fix="look for a version without a password",
        )
    return FetchError("the PDF is broken", reason="error", cause=cause, fix="look for another version of it")
