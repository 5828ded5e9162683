"""Pages of the web to Markdown and metadata: HTML, feeds and other text. Pure: no network, no clock, no state.

Above sits `nexi.formats`, which knows documents too and hands to this folder what is text; below, one module per part of a
page. A page that is malformed in any way gives the text that can be found in it, never an error.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from msgspec.structs import replace

from nexi import urls
from nexi.extract.words import Extracted, Part, one_line, page_of

__all__ = ["Extracted", "clean_extracted", "page_of", "read_text", "to_markdown"]

MAX_LINKS = 500
MAX_JSON_PARTS = 200_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
# Of Markdown (YAML or TOML), reStructuredText and Org, before the text begins.
_FRONT_DATE = re.compile(
    r"(?:(?:---|\+\+\+)\n(?:[^\n]*\n){0,40}?|(?:[^\n]*\n){0,9}?(?::|#\+))(?:date|published):?\s*[:=]?\s*([^\n]{4,60})\n",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,2}\s+(\S.{0,300})$", re.MULTILINE)


def to_markdown(html: str, url: str) -> str:
    """The main content of an HTML page as Markdown."""
    return clean_extracted(read_text(html, "text/html", url)).text


def read_text(text: str, kind: str, url: str, *, cites_notes: bool = False) -> Extracted:
    """The text and metadata of what is text, of the media type `kind`; `url` is the base of its links."""
    match kind:
        case "text/html" | "application/xhtml+xml" | "":
            from nexi.extract import markup

            return markup.read_html(text, url, cites_notes)
        case _ if kind.endswith(("/xml", "+xml")):
            from nexi.extract import feeds

            return feeds.read(text, url)
        case _ if kind.endswith(("/json", "+json")):
            if sum(map(text.count, ",[{")) <= MAX_JSON_PARTS:  # more would take a hundred times its size as Python values
                with suppress(ValueError, RecursionError):
                    text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
            return Extracted(text=text)
        case _:
            heading, date_line, published = _HEADING.search(text[:5_000]), _FRONT_DATE.match(text[:5_000]), ""
            if date_line:
                from nexi.text.dates import normalise_date

                published = normalise_date(date_line[1].strip(" \"'<["))
            links = tuple(urls.find_urls(text)[:MAX_LINKS])
            return Extracted(text=text, title=one_line(heading[1]) if heading else "", published=published, links=links)


def _replace_controls(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_extracted(page: Extracted) -> Extracted:
    """The same with one kind of line end and without control characters; its parts have their places in the cleaned text."""
    # The text goes to terminals, models and files.
    parts, start = list[Part](), 0
    ends = [*(part.start for part in page.parts[1:]), len(page.text)]
    for part, end in zip(page.parts, ends, strict=False):  # one end too many where there is no part
        title, author = _CONTROL.sub("", part.title), _CONTROL.sub("", part.author)
        parts.append(Part(start, title, author, part.published))
        start += len(_replace_controls(page.text[part.start : end]))
    return replace(
        page,
        text=_replace_controls(page.text).strip().encode("utf-8", "replace").decode(),
        headings=tuple(_CONTROL.sub("", heading) for heading in page.headings),
        parts=tuple(parts),
        **{name: _CONTROL.sub("", getattr(page, name)) for name in ("title", "author", "description", "site")},
    )
