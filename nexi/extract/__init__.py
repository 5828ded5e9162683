"""Bytes of a page to Markdown and metadata. Pure: no network, no clock, no state.

Above sit the fetchers; below one module per kind of content. A page that is malformed in any way gives the text that can
be found in it, never an error.
"""

from __future__ import annotations

import json
import re

from nexi import urls
from nexi.extract import charset
from nexi.extract.words import Extracted, one_line

__all__ = ["Extracted", "extract", "media_type", "sniff", "to_markdown"]

MAX_LINKS = 500
MAX_JSON_PARTS = 200_000

_HTML_START = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body|title|div|p|h1|table)\b", re.I | re.S)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_HEADING = re.compile(r"^#{1,2}\s+(\S.{0,300})$", re.MULTILINE)


def to_markdown(html: str, url: str) -> str:
    """The main content of an HTML page as Markdown."""
    from nexi.extract import markup

    return _cleaned_text(markup.main_text(html, url))


def extract(body: bytes | str, content_type: str, url: str) -> Extracted:
    """The text and metadata of a body of any kind we read; `url` is the base of its links. Of a PDF: raises FetchError."""
    if isinstance(body, bytes) and media_type(content_type) == "application/pdf":
        from nexi.extract import pdf

        return _cleaned(pdf.read(body))
    text = body if isinstance(body, str) else charset.decode(body, content_type)
    match media_type(content_type):
        case "text/html" | "application/xhtml+xml" | "":
            from nexi.extract import markup

            found = markup.read(text, url)
        case kind if kind.endswith(("/xml", "+xml")):
            from nexi.extract import feeds

            found = feeds.read(text, url)
        case kind if kind.endswith(("/json", "+json")):
            found = Extracted(text=_pretty_json(text))
        case _:
            found = _read_text(text)
    return _cleaned(found)


def media_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].partition(",")[0].strip().lower()


def sniff(data: bytes) -> str:
    """The type of a body that came without one; what is neither PDF, HTML nor text is called so."""
    if b"%PDF-" in data[:1_024]:
        return "application/pdf"
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


def _cleaned(found: Extracted) -> Extracted:
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
