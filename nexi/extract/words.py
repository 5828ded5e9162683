"""What extraction gives back, and the small rules every kind of page shares."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from nexi.types import Page, Picture

MAX_LINE = 1_000
MAX_HEADINGS = 200

_FENCE = re.compile(r"^\s*(?:```+|~~~+)\s*([\w+#.-]*)")


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
