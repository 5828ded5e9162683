"""Bytes of a page to Markdown and metadata. Pure: no network, no clock, no state.

Above sit the fetchers; below one module per kind of content. A page that is malformed in any way gives the text that can
be found in it, never an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from msgspec.structs import replace

from nexi import urls
from nexi.errors import FetchError
from nexi.extract import charset
from nexi.extract.formats import find_format, is_readable, media_type, refuse_format, sniff_type, type_of_name
from nexi.extract.ocr import Recognition
from nexi.extract.words import Extracted, Part, one_line, page_of

__all__ = ["Extracted", "extract", "find_type", "media_type", "page_of", "sniff_type", "to_markdown", "to_text"]

PDF = "application/pdf"
ZIP = "application/zip"
EPUB = "application/epub+zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

MAX_CHARS = 300_000
MAX_LINKS = 500
MAX_JSON_PARTS = 200_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
# Of Markdown (YAML or TOML), reStructuredText and Org, before the text begins.
_FRONT_DATE = re.compile(
    r"(?:(?:---|\+\+\+)\n(?:[^\n]*\n){0,40}?|(?:[^\n]*\n){0,9}?(?::|#\+))(?:date|published):?\s*[:=]?\s*([^\n]{4,60})\n",
    re.IGNORECASE,
)
# What programs write where nobody gave a title.
_SAYS_NOTHING = re.compile(
    r"\(?(?:anonymous|unspecified|untitled|unknown|none|no title|title)\)?(?:[ -]?(?:document)?\d*)|about:blank|[\d._-]{4,}"
    r"|(?:document|sheet|slide|book|presentation|folie|tabelle|dokument)[ -]?\d*|powerpoint[ -]pr[eäé]sentation"
    r"|(?:microsoft )?(?:word|excel|powerpoint) - .*|[^ ]*\.(?:docx?|pdf|xlsx?|pptx?|indd|dvi|tex|qxd|rtf|odt)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,2}\s+(\S.{0,300})$", re.MULTILINE)


def to_markdown(html: str, url: str) -> str:
    """The main content of an HTML page as Markdown."""
    from nexi.extract import markup

    return _cleaned_text(markup.main_text(html, url))


# What parsers written in other languages raise on input they were not made for: the page is lost, the run goes on.
PARSER_FAULTS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)


def extract(
    body: bytes | str,
    content_type: str,
    url: str,
    *,
    max_chars: int = MAX_CHARS,
    cites_notes: bool = False,
    recognition: Recognition = Recognition(),  # noqa: B008 - a frozen value
) -> Extracted:
    """The text and metadata of a body of any kind we read; `url` is the base of its links. Raises FetchError.

    `max_chars` is for documents: of these no more text is made than is kept. `cites_notes` makes citations of the footnotes
    of an HTML page; `recognition` is for pictures and scanned pages.
    """
    try:
        return _extract_body(body, content_type, url, max_chars, cites_notes, recognition)
    except PARSER_FAULTS as error:
        raise FetchError(
            f"{url[:200] or 'the document'} could not be turned into text",
            cause=f"a parser failed on it ({type(error).__name__}: {str(error)[:200]})",
            fix="try another page; if it matters, please report the address",
        ) from error


def _extract_body(
    body: bytes | str, content_type: str, url: str, max_chars: int, cites_notes: bool, recognition: Recognition
) -> Extracted:
    document_format = find_format(media_type(content_type))
    if document_format and isinstance(body, bytes):
        module, _, function = document_format.reader.partition(".")
        read: Callable[..., Extracted] = getattr(import_module(f"nexi.extract.{module}"), function)
        page = read(body, max_chars, *([recognition] if document_format.recognises else []))
        if not page.title or _SAYS_NOTHING.fullmatch(page.title):
            page = replace(page, title=next(iter(page.headings), ""))  # "" is the name of the file later on
        return _clean_extracted(page)
    text = body if isinstance(body, str) else charset.decode_body(body, content_type)
    match media_type(content_type):
        case "text/html" | "application/xhtml+xml" | "":
            from nexi.extract import markup

            page = markup.read_html(text, url, cites_notes)
        case kind if kind.endswith(("/xml", "+xml")):
            from nexi.extract import feeds

            page = feeds.read(text, url)
        case kind if kind.endswith(("/json", "+json")):
            if sum(map(text.count, ",[{")) <= MAX_JSON_PARTS:  # more would take a hundred times its size as Python values
                with suppress(ValueError, RecursionError):
                    text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
            page = Extracted(text=text)
        case _:
            page = _read_text(text)
    return _clean_extracted(page)


def to_text(data: bytes, *, name: str = "", content_type: str = "") -> Extracted:
    """The text of a file: of the type that is given, else of what its name ends with, else of what it looks like.

    Raises FetchError for what is no text and no document, and for a document that cannot be read.
    """
    kind = media_type(content_type) or find_type(data, name)
    if not is_readable(kind):
        raise refuse_format(kind, name)
    page = extract(data, content_type or kind, "")
    return page if page.title else replace(page, title=one_line(name.replace("\\", "/").rpartition("/")[2]))


def find_type(data: bytes, name: str) -> str:
    """The media type of a file: that of a document by its bytes, else what its name ends with, else what it looks like."""
    kind, type_by_name = sniff_type(data), type_of_name(name)
    if kind == "text/plain":  # text may have any name
        return type_by_name if is_readable(type_by_name) else kind
    if (kind, type_by_name) == ("text/html", "text/plain"):  # a page that was saved under such a name
        return kind
    return type_by_name or kind if kind in ("application/zip", "application/octet-stream", "text/html") else kind


def _read_text(text: str) -> Extracted:
    heading = _HEADING.search(text[:5_000])
    title = one_line(heading[1]) if heading else ""
    date_line = _FRONT_DATE.match(text[:5_000])
    published = ""
    if date_line:
        from nexi.extract.dates import normalise_date

        published = normalise_date(date_line[1].strip(" \"'<["))
    return Extracted(text=text, title=title, published=published, links=tuple(urls.find_urls(text)[:MAX_LINKS]))


def _cleaned_text(text: str) -> str:
    """One kind of line end, no control characters: the text goes to terminals, models and files."""
    return _replace_controls(text).strip().encode("utf-8", "replace").decode()


def _replace_controls(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _clean_extracted(page: Extracted) -> Extracted:
    parts, start = list[Part](), 0  # a part's place is one in the cleaned text
    ends = [*(part.start for part in page.parts[1:]), len(page.text)]
    for part, end in zip(page.parts, ends, strict=False):  # one end too many where there is no part
        title, author = _CONTROL.sub("", part.title), _CONTROL.sub("", part.author)
        parts.append(Part(start, title, author, part.published))
        start += len(_replace_controls(page.text[part.start : end]))
    return replace(
        page,
        text=_cleaned_text(page.text),
        title=_CONTROL.sub("", page.title),
        author=_CONTROL.sub("", page.author),
        description=_CONTROL.sub("", page.description),
        headings=tuple(_CONTROL.sub("", heading) for heading in page.headings),
        site=_CONTROL.sub("", page.site),
        parts=tuple(parts),
    )
