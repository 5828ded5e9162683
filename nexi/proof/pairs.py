"""Which word of a source stands for which word of a sentence.

Below `agreement` and `polarity`, above `facts`. Order may differ, since a truthful rewording moves clauses; among several
places the one that goes on from the word before is taken. A slot is what a source has where the sentence has something else.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nexi.proof.facts import Reading, Word

NEAR = 4  # words around a matched neighbour in which the source says its own version
_PREFIX = 5


class Pair(Struct, frozen=True):
    """`to` has, for each word of the sentence, the index of its word in the source, or -1."""

    claim: Reading
    source: Reading
    to: tuple[int, ...]

    @property
    def used(self) -> frozenset[int]:
        return frozenset(i for i in self.to if i >= 0)

    def slot(self, first: int, last: int) -> Iterator[int]:
        """Indexes of source words around where the claim's words from `first` to `last` would stand, nearest first."""
        left = next((self.to[i] for i in range(first - 1, max(-1, first - 1 - NEAR), -1) if self.to[i] >= 0), None)
        right = next((self.to[i] for i in range(last, min(len(self.to), last + NEAR)) if self.to[i] >= 0), None)
        for step in range(1, NEAR + 1):
            if right is not None and right - step >= 0:
                yield right - step
            if left is not None and left + step < len(self.source.words):
                yield left + step


def pair_up(claim: Reading, source: Reading) -> Pair:
    """Match words by their terms, and long plain words also by their beginning."""
    places: dict[str, list[int]] = {}
    begins: dict[str, list[int]] = {}
    for index, word in enumerate(source.words):
        for term in word.terms:
            places.setdefault(term, []).append(index)
        if word.terms and not word.name and len(word.flat) > _PREFIX:
            begins.setdefault(word.flat[:_PREFIX], []).append(index)
    to: list[int] = []
    last = -1
    taken: set[int] = set()
    for word in claim.words:
        found = _candidates(word, source, places, begins)
        best = _continuing(found, last, taken) if found else -1
        to.append(best)
        if best >= 0:
            taken.add(best)
            last = best
    return Pair(claim, source, tuple(to))


def _continuing(found: list[int], last: int, taken: set[int]) -> int:
    return min(found, key=lambda i: (i in taken, abs(i - last - 1) + 2 * (i <= last)))


def _candidates(word: Word, source: Reading, places: dict[str, list[int]], begins: dict[str, list[int]]) -> list[int]:
    if not word.terms or word.fact:
        return []
    exact = [i for term in word.terms for i in places.get(term, ())]
    if exact or word.name or len(word.flat) <= _PREFIX:
        return exact
    alike = begins.get(word.flat[:_PREFIX], ())
    return [i for i in alike if _shares_root(word.flat, source.words[i].flat)]


def _shares_root(a: str, b: str) -> bool:
    """administration and administrative, but not transport and transition."""
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return common >= 0.7 * max(len(a), len(b)) or (common >= 6 and common >= 0.6 * max(len(a), len(b)))
