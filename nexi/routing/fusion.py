"""Makes one list of several rankings, and of the hits of several services: copies of a page and versions of a paper merged.

Pure. Above sit the searcher, the open services and agentic search.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import asdict, replace

from nexi.text.words import content_words
from nexi.types import Hit, Paper
from nexi.urls import hit_key

T = TypeVar("T", bound=Hashable)
RANK_CONSTANT = 60  # how little the very first ranks matter; the value of the paper that proposed this


def by_reciprocal_rank(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Each thing with the sum of 1 / (60 + rank) over the rankings that have it, best first; equals keep their first place."""
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, thing in enumerate(ranking, 1):
            scores[thing] = scores.get(thing, 0.0) + 1.0 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def fuse_hits(answers: Mapping[str, Sequence[Hit]], question: str) -> tuple[Hit, ...]:
    """The hits of all services by reciprocal rank; a hit that shares no word with the question comes after all that do."""
    hit_by_place: dict[str, Hit] = {}
    places: dict[str, str] = {}  # of each identifier, the first hit that has it
    rankings: list[list[str]] = []
    for hits in answers.values():
        ranking = []
        for hit in hits:
            paper = hit.paper or Paper()
            names = [*(f"doi:{doi}" for doi in (paper.doi, *paper.versions) if doi), hit_key(hit.url)]
            place = next((places[name] for name in names if name in places), names[0])
            if first := hit_by_place.get(place):
                snippet = max(first.snippet, hit.snippet, key=len)
                published = first.published or hit.published
                hit = replace(first, snippet=snippet, published=published, paper=merge_papers(first.paper, hit.paper))
            hit_by_place[place] = hit
            places.update(dict.fromkeys(names, place))
            ranking.append(place)
        rankings.append(list(dict.fromkeys(ranking)))
    words = {word[:6] for word in content_words(question)}
    order = [hit_by_place[place] for place, _ in by_reciprocal_rank(rankings)]
    if not words:
        return tuple(order)
    texts = [content_words(f"{hit.title} {hit.snippet} {hit.url}") for hit in order]
    shares_word = [any(word[:6] in words for word in text) for text in texts]  # six letters are much of a root
    return tuple(hit for is_near in (True, False) for hit, shares in zip(order, shares_word, strict=True) if shares is is_near)


def merge_papers(one: Paper | None, other: Paper | None) -> Paper | None:
    """One record of two: what the first leaves open, the second fills; a retraction in either is one."""
    if one is None or other is None:
        return one or other
    fields = {name: value or getattr(other, name) for name, value in asdict(one).items()}
    graver = next((paper for standing in ("retracted", "concern") for paper in (one, other) if paper.standing == standing), one)
    same = {*one.versions, *other.versions, one.doi, other.doi} - {"", fields["doi"]}
    return Paper(**fields | {"standing": graver.standing, "notice": graver.notice, "versions": tuple(sorted(same))})
