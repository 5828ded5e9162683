"""What was put in another's place where a sentence otherwise follows its source word by word.

Below `agreement`, above `facts` and `polarity`. A name, a number or an opposite that stands exactly where the source has
another one is a clash, even when the page says that name or number elsewhere. Sentences that share too little order with the
source are not judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from nexi.proof.dates import Date, clashes
from nexi.proof.facts import Reading, Word
from nexi.proof.lexicon import DENIALS, PREPOSITIONS, PRONOUNS
from nexi.proof.numbers import Number, same
from nexi.proof.polarity import Clash, are_opposed
from nexi.proof.terms import is_known

__all__ = ["Rewording", "agrees", "compare", "exchanged", "substituted"]


FOLLOWS = 0.5  # share of a sentence's words that keep the source's order
MOST_WORDS = 200
NEXT = 4  # words of an exchange that may hold a denial
_FILLERS = frozenset(
    ["number", "way", "rule", "variety", "lot", "deal", "range", "series", "case", "fact", "kind", "sort", "set"]
)
_LEADS = PREPOSITIONS | {"the", "a", "an", "his", "her", "its", "their", "this", "most", "more"}
PUT, STOOD = 7, 9  # words of an exchange on either side; longer ones are another sentence, not another word


class Exchange(Struct, frozen=True):
    """Words of the sentence from `first` to `last` in place of words of the source; either side may be empty."""

    first: int
    last: int
    from_: int
    to: int


class Rewording(Struct, frozen=True):
    """How a sentence follows one sentence of a source: the share of its words in that order, and what was exchanged."""

    claim: Reading
    source: Reading
    follows: float = 0.0
    exchanges: tuple[Exchange, ...] = ()


def compare(claim: Reading, source: Reading) -> Rewording:
    """Follow a sentence along a sentence of a source."""
    ours, theirs = [w.flat for w in claim.words[:MOST_WORDS]], [w.flat for w in source.words[:MOST_WORDS]]
    shared = (Counter(ours) & Counter(theirs)).total()
    if not ours or shared < FOLLOWS * len(ours):
        return Rewording(claim, source)
    codes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    kept = sum(b - a for tag, a, b, _, _ in codes if tag == "equal")
    changed = (_trimmed(Exchange(a, b, c, d), len(ours)) for tag, a, b, c, d in codes if tag != "equal")
    places = [e for e in changed if e.last - e.first <= PUT and e.to - e.from_ <= STOOD]
    return Rewording(claim, source, kept / len(ours), tuple(places))


def _trimmed(place: Exchange, size: int) -> Exchange:
    """At the ends of a sentence the source goes on: only its nearest words stand in the sentence's place."""
    wide = place.last - place.first + 1
    if place.first < place.last and place.first == 0 and place.to - place.from_ > wide:
        return Exchange(place.first, place.last, place.to - wide, place.to)
    if place.first < place.last == size and place.to - place.from_ > wide:
        return Exchange(place.first, place.last, place.from_, place.from_ + wide)
    return place


def exchanged(rewording: Rewording) -> Iterator[Clash]:
    """The exchanges that change what is said."""
    claim, source = rewording.claim, rewording.source
    if rewording.follows < FOLLOWS:
        return
    spare = _spare(claim, source)
    for place in rewording.exchanges:
        put, stood = claim.words[place.first : place.last], source.words[place.from_ : place.to]
        opposed = list(_opposed(put, stood))
        denial = _one_denies(put, stood)
        if denial and not opposed:
            yield Clash(_text(claim, put), _text(source, stood), "denial")
        elif opposed and not denial:
            yield opposed[0]
        if put and stood:
            yield from _other_fact(claim, source, place)
            new, gone = _only(put, stood), [w for w in _only(stood, put) if w.terms[0] in spare]
            leaned = {w.flat for w in put} & PREPOSITIONS <= {w.flat for w in stood}
            if (
                _is_renamed(new, gone, {w.text for w in (*claim.words, *source.words)})
                and leaned
                and not any(w.flat in PRONOUNS for w in stood)
            ):
                yield Clash(_text(claim, put), _text(source, stood), "name")


