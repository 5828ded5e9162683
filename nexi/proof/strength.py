"""Whether a sentence says more than its source: a doubt left out, a superlative or a cause put in.

Below `agreement`, above `pairs`. Such a sentence shares nearly all its words with the source, so words alone do not tell. What
is found here is something the source does not say, never a clash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nexi.proof.facts import Reading
from nexi.proof.pairs import Pair

__all__ = ["overstated"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REACH = 4  # content words behind a doubt that it covers

_DOUBTS = _words(
    "may might could possibly probably perhaps likely unlikely whether allegedly reportedly apparently supposedly potentially "
    "presumably nearly almost"
)
_CREDITED = _words("credited believed thought alleged rumoured rumored supposed speculated suspected")
_CREDITING = frozenset(("to", "with", "that"))
_KEPT = (
    _DOUBTS
    | _CREDITED
    | _words(
        "can would should seem seems seemed appear appears appeared suggest suggests suggested some sometimes often estimated "
        "expected unknown unclear uncertain unsure possible probable potential risk chance claims claimed about around roughly "
        "approximately circa allowed permitted able optional supported supports allow allows lets accepted if unless hope "
        "hopes hoped plan plans planned propose proposed conjecture theory tend tends"
    )
)
_UNIVERSAL = frozenset(("always", "best", "worst", "sole", "entirely", "completely", "guaranteed", "undoubtedly"))
_NO_SUPERLATIVE = re.compile(
    r"(?:for|inter|re(?:qu|arr)?|w|t|gu|n|p|v|ch|br|harv|prot|sugg|inv|cont|hon|mod|manif|dig|bequ|conqu|inqu|cr|qu|z|j|b|l|arr|at|"
    r"near|alm|ever|everest|budap|bucharest|buda|brest|northw|southw|midw|inf|nearest|clos|pri|tempest|earn|int)est$"
)
_CAUSES = _words(
    "because cause caused causes causing owing due hence therefore thereby led leads leading resulted results triggered"
)
_ANY_CAUSE = _CAUSES | _words(
    "so since as for thus attribute attributed attributes effect affect affected result made makes make making drove drives "
    "through reason reasons why after allow allowed allows responsible explain explained following weil denn pour car parce"
)
_TOGETHER = _words("associated association correlated correlation linked link related relationship")


def overstated(pair: Pair) -> Iterator[str]:
    """What the sentence says more firmly, more highly or more knowingly than the source."""
    yield from _sure(pair)
    yield from _highest(pair)
    yield from _caused(pair)


def _sure(pair: Pair) -> Iterator[str]:
    """The source doubts what the sentence states."""
    ours = {w.flat for w in pair.claim.words}
    if ours & _KEPT or any(w.flat.endswith("ly") and w.flat in _KEPT for w in pair.claim.words):
        return
    used = pair.used
    for index, word in enumerate(pair.source.words):
        if not _is_doubt(pair.source, index):
            continue
        covered = _behind(pair.source, index)
        if covered and covered[0] in used and sum(i in used for i in covered) * 2 > len(covered):
            yield f"the source only says {pair.source.text[word.start : pair.source.words[covered[0]].end]!r}"
            return


def _is_doubt(reading: Reading, index: int) -> bool:
    word = reading.words[index]
    following = reading.words[index + 1] if index + 1 < len(reading.words) else None
    if word.text == "May" or following is None:
        return False
    if word.flat in ("nearly", "almost"):
        return not following.fact and following.flat not in ("all", "every", "any", "entirely", "exclusively", "no", "always")
    if word.flat in ("could", "may", "might") and following.flat in ("not", "also", "only"):
        return following.flat == "also"
    if word.flat == "only":
        return following.flat == "if"
    return word.flat in _DOUBTS or (word.flat in _CREDITED and following.flat in _CREDITING)


def _behind(reading: Reading, index: int) -> list[int]:
    found: list[int] = []
    for place in range(index + 1, len(reading.words)):
        before, word = reading.words[place - 1], reading.words[place]
        if found and re.search(r"[,;:.()]", reading.text[before.end : word.start]):
            break
        if word.terms:
            found.append(place)
        if len(found) == REACH:
            break
    return found


def _highest(pair: Pair) -> Iterator[str]:
    words, source = pair.claim.words, pair.source.words
    said = {w.flat for w in source}
    for index, word in enumerate(words):
        follows = words[index + 1].flat if index + 1 < len(words) else ""
        if word.flat == "most" and follows not in ("of", "", "common", "likely") and not _is_thing(words[index + 1]):
            if not said & {"most", "best"} and not any(is_superlative(w) for w in said):
                yield f"most {follows}"
        elif word.flat in _UNIVERSAL or is_superlative(word.flat):
            unsaid = pair.to[index] < 0 and word.flat not in said and not word.name
            if unsaid or (_is_ranked(pair.source, pair.to[index]) and not _is_ranked(pair.claim, index)):
                yield word.text


def _is_thing(word: object) -> bool:
    return bool(getattr(word, "flat", "").endswith("s")) or bool(getattr(word, "name", False))


def is_superlative(word: str) -> bool:
    return len(word) > 5 and word.endswith("est") and not _NO_SUPERLATIVE.match(word)


def _is_ranked(reading: Reading, index: int) -> bool:
    """`second-largest`, `45th largest`: an ordinal stands before it."""
    if index < 1:
        return False
    before = reading.words[index - 1]
    return any(n.ordinal and n.start <= before.start < n.end for n in reading.numbers)


def _caused(pair: Pair) -> Iterator[str]:
    causes = [i for i, w in enumerate(pair.claim.words) if w.flat in _CAUSES]
    if not causes:
        return
    said = {w.flat for w in pair.source.words}
    word = pair.claim.words[causes[0]].text
    if said & _TOGETHER and not said & _CAUSES:
        yield f"{word} (the source has them together, not one by the other)"
    elif not said & _ANY_CAUSE:
        yield word
