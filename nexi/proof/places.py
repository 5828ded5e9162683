"""Whether a value stands with the name it is said of.

Below `agreement`, above `pairs`. A source often gives several things several values in one sentence; a value counts as another
one's when the name beside it in the claim stands clearly nearer to a rival of it. Commas and conjunctions make a way longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nexi.proof.dates import Date
from nexi.proof.facts import Reading, names_of
from nexi.proof.numbers import Number
from nexi.proof.pairs import Pair
from nexi.proof.polarity import Clash
from nexi.proof.rewording import agrees

BOUNDARY = 6  # words that a comma or a conjunction is worth
NEARER = 3  # words by which a rival must be nearer
_SENTENCES = re.compile(r"[a-z][.!?]\s+[A-Z]")
_BOUNDARY = re.compile(r"[,;]|\band\b|\bbut\b|\bwhile\b")

Fact = Number | Date


def misplaced(pair: Pair) -> Iterator[Clash]:
    """Values that the source gives to somebody else, in one sentence."""
    claimed: list[Fact] = [*pair.claim.numbers, *pair.claim.dates]
    for fact in () if _SENTENCES.search(pair.source.text) else claimed:
        ways = _ways(pair, fact, claimed)
        if ways and ways[0] - NEARER >= ways[1]:
            yield Clash(fact.text, ways[2].text, "date" if isinstance(fact, Date) else "number")


def belongs(pair: Pair, text: str) -> bool:
    """Whether a value of the claim stands, in the source, with the name it has here and nearer than any rival."""
    claimed: list[Fact] = [*pair.claim.numbers, *pair.claim.dates]
    ways = next((w for fact in claimed if fact.text == text and (w := _ways(pair, fact, claimed))), None)
    return ways is not None and ways[0] + NEARER <= ways[1]


def _ways(pair: Pair, fact: Fact, claimed: Sequence[Fact]) -> tuple[int, int, Fact] | None:
    """How far a value is from its name in the source, how far the nearest rival is, and that rival."""
    mine, rivals = _sorted_out(fact, pair.source, claimed)
    name = _own_name(pair, fact) if mine and rivals else None
    return (_way(pair.source, name, mine), *_nearest(pair.source, name, rivals)) if name is not None else None


def _sorted_out(fact: Fact, source: Reading, claimed: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """The source's values that are this one, and those of its kind that the claim does not have."""
    stated: list[Fact] = [*source.numbers, *source.dates]
    kind = [s for s in stated if _are_alike(fact, s)]
    mine = [s for s in kind if agrees(fact, s)]
    return mine, [s for s in kind if s not in mine and not any(_are_alike(c, s) and agrees(c, s) for c in claimed)]


def _are_alike(one: Fact, other: Fact) -> bool:
    """Values of one kind: two years, two shares, two lengths."""
    if isinstance(one, Number) and isinstance(other, Number):
        years = {bool(n.year and len(n.text) == 4) for n in (one, other)}
        return one.unit == other.unit and len(years) == 1 and one.ordinal == other.ordinal and not other.weak
    return type(one) is type(other)


def _own_name(pair: Pair, fact: Fact) -> int | None:
    """Where the name that stands next to a value in the claim, in one clause with it, stands in the source."""
    claim = pair.claim
    at = claim.at(fact.start)
    found = [i for first, last in names_of(claim) for i in range(first, last)]
    found += [0] if claim.words and claim.words[0].text[:1].isupper() else []
    found = [i for i in found if pair.to[i] >= 0 and pair.source.words[pair.to[i]].name and _between(claim, i, at) < BOUNDARY]
    return pair.to[min(found, key=lambda i: _between(claim, i, at))] if found else None


def _way(source: Reading, name: int, facts: Sequence[Fact]) -> int:
    return min(_length(source, name, fact) for fact in facts)


def _nearest(source: Reading, name: int, facts: Sequence[Fact]) -> tuple[int, Fact]:
    nearest = min(facts, key=lambda fact: _length(source, name, fact))
    return _length(source, name, nearest), nearest


def _length(source: Reading, name: int, fact: Fact) -> int:
    """Words between a name and a value; the name may occur again, and then the nearest counts."""
    flat = source.words[name].flat
    return min(_between(source, i, source.at(fact.start)) for i, word in enumerate(source.words) if word.flat == flat)


def _between(source: Reading, one: int, other: int) -> int:
    first, last = sorted((one, min(other, len(source.words) - 1)))
    text = source.text[source.words[first].end : source.words[last].start]
    return last - first + BOUNDARY * len(_BOUNDARY.findall(text))
