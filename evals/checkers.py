"""Two ways to check one claim against one text: nexi's own, and a word count that every other checker has to beat.

Below `proof`, which scores them on the same pairs. A third one, a judge or a pair model, only has to have the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nexi.checking.pages import prepare
from nexi.checking.rules import check_claim
from nexi.types import Claim

KEPT = ("found", "supported")
SHARE_KEPT = 0.65  # the best single threshold on both measuring sets; fixed, so that the word share never moves
_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    _WORD.findall(
        "a an the of in on at to for from by with and or but as is are was were be been being has have had do does did it its"
        " he she they them his her their this that these those which who whom what when where there also not into than then"
        " so such can will would may i you we"
    )
)


@dataclass(frozen=True)
class Outcome:
    """What a checker made of one claim: whether it stands, whether the text is said to deny it, and how sure that is."""

    kept: bool
    contradicted: bool
    score: float


Checker = Callable[[str, str], Outcome]


def check_with_nexi(claim: str, evidence: str) -> Outcome:
    """The rules as they are; the only place of this eval that calls them for a single sentence."""
    return read_claim(check_claim(claim, {1: prepare(evidence, "http://evidence.test/")}))


def read_claim(claim: Claim) -> Outcome:
    """A checked sentence as an outcome; a sentence that was left unchecked is not kept."""
    score = max((e.fit for e in claim.evidence), default=0.0)
    return Outcome(claim.verdict in KEPT, claim.verdict == "contradicted", score)


def read_claims(claims: Iterable[Claim]) -> Outcome:
    """Several sentences as one outcome: kept when all are, contradicted when one is, as sure as the weakest."""
    outcomes = [read_claim(claim) for claim in claims]
    kept = bool(outcomes) and all(o.kept for o in outcomes)
    return Outcome(kept, any(o.contradicted for o in outcomes), min((o.score for o in outcomes), default=0.0))


def check_word_share(claim: str, evidence: str) -> Outcome:
    """The share of the claim's content words that stand in the text, and whether every number does."""
    said, known = _WORD.findall(claim.lower()), set(_WORD.findall(evidence.lower()))
    words = [word for word in said if word not in _SMALL] or said
    share = sum(word in known for word in words) / max(1, len(words))
    has_numbers = all(word in known for word in said if word[0].isdigit())
    return Outcome(has_numbers and share >= SHARE_KEPT, False, share - (not has_numbers))


CHECKERS: dict[str, Checker] = {"nexi": check_with_nexi, "word share": check_word_share}
