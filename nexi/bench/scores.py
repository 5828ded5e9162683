"""Scores an answer against the right answers of the question file.

An answer is correct if it contains a right answer as whole words, or if the two share nearly all of their words.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

MIN_CORRECT_F1 = 0.8
WILSON_Z = 1.96  # two standard deviations: 95 %

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)")
_NO_WORD = re.compile(r"[^\w\s]")
_MARKER = re.compile(r"\[\d+\]")
_LIST_OF_SOURCES = re.compile(r"(?im)^\s*(?:sources|references|citations)\s*:")
_YES_NO = ("yes", "no")


class _AnswerScore(Struct, frozen=True):
    correct: bool
    exact: bool
    f1: float
    words: int


class Share(Struct, frozen=True):
    """A percentage with its 95 % Wilson interval."""

    percent: float
    low: float
    high: float


def score_answer(answer: str, right: Sequence[str]) -> _AnswerScore:
    """Score an answer against the closest right answer."""
    prose = _LIST_OF_SOURCES.split(_MARKER.sub(" ", answer))[0]
    text, golds = _normalise_text(prose), [g for g in map(_normalise_text, right) if g]
    words, best, has_answer = text.split(), 0.0, False
    for gold in golds:
        gold_words = gold.split()
        same = sum((Counter(words) & Counter(gold_words)).values())
        best = max(best, 2 * same / (len(words) + len(gold_words)) if same else 0.0)
        if gold in _YES_NO:
            has_answer = has_answer or words[:1] == [gold]
        elif f" {gold} " in f" {text} " or (not gold.isascii() and " " not in gold and gold in text):
            has_answer = True
    return _AnswerScore(best >= MIN_CORRECT_F1 or has_answer, text in golds, best, len(prose.split()))


def _normalise_text(text: str) -> str:
    """Lower case, no articles, no punctuation, 1,200 as 1200."""
    text = unicodedata.normalize("NFKC", _THOUSANDS.sub("", text)).lower()
    return " ".join(_NO_WORD.sub(" ", _ARTICLE.sub(" ", text)).split())


def wilson_share(count: int, total: int) -> Share:
    if not total:
        return Share(0.0, 0.0, 100.0)
    p, z = count / total, WILSON_Z
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return Share(100 * p, max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half)))
