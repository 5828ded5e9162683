"""Numbers and dates as they are written, and whether two of them agree.

Below `pages`, above `lexicon`. 1,200 is 1.2 thousand and twelve hundred; 75 % is three quarters; 10 miles are 16.1 km; 5 May
1990 says May 1990. Takes text with one spelling of dashes, spaces and digits; knows nothing of sentences or pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from msgspec import Struct
from msgspec.structs import replace

from nexi.checking.lexicon import FRACTIONS, MONTH_NUMBERS, ORDINALS, ROUNDING, SCALES, SMALL_NUMBERS, SYMBOLS, UNITS
from nexi.text.sentences import MONTHS
from nexi.text.words import UNSPACED, has_unspaced

MAX_CONVERSION_ERROR = 0.015
MAX_ABOUT_ERROR = 0.05  # how far "about 160" may be from the value
MAX_ABOUT_YEARS = 3  # how far "about 1924" may be from the year
MAX_BOUND_ERROR = 0.25  # how far "more than 2,400" may be below it
MAX_FRACTION_ERROR = 0.02  # "two thirds" for 67 %
ROUNDING_WORDS = 3  # words before a number that may round it
_EQUAL = 1e-12


class Number(Struct, frozen=True):
    """One number. `values` are its possible readings (1.200 is two), `unit` its dimension or currency, `factor` to the base."""

    text: str
    start: int
    end: int
    values: tuple[float, ...]
    unit: str = ""
    factor: float = 1.0
    is_ordinal: bool = False
    is_weak: bool = False  # "one", "half": often no number at all
    digits: int = 2  # how many leading digits were written
    scale: float = 1.0  # of its scale word; 100 for a fraction, which is read in per cent
    rounding: str = ""  # about, above, below

    @property
    def year(self) -> int:
        """The year this may be, or 0."""
        bare = not (self.unit or self.scale != 1.0 or self.is_ordinal) and self.text.isdecimal() and len(self.text) in (3, 4)
        return int(self.text) if bare and 300 <= int(self.text) <= 2199 else 0


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


Value = Number | Date


def parse_values(text: str) -> tuple[list[Number], list[Date]]:
    """The numbers and dates of a text in order; what is part of a date is no number."""
    dates = _parse_dates(text)
    return [n for n in _parse_numbers(text) if not any(n.start < d.end and d.start < n.end for d in dates)], dates


def _any_of(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_PLAIN = r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)*"
_SCALE_WORDS = _any_of(s for s in SCALES if s.isascii())
_OTHER_SCALES = _any_of(s for s in SCALES if not s.isascii())
_UNIT = (
    rf"(?:[ -]?(?:(?i:{_any_of(u for u in UNITS if u[-1].isalnum())})(?![\w]))"
    rf"|[ -]?(?:{_any_of(SYMBOLS)})(?![\w'/-])|[ ]?(?:%|°[CF]?))"
)
_DIGITS = re.compile(
    rf"(?:(?<![\w.])|(?<=[{UNSPACED}])|(?<=[a-z])(?=[$€£]))(?P<money>(?i:us\$|usd ?|eur ?|gbp ?)|[$€£¥₹₽])?[ ]?"
    rf"(?P<sign>-)?(?P<body>{_PLAIN})(?P<nth>st|nd|rd|th)?"
    rf"(?P<scale>(?:[ -]?(?i:{_SCALE_WORDS})\b|(?:[kKMb]|m(?= |$))(?!\w)|[ ]?(?:{_OTHER_SCALES}))\.?)?"
    rf"(?:(?: d(?:e |')(?=[a-z]))?(?P<unit>{_UNIT}))?(?P<tail>(?i:[ ]?(?:dollars|euros|pounds|yen|usd|eur))\b|[ ]?[$€£](?!\d))?"
)
_LETTER_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "b": 1e9}
_FRACTION = re.compile(r"(?<![\w./])(?:(?P<whole>\d+)[ -])?(?P<top>\d)[/\u2044](?P<bottom>\d{1,2})(?![\w/\u2044]|\.\d)")
_FRACTION_PLURALS = frozenset(word for word in FRACTIONS if word not in ORDINALS)
_NUMBER_WORDS = frozenset({*SMALL_NUMBERS, *SCALES, *ORDINALS, *FRACTIONS})
_NUMBER_WORD = _any_of(_NUMBER_WORDS - {"mn", "bn", "tn"})
_SPELLED = re.compile(
    rf"(?i)(?<![\w-])(?:(?P<a>an?|half(?: an?)?) (?=(?:{_SCALE_WORDS}|{_any_of(FRACTIONS)})\b))?(?P<run>(?:{_NUMBER_WORD})"
    rf"(?:(?: and |-| )(?:{_NUMBER_WORD}))*)(?![\w])(?P<half> and a half(?: (?P<scale>{_SCALE_WORDS}))?\b)?(?P<unit>{_UNIT})?"
)
_LETTERS = re.compile("[a-z]+")
DOTTED_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")  # 1.500.000
_ROUNDED_BY = re.compile(r"(?:[\w.]+[ ~]+|~){1,3}$")
_JOINED = re.compile(r"(?i)(?<![\w-])(?!(?:mid|pre|post|early|late|to|and|in|of)-)[^\W\d_][\w.]{0,7}-$")
_BETWEEN = re.compile(r"\s*(?:-|to|and|or|until|through)\s*$")
_OF = re.compile(r"(?i)\s+(?:of|as)\b")


def _parse_numbers(text: str) -> list[Number]:
    """The numbers of a text in order; the ends of a range share their scale and unit."""
    numbers: list[Number] = []
    for number in sorted([*_in_digits(text), *_in_fractions(text), *_in_words(text)], key=lambda n: (n.start, -n.end)):
        if not numbers or number.start >= numbers[-1].end:
            lead = _ROUNDED_BY.search(text, max(0, number.start - 40), number.start)
            words = re.findall(r"\w+|~", lead[0].lower())[-ROUNDING_WORDS:] if lead else []
            numbers.append(replace(number, rounding=next((ROUNDING[word] for word in reversed(words) if word in ROUNDING), "")))
    out = list(numbers)
    for place, (first, second) in enumerate(pairwise(numbers)):
        if not _BETWEEN.match(text[first.end : second.start]) or first.is_ordinal or second.is_ordinal:
            continue
        scale = second.scale if first.scale == 1.0 else 1.0
        values = tuple(dict.fromkeys((*first.values, *(value * scale for value in first.values))))
        unit, factor = (first.unit, first.factor) if first.unit else (second.unit, second.factor)
        out[place] = replace(first, values=values, unit=unit, factor=factor)
    return out


def _in_digits(text: str) -> Iterator[Number]:
    for match in _DIGITS.finditer(text):
        body, word, after = match["body"], (match["scale"] or "").strip(" -."), text[match.end() : match.end() + 1]
        is_name = _JOINED.search(text[max(0, match.start("body") - 8) : match.start("body")])  # F-16 and COVID-19
        is_word = not match["unit"] and not word and (after.isalpha() or after == "_") and not has_unspaced(after)  # 3D
        is_version = body.count(".") > 1 and not DOTTED_THOUSANDS.fullmatch(body)
        if is_name or is_word or is_version:
            continue
        scale = _LETTER_SCALES.get(word) or SCALES.get(word.lower(), 1.0)
        unit, factor = _unit_of(match["money"] or match["tail"] or match["unit"])
        packed = body.replace("'", "").replace(" ", "")[:300]
        # 1,200 is one thing, 1.200 and 1,5 are two
        readings = [float(packed.replace(",", ""))] if packed.count(".") < 2 else []
        if DOTTED_THOUSANDS.fullmatch(packed):
            readings.append(float(packed.replace(".", "")))
        if re.fullmatch(r"\d+,\d{1,2}", packed):
            readings.append(float(packed.replace(",", ".")))
        readings = [-value for value in readings] if match["sign"] else readings
        values = tuple(value * scale for value in readings)
        if word == "m" and not unit:  # 2m is two metres or two million
            values, unit = (*values, *readings), "length"
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        digits = len(body.replace(",", "").replace(".", "").strip("0 '"))
        yield Number(match[0].strip(), start, match.end(), values, unit, factor, bool(match["nth"]), False, digits, scale)


def _unit_of(spelling: str | None) -> tuple[str, float]:
    word = (spelling or "").strip(" -")
    return SYMBOLS.get(word) or UNITS.get(word.lower(), ("", 1.0))


def _in_fractions(text: str) -> Iterator[Number]:
    """2/3 as a share of a whole; 2 1/2 as a number."""
    for match in _FRACTION.finditer(text):
        top, bottom = int(match["top"]), int(match["bottom"])
        if match["whole"] and 0 < top < bottom:
            yield Number(match[0], *match.span(), (int(match["whole"]) + top / bottom,))
        elif 0 < top < bottom:
            yield Number(match[0], *match.span(), (100 * top / bottom,), "share", scale=100.0)


def _in_words(text: str) -> Iterator[Number]:
    if _NUMBER_WORDS.isdisjoint(_LETTERS.findall(text.lower())):
        return
    for match in _SPELLED.finditer(text):
        words = [word for word in re.split(r"[ -]+", match["run"].lower()) if word != "and"]
        number_text, start, end = match[0].strip(), match.start(), match.end()
        if words[-1] in FRACTIONS:
            # three quarters, a third of, half; but the third, one fifth Avenue and a second are none
            count = SMALL_NUMBERS.get(words[0], 0) if len(words) == 2 else len(words) == 1
            is_sure = words[-1] in _FRACTION_PLURALS or (count == 1 and len(words) == 2)
            if count and (is_sure or (match["a"] and _OF.match(text, end))):
                share = 100 * (count * FRACTIONS[words[-1]])
                yield Number(number_text, start, end, (share,), "share", is_weak=number_text == words[0], scale=100.0)
                continue
        unit, factor = _unit_of(match["unit"])
        if words[-1] == "second" and SMALL_NUMBERS.get(words[-2] if len(words) > 1 else "", 20) < 20:
            words, unit = words[:-1], "time"
        value, ordinal = _spelled_value(words)
        weak = len(words) == 1 and not unit and (words[0] in ("one", "first", "second", "third") or words[0].endswith("s"))
        if value is not None:
            scale = SCALES.get((match["scale"] or words[-1]).lower(), 1.0)
            value = (value + 0.5) * SCALES.get(match["scale"] or "", 1.0) if match["half"] else value
            value = value / 2 if (match["a"] or "").lower().startswith("half") else value
            yield Number(number_text, start, end, (value,), unit, factor, ordinal, weak and not match["half"], 2, scale)


def _spelled_value(words: list[str]) -> tuple[float | None, bool]:
    """The value of number words, and whether they order instead of count."""
    total = current = 0.0
    for word in words:
        if word in SMALL_NUMBERS:
            current += SMALL_NUMBERS[word]
        elif word in SCALES:
            current = (current or 1.0) * SCALES[word]
            if SCALES[word] >= 1e3:
                total, current = total + current, 0.0
        elif word in ORDINALS:
            return total + current + ORDINALS[word], True
        else:
            return None, False
    return total + current, False


def is_same_number(claim: Number, source: Number) -> bool:
    """Whether a source's number says what was claimed: equal, converted, or rounded as the claim rounds it."""
    if claim.is_ordinal != source.is_ordinal and not (claim.is_weak or source.is_weak):
        return False
    if claim.unit and source.unit and claim.unit != source.unit:
        return False
    converts = claim.unit and source.unit and abs(claim.factor - source.factor) > _EQUAL * claim.factor
    scale = source.factor / claim.factor if converts else 1.0
    fraction = any(number.unit == "share" and number.scale == 100.0 for number in (claim, source))
    error = MAX_CONVERSION_ERROR if converts else MAX_FRACTION_ERROR if fraction else _EQUAL
    as_rounded = claim if claim.rounding != source.rounding else replace(claim, rounding="")
    return any(
        math.isclose(a, b * scale, rel_tol=error) or _rounds(a, b * scale, as_rounded)
        for a in claim.values
        for b in source.values
    )


