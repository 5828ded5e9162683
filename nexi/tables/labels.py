"""Values under their names: the rows of tables and the lines "name: value" of a document, and which of them a column asks for.

Pure and deterministic. A value belongs to a column when its names (row, column head, the headings above) have every word of
the column; the one whose own name says least besides is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from nexi.tables.cells import Column
from nexi.text.blocks import list_cells, parse_blocks, read_block
from nexi.text.plain import strip_markdown
from nexi.text.sentences import sentence_bounds
from nexi.text.terms import question_roots

__all__ = ["LabelledValue", "choose_labelled", "list_labelled", "list_sentences"]

MAX_LABEL_WORDS = 9
MAX_VALUE_CHARS = 400
MAX_SENTENCE_CHARS = 1_500
MIN_PRECISION = 0.34  # the share of a name's words that the column has to have

_NAMED = re.compile(
    r"^[ \t>]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?(?:\*\*|__)?(?P<name>[^\s|:*][^|:*\n]{0,78}?)(?:\*\*|__)?"
    r"[ \t]*(?:[:：](?!//)(?:\*\*|__)?[ \t]*|[ \t]*\.{4,}[ \t]*)(?P<value>\S.{0,1000})$"
)
_GENERIC = re.compile(r"(?i)\b(?:number|amount|value|name|total|date)s? of\b|\bof the \w+$")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class LabelledValue(Struct, frozen=True):
    """A value with its names: of its row and column, or of its line; `trail` has the headings above it."""

    name: str
    value: str
    quote: str
    start: int
    trail: str = ""


def choose_labelled(column: Column, values: Sequence[LabelledValue]) -> LabelledValue | None:
    """The value that stands under the name of a column; of several years the last."""
    roots = frozenset(question_roots(_GENERIC.sub(" ", column.text)) or question_roots(column.text))
    best: tuple[float, int, int] | None = None
    choice = None
    for order, value in enumerate(values):
        name = frozenset(question_roots(value.name))
        years = [int(year) for year in _YEAR.findall(value.name)]
        own = max(1, len(name) - len(years))  # a year in the name is not held against it
        if not roots & name or not roots <= name | frozenset(question_roots(value.trail)):
            continue
        rank = (len(roots & name) / own, max(years, default=0), -order)
        if rank[0] >= MIN_PRECISION and (best is None or rank > best):
            best, choice = rank, value
    return choice


def list_labelled(text: str) -> Iterator[LabelledValue]:
    """The values that stand under a name, in the order of the text."""
    for block in parse_blocks(text):
        trail = " ".join(block.trail)
        if block.kind in ("row", "head"):
            # Each cell under the name of its row and the head of its column; a row of two is a name and its value.
            line = text[block.start : block.end]
            cells = [strip_markdown(cell) for cell in list_cells(line)]
            heads = [strip_markdown(head) for head in block.heads]
            for at, cell in enumerate(cells[1:], 1):
                if cell:
                    head = heads[at] if at < len(heads) else ""
                    name = f"{cells[0]} {head}".strip() if len(cells) > 2 else cells[0]
                    yield LabelledValue(name, cell, line.strip(), block.start, f"{trail} {head}".strip())
        elif block.kind in ("prose", "item"):
            start = block.start
            for line in text[block.start : block.end].splitlines(keepends=True):
                if (match := _NAMED.match(line.rstrip())) and len(match["name"].split()) <= MAX_LABEL_WORDS:
                    name, value = strip_markdown(match["name"]), strip_markdown(match["value"])
                    if name and value:
                        # A value that goes on with sentences ends with its first one.
                        first, end = next(sentence_bounds(value, MAX_VALUE_CHARS), (0, len(value)))
                        yield LabelledValue(name, value[first:end].strip(), strip_markdown(line), start, trail)
                start += len(line)


def list_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of paragraphs and items with the place where their block begins."""
    for block in parse_blocks(text):
        if block.kind in ("prose", "item"):
            plain = strip_markdown(read_block(text, block))
            for start, end in sentence_bounds(plain, MAX_SENTENCE_CHARS):
                yield block.start, plain[start:end].strip()
