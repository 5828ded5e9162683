"""What extraction gives back, and the small rules every kind of page shares."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINE = 1_000


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


def one_line(text: str) -> str:
    """White space collapsed and length bounded: titles and names are one line."""
    return " ".join(text[: 4 * MAX_LINE].split())[:MAX_LINE]
