"""Numbers as they are written, with scale and unit: 1,200, 1.2 thousand, twelve, 12 %, $5 million, 10 to 15 km.

Below `facts`, above `lexicon`. Takes text with one spelling of dashes, spaces and digits; knows nothing of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from nexi.proof.lexicon import CURRENCIES, FRACTIONS, ORDINALS, SCALES, SMALL_NUMBERS, SYMBOLS, UNITS

ROUGHLY = 0.015  # how far a converted measure may be from the source's
_SAME = 1e-9


class Number(Struct, frozen=True):
    """One number. `values` are its possible readings (1.200 is two), `unit` its dimension or currency, `factor` to the base."""

    text: str
    start: int
    end: int
    values: tuple[float, ...]
    unit: str = ""
    factor: float = 1.0
    ordinal: bool = False
    weak: bool = False  # "one", "half": often no number at all
    digits: int = 0  # how many leading digits were written
    scaled: bool = False

    @property
    def year(self) -> int:
        """The year this may be, or 0."""
        bare = not self.unit and not self.scaled and not self.ordinal and self.text.isdecimal() and len(self.text) in (3, 4)
        return int(self.text) if bare and 300 <= int(self.text) <= 2199 else 0


def _either(words: object) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))  # type: ignore[call-overload]


_PLAIN = r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)*"
_SCALE_WORDS = _either([s for s in SCALES if s.isascii()])
_WIDE_SCALES = _either([s for s in SCALES if not s.isascii()])
_UNIT = (
    rf"(?:[ -]?(?:(?i:{_either(u for u in UNITS if u[-1].isalpha() or u[-1].isdigit())})(?![\w]))"
    rf"|[ -]?(?:{_either(SYMBOLS)})(?![\w'/-])|[ ]?(?:%|°[CF]?))"
)
_DIGITS = re.compile(
    rf"(?:(?<![\w.])|(?<=[a-z])(?=[$€£]))(?P<money>(?i:us\$|usd ?|eur ?|gbp ?)|[$€£¥₹₽])?[ ]?(?P<sign>-)?(?P<body>{_PLAIN})"
    rf"(?P<nth>st|nd|rd|th)?(?P<scale>(?:[ -]?(?i:{_SCALE_WORDS})\b|(?-i:k|K|M)\b|[ ]?(?:{_WIDE_SCALES}))(?:\.)?)?"
    rf"(?:(?: d(?:e |')(?=[a-z]))?(?P<unit>{_UNIT}))?(?P<tail>(?i:[ ]?(?:dollars|euros|pounds|yen|usd|eur))\b|[ ]?[$€£](?!\d))?"
)
_NUMBER_WORDS = frozenset({*SMALL_NUMBERS, *SCALES, *ORDINALS, "half", "quarter", "quarters", "thirds", "fifths", "tenths"})
_NUMBER_WORD = _either(
    {*SMALL_NUMBERS, *SCALES, *ORDINALS, "half", "quarter", "quarters", "thirds", "fifths", "tenths"} - {"mn", "bn", "tn"}
)
_SPELLED = re.compile(
    rf"(?i)(?<![\w-])(?:an? (?=(?:{_SCALE_WORDS}|half|quarter|third|dozen)\b))?(?P<run>(?:{_NUMBER_WORD})"
    rf"(?:(?: and |-| )(?:{_NUMBER_WORD}))*)(?![\w])(?P<unit>{_UNIT})?"
)
_LETTERS = re.compile("[a-z]+")
_A_DIGIT = re.compile(r"\d")
_HALF = re.compile(rf"(?i)\bhalf (?:an? )?({_SCALE_WORDS})\b")
_JOINED = re.compile(r"(?i)(?<![\w-])(?!(?:mid|pre|post|early|late|to|and|in|of)-)[^\W\d_][\w.]{0,7}-$")
_BETWEEN = re.compile(r"\s*(?:-|to|and|or|until|through)\s*$")


def read_numbers(text: str) -> list[Number]:
    """The numbers of a text in order; the ends of a range share their scale and unit."""
    kept: list[Number] = []
    for number in sorted([*_in_digits(text), *_spelled(text)], key=lambda n: (n.start, -n.end)):
        if not kept or number.start >= kept[-1].end:
            kept.append(number)
    return _shared(text, kept)


def _in_digits(text: str) -> Iterator[Number]:
    for match in _DIGITS.finditer(text) if _A_DIGIT.search(text) else ():
        body = match["body"]
        end = match.end()
        if _JOINED.search(text[max(0, match.start("body") - 8) : match.start("body")]):
            continue  # F-16 and COVID-19 are words
        after = text[end : end + 2]
        if not match["unit"] and not match["scale"] and (after[:1].isalpha() or after[:1] == "_"):
            continue  # 3D, 5th-generation names and identifiers are words
        if body.count(".") > 1:
            continue  # a version or an address
        scale = SCALES.get((match["scale"] or "").strip(" -.").lower(), 1.0)
        scale = {"k": 1e3, "K": 1e3, "M": 1e6}.get((match["scale"] or "").strip(), scale)
        unit, factor = _unit(match["unit"], match["money"] or match["tail"])
        values = tuple((-v if match["sign"] else v) * scale for v in _readings(body))
        digits = len(body.replace(",", "").replace(".", "").strip("0 '"))
        yield Number(
            match[0].strip(), match.start() + len(match[0]) - len(match[0].lstrip()), end, values, unit, factor,
            bool(match["nth"]), False, digits, scale != 1.0,
        )  # fmt: skip


def _readings(body: str) -> tuple[float, ...]:
    """What digits with points and commas may mean: 1,200 is one thing, 1.200 and 1,5 are two."""
    packed = body.replace("'", "").replace(" ", "")
    readings = [_float(packed.replace(",", ""))] if packed.count(".") <= 1 else []
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", packed):
        readings.append(_float(packed.replace(".", "")))
    if re.fullmatch(r"\d+,\d{1,2}", packed):
        readings.append(_float(packed.replace(",", ".")))
    return tuple(readings)


def _float(digits: str) -> float:
    return float(digits[:300])


def _unit(unit: str | None, money: str | None) -> tuple[str, float]:
    if money:
        word = money.strip().lower()
        return CURRENCIES.get(word) or UNITS.get(word, ("", 1.0))[0], 1.0
    written = (unit or "").strip(" -")
    return SYMBOLS.get(written) or UNITS.get(written.lower(), ("", 1.0))


def _spelled(text: str) -> Iterator[Number]:
    if _NUMBER_WORDS.isdisjoint(_LETTERS.findall(text.lower())):
        return
    for match in _HALF.finditer(text):
        yield Number(match[0], match.start(), match.end(), (SCALES[match[1].lower()] / 2,), digits=2, scaled=True)
    for match in _SPELLED.finditer(text):
        words = re.split(r"[ -]+", match["run"].lower())
        value, ordinal = _spelled_value([w for w in words if w != "and"])
        if value is None:
            continue
        unit, factor = _unit(match["unit"], None)
        weak = len(words) == 1 and (
            words[0] in ("one", "first", "second", "half", "quarter", "third") or words[0].endswith("s")
        )
        start, run = match.start(), match[0].strip()
        yield Number(run, start, match.end(), (value,), unit, factor, ordinal, weak and not unit, 2, words[-1] in SCALES)


def _spelled_value(words: list[str]) -> tuple[float | None, bool]:
    """The value of number words, and whether they order instead of count."""
    if (len(words) > 1 and words[-1] in FRACTIONS and words[-1] not in ORDINALS) or words == ["half"]:
        count = SMALL_NUMBERS.get(words[0], 1.0)
        return count * FRACTIONS[words[-1]], False
    if len(words) == 2 and words[0] == "one" and words[1] in FRACTIONS:
        return FRACTIONS[words[1]], False
    total = current = 0.0
    ordinal = False
    for word in words:
        if ordinal:
            break
        if word in SMALL_NUMBERS:
            current += SMALL_NUMBERS[word]
        elif word in SCALES:
            current, total = _scaled(current, total, SCALES[word])
        elif word in ORDINALS:
            current, ordinal = current + ORDINALS[word], True
        else:
            return None, False
    return total + current, ordinal


def _scaled(current: float, total: float, scale: float) -> tuple[float, float]:
    current = (current or 1.0) * scale
    return (current, total) if scale < 1e3 else (0.0, total + current)


def _shared(text: str, numbers: list[Number]) -> list[Number]:
    """Ranges: `5 to 10 million` and `12-15 km` say scale and unit once, for both ends."""
    out = list(numbers)
    for place, (first, second) in enumerate(pairwise(numbers)):
        if not _BETWEEN.match(text[first.end : second.start]) or first.ordinal or second.ordinal:
            continue
        values = first.values
        if second.scaled and not first.scaled:
            scale = second.values[0] / (_written(second) or 1.0)
            values = (*values, *(v * scale for v in values))
        unit, factor = (first.unit, first.factor) if first.unit else (second.unit, second.factor)
        out[place] = replace(first, values=values, unit=unit, factor=factor)
        if first.unit in CURRENCIES.values() and not second.unit:
            out[place + 1] = replace(second, unit=first.unit)
    return out


def _written(number: Number) -> float:
    digits = re.search(r"\d+(?:\.\d+)?", number.text.replace(",", ""))
    return float(digits[0]) if digits else 1.0


def same(claimed: Number, stated: Number) -> bool:
    """Whether a source's number says what was claimed: equal, converted, or rounded where the claim is rounder."""
    if claimed.ordinal != stated.ordinal and not (claimed.weak or stated.weak):
        return False
    if claimed.unit and stated.unit and claimed.unit != stated.unit:
        return False
    converts = claimed.unit and stated.unit and abs(claimed.factor - stated.factor) > _SAME * claimed.factor
    if converts:
        return any(_close(a * claimed.factor, b * stated.factor, ROUGHLY) for a in claimed.values for b in stated.values)
    return any(_close(a, b, _SAME) or _rounded(a, b, claimed) for a in claimed.values for b in stated.values)


def _close(a: float, b: float, share: float) -> bool:
    return abs(a - b) <= share * max(abs(a), abs(b))


def _rounded(claimed: float, stated: float, number: Number) -> bool:
    """1.2 million for 1,234,567: only a number that was written in scale words is taken as round."""
    if not number.scaled or not claimed or not number.digits or not 0.5 < stated / claimed < 2.0:
        return False
    step = 10.0 ** (len(str(int(abs(claimed)))) - number.digits)
    return number.digits >= 2 and abs(claimed - stated) <= step / 2
