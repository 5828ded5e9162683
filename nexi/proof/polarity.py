"""Whether a sentence and a source agree in what they deny.

Below `agreement`, above `pairs`. A denial is compared through the word it reaches; opposites and denying prefixes count as
one denial, so "did not win" and "lost" agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct

from nexi.proof.facts import Reading, Word, denied
from nexi.proof.lexicon import DENYING_PREFIXES, OPPOSITES
from nexi.proof.pairs import Pair
from nexi.proof.terms import root, terms


class Clash(Struct, frozen=True):
    """Two things that cannot both be so: what the sentence says, what the source says, and of which kind they are."""

    claimed: str
    other: str
    kind: str


_ENDS = re.compile(r"[,;:.!?()]|\b(?:and|but|or|while|although|because|so)\b")


def polarity_clashes(pair: Pair, agree: Callable[[Pair, int, int], bool] = lambda *_: False) -> list[Clash]:
    """Denials that only one side has, and opposites in one place, unless they `agree` after all."""
    opposed = {i: p for i, p in _opposites(pair) if not agree(pair, i, p)}
    claim_reach = _reach(pair.claim)
    source_reach = _reach(pair.source)
    clashes = [
        Clash(pair.claim.words[i].text, pair.source.words[p].text, "opposite")
        for i, p in opposed.items()
        if (i in claim_reach) == (p in source_reach)
    ]
    return [*clashes, *_denied_here(pair, source_reach, opposed), *_denied_there(pair, claim_reach, opposed)]


def _reach(reading: Reading) -> frozenset[int]:
    return frozenset(i for index in reading.denials for i in denied(reading, index))


def _denied_here(pair: Pair, source_reach: frozenset[int], opposed: dict[int, int]) -> Iterator[Clash]:
    """The sentence denies what the source says."""
    for index in pair.claim.denials:
        reached = denied(pair.claim, index)
        if any(i in opposed for i in reached):
            continue
        matched = [pair.to[i] for i in reached if pair.to[i] >= 0]
        phrase = _phrase(pair.claim, index, reached)
        if matched and not any(p in source_reach for p in matched) and not _denial_near(pair.source, matched[0]):
            yield Clash(phrase, _around(pair.source, matched[0]), "denial")
        elif not matched and not pair.source.denials:
            yield Clash(phrase, "", "denial")


def _denied_there(pair: Pair, claim_reach: frozenset[int], opposed: dict[int, int]) -> Iterator[Clash]:
    """The source denies what the sentence says."""
    back = {p: i for i, p in enumerate(pair.to) if p >= 0}
    for index in pair.source.denials:
        head = denied(pair.source, index, reach=2)
        hits = [back[p] for p in head if p in back]
        if not hits or any(p in opposed.values() for p in head):
            continue
        near = any(_denial_near(pair.claim, i) for i in hits)
        if not near and not any(i in claim_reach for i in hits) and _is_same_clause(pair, index, head, back):
            yield Clash(pair.claim.words[hits[0]].text, _phrase(pair.source, index, head), "denial")


def _is_same_clause(pair: Pair, index: int, head: list[int], back: dict[int, int]) -> bool:
    """The denied word must be the one meant: it, or what stands around it, is all in the sentence."""
    if head[0] not in back:
        return False
    around = [i for i in range(max(0, index - 4), min(len(pair.source.words), index + 5)) if pair.source.words[i].terms]
    if sum(i in back for i in around) * 2 >= len(around):
        return True
    clause = _clause(pair.source, index)
    words = [pair.source.words[i] for i in clause]
    stated = sum(w.flat == pair.source.words[head[0]].flat for w in pair.source.words)
    return stated == 1 and not any(w.fact for w in words) and all(i in back for i in clause if pair.source.words[i].terms)


def _clause(reading: Reading, index: int) -> list[int]:
    """The words of the clause in which a denial stands."""
    first = last = index
    while first and not _ENDS.search(reading.text[reading.words[first - 1].start : reading.words[first].start]):
        first -= 1
    while last + 1 < len(reading.words) and not _ENDS.search(
        reading.text[reading.words[last].end : reading.words[last + 1].end]
    ):
        last += 1
    return list(range(first, last + 1))


def _denial_near(reading: Reading, index: int) -> bool:
    return any(index - 6 <= i < index + 4 for i in reading.denials)


def _phrase(reading: Reading, index: int, reached: list[int]) -> str:
    last = reached[0] if reached else index
    return reading.text[reading.words[index].start : reading.words[last].end]


def _around(reading: Reading, index: int) -> str:
    first = reading.words[max(0, index - 2)]
    return reading.text[first.start : reading.words[index].end]


def _opposites(pair: Pair) -> Iterator[tuple[int, int]]:
    """(claim index, source index) of words that are opposites and stand in one place."""
    claimed = {w.flat for w in pair.claim.words}
    used = pair.used
    free = [p for p in range(len(pair.source.words)) if p not in used and pair.source.words[p].flat not in claimed]
    spots: dict[str, list[int]] = {}
    for p in free:
        word = pair.source.words[p]
        for form in {word.flat, root(word.flat), *word.terms}:
            spots.setdefault(form, []).append(p)
    for i, word in enumerate(pair.claim.words):
        if pair.to[i] >= 0 or word.fact:
            continue
        found = [p for opposite in _opposites_of(word.flat) for p in spots.get(opposite, ())]
        found = found if word.terms or not found else [p for p in pair.slot(i, i + 1) if p in found]
        best = next((p for p in found if are_opposed(word, pair.source.words[p])), None)
        if best is not None:
            yield i, best


@lru_cache(maxsize=10_000)
def _opposites_of(word: str) -> frozenset[str]:
    """The opposites of a flat word, as words and as roots."""
    own = terms(word)
    known = OPPOSITES.get(word, frozenset()).union(*(OPPOSITES.get(t, frozenset()) for t in (root(word), *own)))
    long = own and len(word) > 4
    stripped = {word.removeprefix(p) for p in DENYING_PREFIXES if long and word.startswith(p)}
    prefixed = {p + word for p in DENYING_PREFIXES if long}
    return known | stripped | prefixed


def are_opposed(word: Word, other: Word) -> bool:
    """Whether two words say the contrary of each other; words that mean the same never do."""
    opposites = _opposites_of(word.flat)
    if other.flat in OPPOSITES.get(word.flat, ()):
        return True
    if not opposites or (word.terms and word.terms == other.terms):
        return False
    return other.flat in opposites or root(other.flat) in opposites or any(t in opposites for t in other.terms)
