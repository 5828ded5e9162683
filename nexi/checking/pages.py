"""Texts prepared to be compared: a sentence by its words, names and values, and a page's stored text by its sentences.

Below `rules` and `alignment`, above `values`. A page is prepared once, so that many sentences can be compared with it cheaply:
it is cut by paragraph, list item, table row, heading and line of code, and every term knows the sentences it stands in. Work
and memory are linear and capped: of a page beyond the cap the beginning is read, and the verdict says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from nexi.checking.lexicon import PARTICLES, PRONOUNS
from nexi.checking.values import Date, Number, Value, parse_values
from nexi.text.blocks import Block, list_cells, parse_blocks
from nexi.text.plain import Plain, fold_text, plain
from nexi.text.sentences import sentence_bounds
from nexi.text.stems import WORD, normalise_word, word_terms
from nexi.text.words import has_unspaced
from nexi.types import content_digest

MAX_CHARS = 8_000_000  # as many as a fetched page may have
MAX_PARSED = 400  # sentences kept as they were parsed, about 2 MB
MAX_SENTENCE_CHARS = 700  # longer ones are read in pieces
PREFIX_CHARS = 5
MAX_ROW_CHARS = 4_000  # longer ones are read in pieces
MAX_COLUMNS = 24  # of a row that are compared with their heads

_DEFINITION = re.compile(r"\s{0,3}(?:[-*+•]\s+)?\[\^?\d{1,3}\](?::\s*<?|\s.{0,300})https?://\S+\s*$")  # [1]: https://…
LABEL = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,120}(?:\*\*|__)\s*:?\s*$")
_LINE = re.compile(r"[^\n]*\n?")
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|eine[rsnm]?|wurde|sind|den|dem|auf|mit)\b")
_SENTENCE_START = re.compile(r"(?:^|[.!?:•|]\s+|^\W+|\"\s?|[.!?]\s?\()$")
_NEXT_WORD = re.compile(r"\.? ([^\W\d_][\w'-]*)")
_BREAKS_NAME = re.compile(r"[,;:()\"/]")


class Word(NamedTuple):
    """A word of a text; a script without spaces gives one for each pair of characters."""

    text: str
    flat: str  # normalised
    term: str  # what is compared; "" for a small word or a part of a value
    start: int
    end: int
    is_name: bool
    value: Value | None = None


@dataclass(frozen=True)
class ParsedText:
    """A text read once."""

    text: str
    words: tuple[Word, ...]
    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]
    is_unspaced: bool  # most of it is in a script without spaces

    @property
    def values(self) -> list[Value]:
        return [*self.dates, *self.numbers]

    @property
    def firm_values(self) -> list[Value]:
        """Without "one" and "first", which are words like others."""
        return [*self.dates, *(number for number in self.numbers if not number.is_weak)]

    @cached_property
    def terms(self) -> list[str]:
        """The terms of its content words, each once, in order."""
        return list(dict.fromkeys(word.term for word in self.words if word.term))

    @cached_property
    def names(self) -> list[tuple[Word, ...]]:
        """Runs of capitalised words, joined by particles: the names."""
        runs: list[tuple[int, int]] = []
        for index in (index for index, word in enumerate(self.words) if word.is_name):
            start, end = runs[-1] if runs else (0, 0)
            gap = self.text[self.words[end - 1].end : self.words[index].start] if runs else ","
            is_joined = index - end <= 2 and all(word.flat in PARTICLES for word in self.words[end:index])
            is_joined = is_joined and not _BREAKS_NAME.search(gap)
            runs = [*runs[:-1], (start, index + 1)] if is_joined else [*runs, (index, index + 1)]
        return [self.words[start:end] for start, end in runs]


def parse_text(text: str) -> ParsedText:
    """Read a sentence of an answer, or a few of a page."""
    text = fold_text(text)
    numbers, dates = parse_values(text)
    values: list[Value] = sorted([*(n for n in numbers if not n.is_weak), *dates], key=lambda value: value.start)
    # in titles, shouting and German, nouns or all words have a capital
    long = [w for w in re.findall(r"[^\W\d_]{4,}", text)[:80] if not has_unspaced(w)]
    has_names = not ((len(long) > 8 and sum(w[0].isupper() for w in long) > 0.9 * len(long)) or len(_GERMAN.findall(text)) > 1)
    words: list[Word] = []
    place = 0
    for match in WORD.finditer(text):
        word, start, end = match[0], *match.span()
        while place < len(values) and values[place].end <= start:
            place += 1
        value = values[place] if place < len(values) and values[place].start < end else None
        terms = word_terms(word)
        if has_unspaced(word):
            places = ((term, start + offset) for offset, term in enumerate(terms))
            words += (Word(term, term, "" if value else term, at, at + len(term), False, value) for term, at in places)
        else:
            flat = normalise_word(word)
            is_name = has_names and not value and word[0].isupper() and flat not in PRONOUNS and _is_name(text, match)
            words.append(Word(word, flat, terms[0] if terms and not value else "", start, end, is_name, value))
    is_unspaced = not text.isascii() and 2 * sum(has_unspaced(w.text) for w in words) > len(words)
    return ParsedText(text, tuple(words), tuple(numbers), tuple(dates), is_unspaced)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """A capitalised word that does not merely begin a sentence, or begins one together with another."""
    word = match[0]
    if len(word) > 1 and word.isupper():
        return True
    if match.start() > 0 and not _SENTENCE_START.search(text[max(0, match.start() - 4) : match.start()]):
        return bool(word_terms(word))
    following = _NEXT_WORD.match(text, match.end(), match.end() + 40)
    return bool(following and following[1][0].isupper() and word_terms(word))


@dataclass(frozen=True)
class Snapshot:
    """A page's text, ready to be searched: `bounds` of its sentences, the heading `above` each, its `trails`."""

    # `rows` are the sentences that are rows of tables, each with the row that names its columns, or -1.

    text: str
    url: str = ""
    digest: str = ""
    plain: Plain = field(default=Plain(""), repr=False, compare=False)
    bounds: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)
    above: tuple[int, ...] = field(default=(), repr=False, compare=False)
    trails: tuple[tuple[str, ...], ...] = field(default=(), repr=False, compare=False)
    rows: dict[int, int] = field(default_factory=dict, repr=False, compare=False)
    places: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)
    read_chars: int = field(default=0, compare=False)
    parsed: dict[tuple[int, int], ParsedText] = field(default_factory=dict, repr=False, compare=False)
    title: str = ""

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
        text = self.parsed.get((first, last))
        if text is None:
            if len(self.parsed) >= MAX_PARSED:
                self.parsed.clear()
            text = self.parsed[first, last] = parse_text(self.words_between(first, last))
        return text

    def read_row(self, index: int, claim: ParsedText) -> tuple[str, ...]:
        """The first cell of a row and those whose heads the claim says most of, without and with their heads."""
        head = self.rows.get(index, -1)
        if head in (-1, index):
            return ()
        heads, cells = (list_cells(self.words_between(at, at)) for at in (head, index))
        words = {word.flat for word in claim.words}
        shares = [len(words.intersection(map(normalise_word, WORD.findall(name)))) for name in heads]
        most = max(shares[1:], default=0)
        columns = [n for n, share in enumerate(shares[: len(cells)]) if cells[n] and (not n or share == most)]
        with_heads = " | ".join(f"{heads[n]}: {cells[n]}" if heads[n] else cells[n] for n in columns)
        return (" | ".join(cells[n] for n in columns), with_heads) if len(columns) <= MAX_COLUMNS else ()

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
    plain_text = plain(text[:max_chars])
    bounds: list[tuple[int, int]] = []
    above: list[int] = []
    trails: list[tuple[str, ...]] = []
    rows: dict[int, int] = {}
    heading = head = -1
    for block in parse_blocks(plain_text.text):
        if block.kind in ("row", "head") and block.end - block.start <= MAX_ROW_CHARS:
            head = len(bounds) if block.kind == "head" else head if block.heads else -1
            rows[len(bounds)] = head
            bounds.append((block.start, block.end))
        else:
            for start, end in cut_block(plain_text.text, block):
                sentences = sentence_bounds(plain_text.text[start:end], MAX_SENTENCE_CHARS)
                bounds += ((start + first, start + last) for first, last in sentences)
        trails += [block.trail] * (len(bounds) - len(above))
        above += [heading] * (len(bounds) - len(above))
        if block.kind == "heading" and bounds:
            heading = len(bounds) - 1
    places: dict[str, list[int]] = {}
    for number, (start, end) in enumerate(bounds):
        for word in set(WORD.findall(plain_text.text, start, end)):
            for term in word_terms(word):
                if (numbers := places.setdefault(term, []))[-1:] != [number]:
                    numbers.append(number)
    read_chars, digest = min(len(text), max_chars), digest or content_digest(text)
    return Snapshot(
        text, url, digest, plain_text, tuple(bounds), tuple(above), tuple(trails), rows, places, read_chars, title=title
    )


def cut_block(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """The stretches of a block that are read apart: lines of code, and lines of prose that are a label."""
    # Rules, marks and lines that only give the address of a source are none.
    if block.kind in ("rule", "mark"):
        return
    if block.kind == "heading":  # without the line under it
        yield block.start, block.start + len(text[block.start : block.end].partition("\n")[0])
        return
    begin = block.start
    for line in _LINE.finditer(text, block.start, block.end):
        start, end = line.span()
        if block.kind == "code":
            begin = end
            if line[0].strip() and start > block.start and end < block.end:
                yield start, end
        elif LABEL.match(line[0]) or _DEFINITION.match(line[0]):
            if begin < start:
                yield begin, start
            if LABEL.match(line[0]):
                yield start, end
            begin = end
    if begin < block.end:
        yield begin, block.end
