"""Bytes of any kind to Markdown and metadata: the reader is picked by the type, the name and the bytes. Pure, as `extract` is.

This is the only way in: the rest of nexi uses the names below and imports none of the modules; only `fetchers.apart` knows
`worker`, the program that reads one document in a process of its own. Below sits `nexi.extract`, which reads HTML and text.

    registry    every format: what it is called, how it is known, who reads it, and what to do about the others
    containers  zip archives of XML under caps, and the compound files of Office 97
    pdf, word, sheets, slides, opendocument, mail, latex and others    one reader each
    ocr         words in pictures, by tesseract
    vaults, libraries    notes of Obsidian and Logseq; items of Zotero, CSL-JSON and BibTeX
    worker      a process that confinement keeps from network and files
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nexi.errors import FetchError
from nexi.extract import Extracted, charset, clean_extracted, one_line
from nexi.extract.text import read_text
from nexi.formats.ocr import Recognition
from nexi.formats.registry import canonical_type, find_format, is_readable, media_type, refuse_format, sniff_type, type_of_name

if TYPE_CHECKING:
    from nexi.formats.libraries import LibraryItem, parse_bibtex, parse_csl, render_item
    from nexi.formats.vaults import find_blocks, read_note

__all__ = [
    "LibraryItem",
    "canonical_type",
    "extract",
    "find_blocks",
    "find_format",
    "find_type",
    "is_readable",
    "media_type",
    "parse_bibtex",
    "parse_csl",
    "read_note",
    "refuse_format",
    "render_item",
    "sniff_type",
    "to_text",
    "type_of_name",
]

PDF = "application/pdf"
ZIP = "application/zip"

MAX_CHARS = 300_000

# What programs write where nobody gave a title.
_SAYS_NOTHING = re.compile(
    r"\(?(?:anonymous|unspecified|untitled|unknown|none|no title|title)\)?(?:[ -]?(?:document)?\d*)|about:blank|[\d._-]{4,}"
    r"|(?:document|sheet|slide|book|presentation|folie|tabelle|dokument)[ -]?\d*|powerpoint[ -]pr[eäé]sentation"
    r"|(?:microsoft )?(?:word|excel|powerpoint) - .*|[^ ]*\.(?:docx?|pdf|xlsx?|pptx?|indd|dvi|tex|qxd|rtf|odt)",
    re.IGNORECASE,
)
_MODULES = {  # loaded when their names are asked for: few runs read a vault or a library
    **dict.fromkeys(("LibraryItem", "parse_bibtex", "parse_csl", "render_item"), "libraries"),
    **dict.fromkeys(("find_blocks", "read_note"), "vaults"),
}
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
    """The text and metadata of a body of any kind we read; `url` is the base of its links. Raises FetchError."""
    # Of a document no more than `max_chars` is made. `cites_notes` makes citations of the footnotes of an HTML page.
    document_format = find_format(media_type(content_type))
    try:
        if document_format and isinstance(body, bytes):
            module, _, function = document_format.reader.partition(".")
            read: Callable[..., Extracted] = getattr(import_module(f"nexi.formats.{module}"), function)
            page = read(body, max_chars, *([recognition] if document_format.recognises else []))
            if not page.title or _SAYS_NOTHING.fullmatch(page.title):
                page = replace(page, title=next(iter(page.headings), ""))  # "" is the name of the file later on
        else:
            text = body if isinstance(body, str) else charset.decode_body(body, content_type)
            page = read_text(text, media_type(content_type), url, cites_notes=cites_notes)
        return clean_extracted(page)
    except PARSER_FAULTS as error:
        raise FetchError(
            f"{url[:200] or 'the document'} could not be turned into text",
            cause=f"a parser failed on it ({type(error).__name__}: {str(error)[:200]})",
            fix="try another page; if it matters, please report the address",
        ) from error


def to_text(data: bytes, *, name: str = "", content_type: str = "") -> Extracted:
    """The text of a file, of the type that is given or that its name or bytes tell. Raises FetchError where there is none."""
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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name of vaults or libraries from its module."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"nexi.formats.{_MODULES[name]}"), name)