def _rounds(claim: float, source: float, number: Number) -> bool:
    """About 160, more than 2,400, 1.2 million for 1,234,567: a number that says it is round, or is written in scale words."""
    if not claim or not 0.5 < source / claim < 2.0:
        return False
    if number.rounding == "about":
        return abs(claim - source) <= MAX_ABOUT_YEARS if number.year else math.isclose(claim, source, rel_tol=MAX_ABOUT_ERROR)
    if number.rounding:
        low, high = (claim, source) if number.rounding == "above" else (source, claim)
        return low <= high <= low * (1 + MAX_BOUND_ERROR)
    step = 10.0 ** (len(str(int(abs(claim)))) - number.digits)
    return number.scale != 1.0 and number.digits >= 2 and abs(claim - source) <= step / 2


_MONTH = _any_of(MONTH_NUMBERS)
_NTH_WORDS = {word: int(number) for word, number in ORDINALS.items() if number <= 20}
_NTH_WORDS |= {f"twenty-{word}": 20 + number for word, number in _NTH_WORDS.items() if number < 10}
_DAY = rf"(?:(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|er|\.)?|{_any_of(_NTH_WORDS)})"
_YEAR = r"(?:1\d{3}|20\d{2}|21\d{2})(?!\d)"
_AFTER = rf"(?:,? ?(?:of |de )?(?P<y>{_YEAR}))?"
_TO = r" ?(?:-|to|and) ?"
_ERA = r"BCE?|B\.C\.(?:E\.)?|CE\b|C\.E\.|AD\b|A\.D\."
_LONE_MONTH = re.compile(
    r"\b(?:(?:in|of|on|since|until|by|during|from|to|early|late|mid|every|each|last|next|and) |mid-)"
    rf"(?P<mon>{'|'.join(name.capitalize() for name in MONTHS)})\b"
)
# What must be in a text before its patterns are tried; the names of their groups say how they are read.
_PATTERNS = {
    re.compile(hint, re.IGNORECASE): [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    for hint, *patterns in (
        (
            r"\d[-./]\d",
            rf"(?<![\w.-])(?P<y>{_YEAR})[-./](?P<m>\d{{1,2}})[-./](?P<d>\d{{1,2}})(?!\d)",
            rf"(?<![\w.])(?P<a>\d{{1,2}})[./](?P<b>\d{{1,2}})[./](?P<y>{_YEAR})",
            rf"(?<![\w.,-])(?P<y>{_YEAR})[-/](?P<yy>\d{{2}})(?![\d-])",
        ),
        (
            rf"\b(?:{_MONTH})\b",
            rf"(?<![\w.])(?P<d>{_DAY})(?:{_TO}(?P<d2>{_DAY}))?(?: of| de)? ?(?P<mon>{_MONTH})\b\.?{_AFTER}",
            rf"\b(?P<mon>{_MONTH})\b\.? (?:the )?(?P<d>{_DAY})(?!\d)(?:{_TO}(?P<d2>{_DAY})(?![\d ]*(?:{_MONTH})))?{_AFTER}",
            rf"\b(?P<mon>{_MONTH})\b\.?,?(?: of| de)? (?P<y>{_YEAR})",
        ),
        (r"年", r"(?P<y>\d{4}) ?年(?: ?(?P<m>\d{1,2}) ?月(?: ?(?P<d>\d{1,2}) ?[日号])?)?"),
        (r"B\.?C|A\.?D|C\.?E", rf"(?<![\w.,])(?P<n>\d{{1,4}}) ?(?P<era>{_ERA})", r"\b(?:AD|A\.D\.) ?(?P<n>\d{1,4})\b"),
        (r"0'?s\b", r"(?<![\w.,])(?P<decade>(?:1\d|20)\d0)'?s\b"),
        (r"centur", rf"\b(?P<nth>\d{{1,2}}(?:st|nd|rd|th)|{_any_of(_NTH_WORDS)})[ -]centur(?:y|ies)(?: (?P<era>{_ERA}))?"),
    )
}
Readings = tuple[tuple[int, int, int], ...]


def _read_date(parts: dict[str, str]) -> Iterator[tuple[Readings, int]]:
    """The dates of one match: what each may mean, and the years it covers."""
    year, month = int(parts.get("y", 0)), int(parts.get("m", 0)) or MONTH_NUMBERS.get(parts.get("mon", "").lower(), 0)
    if "a" in parts:
        a, b = int(parts["a"]), int(parts["b"])
        yield tuple((year, m, d) for d, m in ((a, b), (b, a)) if 0 < m <= 12 and 0 < d <= 31), 1
    elif "yy" in parts:
        yield ((year, 0, 0),), 1
        yield ((year - year % 100 + int(parts["yy"]), 0, 0),), 1
    elif kind := next((key for key in ("n", "decade", "nth") if key in parts), ""):
        sign, span = -1 if parts.get("era", "")[:1] in ("b", "B") else 1, {"n": 1, "decade": 10, "nth": 100}[kind]
        yield ((sign * _read_ordinal(parts[kind]) * (100 if kind == "nth" else 1), 0, 0),), span
    else:
        days = [_read_ordinal(parts[key]) for key in ("d", "d2") if key in parts] or [0]
        yield from ((((year, month, day),), 1) for day in days if month <= 12 and day <= 31)


def _read_ordinal(word: str) -> int:
    """21st, twenty-first, 1990."""
    return _NTH_WORDS.get(word.lower()) or int(re.sub(r"\D", "", word))


def _parse_dates(text: str) -> list[Date]:
    """The dates of a text in order; bare years are numbers, and no two dates share a character unless one match gave both."""
    candidates: list[Date] = []
    patterns = [pattern for hint, some in _PATTERNS.items() if hint.search(text) for pattern in some]
    for match in (match for pattern in patterns for match in pattern.finditer(text)):
        for readings, span in _read_date({name: part for name, part in match.groupdict().items() if part}):
            if readings:
                candidates.append(Date(match[0].strip(" ,"), match.start(), match.end(), readings, span))
    for match in _LONE_MONTH.finditer(text):
        candidates.append(Date(match["mon"], *match.span("mon"), ((0, MONTH_NUMBERS[match["mon"].lower()], 0),)))
    dates: list[Date] = []
    for date in sorted(candidates, key=lambda d: (d.start, -d.end)):
        if not dates or date.start >= dates[-1].end or (date.start, date.end) == (dates[-1].start, dates[-1].end):
            dates.append(date)
    return dates


def _states_date(stated: Date, claimed: Date) -> bool:
    """Whether a source's date says what was claimed: every part that is claimed is there and the same."""
    return stated.span == claimed.span and any(
        all(c in (0, s) for c, s in zip(claim, state, strict=True)) for claim in claimed.readings for state in stated.readings
    )


def dates_differ(one: Date, other: Date) -> bool:
    """Whether two dates give one part differently."""
    pairs = product(one.readings, other.readings)
    return one.span == other.span and all(any(a and b and a != b for a, b in zip(*pair, strict=True)) for pair in pairs)


def find_missing(claim_values: Iterable[Value], source_values: Sequence[Value]) -> Iterator[Value]:
    """The claimed values that are not stated."""
    dates = list_dates(source_values)
    years = {d.year for d in dates if d.span == 1}
    for value in claim_values:
        if isinstance(value, Number):
            same = any(isinstance(s, Number) and is_same_number(value, s) for s in source_values)
            if not same and not value.is_weak and not (value.year and any(d.year == value.year and d.span == 1 for d in dates)):
                yield value
        elif not any(_states_date(d, value) for d in dates):
            # day and month may stand there without the year, which stands near by
            bare = replace(value, readings=tuple((0, month, day) for _, month, day in value.readings))
            has_month = value.span == 1 and any(month for _, month, _ in value.readings)
            if not (value.year in years and has_month and any(not d.year and _states_date(d, bare) for d in dates)):
                yield value


def list_dates(values: Iterable[Value]) -> list[Date]:
    """The dates among some values, and the numbers that may be years."""
    return [
        value if isinstance(value, Date) else Date(value.text, value.start, value.end, ((value.year, 0, 0),))
        for value in values
        if isinstance(value, Date) or value.year
    ]
