"""Charts of the tables of an answer: bars drawn from the cells themselves, as SVG that runs nothing. Pure.

A column is drawn when every cell of it is a number in one unit; what a bar means is written beside it in the words of its
cell. A table that would have to be guessed at gets no chart.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import count

from msgspec import Struct

__all__ = ["with_charts"]

WIDTH, ROW, TOP, BAR, LABEL_CHARS, VALUE_CHARS = 420, 34, 4, 11, 42, 22
FEWEST_ROWS, MOST_ROWS, MOST_CHARTS = 2, 30, 3
YEARS = range(1000, 2200)
SCALES = {"thousand": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12, "tn": 1e12}
ABSENT = ("", "-", "–", "—", "n/a", "na", "none", "unknown", "?")

_TABLE = re.compile(r"<table\b[^>]*>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>", re.DOTALL)
_OUR_MARK = re.compile(r'<(a|button)\b[^>]*class="(?:cite|check)\b[^>]*>.*?</\1>', re.DOTALL)
_ANY_TAG = re.compile(r"<[^>]*>")
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_NUMBER = re.compile(
    r"(?P<about>(?:~|≈|±|<|>|≤|≥|c\.|ca\.?|about|around|approx\.?|circa)?\s*)(?P<money>[$€£¥₹]?)\s*(?P<sign>[-−+]?)\s*"
    r"(?P<digits>\d[\d.,\u00a0\u202f\u2009' ]*)",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+(?:,\d+)?")
_ONLY_EUROPEAN = re.compile(r"\d+,(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_BLANKS = re.compile("[\u00a0\u202f\u2009' ]+")


class _Column(Struct, frozen=True):
    """The numbers of one column, each with its name and the words of its cell."""

    title: str
    names: tuple[str, ...]
    shown: tuple[str, ...]
    values: tuple[float, ...]


def with_charts(page: str) -> str:
    """A chart under every table of numbers."""
    numbers = count(1)
    return _TABLE.sub(lambda match: match[0] + "".join(_draw_chart(c, next(numbers)) for c in columns_of(match[0])), page)


def columns_of(table: str) -> list[_Column]:
    """The columns that can be drawn, the first few of them."""
    cells = [[_ANY_TAG.sub("", _OUR_MARK.sub("", cell)) for cell in _CELL.findall(row)] for row in _ROW.findall(table)]
    rows = [[" ".join(html.unescape(cell).split()) for cell in row] for row in cells]
    head, body = rows[0] if rows else [], rows[1:]
    if not FEWEST_ROWS <= len(body) <= MOST_ROWS or any(len(row) != len(head) for row in body):
        return []
    columns: list[_Column] = []
    for at, title in enumerate(head[1:], 1):
        entries = [(row[0], row[at]) for row in body if row[at].casefold() not in ABSENT]
        values = values_of([cell for _, cell in entries])
        if values is None or len(entries) < FEWEST_ROWS or len(entries) * 3 < len(body) * 2:
            continue
        # A column of years says when, not how much.
        has_year_title = re.search(r"\b(year|date|founded|born|since)\b", title.casefold()) is not None
        like_years = all(v.is_integer() and int(v) in YEARS for v in values)
        if not like_years or not (has_year_title or (len(set(values)) > 1 and min(values) > 1400)):
            names, shown = tuple(name for name, _ in entries), tuple(cell for _, cell in entries)
            columns.append(_Column(title or head[0], names, shown, tuple(values)))
    return columns[:MOST_CHARTS]


def values_of(cells: Sequence[str]) -> list[float] | None:
    """The numbers of some cells; None unless each is one number, all in one unit."""
    digits = [match["digits"].strip() for cell in cells if (match := _NUMBER.match(_to_western_separators(cell)))]
    european = any(_ONLY_EUROPEAN.fullmatch(_BLANKS.sub("", d.rstrip(".,"))) for d in digits)
    read = [_read_cell(cell, european) for cell in cells]
    units = {unit for _, unit in filter(None, read)}
    values = [value for value, _ in filter(None, read)]
    return values if len(values) == len(cells) and len(units) == 1 else None


def _read_cell(cell: str, european: bool) -> tuple[float, str] | None:
    text = _to_western_separators(cell)
    match = _NUMBER.match(text)
    if not match:
        return None
    digits = _BLANKS.sub("", match["digits"].rstrip(" .,"))
    shape = _DECIMAL_COMMA if european else _ENGLISH
    unit = text[match.start("digits") + len(match["digits"].rstrip(" .,")) :].strip(" .,").casefold()
    if not shape.fullmatch(digits) or any(c.isdigit() for c in unit) or len(unit) > VALUE_CHARS:
        return None
    plain = digits.replace(".", "").replace(",", ".") if european else digits.replace(",", "")
    scale = next((SCALES[word] for word in unit.split() if word in SCALES), 1.0)
    rest = " ".join(word for word in unit.split() if word not in SCALES)
    value = float(plain) * scale * (-1 if match["sign"] in ("-", "−") else 1)
    return value, f"{match['money']}{rest}"


def _to_western_separators(cell: str) -> str:
    """Arabic separators as ours; the digits of every script are read as they are."""
    return cell.replace("\u066c", ",").replace("\u066b", ".").strip()


def _draw_chart(column: _Column, number: int) -> str:
    """Horizontal bars from a common zero, each under its name and value."""
    low, high = min(0.0, *column.values), max(0.0, *column.values)
    scale = WIDTH / ((high - low) or 1.0)  # all cells may be zero
    zero = -low * scale
    shapes = []
    for at, (name, cell, value) in enumerate(zip(column.names, column.shown, column.values, strict=True)):
        top, start, length = at * ROW + TOP, zero + min(0.0, value * scale), abs(value * scale)
        shapes.append(
            f'<text x="0" y="{top + 13}">{_escape_text(_shorten_text(name, LABEL_CHARS))}</text>'
            f'<text x="{WIDTH}" y="{top + 13}" text-anchor="end">{_escape_text(_shorten_text(cell, VALUE_CHARS))}</text>'
            f'<rect class="bar" x="{start:.1f}" y="{top + 18}" width="{max(1.0, length):.1f}" height="{BAR}" rx="2"/>'
        )
    if low < 0:
        shapes.append(f'<line class="axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{len(shapes) * ROW}"/>')
    values_text = "; ".join(f"{n}: {c}" for n, c in zip(column.names, column.shown, strict=True))
    name = f"chart-{number}"
    head = f'<title id="{name}">{_escape_text(column.title)}</title><desc id="{name}-values">{_escape_text(values_text)}</desc>'
    about = f'role="img" aria-labelledby="{name}" aria-describedby="{name}-values"'
    svg = f'<svg viewBox="0 0 {WIDTH} {len(column.values) * ROW + TOP}" {about}>{head}{"".join(shapes)}</svg>'
    return f'<figure class="chart">{svg}<figcaption dir="auto">{_escape_text(column.title)}</figcaption></figure>'


def _shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _escape_text(text: str) -> str:
    return html.escape(_INVISIBLE.sub("", text))
