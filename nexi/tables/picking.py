"""Which sentence of a document says the value of a column, and which of its words are the value. Pure.

A column's name tells what kind of value it wants: a date, an amount of money, a mass, a share, any number, or words. A sentence
without a value of that kind is no candidate. Among the others the one is taken that is nearest in meaning, where a reading
model compares them, or that has every word of the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from nexi.checking.values import Number, Value, parse_values
from nexi.tables.cells import Column
from nexi.text.terms import question_roots

__all__ = ["Compare", "Saying", "choose_saying", "pick_value"]

MIN_SCORE = 0.82  # nearness by the reading model, which gives .75 to unrelated texts, and what is added to it below
SHARED_WORDS = 0.04  # for all words of the column in the sentence
KIND_FITS = 0.03  # for a value of the very kind
MIN_WORD_SHARE = 0.75  # of the column's words, where nothing compares meanings
MAX_COMPARED = 40  # sentences, those with words of the column first

Compare = Callable[[str, Sequence[str]], Sequence[float] | None]

_MONEY = frozenset(("usd", "eur", "gbp", "jpy", "cny", "inr", "chf", "rub"))
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        r"when|dates?|days?|year|founded|established|launch(?:ed)?|release[ds]?|start|begin(?:ning)?|end|expir\w+|deadline|born|"
        r"birthday",
        frozenset(("date",)),
    ),
    (
        r"prices?|costs?|fees?|revenues?|income|profits?|loss(?:es)?|budget|salary|turnover|assets|debt|dividend|rent|deposit",
        _MONEY,
    ),
    (r"weights?|mass|heavy", frozenset(("mass",))),
    (r"durations?|periods?|terms?|(?:\w+ )?time|how long|warranty|follow-up|lifetime", frozenset(("time",))),
    (r"height|length|width|depth|distance|range|tall|far|wide", frozenset(("length",))),
    (r"speed|how fast", frozenset(("speed",))),
    (r"percentage|rate|share|margin|accuracy|yield", frozenset(("share",))),
    (r"memory|storage", frozenset(("data",))),
    (r"temperature", frozenset(("celsius", "fahrenheit", "kelvin", "angle"))),
    (r"area", frozenset(("area",))),
    (r"where|city|town|country|location|region|state|address|birthplace|headquarters|seat", frozenset(("place",))),
    (r"who|whom|name|\w{3,}(?:[^\W\dmb]er|[ts]or|ee|ant|ist)|ceo|client|president", frozenset(("name",))),
    (
        r"how many|how much|numbers?|counts?|amounts?|size|population|employees|staff|headcount|total|quantity|age|score|dose",
        frozenset(("number",)),
    ),
)
_KIND_PATTERNS = tuple((re.compile(rf"(?i)\b(?:{words})\b"), kinds) for words, kinds in _KINDS)
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(
    r"(?<![.!?] )(?<!^)\b(?!(?:The|An?|It|We|This|In|From|Our)\b)[A-ZÀ-Þ][\w'’.&-]*"
    r"(?: (?:(?:of|the|de|la|von|van|der|and|for) ){0,2}[A-ZÀ-Þ][\w'’.&-]*)*\b"
)
_CURRENCY = re.compile(r"\b[A-Z]{3} ?$")
_UNKNOWN_UNIT = re.compile(r" [a-z]{3,}\b")
_PLACE = re.compile(r"\b(?:in|at|from|across|near|of|to) (?:(?:the|rural|northern|southern|eastern|western) )?$")


class _Name(Struct, frozen=True):
    """A run of capitalised words in a sentence."""

    start: int
    end: int


class Saying(Struct, frozen=True):
    """Words of a document that may say a value: a sentence, or a `value` under its name."""

    text: str
    start: int
    value: str = ""


def choose_saying(column: Column, sayings: Sequence[Saying], compare: Compare | None) -> Saying | None:
    """What says the value of a column; None where nothing does."""
    kinds, roots = kinds_wanted(column), frozenset(question_roots(column.text))
    candidates = []
    for order, saying in enumerate(sayings):
        if saying.value and kinds & {"name", "place"}:  # under its name, a name or a place may be any words
            holds_kind = saying.value[0].isupper()
        else:
            holds_kind = not kinds or bool(find_values(kinds, saying.value or saying.text))
        if holds_kind:
            share = len(roots & frozenset(question_roots(saying.text))) / max(1, len(roots))
            candidates.append((share, -order, saying))
    candidates = sorted(candidates, key=lambda row: row[:2], reverse=True)[:MAX_COMPARED]
    nearness = compare(column.question, [saying.text for *_, saying in candidates]) if compare and candidates else None
    if nearness is None:
        return candidates[0][2] if candidates and candidates[0][0] >= MIN_WORD_SHARE else None
    fits = KIND_FITS if kinds and "number" not in kinds else 0.0
    scores = [(near + SHARED_WORDS * share + fits, order) for near, (share, order, _) in zip(nearness, candidates, strict=True)]
    score, order = max(scores, default=(0.0, 0))
    return sayings[-order] if score >= MIN_SCORE else None


def pick_value(column: Column, saying: Saying) -> str:
    """The words that are the value; all of them where none stands out."""
    if saying.value:
        return saying.value
    sentence = saying.text
    values = find_values(kinds_wanted(column), sentence)
    if not values:
        return sentence
    roots = frozenset(question_roots(column.text))
    places = [m.span() for m in _WORD.finditer(sentence) if roots & frozenset(question_roots(m.group()))]
    nearest, least = values[0], math.inf
    for value in values if places else ():
        # A value after the words of the column is nearer than one ahead of them.
        distance = min(value.start - end if value.start >= end else 1.5 * max(0, start - value.end) for start, end in places)
        if distance < least:
            nearest, least = value, distance
    start, end = nearest.start, nearest.end
    if isinstance(nearest, Number) and not nearest.unit:  # a currency or a unit whose name is not known
        if currency := _CURRENCY.search(sentence, 0, start):
            start = currency.start()
        elif unit := _UNKNOWN_UNIT.match(sentence, end):
            end = unit.end()
    return sentence[start:end].strip()


def kinds_wanted(column: Column) -> frozenset[str]:
    """The kinds of value that the name of a column stands for: those of its last word that stands for any."""
    matches = [(match.end(), kinds) for pattern, kinds in _KIND_PATTERNS for match in pattern.finditer(column.text)]
    return max(matches, key=lambda pair: pair[0])[1] if matches else frozenset()


def find_values(kinds: frozenset[str], sentence: str) -> Sequence[Value | _Name]:
    """The values of these kinds in a sentence, in order."""
    numbers, dates = parse_values(sentence)
    if kinds & {"name", "place"}:
        names = [
            _Name(*m.span())
            for m in _NAME.finditer(sentence)
            if not any(d.start < m.end() and m.start() < d.end for d in dates)
        ]
        if "name" in kinds:
            return names
        after = [n for n in names if _PLACE.search(sentence, 0, n.start)]
        return after or [n for n in names if sentence.endswith(", ", 0, n.start)]
    if "date" in kinds:
        return [*dates, *(n for n in numbers if n.year)]
    plain = [n for n in numbers if not n.is_ordinal]
    if "number" in kinds:
        return [n for n in plain if not n.is_weak and not n.unit and not n.year] or [
            n for n in plain if not n.is_weak and not n.year
        ]
    exact = [n for n in plain if n.unit in kinds]
    if exact or "usd" not in kinds:
        return exact
    return [n for n in plain if not (n.unit or n.year or n.is_weak)]  # the names of most currencies are not known
