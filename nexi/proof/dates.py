"""Dates as they are written, whole or in part: 5 May 1990, May 5th, 1990-05-05, the 1990s, the 5th century BC, 2024年5月3日.

Below `facts`, above `lexicon`. Takes text with one spelling of dashes, spaces and digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from nexi.proof.lexicon import MONTH_NUMBERS, ORDINALS, SMALL_NUMBERS


class Date(Struct, frozen=True):
    """One date. `readings` are the (year, month, day) it may mean, 0 where a part is not given; `span` is years it covers."""

    text: str
    start: int
    end: int
    readings: tuple[tuple[int, int, int], ...]
    span: int = 1

    @property
    def year(self) -> int:
        return self.readings[0][0]


_MONTH = "|".join(re.escape(m) for m in sorted(MONTH_NUMBERS, key=len, reverse=True))
_DAY_WORDS = {w: int(n) for w, n in (SMALL_NUMBERS | ORDINALS).items() if 0 < n <= 20}
_DAY = rf"(?:(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|er|\.)?|(?:{'|'.join(sorted(_DAY_WORDS, key=len, reverse=True))}))"
_YEAR = r"(?:1\d{3}|20\d{2}|21\d{2})(?!\d)"
_AFTER = r"(?:,? ?(?:of |de )?)"
_TO = r" ?(?:-|to|and) ?"
_MONTHS_HINT = rf"(?i)\b(?:{_MONTH})\b"
_PATTERNS = tuple(
    (re.compile(hint), re.compile(pattern, re.IGNORECASE))
    for hint, pattern in (
        (r"\d-\d", rf"(?<![\w.-])(?P<y>{_YEAR})-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})(?!\d)"),
        (r"年", r"(?P<y>\d{4}) ?年(?: ?(?P<m>\d{1,2}) ?月(?: ?(?P<d>\d{1,2}) ?[日号])?)?"),
        (r"\d[./]\d", rf"(?<![\w.])(?P<a>\d{{1,2}})[./](?P<b>\d{{1,2}})[./](?P<y>{_YEAR})"),
        (r"\d[./]\d", rf"(?<![\w.])(?P<y>{_YEAR})[./](?P<m>\d{{1,2}})[./](?P<d>\d{{1,2}})(?!\d)"),
        (
            _MONTHS_HINT,
            rf"(?<![\w.])(?P<d>{_DAY})(?:{_TO}(?P<d2>{_DAY}))?(?: of| de)? ?(?P<mon>{_MONTH})\b\.?(?:{_AFTER}(?P<y>{_YEAR}))?",
        ),
        (
            _MONTHS_HINT,
            rf"\b(?P<mon>{_MONTH})\b\.? (?:the )?(?P<d>{_DAY})(?!\d)(?:{_TO}(?P<d2>{_DAY})(?![\d ]*(?:{_MONTH})))?"
            rf"(?:{_AFTER}(?P<y>{_YEAR}))?",
        ),
        (_MONTHS_HINT, rf"\b(?P<mon>{_MONTH})\b\.?,?(?: of| de)? (?P<y>{_YEAR})"),
        (r"\d[-/]\d", rf"(?<![\w.,-])(?P<y>{_YEAR})(?P<range>-|/)(?P<yy>\d{{2}})(?![\d-])"),
        (r"(?i)B\.?C|A\.?D|C\.?E", r"(?<![\w.,])(?P<bc>\d{1,4}) ?(?P<era>BCE?|B\.C\.(?:E\.)?|CE\b|C\.E\.|AD\b|A\.D\.)"),
        (r"(?i)A\.?D", r"\b(?P<era>AD|A\.D\.) ?(?P<bc>\d{1,4})\b"),
        (r"0'?s\b", r"(?<![\w.,])(?P<decade>(?:1\d|20)\d0)'?s\b"),
        (
            r"(?i)ties\b",
            r"\b(?:the |late |early |mid-?)(?P<tens>twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties)\b",
        ),
        (
            r"(?i)centur",
            r"\b(?P<nth>\d{1,2}(?:st|nd|rd|th)|[a-z]+(?:-[a-z]+)?)[ -](?P<cent>centur(?:y|ies))(?: (?P<cera>BCE?|B\.C\.))?",
        ),
    )
)
_HINT = re.compile(r"\d|[Cc]entur|ties\b|\b[JFMASOND][a-z]{2,8}\b")
_LONE_MONTH = re.compile(
    r"\b(?:(?:in|of|on|since|until|by|during|from|to|early|late|mid|every|each|last|next|and) |mid-)"
    r"(?P<mon>January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_TENS = {
    w: 1920 + 10 * i
    for i, w in enumerate(["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"])
}


def read_dates(text: str) -> list[Date]:
    """The dates of a text in order; bare years are numbers, and no two dates share a character."""
    found: list[Date] = []
    if not _HINT.search(text):
        return found
    for date in sorted(_all(text), key=lambda d: (d.start, -d.end)):
        if not found or date.start >= found[-1].end or (date.start == found[-1].start and date.end == found[-1].end):
            found.append(date)
    return found


def _all(text: str) -> Iterator[Date]:
    hinted: dict[str, bool] = {}
    for hint, pattern in _PATTERNS:
        if hint.pattern not in hinted:
            hinted[hint.pattern] = hint.search(text) is not None
        for match in pattern.finditer(text) if hinted[hint.pattern] else ():
            yield from _dates(match)
    for match in _LONE_MONTH.finditer(text):
        yield Date(match["mon"], match.start("mon"), match.end("mon"), ((0, MONTH_NUMBERS[match["mon"].lower()], 0),))


def _dates(match: re.Match[str]) -> Iterator[Date]:
    parts = {k: v for k, v in match.groupdict().items() if v}
    make = next(make for key, make in _MAKERS if key in parts)
    for readings, span in make(parts):
        if readings:
            yield Date(match[0].strip(" ,"), match.start(), match.end(), readings, span)


Read = Iterator[tuple[tuple[tuple[int, int, int], ...], int]]


def _day(text: str) -> int:
    return _DAY_WORDS.get(text.lower()) or int(re.sub(r"\D", "", text) or 0)


def _century(parts: dict[str, str]) -> Read:
    word = parts["nth"].lower()
    head, _, tail = word.rpartition("-")
    number = _day(word) if word[0].isdigit() else int(ORDINALS.get(tail, 0) + SMALL_NUMBERS.get(head, 0))
    sign = -1 if "cera" in parts else 1
    yield (((sign * number * 100, 0, 0),) if number else ()), 100


def _slashed(parts: dict[str, str]) -> Read:
    year, a, b = int(parts["y"]), int(parts["a"]), int(parts["b"])
    yield tuple((year, m, d) for d, m in ((a, b), (b, a)) if 1 <= m <= 12 and 1 <= d <= 31), 1


def _era(parts: dict[str, str]) -> Read:
    before = parts["era"].upper().startswith("B")
    yield ((-int(parts["bc"]) if before else int(parts["bc"]), 0, 0),), 1


def _decade(parts: dict[str, str]) -> Read:
    yield ((int(parts["decade"]), 0, 0),), 10


def _tens(parts: dict[str, str]) -> Read:
    yield ((_TENS[parts["tens"].lower()], 0, 0),), 10


def _range(parts: dict[str, str]) -> Read:
    year = int(parts["y"])
    yield ((year, 0, 0),), 1
    yield ((year - year % 100 + int(parts["yy"]), 0, 0),), 1


def _named(parts: dict[str, str]) -> Read:
    month = int(parts["m"]) if "m" in parts else MONTH_NUMBERS[parts["mon"].lower()]
    year = int(parts.get("y", 0))
    for day in (_day(parts.get(key, "")) for key in ("d", "d2") if key in parts or key == "d"):
        yield (((year, month, day),) if month <= 12 and day <= 31 else ()), 1


def _year_only(parts: dict[str, str]) -> Read:
    yield ((int(parts["y"]), 0, 0),), 1


_MAKERS = (
    ("cent", _century), ("a", _slashed), ("era", _era), ("decade", _decade), ("tens", _tens), ("yy", _range), ("mon", _named),
    ("m", _named), ("y", _year_only),
)  # fmt: skip


def says(stated: Date, claimed: Date) -> bool:
    """Whether a source's date says what was claimed: every part that is claimed is there and the same."""
    return stated.span == claimed.span and any(
        all(c in (0, s) for c, s in zip(claim, state, strict=True)) for claim in claimed.readings for state in stated.readings
    )


def clashes(stated: Date, claimed: Date) -> bool:
    """Whether two dates give one part differently."""
    return stated.span == claimed.span and all(
        any(c and s and c != s for c, s in zip(claim, state, strict=True))
        for claim in claimed.readings
        for state in stated.readings
    )
