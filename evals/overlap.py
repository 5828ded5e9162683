"""The share of a sentence's words that its passage holds: the fallback where no model is at hand, and the test fake.

The PairModel port is above; below are only words. It knows nothing of meaning: a lie in the passage's own words passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.text.stems import stem
from nexi.text.words import STOP
from nexi.types import PairScore

MAX_CHARS = 20_000
_WORD = re.compile(r"\d[\d.,]*\d|\d|[^\W\d_]+")


class OverlapPairModel:
    """The PairModel port over word counts. A number that the premise lacks halves the score."""

    name = "overlap"

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: float | None = None) -> Sequence[PairScore]:
        return [PairScore(word_share(premise, hypothesis)) for premise, hypothesis in pairs]


def word_share(premise: str, hypothesis: str) -> float:
    """From 0 to 1; a hypothesis without a content word shares nothing."""
    there, wanted = _content_terms(premise), _content_terms(hypothesis)
    missing = wanted - there
    share = 1 - len(missing) / len(wanted) if wanted else 0.0
    return share / 2 if any(term[0].isdigit() for term in missing) else share


def _content_terms(text: str) -> set[str]:
    return {stem(word) for word in _WORD.findall(text[:MAX_CHARS].casefold()) if word not in STOP}
