"""Whether two sentences speak of the same thing, and whether they say something else of it.

Above sits `conflicts`; below, `facts`. Everything here would rather say "not the same thing": different numbers in different
sentences are the rule, and a disagreement is the exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from nexi.proof.dates import Date, clashes, says
from nexi.proof.facts import Reading, denied, read
from nexi.proof.lexicon import HEDGES, OPPOSITES, PRONOUNS
from nexi.proof.numbers import Number, same

__all__ = [
    "Anchor",
    "Value",
    "agree",
    "anchors",
    "denies_instead",
    "said_elsewhere",
    "shortened",
    "speaks_of_the_same",
    "terms_of",
]


Kind = Literal["number", "date", "polarity"]
Value = Number | Date

FEWEST_SHARED = 3
SHARED_WITHOUT_NAME = 5
SUBJECT_WORDS = 8  # within these a sentence names its subject
MOST_SUBJECT = 4  # words of a title that count: the rest is the name of the site
WHOLE_SENTENCE, WHOLE_CLAUSE = (0.75, 0.6), (0.85, 0.85)  # of the words, what must be found in the other one
NEARLY_ALL = 0.85  # where a denial is the only difference
FEWEST_FOR_DENIAL = 4
HEDGED = 0.25  # how far apart two values may be when one of them is called rough
ROUNDED = 0.05  # no rounding takes a number further
ROUGH_YEARS = 10
HEDGE_WORDS = 3  # how far before a value its hedge may stand
LIMITS = frozenset(("least", "most", "minimum", "maximum", "exceeding", "exceeds", "beyond", "within", "below", "above"))
BOUNDS_OF_TIME = frozenset(("since", "until", "till", "by", "before", "after", "from", "to", "between", "through", "during"))
VERBS = frozenset(("is", "are", "was", "were", "has", "have", "had", "will", "would", "can", "could", "may", "does", "did"))
NEGLIGIBLE = 1e-6

_CLAUSE_END = re.compile(
    r"[,;:(]|,? \b(?:and|which|who|whose|where|with|but|while|when|after|before|because|that|including|starring|featuring)\b"
    r"| \w+(?:ed|en) (?:and|by)\b"
)

_PLACE = re.compile(
    r"\b(?:\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b", re.IGNORECASE
)


class Anchor(Struct, frozen=True):
    """A sentence of the answer, seen from one of its values, or from whether it denies."""

    kind: Kind
    reading: Reading
    fact: Value | None = None
    subject: frozenset[str] = frozenset()  # what its page is about
    asked: frozenset[str] = frozenset()  # what the question speaks of

    @property
    def context(self) -> frozenset[str]:
        return self.subject | self.asked

    @property
    def value(self) -> str:
        return self.fact.text.strip() if self.fact else ""


def anchors(reading: Reading, subject: frozenset[str], asked: frozenset[str] = frozenset()) -> Iterator[Anchor]:
    """Every way in which a sentence may be disagreed with."""
    if reading.text.rstrip().endswith("?") or reading.wide:
        return
    for number in reading.numbers:
        if number.year:
            yield Anchor("date", reading, as_date(number), subject, asked)
        elif _is_firm(number):
            yield Anchor("number", reading, number, subject, asked)
    for date in reading.dates:
        yield Anchor("date", reading, date, subject, asked)
    yield Anchor("polarity", reading, None, subject, asked)


def terms_of(reading: Reading) -> set[str]:
    return {term for word in reading.words for term in word.terms}


def shortened(anchor: Anchor) -> Anchor:
    """The anchor with no more of its sentence than the clause of its value."""
    return anchor if anchor.fact is None else replace(anchor, reading=_clause(anchor.reading, anchor.fact))


def said_elsewhere(anchor: Anchor, short: Anchor, other: Reading, context: frozenset[str]) -> tuple[Value, bool] | None:
    """What another sentence says in the anchor's place, and whether it is something else.

    One of them often says more: then the clauses of the two values are compared alone, and must agree all the more.
    """
    if speaks_of_the_same(anchor, other, context):
        return said_instead(anchor, other)
    if anchor.fact is None or not _same_time(anchor, other):
        return None
    for value in _peers(anchor.fact, other):
        clause = _clause(other, value)
        if speaks_of_the_same(short, clause, context, WHOLE_CLAUSE):
            return said_instead(short, clause)
    return None


def _clause(reading: Reading, fact: Value) -> Reading:
    """A sentence up to the end of the clause in which a value stands; places in it stay what they were."""
    end = _CLAUSE_END.search(reading.text, fact.end + 1)
    return read(reading.text[: end.start()]) if end else reading


def speaks_of_the_same(
    anchor: Anchor, other: Reading, context: frozenset[str], shares: tuple[float, float] = WHOLE_SENTENCE
) -> bool:
    """Whether the words of two sentences name the same thing; `context` is what the other's page is about."""
    one, two = terms_of(anchor.reading), terms_of(other)
    shared = one & two
    if len(shared) < FEWEST_SHARED or other.text.rstrip().endswith("?"):
        return False
    if _places(anchor.reading) != _places(other):
        return False  # the 51st of something is another thing than the 61st
    if len(one & (two | context)) < shares[0] * len(one) or len(two & (one | anchor.context)) < shares[1] * len(two):
        return False
    names, others = _names(anchor.reading), _names(other)
    if not (names <= two | context and others <= one | anchor.context):
        return False
    if not names & others and (len(shared) < SHARED_WITHOUT_NAME or not _related(anchor.subject, context)):
        return False
    if not _stands_alone(anchor.reading) and not _related(anchor.subject, two | context):
        return False
    if not _stands_alone(other) and not _related(context, one | anchor.context):
        return False
    return not any(OPPOSITES.get(term, frozenset()) & (two - one) for term in one - two)


