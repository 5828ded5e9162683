"""The values of a table, and its columns as people write them. Pure.

Above are the finders of values, the doors and the exports. A cell without a quote is not stated: no value stands without the
words of its document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from nexi.checking.links import page_number
from nexi.errors import QuestionError
from nexi.text.blocks import parse_blocks

MAX_COLUMNS = 40
MAX_COLUMN_CHARS = 300
NOT_STATED = "not stated"

_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = r"[\W_]{1,40}"


class Column(Struct, frozen=True):
    """What is looked for in each document: a name ("launch date"), or a whole question."""

    text: str

    @property
    def question(self) -> str:
        return self.text if self.text.endswith("?") else f"What is the {self.text}?"


class Cell(Struct, frozen=True):
    """One value and the words it was taken from. `page` is the page of a PDF, `heading` what the words stand under."""

    value: str = ""
    quote: str = ""
    page: int = 0
    heading: str = ""

    @property
    def is_stated(self) -> bool:
        return bool(self.quote)


class Row(Struct, frozen=True):
    """One document. `date` is when it says it was last changed or published; `problem` why it could not be read."""

    name: str
    url: str
    title: str = ""
    date: str = ""
    digest: str = ""
    cells: tuple[Cell, ...] = ()
    problem: str = ""


class ValueTable(Struct, frozen=True):
    """Documents by columns. `model` is who filled it in, "" for nobody; `gap` what was left out, in words."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    model: str = ""
    gap: str = ""


def parse_columns(texts: Iterable[str]) -> tuple[Column, ...]:
    """Columns as they are typed: names between commas, semicolons or line ends; whole questions. Raises QuestionError."""
    names: list[str] = []
    for text in texts:
        separator = r"(?<=\?)|[;\n]" if "?" in text else r"[,;\n]"
        names += [name for part in re.split(separator, text) if (name := " ".join(part.split()).strip(" ,"))]
    columns = tuple(Column(name) for name in dict.fromkeys(names))
    if not columns:
        raise QuestionError("the table has no columns", fix='name what to look for: "price, launch date, weight"')
    if len(columns) > MAX_COLUMNS:
        raise QuestionError(f"the table has {len(columns)} columns", fix=f"name at most {MAX_COLUMNS}")
    if wide := next((c.text for c in columns if len(c.text) > MAX_COLUMN_CHARS), ""):
        raise QuestionError(f"a column is too long: {wide[:60]}…", fix=f"use at most {MAX_COLUMN_CHARS} characters for each")
    return columns


def place_quote(text: str, value: str, quote: str, start: int) -> Cell:
    """A cell whose quote begins at a place of its document."""
    trail = next((block.trail for block in parse_blocks(text) if block.start <= start <= block.end), ())
    return Cell(value, quote, page_number(text, start), trail[-1] if trail else "")


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Where the words of a quote stand in a text, whatever markup is between them; None where they do not."""
    words = _WORD.findall(quote)
    if not words:
        return None
    whole = _BETWEEN_WORDS.join(map(re.escape, words))
    match = re.search(rf"(?<![^\W_])(?<!\d[.,]){whole}(?![^\W_])(?![.,]\d)", text)
    return match.span() if match else None
