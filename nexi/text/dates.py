"""The days that a text names, in many languages, as ISO 8601: what a machine wrote keeps its time, what people wrote is a day.

Above are the dates of pages and the scope of documents. No clock is known here, so a day in the future is one like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

MIN_YEAR, MAX_YEAR = 1990, 2099  # of dates in prose, which speaks of other times too
MAX_STAMP_CHARS = 120  # a longer text that holds a date is prose
MAX_DATE_CHARS = 48  # between the year and the other end of a date with the name of a month

_MONTH_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, tuple[str, ...]])["months"]
MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
MONTH_PATTERN = "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True))
# Patterns that are searched for begin with one character, and look back at the one before it: a search for a first character
# takes a tenth of one that tries the pattern everywhere.
_ISO = re.compile(
    r"(\d\d\d\d)-(\d{1,2})-(\d{1,2})(?:[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)?"
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T?\d{4,6})?Z?$")
_DAY_MONTH = re.compile(
    rf"(\d(?<!\w.)\d?)(?:st|nd|rd|th|er|\.|º)?[ \u00a0-]{{0,2}}(?:de |of )?({MONTH_PATTERN})\b\.?,?[ \u00a0-]{{0,2}}"
    r"(?:de |del )?((?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b({MONTH_PATTERN})\b\.?[ \u00a0]{{0,2}}(\d{{1,2}})(?:st|nd|rd|th)?\b,?[ \u00a0]{{0,2}}((?:19|20)\d\d)\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_YEAR_MONTH = re.compile(rf"([12](?<!\w.)(?:(?<=1)9|(?<=2)0)\d\d) ({MONTH_PATTERN})\.? (\d{{1,2}})\b", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d(?<![\d./-].)\d?)([./-])(\d{1,2})\2((?:19|20)\d\d|\d\d)(?![\d./-])")
_YEAR_FIRST = re.compile(r"([12](?<![\d./-].)(?:(?<=1)9|(?<=2)0)\d\d)([./])(\d{1,2})\2(\d{1,2})(?![\d/-])")
_ASIAN = re.compile(r"([12](?:(?<=1)9|(?<=2)0)\d\d)\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]")
_WITH_NAMES = ((_DAY_MONTH, (3, 2, 1)), (_MONTH_DAY, (3, 1, 2)), (_YEAR_MONTH, (1, 2, 3)))  # the groups of year, month, day
_WITH_NUMBERS = ((_ISO, (1, 2, 3)), (_ASIAN, (1, 2, 3)), (_YEAR_FIRST, (1, 3, 4)))
_MONTH_FIRST = re.compile(r"en-(?:us|ph)|en$|^$", re.IGNORECASE)


class DateMention(NamedTuple):
    """A date in a text, where it stands."""

    start: int
    day: str


def normalise_date(text: str, language: str = "") -> str:
    """A date as ISO 8601, with its time where it has one; "" for what is none."""
    text = " ".join(text[:MAX_STAMP_CHARS].split())
    if iso := _ISO.match(text):
        is_whole = _is_day(iso[1], iso[2], iso[3], 1000) and len(iso[2]) == 2
        return iso[0].replace(" ", "T", 1) if is_whole else parse_day(iso.group(1, 2, 3))
    if compact := _COMPACT.match(text):
        return parse_day(compact.group(1, 2, 3))
    if re.fullmatch(r"\d{4}(?:-\d\d)?", text):
        return text
    if match := re.fullmatch(r"(\d{4})/(\d\d?)(?:/(\d\d?))?", text):
        return parse_day(match.group(1, 2, 3)) if match[3] else f"{match[1]}-{int(match[2]):02}"
    return next((mention.day for mention in find_dates(text, language)), "")


def find_dates(
    text: str, language: str = "", first: int = 0, last: int | None = None, *, first_year: int = MIN_YEAR
) -> list[DateMention]:
    """The days that a text names between two places, in order, none before `first_year`."""
    last = len(text) if last is None else last
    # Only around years, since looking for a hundred names of months in all of a text would take long.
    spans = [((first, last), _WITH_NUMBERS)]
    start = end = 0
    for year in _YEAR.finditer(text, first, last):
        if not end or year.start() - MAX_DATE_CHARS > end:
            spans += [((start, end), _WITH_NAMES)] if end else []
            start = max(first, year.start() - MAX_DATE_CHARS)
        end = min(last, year.end() + MAX_DATE_CHARS)
    spans += [((start, end), _WITH_NAMES)] if end else []
    mentions = [
        DateMention(match.start(), parse_day(match.group(*groups), first_year))
        for (start, end), patterns in spans
        for pattern, groups in patterns
        for match in pattern.finditer(text, start, end)
    ]
    for match in _NUMBERS.finditer(text, first, last):
        # 3/4/2025: the month first in the United States, else the day, unless only one of them can be the month.
        month, day = int(match[1]), int(match[3])
        full_year = match[4] if len(match[4]) == 4 else f"20{match[4]}"
        if month > 12 or not (day > 12 or (match[2] == "/" and _MONTH_FIRST.match(language) is not None)):
            month, day = day, month
        mentions.append(DateMention(match.start(), parse_day((full_year, month, day), first_year)))
    return sorted(mention for mention in mentions if mention.day)


def parse_day(written: Sequence[str | int], first_year: int = MIN_YEAR) -> str:
    """A day, given as its year, month and day, as ISO 8601, with the month by its number or name; "" for none."""
    year, month, day = written
    month = MONTH_NUMBERS.get(str(month).lower(), month)
    return f"{int(year):04}-{int(month):02}-{int(day):02}" if _is_day(year, month, day, first_year) else ""


def _is_day(year: str | int, month: str | int, day: str | int, first_year: int) -> bool:
    try:
        return first_year <= date(int(year), int(month), int(day)).year <= MAX_YEAR
    except ValueError:
        return False
