"""Who does what to whom: the doer of an act in a sentence and in its source.

Below `agreement`, above `pairs`. There is no grammar here, only order, forms of "to be" and the words "by", "to" and "from":
enough to see that the two sides of an act changed places. Where a pronoun or nothing stands in a place, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from nexi.proof.facts import Reading, names_of
from nexi.proof.pairs import Pair
from nexi.proof.polarity import Clash

__all__ = ["exchanged_sides", "is_told_from_the_other_side"]


BEFORE = 9  # words before an act in which its subject stands
AFTER = 7  # words after it for its object

_BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"))
_SELL = frozenset(("sold", "sell", "sells", "sale", "selling"))
_BUY = frozenset(("bought", "buy", "buys", "purchased", "purchase", "acquired", "acquire", "acquires", "buying", "acquisition"))
_STOPS = frozenset(("in", "on", "at", "for", "from", "after", "before", "during", "who", "which", "where", "was", "is"))
_BREAK = re.compile(r"[;:.!?]")
_ENDINGS = ("ed", "en", "ght", "old", "uilt", "ound", "rote", "ade", "ave", "ook", "ed", "on", "eld", "ent", "un", "eat", "ot")


class Sides(Struct, frozen=True):
    """The words of the doer and of what is done to, as flat words; empty where nothing is known."""

    doer: frozenset[str]
    done: frozenset[str]
    passive: bool


def exchanged_sides(pair: Pair) -> Iterator[Clash]:
    """Acts that both have, whose doer here is another one there."""
    source_names = names_of(pair.source)
    for index, word in enumerate(pair.claim.words):
        there = pair.to[index]
        if there < 0 or word.name or word.fact or not _is_act(word.flat) or not _is_act(pair.source.words[there].flat):
            continue
        ours, here = _sides(pair.claim, index, names_of(pair.claim)), {w.flat for w in pair.source.words}
        acts = [i for i, other in enumerate(pair.source.words) if other.terms == pair.source.words[there].terms]
        sides = [_sides(pair.source, act, source_names) for act in acts]
        if all(_is_other(ours.doer, s.doer, here) or _have_changed_places(ours, s) for s in sides):
            claimed = pair.claim.text[pair.claim.words[max(0, index - 3)].start : word.end]
            yield Clash(
                claimed, pair.source.text[pair.source.words[max(0, there - 3)].start : pair.source.words[there].end], "role"
            )
            return


def is_told_from_the_other_side(pair: Pair, index: int, there: int) -> bool:
    """`B bought it` for `A sold it to B`: not an opposite, when the buyer is the one it was sold to."""
    word, other = pair.claim.words[index].flat, pair.source.words[there].flat
    if word in _BUY and other in _SELL:
        buyer, given = _sides(pair.claim, index, names_of(pair.claim)).doer, _after(pair.source, there, ("to",))
    elif word in _SELL and other in _BUY:
        buyer, given = _after(pair.claim, index, ("to",)), _sides(pair.source, there, names_of(pair.source)).doer
    else:
        return False
    return bool(buyer & given)


def _is_act(word: str) -> bool:
    return word.endswith(_ENDINGS) and len(word) > 3


def _is_other(ours: frozenset[str], theirs: frozenset[str], here: set[str]) -> bool:
    """Both doers are named, each has a name the other lacks, and ours is in the source, but elsewhere."""
    new = ours - theirs
    return bool(ours and theirs and theirs - ours and new and new <= here)


def _have_changed_places(ours: Sides, theirs: Sides) -> bool:
    return bool(
        ours.doer
        and theirs.done
        and ours.doer <= theirs.done | theirs.doer
        and ours.doer & theirs.done
        and not ours.doer & theirs.doer
    )


def _sides(reading: Reading, act: int, names: list[tuple[int, int]]) -> Sides:
    words = reading.words
    by = any(words[i].flat == "by" for i in range(act + 1, min(len(words), act + 3)))
    passive = by or any(words[i].flat in _BE for i in range(max(0, act - 3), act))
    before = _subject(reading, act, names)
    if passive:
        return Sides(_after(reading, act, ("by",)), before, True)
    return Sides(before, _object(reading, act, names), False)


def _subject(reading: Reading, act: int, names: list[tuple[int, int]]) -> frozenset[str]:
    """The last name before an act, in its clause and not led by a preposition."""
    for first, last in reversed(names):
        if last > act or act - last > BEFORE:
            continue
        if _BREAK.search(reading.text[reading.words[last - 1].end : reading.words[act].start]):
            return frozenset()
        between = [w.flat for w in reading.words[last:act]]
        if any(w in ("he", "she", "it", "they", "who", "which", "and", "that", "where", "when", "while") for w in between):
            return frozenset()
        if first and reading.words[first - 1].flat in ("of", "in", "by", "for", "with", "from", "to", "at", "on", "and", "or"):
            return frozenset()
        return _flat(reading, _with_those_before(reading, first, names), last)
    return frozenset()


def _with_those_before(reading: Reading, first: int, names: list[tuple[int, int]]) -> int:
    """Where `Elauwit, LLC` and `Robert Lane and Benjamin Vail` begin."""
    for begin, end in reversed(names):
        if end <= first and all(w.flat == "and" for w in reading.words[end:first]):
            first = begin
    return first


def _object(reading: Reading, act: int, names: list[tuple[int, int]]) -> frozenset[str]:
    for first, last in names:
        if first <= act or first - act > AFTER:
            continue
        between = {w.flat for w in reading.words[act + 1 : first]}
        if between & {"in", "by", "for", "with", "from", "to", "at", "on", "and", "that", "after", "before", "of"}:
            return frozenset()
        return _flat(reading, first, last)
    return frozenset()


def _after(reading: Reading, act: int, leads: tuple[str, ...]) -> frozenset[str]:
    """The names behind `by` or `to`, up to the next break."""
    words = reading.words
    lead = next((i for i in range(act + 1, min(len(words), act + AFTER)) if words[i].flat in leads), -1)
    if lead < 0:
        return frozenset()
    end = lead + 1
    while (
        end < len(words)
        and words[end].flat not in _STOPS
        and not _BREAK.search(reading.text[words[end - 1].end : words[end].start])
    ):
        end += 1
    return _flat(reading, lead + 1, end)


def _flat(reading: Reading, first: int, last: int) -> frozenset[str]:
    return frozenset(w.flat for w in reading.words[first:last] if w.name and w.terms)
