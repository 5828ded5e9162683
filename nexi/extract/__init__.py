"""Pages of the web to Markdown and metadata: HTML, feeds and other text. Pure: no network, no clock, no state.

Above sits `nexi.formats`, which knows documents too and hands what is text to `text`; below, one module per part of a page. One
that is malformed in any way gives the text that can be found in it, never an error. Here is what extraction gives back, and the
small rules that every kind of page shares.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from nexi.types import Page, Picture

MAX_LINE = 1_000
MAX_HEADINGS = 200

_FENCE = re.compile(r"^\s*(?:```+|~~~+)\s*([\w+#.-]*)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


class Part(NamedTuple):
    """A text of its own inside a document, such as a message of a mailbox: where it begins, and what it says of itself."""

    start: int
    title: str
    author: str = ""
    published: str = ""


class Extracted(Struct, frozen=True):
    """The text of a page as Markdown, and what the page says of itself."""

    text: str
    title: str = ""
    language: str = ""
    author: str = ""
    published: str = ""
    description: str = ""
    links: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    code_languages: tuple[str, ...] = ()
    site: str = ""
    updated: str = ""
    unread: str = ""  # which pages are pictures whose words are not known
    picture: Picture | None = None
    truncated: bool = False  # there was more than could be read
    parts: tuple[Part, ...] = ()


def page_of(url: str, extracted: Extracted, *, max_chars: int, **about: Any) -> Page:
    """What was extracted as a page of at most `max_chars`; `about` is what its fetcher knows of it, and wins."""
    fields = asdict(extracted) | about | {"truncated": extracted.truncated or about.get("truncated", False)}
    fields.pop("parts")
    if len(fields["text"]) > max_chars:
        beginning = fields["text"][:max_chars]
        line_end = beginning.rfind("\n")  # a line is not cut where another ends near
        fields |= {"text": beginning[:line_end] if line_end > max_chars * 0.9 else beginning, "truncated": True}
    return Page(url, **fields)


def one_line(text: str) -> str:
    """White space collapsed and length bounded: titles and names are one line."""
    return " ".join(text[: 4 * MAX_LINE].split())[:MAX_LINE]


def parse_number(text: str, default: int = 0) -> int:
    """A number in decimal digits, of which there are fewer than ten."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default


def read_outline(markdown: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The headings of a text, and the languages its code blocks name, each once."""
    headings: list[str] = []
    languages: dict[str, None] = {}
    inside = False
    for line in markdown.splitlines():
        if fence := _FENCE.match(line):
            inside = not inside
            if inside and fence[1]:
                languages[fence[1].lower()] = None
        elif not inside and line.startswith("#") and len(headings) < MAX_HEADINGS:
            headings.append(one_line(line.lstrip("#")))
    return tuple(filter(None, headings)), tuple(languages)


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
