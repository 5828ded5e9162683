"""Bytes of a page to Markdown and metadata. Pure: no network, no clock, no state.

Above sit the fetchers; below one module per kind of content. A page that is malformed in any way gives the text that can
be found in it, never an error.
"""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from nexi import urls
from nexi.errors import FetchError
from nexi.extract import charset
from nexi.extract.words import Extracted, one_line, page_of

__all__ = ["WHOLE", "Extracted", "extract", "find_type", "media_type", "page_of", "sniff_type", "to_markdown", "to_text"]

PDF = "application/pdf"
EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
WHOLE = (PDF, EPUB, DOCX)  # these cannot be read from their beginning alone

MAX_LINKS = 500
MAX_JSON_PARTS = 200_000

_TYPES = {
    "htm": "text/html", "html": "text/html", "xhtml": "application/xhtml+xml", "md": "text/markdown", "txt": "text/plain",
    "rst": "text/plain", "csv": "text/plain", "json": "application/json", "xml": "application/xml",
    "rss": "application/rss+xml", "atom": "application/atom+xml", "pdf": PDF, "epub": EPUB, "docx": DOCX,
}  # fmt: skip
_HTML_START = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body|title|div|p|h1|table)\b", re.I | re.S)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_HEADING = re.compile(r"^#{1,2}\s+(\S.{0,300})$", re.MULTILINE)


def to_markdown(html: str, url: str) -> str:
    """The main content of an HTML page as Markdown."""
    from nexi.extract import markup

    return _cleaned_text(markup.main_text(html, url))


# What parsers written in other languages raise on input they were not made for: the page is lost, the run goes on.
PARSER_FAULTS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)


def extract(body: bytes | str, content_type: str, url: str) -> Extracted:
    """The text and metadata of a body of any kind we read; `url` is the base of its links. Raises FetchError."""
    try:
        return _extract_body(body, content_type, url)
    except PARSER_FAULTS as error:
        raise FetchError(
            f"{url[:200] or 'the document'} could not be turned into text",
            cause=f"a parser failed on it ({type(error).__name__}: {str(error)[:200]})",
            fix="try another page; if it matters, please report the address",
        ) from error


def _extract_body(body: bytes | str, content_type: str, url: str) -> Extracted:
    if isinstance(body, bytes) and media_type(content_type) in WHOLE:
        return _clean_extracted(_read_whole(body, media_type(content_type)))
    text = body if isinstance(body, str) else charset.decode_body(body, content_type)
    match media_type(content_type):
        case "text/html" | "application/xhtml+xml" | "":
            from nexi.extract import markup

            found = markup.read_html(text, url)
        case kind if kind.endswith(("/xml", "+xml")):
            from nexi.extract import feeds

            found = feeds.read(text, url)
        case kind if kind.endswith(("/json", "+json")):
            found = Extracted(text=_pretty_json(text))
        case _:
            found = _read_text(text)
    return _clean_extracted(found)


def to_text(data: bytes, *, name: str = "", content_type: str = "") -> Extracted:
    """The text of a file: of the type that is given, else of what its name ends with, else of what it looks like.

    Raises FetchError for what is no text, and for a PDF, EPUB or DOCX that cannot be read.
    """
    kind = media_type(content_type) or find_type(data, name)
    if kind in ("application/octet-stream", "application/zip"):
        raise FetchError(f"{name[:200] or 'the file'} is no text", reason="content_type", cause="its bytes are no text")
    found = extract(data, content_type or kind, "")
    return found if found.title else replace(found, title=one_line(name.replace("\\", "/").rpartition("/")[2]))


def find_type(data: bytes, name: str) -> str:
    """The media type of a file: what its name ends with, else what it looks like; the bytes of a PDF are always one."""
    return PDF if b"%PDF-" in data[:1_024] else _TYPES.get(name.rpartition(".")[2].lower(), "") or sniff_type(data)


def _read_whole(data: bytes, kind: str) -> Extracted:
    if kind == PDF:
        from nexi.extract import pdf

        return pdf.read_pdf(data)
    from nexi.extract import archives

    return archives.read_epub(data) if kind == EPUB else archives.read_docx(data)


def media_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].partition(",")[0].strip().lower()


def sniff_type(data: bytes) -> str:
    """The type of a body that came without one; what is neither a document, HTML nor text is called so."""
    if b"%PDF-" in data[:1_024]:
        return PDF
    if data.startswith(b"PK\x03\x04"):
        return EPUB if EPUB.encode() in data[:200] else DOCX if b"word/document.xml" in data else "application/zip"
    if _HTML_START.match(data):
        return "text/html"
    return "application/octet-stream" if b"\0" in data[:1_024] else "text/plain"


def _pretty_json(text: str) -> str:
    if sum(map(text.count, ",[{")) > MAX_JSON_PARTS:
        return text  # as Python values it would take a hundred times its size
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _read_text(text: str) -> Extracted:
    heading = _HEADING.search(text[:5_000])
    title = one_line(heading[1]) if heading else ""
    return Extracted(text=text, title=title, links=tuple(urls.find_urls(text)[:MAX_LINKS]))


def _cleaned_text(text: str) -> str:
    """One kind of line end, no control characters: the text goes to terminals, models and files."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    return text.encode("utf-8", "replace").decode()


def _clean_extracted(found: Extracted) -> Extracted:
    return Extracted(
        text=_cleaned_text(found.text),
        title=_CONTROL.sub("", found.title),
        language=found.language,
        author=_CONTROL.sub("", found.author),
        published=found.published,
        description=_CONTROL.sub("", found.description),
        links=found.links,
        headings=tuple(_CONTROL.sub("", heading) for heading in found.headings),
        code_languages=found.code_languages,
        site=_CONTROL.sub("", found.site),
    )
