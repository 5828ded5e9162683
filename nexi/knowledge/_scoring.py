"""How lists of passages become one order. Pure: passages and a question in, scores out.

Retrieval stands above. Scores of different searches are made comparable by their distribution, then what one chunk alone
cannot show is added: what else its page says, and whether a passage found before it names its page. Passages that say nearly
the same are left out. The weights were settled by measurement, see docs/decisions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from nexi.text.terms import extract_terms, join_roots
from nexi.types import Passage

LEXICAL = 1.0
DENSE = 1.0
STATIC_DENSE = 0.4  # a mean of word vectors knows neither order nor context
STATIC_EMBEDDERS = ("wordllama:", "model2vec:")
CODE = 0.3
NEXT = 0.18  # of a page, each next passage counts this share of the one before
MENTION = 0.5
MIN_NAME_CHARS = 6  # with the spaces around it: a shorter title is in every text
MENTIONING = 2  # how many of the first pages may name others
POOL = 60
SHINGLE = 4
ALIKE = 0.8
MAX_CHANGED = 4  # terms, in the place of which another text has others

_TITLE_END = re.compile(r"\s+[-–—|·]\s+| \(")


def normalise_scores(passages: Sequence[Passage]) -> dict[str, float]:
    """Scores of one search by id, placed within three standard deviations around their mean, mostly 0 to 1."""
    scores = [p.score for p in passages]
    if not scores:
        return {}
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
    if deviation < 1e-12:
        return dict.fromkeys((p.id for p in passages), 0.5)
    return {p.id: (p.score - mean) / (6 * deviation) + 0.5 for p in passages}


def fuse_scores(lists: Iterable[tuple[Sequence[Passage], float]]) -> dict[str, float]:
    """The weighted sum of comparable scores; a passage one search did not find gets nothing from it."""
    total: dict[str, float] = {}
    for passages, weight in lists:
        for key, score in normalise_scores(passages).items():
            total[key] = total.get(key, 0.0) + weight * score
    return total


def page_worth(scores: Mapping[str, float], passages: Mapping[str, Passage]) -> dict[str, float]:
    """For each passage, what the next best passages of its page add: a page that says more of it is the better page."""
    pages: dict[str, list[float]] = {}
    for key in sorted(scores, key=lambda key: -scores[key]):
        pages.setdefault(passages[key].url, []).append(max(0.0, scores[key]))
    worth = {
        url: sum(NEXT**place * score for place, score in enumerate(page_scores[1:4], 1)) for url, page_scores in pages.items()
    }
    return {key: worth[passages[key].url] for key in scores}


def drawn_up(scores: Mapping[str, float], ranking: Sequence[Passage]) -> dict[str, float]:
    """The scores, with passages raised whose page is named by a passage of the first pages, though not above that one."""
    # a question about one thing often wants a second that only the page of the first names
    naming: dict[str, tuple[str, str]] = {}
    for passage in ranking:
        if len(naming) < MENTIONING:
            naming.setdefault(passage.url, (passage.id, f" {join_roots(passage.text)} "))
    new_scores = dict(scores)
    for passage in ranking:
        name = f" {join_roots(_TITLE_END.split(passage.title)[0])} "  # so that it is found as whole words
        if len(name) < MIN_NAME_CHARS:
            continue
        others = [
            (place, key) for place, (url, (key, text)) in enumerate(naming.items()) if url != passage.url and name in text
        ]
        for place, key in others[:1]:
            target = scores[passage.id] + MENTION / (1 + place)
            new_scores[passage.id] = max(scores[passage.id], min(target, scores[key]))
    return new_scores


def without_copies(ranking: Iterable[Passage], count: int) -> list[Passage]:
    """The first `count` passages, leaving out those that say nearly what an earlier one says, and nothing else in its place."""
    distinct: list[tuple[Passage, list[str], set[tuple[str, ...]]]] = []
    for passage in ranking:
        if len(distinct) == count:
            break
        terms = extract_terms(passage.text)
        own = set(zip(*(terms[start:] for start in range(SHINGLE)), strict=False)) or {tuple(terms)}
        if not any(_are_alike(own, other) and not _is_changed(terms, others) for _, others, other in distinct):
            distinct.append((passage, terms, own))
    return [passage for passage, *_ in distinct]


def _is_changed(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts that are alike have different words in one place: another number, date, name or thing."""
    edits = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return any(tag == "replace" and min(b - a, d - c) <= MAX_CHANGED for tag, a, b, c, d in edits)


def _are_alike(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> bool:
    """Whether the smaller is nearly contained in the larger."""
    return len(one & other) >= ALIKE * max(1, min(len(one), len(other)))
