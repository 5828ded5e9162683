"""What extraction gives back, and the small rules every kind of page shares."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINE = 1_000
MAX_HEADINGS = 200

_FENCE = re.compile(r"^\s*(?:```+|~~~+)\s*([\w+#.-]*)")


@dataclass(frozen=True, slots=True)
class Extracted:
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


def one_line(text: str) -> str:
    """White space collapsed and length bounded: titles and names are one line."""
    return " ".join(text[: 4 * MAX_LINE].split())[:MAX_LINE]


def outline(markdown: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
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
