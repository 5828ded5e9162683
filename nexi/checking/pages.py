"""A page's stored text, prepared once so that many sentences can be compared with it cheaply.

Below `retrieval` and `literals`, above `plain` and `terms`. The text is cut into sentences by paragraph, list item, table row,
heading and line of code, and every term knows the sentences it stands in. Work and memory are linear and capped: of a page
beyond the cap the beginning is read, and the verdict says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from nexi.checking.parsed import ParsedText, parse_text
from nexi.text.plain import Plain, fold_text, plain
from nexi.text.sentences import sentence_bounds
from nexi.text.wordforms import WORD, word_terms
from nexi.types import content_digest

MAX_CHARS = 8_000_000  # as many as a fetched page may have
MAX_PARSED = 400  # sentences kept as they were parsed, about 2 MB
MAX_SENTENCE_CHARS = 700  # longer ones are read in pieces
PREFIX_CHARS = 5

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
RULE = re.compile(r"\s{0,3}(?:[-*_=]{3,}|\|?[\s:|+-]*-{2,}[\s:|+-]*\|?)\s*$")
_DEFINITION = re.compile(r"\s{0,3}(?:[-*+•]\s+)?\[\^?\d{1,3}\](?::\s*<?|\s.{0,300})https?://\S+\s*$")  # [1]: https://…
HEADING = re.compile(r"\s{0,3}#{1,6}\s")
LABEL = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,120}(?:\*\*|__)\s*:?\s*$")
_OWN_LINE = re.compile(rf"\s*(?:>\s?)*(?:\||\[page \d+\])|{LABEL.pattern}")
_ITEM = re.compile(r"\s*(?:>\s?)*(?:[-*+•]\s|\d{1,3}[.)]\s)")


@dataclass(frozen=True)
class Snapshot:
    """The stored text of a page, ready to be searched. `bounds` are its sentences in `plain`, `above` the heading of each."""

    text: str
    url: str = ""
    digest: str = ""
    plain: Plain = field(default=Plain(""), repr=False, compare=False)
    bounds: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    above: tuple[int, ...] = field(default=(), repr=False, compare=False)
    places: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)
    read_chars: int = field(default=0, compare=False)
    parsed: dict[tuple[int, int], ParsedText] = field(default_factory=dict, repr=False, compare=False)
    title: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all of the page was read."""
        return self.read_chars >= len(self.text)

    @cached_property
    def parsed_title(self) -> ParsedText:
        return parse_text(self.title)

    @cached_property
    def folded_text(self) -> str:
        """The plain text in one spelling and without case."""
        return fold_text(self.plain.text).casefold()

    @cached_property
    def prefixes(self) -> frozenset[str]:
        """How the words of the page begin: Norway and Norwegian alike."""
        return frozenset(term[:PREFIX_CHARS] for term in self.places)

    def parse_between(self, first: int, last: int) -> ParsedText:
        """The sentences from one to another as one text, each stretch parsed once."""
        found = self.parsed.get((first, last))
        if found is None:
            if len(self.parsed) >= MAX_PARSED:
                self.parsed.clear()
            found = self.parsed[first, last] = parse_text(self.words_between(first, last))
        return found

    def is_row(self, index: int) -> bool:
        return self.plain.text.startswith("|", self.bounds[index][0])

    def head_of_table(self, index: int) -> int:
        """The first row of a table, for one of its rows; else -1."""
        first = index + 1
        while first and self.is_row(first - 1):
            first -= 1
        return first if first <= index else -1

    def words_between(self, first: int, last: int) -> str:
        """The plain text from one sentence to another, both included."""
        return self.plain.text[self.bounds[first][0] : self.bounds[last][1]]

    def stored_between(self, first: int, last: int) -> tuple[int, int]:
        """The same as offsets into the stored text."""
        start, end = self.bounds[first][0], self.bounds[last][1]
        return self.plain.stored_place(start), min(len(self.text), self.plain.stored_place(end - 1) + 1)


Pages: TypeAlias = Mapping[int, Snapshot | None]  # by citation number; None where no text of a source is stored


def prepare(text: str, url: str = "", digest: str = "", *, title: str = "", max_chars: int = MAX_CHARS) -> Snapshot:
    """Read a page's stored text once; its title lends words to every passage."""
    seen = plain(text[:max_chars])
    bounds, above = _find_sentences(seen.text)
    places: dict[str, list[int]] = {}
    for number, (start, end) in enumerate(bounds):
        for word in set(WORD.findall(seen.text, start, end)):
            for term in word_terms(word):
                if (found := places.setdefault(term, []))[-1:] != [number]:
                    found.append(number)
    read_chars = min(len(text), max_chars)
    return Snapshot(text, url, digest or content_digest(text), seen, bounds, above, places, read_chars, title=title)


def _find_sentences(text: str) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    bounds: list[tuple[int, int]] = []
    above: list[int] = []
    heading = -1
    for start, end, kind in cut_blocks(text):
        for first, last in sentence_bounds(text[start:end], MAX_SENTENCE_CHARS):
            above.append(heading)
            bounds.append((start + first, start + last))
        if kind == "heading" and bounds:
            heading = len(bounds) - 1
    return tuple(bounds), tuple(above)


def cut_blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """The blocks of a Markdown text and their kinds: headings, lines of code and of tables, and prose over several lines."""
    fence, held = "", -1
    for line in _LINE.finditer(text):
        start, end = line.span()
        mark = _FENCE.match(line[0])
        is_rule = not fence and (RULE.match(line[0]) or _DEFINITION.match(line[0]))
        is_silent = bool(mark or is_rule or not line[0].strip())
        kind = "code" if fence else "heading" if HEADING.match(line[0]) else "line" if _OWN_LINE.match(line[0]) else "prose"
        if held >= 0 and (is_silent or kind != "prose" or _ITEM.match(line[0])):
            yield held, start, "prose"
            held = -1
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not is_silent and kind != "prose":
            yield start, end, kind
        elif not is_silent:
            held = start if held < 0 else held
    if held >= 0:
        yield held, len(text), "prose"