def _one_denies(put: Sequence[Word], stood: Sequence[Word]) -> bool:
    """Whether a denial stands on one side only; `not only` denies nothing, and a dropped clause is no denial."""
    if len(put) > NEXT or len(stood) > NEXT:
        return False
    ours, theirs = _denials(put), _denials(stood)
    return ours != theirs and not any(w.flat in ("only", "just", "merely") for w in (*put, *stood))


def _denials(words: Sequence[Word]) -> int:
    return sum(w.flat in DENIALS or w.flat.endswith("n't") for w in words)


def substituted(rewording: Rewording) -> Iterator[Clash]:
    """One plain word for another that is known not to mean the same: not a clash, but not said either."""
    claim, source = rewording.claim, rewording.source
    spare = _spare(claim, source)
    for place in rewording.exchanges if rewording.follows >= FOLLOWS else ():
        put, stood = claim.words[place.first : place.last], source.words[place.from_ : place.to]
        if not place.first or place.last == len(claim.words):
            continue
        new, gone = _only(put, stood), [w for w in _only(stood, put) if w.terms[0] in spare]
        if (
            len(new) == len(gone) == 1
            and new[0].flat not in _FILLERS
            and _is_led(claim, new[0])
            and is_known(new[0].flat) == is_known(gone[0].flat)
        ):
            yield Clash(new[0].text, gone[0].text, "word")


def _is_led(reading: Reading, word: Word) -> bool:
    """Whether an article or a preposition leads to a word: then it names something, and verbs are reworded more freely."""
    index = reading.at(word.start)
    return index > 0 and reading.words[index - 1].flat in _LEADS


def _spare(claim: Reading, source: Reading) -> Counter[str]:
    """The terms that the source has more often than the sentence: those were given up, not moved."""
    count = (Counter(term for word in reading.words for term in word.terms) for reading in (source, claim))
    return next(count) - next(count)


def _only(words: Sequence[Word], others: Sequence[Word]) -> list[Word]:
    known = {term for word in others for term in word.terms}
    return [w for w in words if w.terms and not w.fact and w.terms[0] not in known]


def _is_renamed(new: list[Word], gone: list[Word], written: set[str]) -> bool:
    """A name for a name; a word that also stands without its capital is none."""
    return bool(new) and all(_is_capital(w, written) for w in new) and any(_is_capital(w, written) for w in gone)


def _is_capital(word: Word, written: set[str]) -> bool:
    return word.name or (word.text[0].isupper() and word.text.lower() not in written)


def _opposed(put: Sequence[Word], stood: Sequence[Word]) -> Iterator[Clash]:
    for word in put:
        for other in stood:
            if are_opposed(word, other) and other.flat not in {w.flat for w in put}:
                yield Clash(word.text, other.text, "opposite")


def _other_fact(claim: Reading, source: Reading, place: Exchange) -> Iterator[Clash]:
    ours = _facts(claim, place.first, place.last)
    theirs = _facts(source, place.from_, place.to)
    for fact in ours:
        if theirs and not any(agrees(fact, other) for other in theirs):
            yield Clash(fact.text, theirs[0].text, "date" if isinstance(fact, Date) else "number")


def _facts(reading: Reading, first: int, last: int) -> list[Number | Date]:
    start, end = reading.words[first].start, reading.words[last - 1].end
    facts: list[Number | Date] = [*reading.dates, *reading.numbers]
    return [f for f in facts if f.start < end and start < f.end]


def agrees(fact: Number | Date, value: Number | Date) -> bool:
    """Whether two values may be the same thing said; a number and a date that cannot be compared do not disagree."""
    if isinstance(fact, Date):
        return (
            not clashes(value, fact) if isinstance(value, Date) else not value.year or value.year == fact.year or not fact.year
        )
    if isinstance(value, Date):
        return not fact.year or value.year in (0, fact.year) or value.span != 1
    return same(fact, value) or bool(fact.year) != bool(value.year)


def _text(reading: Reading, words: Sequence[Word]) -> str:
    return reading.text[words[0].start : words[-1].end] if words else ""
