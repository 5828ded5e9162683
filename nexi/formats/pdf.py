"""PDF to text with page numbers, and what the document says of itself.

Above sits `extract`, and `worker`, which reads in a process of its own because the parser is native code and the documents
are strangers'. Below, pypdfium2. Nothing here fetches; a document that cannot be read is a FetchError.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from contextlib import closing, suppress
from typing import Any

import pypdfium2

from nexi.errors import FetchError
from nexi.extract import Extracted, one_line
from nexi.formats._pdf_layout import PageTables, mark_scripts
from nexi.formats.ocr import MAX_PAGE_S, Recognition, can_recognise, find_language, recognise_text

MAX_PAGES = 2_000
MAX_CHARS = 300_000
MAX_PAGE_CHARS = 100_000
SCAN_DPI = 200
MAX_HEAD_CHARS = 3_000  # of the first page, where the heading of the document stands
MIN_HEADING_GROWTH = 1.2  # of its letters over those of most of the text
MAX_HEADING_LINES, MIN_HEADING_CHARS, MAX_HEADING_CHARS = 3, 4, 200
MAX_NAMED_PAGES = 20
MAX_PIXELS = 8_000_000  # of a page that is drawn

_PDFIUM = threading.Lock()  # the library is not for threads
_STRAY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_BROKEN_WORD = re.compile("(\\w++)[\x02\ufffe]\\r?\\n?(\\w*)")  # how the library marks a hyphen at the end of a line
_COMPOUND = re.compile(r"\w+-\w+")
_DATE = re.compile(r"D?:?(\d{4})(\d{2})?(\d{2})?")


def read_pdf(
    data: bytes,
    max_chars: int = MAX_CHARS,
    recognition: Recognition = Recognition(),  # noqa: B008 - a frozen value
    *,
    max_pages: int = MAX_PAGES,
) -> Extracted:
    """Text and metadata; each page begins with `[page 3]` on a line of its own. Raises FetchError."""
    with _PDFIUM:
        try:
            with closing(pypdfium2.PdfDocument(data)) as document:
                return _read_document(document, max_chars, max_pages, recognition)
        except pypdfium2.PdfiumError as error:
            cause, fix = str(error), "look for another version of it"
            if "password" in cause.lower() or "security" in cause.lower():
                cause, fix = "encrypted: needs a password", "look for a version without a password"
                raise FetchError("the PDF is encrypted", reason="content_type", cause=cause, fix=fix) from error
            raise FetchError("the PDF is broken", reason="error", cause=cause, fix=fix) from error


def _read_document(document: Any, max_chars: int, max_pages: int, recognition: Recognition) -> Extracted:
    about = document.get_metadata_dict(skip_empty=True)
    count, tables, recogniser = len(document), PageTables(), _PageRecognition(document, recognition)
    blocks, unread, chars = list[str](), list[int](), 0
    for number in range(1, min(count, max_pages) + 1):
        body = _page_text(document, number - 1, tables)
        if not body and _has_picture(document, number - 1) and not (body := recogniser.read_page(number - 1)):
            unread.append(number)
            blocks.append(f"[page {number} is a picture, and its words were not recognised]")
        if body:
            blocks.append(f"[page {number}]\n\n{body}")
            chars += len(blocks[-1])
        if chars > max_chars:
            break
    advice = "" if can_recognise() else "install tesseract, and nexi reads scanned pages"
    if len(blocks) == len(unread):
        raise FetchError(
            "the PDF has no text",
            reason="content_type",
            cause="its pages are pictures" if advice else f"no words were recognised on its {count} page{'s' * (count != 1)}",
            fix=f"{advice and f'{advice}; or '}look for another version of it",
        )
    if chars <= max_chars and count > max_pages:
        blocks.append(f"[pages {max_pages + 1} to {count} were not read]")
    numbers = ", ".join(map(str, unread[:MAX_NAMED_PAGES])) + (" ..." if len(unread) > MAX_NAMED_PAGES else "")
    pictures = f"page{'s' * (len(unread) > 1)} {numbers}: a picture whose words were not recognised{advice and f'; {advice}'}"
    return Extracted(
        text="\n\n".join(blocks),
        title=_clean_line(about.get("Title", "")),
        author=_clean_line(about.get("Author", "")),
        published=_parse_date(about.get("CreationDate", "") or about.get("ModDate", "")),
        updated=_parse_date(about.get("ModDate", "")),
        description=_clean_line(about.get("Subject", "")),
        language=_clean_line(_read_language(document))[:35],
        headings=_find_heading(document),
        unread=pictures if unread else "",
        truncated=count > max_pages,
    )


def _find_heading(document: Any) -> tuple[str, ...]:
    """The line of the first page in the largest letters, if they are larger than those of most of its text."""
    try:
        page = document[0]
        words = page.get_textpage()
    except (pypdfium2.PdfiumError, IndexError):
        return ()
    count = min(words.count_chars(), MAX_HEAD_CHARS)
    text = words.get_text_range(0, count)
    heights = [round(top - bottom, 1) for _, bottom, _, top in (words.get_charbox(n, loose=True) for n in range(count))]
    words.close()
    page.close()
    if len(text) != count:
        return ()
    lines = [(max(heights[match.start() : match.end()]), match[0]) for match in re.finditer(r"[^\r\n]*\S[^\r\n]*", text)]
    largest = max((height for height, _ in lines), default=0.0)
    usual = sorted(heights)[len(heights) // 2] if heights else 0.0
    heading = _clean_line(" ".join([line for height, line in lines if height == largest][:MAX_HEADING_LINES]))
    is_larger = largest >= MIN_HEADING_GROWTH * usual > 0
    return (heading,) if is_larger and MIN_HEADING_CHARS <= len(heading) <= MAX_HEADING_CHARS else ()


def _has_picture(document: Any, index: int) -> bool:
    """A page without words and pictures is empty."""
    with suppress(pypdfium2.PdfiumError), closing(document[index]) as page:
        return next(iter(page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)), None) is not None
    return False


class _PageRecognition:
    """Recognises pages of one document until its time is over, in the languages that are named, else in its own."""

    def __init__(self, document: Any, recognition: Recognition) -> None:
        self._document = document
        self._deadline = time.monotonic() + recognition.seconds
        self._languages: str | None = recognition.languages or None

    def read_page(self, index: int) -> str:
        """The words in the picture of a page; "" where there is no time left, or no program for it."""
        now = time.monotonic()
        if now >= self._deadline or not can_recognise():
            return ""
        if self._languages is None:
            self._languages = find_language(_read_language(self._document))
        page = self._document[index]
        width, height = page.get_size()
        scale = min(SCAN_DPI / 72, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
        bitmap = page.render(scale=scale, grayscale=True)
        rows = memoryview(bitmap.buffer).cast("B")
        lines = (bytes(rows[at * bitmap.stride : at * bitmap.stride + bitmap.width]) for at in range(bitmap.height))
        picture = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(lines)  # a grey one (PGM)
        page.close()
        return recognise_text(picture, min(self._deadline, now + MAX_PAGE_S), self._languages)


def _read_language(document: Any) -> str:
    """The language that the document names, such as "de-AT"; "" where it names none."""
    buffer = ctypes.create_string_buffer(128)
    wide = ctypes.cast(buffer, ctypes.POINTER(pypdfium2.raw.FPDF_WCHAR))
    size = pypdfium2.raw.FPDFCatalog_GetLanguage(document, wide, len(buffer))
    return buffer.raw[: size - 2].decode("utf-16-le", "replace") if 2 < size <= len(buffer) else ""


def _page_text(document: Any, index: int, tables: PageTables) -> str:
    """A page that is broken has no text; the others may."""
    try:
        page = document[index]
        words = page.get_textpage()
    except pypdfium2.PdfiumError:
        return ""
    count = min(words.count_chars(), MAX_PAGE_CHARS)
    text = words.get_text_range(0, count)
    if len(text) == count:  # else a character is two in the text, and places are not those of the words
        text = tables.write_page(*mark_scripts(text, lambda at: words.get_charbox(at, loose=True)))
    words.close()
    page.close()
    # Words that a hyphen broke at the end of a line as one; a compound keeps its hyphen where the page has it elsewhere.
    compounds = frozenset(_COMPOUND.findall(text.casefold()))
    text = _BROKEN_WORD.sub(lambda m: f"{m[1]}{'-' * (f'{m[1]}-{m[2]}'.casefold() in compounds)}{m[2]}", text)
    text = _STRAY.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def _clean_line(text: str) -> str:
    return one_line(_STRAY.sub("", text))


def _parse_date(text: str) -> str:
    """`2026-03-05` of `D:20260305120000Z`, as far as it is given."""
    match = _DATE.match(text.strip())
    return "-".join(part for part in match.groups() if part) if match else ""
