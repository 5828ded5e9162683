"""Text to search terms, the same way for what is stored and for what is asked.

Stores and judges use it; it knows no index. A word becomes its lower-case form without accents; an identifier becomes
itself and its parts; scripts without spaces become overlapping pairs of characters. Endings are left to the index.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from nexi.text.stopwords import STOP
from nexi.text.words import UNSPACED

VERSION = 1  # raise it when the same text gives other terms: indexes are built anew then
MAX_TERM = 64

_RUN = re.compile(rf"[{UNSPACED}]+|(?:(?![{UNSPACED}])\w)+(?:[.'’#+](?:(?![{UNSPACED}])\w)+)*(?:\+\+|#)?")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")
_PLAIN = re.compile(r"[a-z]+|[A-Z]?[a-z]+")
_ACCENT = re.compile(r"[\u0300-\u036f]")


def extract_terms(text: str) -> list[str]:
    """Every term of a text, in order, with repetition."""
    found: list[str] = []
    for run in _RUN.findall(text):
        found.extend(_terms_of(run))
    return found


def question_terms(text: str) -> list[str]:
    """The terms of a question, each once: without the words every text has, unless there are no others."""
    every = list(dict.fromkeys(extract_terms(text)))
    return [term for term in every if term not in STOP] or every


def is_unspaced(term: str) -> bool:
    """Whether a term is of a script that puts no spaces between words."""
    return bool(re.match(f"[{UNSPACED}]", term))


@lru_cache(maxsize=65536)
def _terms_of(run: str) -> tuple[str, ...]:
    if _PLAIN.fullmatch(run):
        return (run.lower()[:MAX_TERM],)
    if is_unspaced(run):
        return tuple(_character_pairs(unicodedata.normalize("NFKC", run)))
    return tuple(dict.fromkeys(t[:MAX_TERM] for t in _term_spellings(run) if t))


def _character_pairs(run: str) -> Iterable[str]:
    """Overlapping pairs, and the last character alone: whatever a character follows, some term begins with it."""
    return [run[i : i + 2] for i in range(len(run))]


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
