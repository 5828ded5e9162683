"""A short text read once for what can be compared: its words, which of them are names, its numbers and its dates.

Below `pages`, `rules` and `alignment`, above `values` and `terms`. Knows nothing of pages or verdicts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from nexi.checking.lexicon import PARTICLES, PRONOUNS
from nexi.checking.values import Date, Number, Value, parse_values
from nexi.text.plain import fold_text
from nexi.text.wordforms import WORD, normalise_word, word_terms
from nexi.text.words import has_unspaced

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