def _places(reading: Reading) -> set[str]:
    """Which of a row of things a sentence speaks of."""
    return {place.lower() for place in _PLACE.findall(reading.text)}


def said_instead(anchor: Anchor, other: Reading) -> tuple[Value, bool] | None:
    """The value that stands in the other sentence where the anchor's stands, and whether it is another one."""
    fact = anchor.fact
    if fact is None or not _same_time(anchor, other):
        return None
    found = [value for value in _peers(fact, other) if _same_place(anchor.reading, fact, other, value)]
    mine = [value for value in _peers(fact, anchor.reading) if _same_place(anchor.reading, value, other, value_of(found))]
    if len(found) != 1 or len(mine) > 1:
        return None
    value = found[0]
    if agree(fact, value):
        return value, False
    if any(agree(fact, peer) for peer in _peers(fact, other)) or any(
        agree(value, peer) for peer in _peers(fact, anchor.reading)
    ):
        return None  # each of them knows the other's value, for something else
    if _is_rough(anchor.reading, fact, other, value):
        return None
    return value, True


def value_of(found: list[Value]) -> Value | None:
    return found[0] if found else None


def denies_instead(anchor: Anchor, other: Reading) -> bool | None:
    """Whether one sentence denies what the other says; None where they differ in more than that."""
    one, two = terms_of(anchor.reading), terms_of(other)
    shared = len(one & two)
    if shared < FEWEST_FOR_DENIAL or shared < NEARLY_ALL * max(len(one), len(two)):
        return None
    if not _same_facts(anchor.reading, other):
        return None
    if bool(anchor.reading.denials) == bool(other.denials):
        return False
    denying, saying = (anchor.reading, two) if anchor.reading.denials else (other, one)
    reached = {t for index in denying.denials for at in denied(denying, index) for t in denying.words[at].terms}
    return bool(reached) and reached <= saying


def agree(one: Value, other: Value) -> bool:
    """Whether two values are the same, as far as both are given."""
    if isinstance(one, Number) and isinstance(other, Number):
        return same(one, other) or same(other, one) or _rounds_to(one, other) or _rounds_to(other, one)
    if isinstance(one, Date) and isinstance(other, Date):
        return not clashes(one, other) or says(one, other) or says(other, one)
    return False


def as_date(number: Number) -> Date:
    return Date(number.text, number.start, number.end, ((number.year, 0, 0),))


def _is_firm(number: Number) -> bool:
    return not number.weak and not number.ordinal and bool(number.values)


def _names(reading: Reading) -> set[str]:
    """The terms of names; a first word before a verb or a bracket is the subject, and counts as one."""
    names = {term for word in reading.words if word.name for term in word.terms}
    if len(reading.words) > 1 and (reading.words[1].flat in VERBS or reading.text[reading.words[0].end :].lstrip()[:1] in "(,"):
        names |= set(reading.words[0].terms)
    return names


def _stands_alone(reading: Reading) -> bool:
    """Whether a sentence names what it speaks of: "He won in 1956" leaves that to its page."""
    first = reading.words[:SUBJECT_WORDS]
    return bool(first) and first[0].flat not in PRONOUNS and any(word.name for word in first)


