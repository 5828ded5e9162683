"""A text read for what can be compared: its words, and the hard facts among them.

Below `agreement`, above `numbers`, `dates` and `terms`. Dates and numbers are values, names are runs of capitalised words,
quotes and code are kept as they stand, and denial knows which word it denies. Knows nothing of sources or verdicts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from nexi.proof.dates import Date, read_dates
from nexi.proof.lexicon import DENIALS, DENIED_BY_PHRASE, NOT_DENIED, PRONOUNS, WIDE_DENIALS
from nexi.proof.numbers import Number, read_numbers
from nexi.proof.phrases import one_wording
from nexi.proof.plain import folded
from nexi.proof.terms import UNSPACED, WORD, flat, terms

SCOPE = 3  # content words that a denial reaches

_QUOTE = re.compile(r"(?<![^\W_])\"\s?([^\"\n]{2,600}?)\s?\"|「([^」\n]{2,300})」|『([^』\n]{2,300})』")
_SINGLE = re.compile(r"(?<![\w'])'(?=\w)([^'\n]{12,400}(?:'\w[^'\n]{0,200}){0,3})(?<=[\w.,!?])'(?!\w)")
_CODE = re.compile(
    r"(?<![\w/])(?:--?[a-z][\w-]+(?==|\b)|[A-Za-z]\w*(?:\.\w+)+\(?\)?|\w+\(\)|[A-Za-z0-9]*_[A-Za-z0-9_]+|[a-z]+[A-Z]\w+|[A-Z]+_[A-Z_]+"
    r"|v?\d+(?:\.\d+){2,}\w*|(?:~|\.{0,2})/[\w.-]+(?:/[\w.-]*)*)"
)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|eine[rsnm]?|wurde|sind|den|dem|auf|mit)\b")
_CLAUSE_END = re.compile(r"[,;:.!?()]|\b(?:but|although|while|whereas|and)\b")
_STARTS = re.compile(r"(?:^|[.!?:;•|]\s+|^\W+|[\"(]\s?)$")
_PARTICLES = frozenset(
    [
        "of",
        "the",
        "de",
        "la",
        "le",
        "du",
        "des",
        "van",
        "von",
        "der",
        "den",
        "di",
        "da",
        "del",
        "dos",
        "al",
        "el",
        "bin",
        "ibn",
        "y",
        "und",
        "et",
        "for",
        "&",
    ]
)
_NOT_PRONOUN_NAMES = frozenset(["i"])


class Word(NamedTuple):
    """A word of a text: as written, flat, its terms, where it stands, and what it is part of."""

    text: str
    flat: str
    terms: tuple[str, ...]
    start: int
    end: int
    fact: bool  # inside a number or a date
    name: bool


class Reading(Struct, frozen=True):
    """A text read once."""

    text: str
    words: tuple[Word, ...]
    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]
    quotes: tuple[str, ...]
    code: tuple[str, ...]
    denials: tuple[int, ...]  # indexes of the words that deny
    wide: bool  # most of it is in a script without spaces

    def at(self, place: int) -> int:
        """The index of the first word at or after an offset."""
        return bisect_left(self.words, place, key=lambda word: word.start)


def read(text: str) -> Reading:
    """Read a short text: a sentence of an answer or a few of a page."""
    text = one_wording(folded(text))
    dates = read_dates(text)
    taken = [(d.start, d.end) for d in dates]
    numbers = [n for n in read_numbers(text) if not any(n.start < e and s < n.end for s, e in taken)]
    words = tuple(_words(text, sorted(taken + [(n.start, n.end) for n in numbers])))
    wide = not text.isascii() and sum(bool(UNSPACED.search(w.text)) for w in words) * 2 > len(words)
    code = tuple(
        dict.fromkeys(c for c in _CODE.findall(_ADDRESS.sub(" ", text)) if not c.replace(".", "").isdigit() or c.count(".") > 1)
    )
    return Reading(text, words, tuple(numbers), tuple(dates), tuple(_quotes(text)), code, _denials(text, words), wide)


def _words(text: str, facts: list[tuple[int, int]]) -> Iterator[Word]:
    capital_text = _is_capital_text(text)
    place = 0
    for match in WORD.finditer(text):
        while place < len(facts) and facts[place][1] <= match.start():
            place += 1
        fact = place < len(facts) and facts[place][0] < match.end()
        word = match[0]
        if not word.isascii() and UNSPACED.search(word):
            for offset, term in enumerate(terms(word)):
                yield Word(term, term, (term,), match.start() + offset, match.start() + offset + len(term), fact, False)
            continue
        name = not fact and not capital_text and word[0].isupper() and flat(word) not in PRONOUNS and _is_name(text, match)
        yield Word(word, flat(word), () if fact else terms(word), match.start(), match.end(), fact, name)


def _is_capital_text(text: str) -> bool:
    """Titles, shouting and German: where nouns or all words have a capital, a capital says nothing."""
    long = [w for w in re.findall(r"[^\W\d_]{4,}", text)[:80] if not UNSPACED.search(w)]
    shouted = len(long) > 8 and sum(w[0].isupper() for w in long) > 0.9 * len(long)
    return shouted or len(_GERMAN.findall(text)) > 1


def _is_name(text: str, match: re.Match[str]) -> bool:
    """A capitalised word that does not merely begin a sentence, or begins one together with another."""
    word = match[0]
    if len(word) > 1 and word.isupper():
        return True
    if not _STARTS.search(text[max(0, match.start() - 4) : match.start()]) and match.start() > 0:
        return bool(terms(word))
    following = re.match(r"\.? ([^\W\d_][\w'-]*)", text[match.end() : match.end() + 40])
    return bool(following and following[1][0].isupper() and bool(terms(word)))


def names_of(reading: Reading) -> list[tuple[int, int]]:
    """Runs of capitalised words as index ranges, joined by particles."""
    runs: list[tuple[int, int]] = []
    for index, word in enumerate(reading.words):
        if not word.name:
            continue
        start = runs[-1][1] if runs else -1
        between = reading.words[start:index] if runs else ()
        gap = reading.text[reading.words[start - 1].end : word.start] if runs else ""
        if runs and len(between) <= 2 and all(w.flat in _PARTICLES for w in between) and not re.search(r"[,;:()\"/]", gap):
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


def _quotes(text: str) -> Iterator[str]:
    for match in [*_QUOTE.finditer(text), *_SINGLE.finditer(text)]:
        yield next(group for group in match.groups() if group)


def _denials(text: str, words: tuple[Word, ...]) -> tuple[int, ...]:
    return tuple(
        i for i, w in enumerate(words) if _may_deny(w.flat) and text[w.start - 1 : w.start] != "-" and _denies(words, i, w)
    )


def _may_deny(word: str) -> bool:
    return word in DENIALS or word in DENIED_BY_PHRASE or word[0] in WIDE_DENIALS or word.endswith("n't")


def _denies(words: tuple[Word, ...], index: int, word: Word) -> bool:
    following = words[index + 1] if index + 1 < len(words) else None
    if word.flat.endswith("n't"):
        return True
    if word.flat in DENIED_BY_PHRASE:
        return following is not None and following.flat == DENIED_BY_PHRASE[word.flat]
    if word.flat[0] in WIDE_DENIALS:
        return True
    if word.text in ("None", "NONE") and index:
        return False  # a value of code
    if word.flat == "no" and (following is None or following.fact or word.text == "NO"):
        return False
    return following is None or following.flat not in NOT_DENIED


def denied(reading: Reading, index: int, reach: int = SCOPE) -> list[int]:
    """The content words that the denial at an index reaches, within its clause."""
    found: list[int] = []
    for place in range(index + 1, min(len(reading.words), index + 9)):
        word = reading.words[place]
        if found and _CLAUSE_END.search(reading.text[reading.words[place - 1].end : word.start]):
            break
        if word.terms or word.fact:
            found.append(place)
        if len(found) == reach:
            break
    return found
