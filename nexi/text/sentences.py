"""Where the sentences of plain text begin and end. Pure lists and functions of general language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nexi.text.stopwords import word_set

_CLOSERS = r"[\"'”’»)\]*_`]*"
_OPENERS = r"[\"'“‘„«¿¡(\[`*_]*"
_CAPITALS = "".join(filter(str.isupper, map(chr, range(0x100, 0x250))))  # of Polish, Turkish, Czech ...
_STARTS = rf"A-Z0-9À-Þ{_CAPITALS}Α-ΩЀ-Я\u0531-\u0556\u0590-\u08ff\u0900-\u0dff"  # capitals, digits, scripts without capitals
_END = re.compile(rf"[.!?…؟۔।]+{_CLOSERS}\s+(?={_OPENERS}[{_STARTS}])|[。！？]+[”’」』）]*")
ABBREVIATIONS = word_set(
    "aft bef fl mr mrs ms dr prof sr jr st gen col sgt capt lt maj rev hon gov sen rep pres vs etc eg ie cf ca al no nos vol "
    "vols fig figs ed eds pp approx dept est inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec op ft mt "
    "bzw z.b d.h usw ggf mme dra sra dott ul np tzw nr bd o.s n.s e.g i.e a.m p.m u.s u.k u.n d.c ph.d b.c a.d"
)
_GERMAN_MONTH = re.compile(r"\. ?(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip


def sentence_bounds(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one plain paragraph stand; initials, abbreviations and decimals do not end one."""
    start = 0
    for match in _END.finditer(text):
        before = text[max(start, match.start() - 24) : match.start()]
        if match[0][0] == "." and (_goes_on(before) or is_day_of_month(text, match.start())):
            continue
        yield from _chop_stretch(text, start, match.end(), longest)
        start = match.end()
    yield from _chop_stretch(text, start, len(text), longest)


def is_day_of_month(text: str, stop: int) -> bool:
    """Whether a full stop belongs to the day of a German date: 3. Mai."""
    return text[max(0, stop - 2) : stop].strip().isdecimal() and _GERMAN_MONTH.match(text, stop) is not None


def _chop_stretch(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """The stretch without blanks at its ends, in pieces where it is overlong."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        if end - start <= longest:
            break
        cut = text.rfind(" ", start + 1, start + longest)
        cut = cut if cut > 0 else start + longest
        yield start, cut
        start = cut
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield start, end


def _goes_on(before: str) -> bool:
    """Whether a full stop after this text abbreviates, follows an initial, or numbers a heading."""
    words = before.split()
    last = words[-1].lstrip("(\"'“‘[") if words else ""
    initial = len(last) == 1 and last.isalpha()
    numbered = len(words) <= 2 and last[-1:].isdigit() and len(before) < 24
    return initial or numbered or last.lower() in ABBREVIATIONS