def _related(subject: frozenset[str], other: Set[str]) -> bool:
    """Whether what a page is about is spoken of elsewhere."""
    return bool(subject) and 2 * len(subject & other) >= min(len(subject), MOST_SUBJECT)


def _peers(fact: Value, reading: Reading) -> list[Value]:
    """The values of a sentence that could stand where this one stands."""
    if isinstance(fact, Date):
        return [*(d for d in reading.dates if d.span == fact.span), *(as_date(n) for n in reading.numbers if n.year)]
    return [n for n in reading.numbers if n.unit == fact.unit and not n.year and _is_firm(n)]


def _same_place(reading: Reading, fact: Value, other: Reading, value: Value | None) -> bool:
    """Whether the words beside two values agree: all but one of them stand in the other sentence, and one in the same place."""
    if value is None:
        return False
    before, after = _beside(reading, fact)
    before_it, after_it = _beside(other, value)
    if not (before and before == before_it) and not (after and after == after_it):
        return False
    one, two = terms_of(reading), terms_of(other)
    strange = [t for t in (before, after) if t and t not in two] + [t for t in (before_it, after_it) if t and t not in one]
    return len(strange) <= 1 and _bound(reading, fact) == _bound(other, value)


def _beside(reading: Reading, fact: Value) -> tuple[str, str]:
    """The nearest content words before and after a value."""
    before = next((w.terms[0] for w in reversed(reading.words) if w.end <= fact.start and w.terms), "")
    after = next((w.terms[0] for w in reading.words if w.start >= fact.end and w.terms), "")
    return before, after


def _bound(reading: Reading, fact: Value) -> str:
    """`since` and `until` are other statements than `in`."""
    if not isinstance(fact, Date):
        return ""
    word = next((w.flat for w in reversed(reading.words) if w.end <= fact.start), "")
    return word if word in BOUNDS_OF_TIME else ""


def _same_time(anchor: Anchor, other: Reading) -> bool:
    """A number holds for its time: two of different years are no disagreement. For a date, the other numbers must agree."""
    if anchor.kind == "date":
        firm = [n for n in anchor.reading.numbers if _is_firm(n) and not n.year]
        return all(
            any(agree(n, m) for m in peers)
            for n in firm
            if (peers := [m for m in other.numbers if m.unit == n.unit and not m.year])
        )
    one, two = _times(anchor.reading), _times(other)
    return len(one) == len(two) and all(any(agree(a, b) for b in two) for a in one)


def _times(reading: Reading) -> list[Date]:
    return [*reading.dates, *(as_date(n) for n in reading.numbers if n.year)]


def _same_facts(one: Reading, other: Reading) -> bool:
    times, others = _times(one), _times(other)
    numbers = [[n for n in r.numbers if _is_firm(n) and not n.year] for r in (one, other)]
    return (
        len(times) == len(others)
        and len(numbers[0]) == len(numbers[1])
        and all(any(agree(a, b) for b in others) for a in times)
        and all(any(agree(a, b) for b in numbers[1]) for a in numbers[0])
    )


def _rounds_to(exact: Number, rough: Number) -> bool:
    """2,467 and 2,500: the second is the first to two digits."""
    if exact.unit != rough.unit or not rough.digits or rough.digits >= exact.digits:
        return False
    return any(
        abs(float(f"{a * exact.factor / rough.factor:.{rough.digits - 1}e}") - b) <= NEGLIGIBLE * abs(b)
        and abs(a * exact.factor - b * rough.factor) <= ROUNDED * abs(a * exact.factor)
        for a in exact.values
        for b in rough.values
    )


def _is_rough(reading: Reading, fact: Value, other: Reading, value: Value) -> bool:
    """Whether one of the values is called rough, or a limit, and the other is not far off."""
    if not (_hedged(reading, fact) or _hedged(other, value)):
        return False
    if isinstance(fact, Date) and isinstance(value, Date):
        return abs(fact.year - value.year) <= ROUGH_YEARS
    if isinstance(fact, Number) and isinstance(value, Number):
        one, two = fact.values[0] * fact.factor, value.values[0] * value.factor
        return abs(one - two) <= HEDGED * max(abs(one), abs(two))
    return True


def _hedged(reading: Reading, fact: Value) -> bool:
    before = [w.flat for w in reading.words if w.end <= fact.start][-HEDGE_WORDS:]
    return any(word in HEDGES or word in LIMITS for word in before)
