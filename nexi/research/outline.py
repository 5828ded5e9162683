"""The outline of a report: its sections, each with what it covers and the sources it rests on. Pure.

The evaluator above reads it from the reply of a model; `sections` writes the report from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

MIN_SECTIONS = 2
MAX_SECTIONS = 6
MAX_SECTION_WORDS = 400  # where no length was asked for
MIN_SECTION_WORDS = 100
LENGTHS: Mapping[str, int] = {"brief": 300, "standard": 1_000, "long": 3_000}  # words of a report
MAX_HEADING_CHARS = 120
MAX_COVERS_CHARS = 400


class Section(Struct, frozen=True):
    """One section: its heading, what it must tell, and the numbers of the pages it rests on."""

    heading: str
    covers: str = ""
    sources: tuple[int, ...] = ()

    @property
    def subject(self) -> str:
        """The words by which evidence for this section is found."""
        return f"{self.heading} {self.covers}".strip()


def most_sections(words: int) -> int:
    """How many sections a report of so many words may have; 0 words leave it to the evidence."""
    return max(MIN_SECTIONS, min(MAX_SECTIONS, words // MIN_SECTION_WORDS)) if words else MAX_SECTIONS


def section_words(words: int, sections: int) -> int:
    """How many words one of so many sections may have."""
    return max(MIN_SECTION_WORDS, words // max(1, sections)) if words else MAX_SECTION_WORDS


def parse_outline(value: Mapping[str, Any]) -> tuple[Section, ...]:
    """Parse the sections of an outline; what is no section is left out, and of two with the same heading the second."""
    listed = value.get("sections")
    sections = [_parse_section(item) for item in listed] if isinstance(listed, list) else []
    by_heading = {section.heading.casefold(): section for section in reversed(sections) if section}
    return tuple(by_heading[key] for key in dict.fromkeys(s.heading.casefold() for s in sections if s))[:MAX_SECTIONS]


def _parse_section(item: object) -> Section | None:
    if isinstance(item, str):
        item = {"heading": item}
    if not isinstance(item, Mapping):
        return None
    heading = _read_line(item.get("heading"), MAX_HEADING_CHARS).lstrip("# ").rstrip(":")
    numbers = item.get("sources")
    sources = (n for n in (numbers if isinstance(numbers, list) else ()) if isinstance(n, int) and not isinstance(n, bool))
    covers = _read_line(item.get("covers"), MAX_COVERS_CHARS)
    return Section(heading, covers, tuple(dict.fromkeys(sources))) if any(map(str.isalnum, heading)) else None


def _read_line(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""
