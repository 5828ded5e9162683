"""Text to search terms, the same way for what is stored and for what is asked.

Stores and judges use it; it knows no index. A word becomes its lower-case form without accents; an identifier becomes
itself and its parts; scripts without spaces become overlapping pairs of characters. An index of words takes their roots.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from nexi.text.stems import stem, stem_english
from nexi.text.words import STOP, UNSPACED

VERSION = 2  # raise it when the same text gives other terms: indexes are built anew then
MAX_TERM = 64
MAX_CACHED_RUNS = 262_144

_RUN = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])\w)+(?:[.'’#+](?:(?![{UNSPACED}])\w)+)*(?:\+\+|#)?")
_ASCII_RUN = re.compile(r"\w+(?:[.'#+]\w+)*(?:\+\+|#)?", re.ASCII)  # the same for a text in ASCII, at a third of the time
# Each byte of UTF-8 as itself, or as a space where it is an ASCII character that no run has.
_GAPS = bytes(code if code > 127 or chr(code).isalnum() or chr(code) in "_.'#+" else 32 for code in range(256))
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_ACCENT = re.compile(r"[\u0300-\u036f]")


def extract_terms(text: str) -> list[str]:
    """Every term of a text, in order, with repetition."""
    return " ".join(map(_TERMS_OF_RUN.__getitem__, _split_runs(text))).split()


def join_roots(text: str) -> str:
    """The root of every term of a text, in order, with spaces between them: what an index stores."""
    return " ".join(filter(None, map(_ROOTS_OF_RUN.__getitem__, _split_runs(text))))


def count_roots(roots: str) -> int:
    """How many roots `join_roots` has joined."""
    return roots.count(" ") + 1 if roots else 0


def _split_runs(text: str) -> list[str]:
    """The runs of a text. Splitting is faster than matching, but leaves quotes and dashes around them, or between two."""
    if text.isascii() or not _UNSPACED.search(text):
        # As bytes, since a string that has one letter beyond ASCII is translated ten times as slowly.
        return text.encode("utf-8", "surrogatepass").translate(_GAPS).decode("utf-8", "surrogatepass").split()
    return _RUN.findall(text)


def question_terms(text: str) -> list[str]:
    """The terms of a question, each once: without the words every text has, unless there are no others."""
    every = list(dict.fromkeys(extract_terms(text)))
    return [term for term in every if term not in STOP] or every


def question_roots(text: str) -> list[str]:
    """The roots of a question's terms, each once."""
    return list(dict.fromkeys(map(_root_of, question_terms(text))))


def is_unspaced(term: str) -> bool:
    """Whether a term is of a script that puts no spaces between words."""
    return not term.isascii() and bool(_UNSPACED.match(term))


class _RunCache(dict[str, str]):
    """What a run of letters becomes, joined by spaces. A dictionary, because most of the time of indexing is spent here."""

    def __init__(self, finish: Callable[[str], str], finish_plain: Callable[[str], str]) -> None:
        self._finish = finish
        self._finish_plain = finish_plain

    def __missing__(self, run: str) -> str:
        if len(self) >= MAX_CACHED_RUNS:
            self.clear()
        word = run.strip(".'")  # the ends of sentences and quotations
        if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower()):  # a pattern takes four times as long
            terms = self._finish_plain(word.lower()[:MAX_TERM])
        elif word.isascii() and word.isdecimal():
            terms = word[:MAX_TERM]
        elif is_unspaced(run):
            # Overlapping pairs, and the last character alone: whatever a character follows, some term begins with it.
            chars = unicodedata.normalize("NFKC", run)
            terms = " ".join([self._finish(chars[at : at + 2]) for at in range(len(chars))])
        else:
            bare = (_ASCII_RUN if run.isascii() else _RUN).findall(run)
            spellings = [dict.fromkeys(term[:MAX_TERM] for term in _term_spellings(one) if term) for one in bare]
            terms = " ".join([self._finish(term) for own in spellings for term in own])
        terms = self[run] = run if terms == run else terms  # one object in the place of two, for most words
        return terms


def _root_of(term: str) -> str:
    return term if is_unspaced(term) else stem(term)


_TERMS_OF_RUN = _RunCache(str, str)
_ROOTS_OF_RUN = _RunCache(_root_of, stem_english)


def _term_spellings(run: str) -> Iterable[str]:
    """A run as a whole, its dotted or quoted parts, and the pieces that case, digits and underscores mark in them."""
    parts = [p for p in re.split(r"['’.+#]", run) if p]
    if "'" in run or "’" in run:
        parts = [p for p in parts if len(p) > 1 or p.isdigit()]
    else:
        yield fold_text(run)
    for part in parts:
        yield fold_text(part).strip("_")
        pieces = _PIECE.findall(part)
        if len(pieces) > 1:
            yield from (fold_text(piece) for piece in pieces)


def fold_text(text: str) -> str:
    """Lower case, compatibility forms made one, and Latin, Greek and Cyrillic letters without their accents."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return text if text.isascii() else unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))
