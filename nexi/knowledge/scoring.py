"""How lists of passages become one order. Pure: passages and a question in, scores out.

Retrieval stands above. Scores of different searches are made comparable by their distribution, then three things that one
chunk alone cannot show are added: how much of the question its page covers, whether a passage found before it names its
page, and how alike it is to a passage already chosen. The weights were settled by measurement, see docs/decisions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nexi.language import STOP, stem
from nexi.terms import asked, terms
from nexi.types import Passage

LEXICAL = 1.0
DENSE = 0.5
FEEDBACK = 0.3
CODE = 0.3
PAGE = 0.4
MENTION = 0.4
MENTIONING = 2  # how many of the first pages may name others
POOL = 60
SHINGLE = 4
ALIKE = 0.8
FEEDBACK_PASSAGES = 8
FEEDBACK_TERMS = 20

_TITLE_END = re.compile(r"\s+[-–—|·]\s+| \(")


def comparable(passages: Sequence[Passage]) -> dict[str, float]:
    """Scores of one search by id, placed within three standard deviations around their mean, mostly 0 to 1."""
    scores = [p.score for p in passages]
    if not scores:
        return {}
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
    if deviation < 1e-12:
        return dict.fromkeys((p.id for p in passages), 0.5)
    return {p.id: (p.score - mean) / (6 * deviation) + 0.5 for p in passages}


def fuse(lists: Iterable[tuple[Sequence[Passage], float]]) -> dict[str, float]:
    """The weighted sum of comparable scores; a passage one search did not find gets nothing from it."""
    total: dict[str, float] = {}
    for passages, weight in lists:
        for key, score in comparable(passages).items():
            total[key] = total.get(key, 0.0) + weight * score
    return total


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Ids by score; equals keep their order."""
    return sorted(scores, key=lambda key: -scores[key])


class Roots:
    """The roots of passages, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}

    def of(self, text: str) -> list[str]:
        return [self._root(term) for term in terms(text)]

    def of_passage(self, passage: Passage) -> list[str]:
        if passage.id not in self._texts:
            self._texts[passage.id] = self.of(passage.text)
        return self._texts[passage.id]

    def _root(self, term: str) -> str:
        if term not in self._known:
            self._known[term] = stem(term)
        return self._known[term]


def page_worth(question: str, passages: Sequence[Passage], roots: Roots) -> dict[str, float]:
    """For each passage, the share of the question that all found passages of its page cover; rare words count more."""
    wanted = {roots.of(term)[0] for term in asked(question) if roots.of(term)}
    held = {p.id: wanted & {*roots.of_passage(p), *roots.of(f"{p.title} {p.heading}")} for p in passages}
    frequency = Counter(root for found in held.values() for root in found)
    worth = {root: math.log(1 + len(passages) / (frequency[root] + 0.5)) for root in wanted}
    total = sum(worth.values()) or 1.0
    pages: dict[str, set[str]] = {}
    for passage in passages:
        pages.setdefault(passage.url, set()).update(held[passage.id])
    shares = {url: sum(worth[root] for root in found) / total for url, found in pages.items()}
    return {p.id: shares[p.url] for p in passages}


def mentioned(ranked: Sequence[Passage], roots: Roots) -> dict[str, float]:
    """For passages whose page is named by a passage of the first pages: 1 for the first, less for the next.

    A question about one thing often wants a second that only the page of the first names.
    """
    naming: dict[str, str] = {}
    for passage in ranked:
        if len(naming) < MENTIONING:
            naming.setdefault(passage.url, f" {' '.join(roots.of_passage(passage))} ")
    found: dict[str, float] = {}
    for passage in ranked:
        name = roots.of(_TITLE_END.split(passage.title)[0])
        if not name or (len(name) == 1 and len(name[0]) < 4):
            continue
        spelled = f" {' '.join(name)} "
        places = (rank for rank, (url, text) in enumerate(naming.items()) if url != passage.url and spelled in text)
        first = next(places, None)
        if first is not None:
            found[passage.id] = 1 / (1 + first)
    return found


def feedback(question: str, ranked: Sequence[Passage], scores: Mapping[str, float]) -> str:
    """The words that mark the first passages against the rest, as a query of its own."""
    pool = ranked[:POOL]
    texts = {p.id: terms(f"{p.title} {p.heading} {p.text}") for p in pool}
    frequency = Counter(term for found in texts.values() for term in set(found))
    weights: dict[str, float] = {}
    for passage in pool[:FEEDBACK_PASSAGES]:
        found = texts[passage.id]
        for term, times in Counter(found).items():
            if len(term) > 2 and term not in STOP:
                rarity = math.log(1 + len(pool) / frequency[term])
                worth = max(0.0, scores[passage.id]) * times / len(found) * rarity
                weights[term] = weights.get(term, 0.0) + worth
    return " ".join(sorted(weights, key=lambda term: -weights[term])[:FEEDBACK_TERMS])


def without_copies(ranked: Iterable[Passage], count: int) -> list[Passage]:
    """The first `count` passages, leaving out those that say nearly what an earlier one says."""
    kept: list[tuple[Passage, set[tuple[str, ...]]]] = []
    for passage in ranked:
        if len(kept) == count:
            break
        own = _shingles(passage.text)
        if not any(_alike(own, other) for _, other in kept):
            kept.append((passage, own))
    return [passage for passage, _ in kept]


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = terms(text)
    return {tuple(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))}


def _alike(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> bool:
    """Whether the smaller is nearly contained in the larger."""
    return len(one & other) >= ALIKE * max(1, min(len(one), len(other)))
