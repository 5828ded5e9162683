"""The value of a column in a document: what stands under its name, or the sentence that says it and the words in it. Pure.

The rows of tables and the lines "name: value" come first. Such a value belongs to a column when its names (row, column head,
the headings above) have every word of the column; the one whose own name says least besides is taken.

A column's name tells what kind of value it wants: a date, an amount of money, a mass, a share, any number, or words. A sentence
without a value of that kind is no candidate. Among the others the one is taken that is nearest in meaning, where a reading
model compares them, or that has every word of the column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from nexi.checking.values import Number, Value, parse_values
from nexi.tables.cells import Column
from nexi.text.blocks import list_cells, parse_blocks, read_block
from nexi.text.plain import strip_markdown
from nexi.text.sentences import sentence_bounds
from nexi.text.terms import question_roots

MAX_LABEL_WORDS = 9
MAX_VALUE_CHARS = 400
MAX_SENTENCE_CHARS = 1_500
MIN_PRECISION = 0.34  # the share of a name's words that the column has to have
MIN_SCORE = 0.82  # nearness by the reading model, which gives .75 to unrelated texts, and what is added to it below
SHARED_WORDS = 0.04  # for all words of the column in the sentence
KIND_FITS = 0.03  # for a value of the very kind
MIN_WORD_SHARE = 0.75  # of the column's words, where nothing compares meanings
MAX_COMPARED = 40  # sentences, those with words of the column first

Compare = Callable[[str, Sequence[str]], Sequence[float] | None]

_KINDS = {  # words in the name of a column, by the kinds of value that they stand for
    "date": (
        r"when|dates?|days?|year|founded|established|launch(?:ed)?|release[ds]?|start|begin(?:ning)?|end|expir\w+|deadline|born|"
        r"birthday"
    ),
    "usd eur gbp jpy cny inr chf rub": (
        r"prices?|costs?|fees?|revenues?|income|profits?|loss(?:es)?|budget|salary|turnover|assets|debt|dividend|rent|deposit"
    ),
    "mass": r"weights?|mass|heavy",
    "time": r"durations?|periods?|terms?|(?:\w+ )?time|how long|warranty|follow-up|lifetime",
    "length": r"height|length|width|depth|distance|range|tall|far|wide",
    "speed": r"speed|how fast",
    "share": r"percentage|rate|share|margin|accuracy|yield",
    "data": r"memory|storage",
    "celsius fahrenheit kelvin angle": r"temperature",
    "area": r"area",
    "place": r"where|city|town|country|location|region|state|address|birthplace|headquarters|seat",
    "name": r"who|whom|name|\w{3,}(?:[^\W\dmb]er|[ts]or|ee|ant|ist)|ceo|client|president",
    "number": (
        r"how many|how much|numbers?|counts?|amounts?|size|population|employees|staff|headcount|total|quantity|age|score|dose"
    ),
}
_KIND_PATTERNS = [(re.compile(rf"(?i)\b(?:{words})\b"), frozenset(kinds.split())) for kinds, words in _KINDS.items()]
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(
    r"(?<![.!?] )(?<!^)\b(?!(?:The|An?|It|We|This|In|From|Our)\b)[A-ZÀ-Þ][\w'’.&-]*"
    r"(?: (?:(?:of|the|de|la|von|van|der|and|for) ){0,2}[A-ZÀ-Þ][\w'’.&-]*)*\b"
)
_CURRENCY = re.compile(r"\b[A-Z]{3} ?$")
_UNKNOWN_UNIT = re.compile(r" [a-z]{3,}\b")
_PLACE = re.compile(r"\b(?:in|at|from|across|near|of|to) (?:(?:the|rural|northern|southern|eastern|western) )?$")
_NAMED = re.compile(
    r"^[ \t>]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?(?:\*\*|__)?(?P<name>[^\s|:*][^|:*\n]{0,78}?)(?:\*\*|__)?"
    r"[ \t]*(?:[:：](?!//)(?:\*\*|__)?[ \t]*|[ \t]*\.{4,}[ \t]*)(?P<value>\S.{0,1000})$"
)
_GENERIC = re.compile(r"(?i)\b(?:number|amount|value|name|total|date)s? of\b|\bof the \w+$")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class _Name(NamedTuple):  # a run of capitalised words in a sentence
    start: int
    end: int


class Saying(Struct, frozen=True):
    """Words of a document that may say a value: a sentence, or a `value` under its name."""

    text: str
    start: int
    value: str = ""


def choose_saying(column: Column, sayings: Sequence[Saying], compare: Compare | None) -> Saying | None:
    """What says the value of a column; None where nothing does."""
    kinds, roots = _kinds_wanted(column), frozenset(question_roots(column.text))
    candidates = []
    for order, saying in enumerate(sayings):
        if saying.value and kinds & {"name", "place"}:  # under its name, a name or a place may be any words
            holds_kind = saying.value[0].isupper()
        else:
            holds_kind = not kinds or bool(_find_values(kinds, saying.value or saying.text))
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
    values = _find_values(_kinds_wanted(column), sentence)
    if not values:
        return sentence
    roots = frozenset(question_roots(column.text))
    places = [m.span() for m in _WORD.finditer(sentence) if roots & frozenset(question_roots(m.group()))]

    def measure(value: Value | _Name) -> float:  # a value after the words of the column is nearer than one ahead of them
        return min(value.start - end if value.start >= end else 1.5 * max(0, start - value.end) for start, end in places)

    nearest = min(values, key=measure) if places else values[0]
    start, end = nearest.start, nearest.end
    if isinstance(nearest, Number) and not nearest.unit:  # a currency or a unit whose name is not known
        if currency := _CURRENCY.search(sentence, 0, start):
            start = currency.start()
        elif unit := _UNKNOWN_UNIT.match(sentence, end):
            end = unit.end()
    return sentence[start:end].strip()


def _kinds_wanted(column: Column) -> frozenset[str]:
    """The kinds of value that the name of a column stands for: those of its last word that stands for any."""
    matches = [(match.end(), kinds) for pattern, kinds in _KIND_PATTERNS for match in pattern.finditer(column.text)]
    return max(matches, key=lambda pair: pair[0])[1] if matches else frozenset()


def _find_values(kinds: frozenset[str], sentence: str) -> Sequence[Value | _Name]:
    """The values of these kinds in a sentence, in order."""
    numbers, dates = parse_values(sentence)
    if kinds & {"name", "place"}:
        names = [_Name(*m.span()) for m in _NAME.finditer(sentence)]
        names = [n for n in names if not any(d.start < n.end and n.start < d.end for d in dates)]
        if "name" in kinds:
            return names
        after = [n for n in names if _PLACE.search(sentence, 0, n.start)]
        return after or [n for n in names if sentence.endswith(", ", 0, n.start)]
    if "date" in kinds:
        return [*dates, *(n for n in numbers if n.year)]
    plain = [n for n in numbers if not n.is_ordinal]
    if "number" in kinds:
        counts = [n for n in plain if not n.is_weak and not n.year]
        return [n for n in counts if not n.unit] or counts
    exact = [n for n in plain if n.unit in kinds]
    if exact or "usd" not in kinds:
        return exact
    return [n for n in plain if not (n.unit or n.year or n.is_weak)]  # the names of most currencies are not known


class _LabelledValue(Struct, frozen=True):
    """A value with its names: of its row and column, or of its line; `trail` has the headings above it."""

    name: str
    value: str
    quote: str
    start: int
    trail: str = ""


def choose_labelled(column: Column, values: Sequence[_LabelledValue]) -> _LabelledValue | None:
    """The value that stands under the name of a column; of several years the last."""
    roots = frozenset(question_roots(_GENERIC.sub(" ", column.text)) or question_roots(column.text))
    candidates: list[tuple[tuple[float, int, int], _LabelledValue]] = []
    for order, value in enumerate(values):
        name = frozenset(question_roots(value.name))
        years = [int(year) for year in _YEAR.findall(value.name)]
        own = max(1, len(name) - len(years))  # a year in the name is not held against it
        if not roots & name or not roots <= name | frozenset(question_roots(value.trail)):
            continue
        rank = (len(roots & name) / own, max(years, default=0), -order)
        candidates += [(rank, value)] if rank[0] >= MIN_PRECISION else []
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def list_labelled(text: str) -> Iterator[_LabelledValue]:
    """The values that stand under a name, in the order of the text."""
    for block in parse_blocks(text):
        trail = " ".join(block.trail)
        if block.kind in ("row", "head"):
            # Each cell under the name of its row and the head of its column; a row of two is a name and its value.
            line = text[block.start : block.end]
            cells = [strip_markdown(cell) for cell in list_cells(line)]
            heads = [strip_markdown(head) for head in block.heads]
            for at, cell in enumerate(cells[1:], 1):
                if cell and not (block.kind == "head" and len(cells) > 2):  # the names of columns are no values
                    head = heads[at] if at < len(heads) else ""
                    name = f"{cells[0]} {head}".strip() if len(cells) > 2 else cells[0]
                    yield _LabelledValue(name, cell, line.strip(), block.start, f"{trail} {head}".strip())
        elif block.kind in ("prose", "item"):
            start = block.start
            for line in text[block.start : block.end].splitlines(keepends=True):
                if (match := _NAMED.match(line.rstrip())) and len(match["name"].split()) <= MAX_LABEL_WORDS:
                    name, value = strip_markdown(match["name"]), strip_markdown(match["value"])
                    if name and value:
                        # A value that goes on with sentences ends with its first one.
                        first, end = next(sentence_bounds(value, MAX_VALUE_CHARS), (0, len(value)))
                        yield _LabelledValue(name, value[first:end].strip(), strip_markdown(line), start, trail)
                start += len(line)


def list_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of paragraphs and items with the place where their block begins."""
    for block in parse_blocks(text):
        if block.kind in ("prose", "item"):
            plain = strip_markdown(read_block(text, block))
            for start, end in sentence_bounds(plain, MAX_SENTENCE_CHARS):
                yield block.start, plain[start:end].strip()
