"""How much of a question some text covers: the stand-in for every judge, with no model. Pure.

A question becomes weighted roots (names, numbers and identifiers count double), and a text covers those it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nexi.structured.ranking import Assessment, UrlScore, in_order
from nexi.text.stems import stem
from nexi.text.terms import extract_terms
from nexi.text.words import STOP, content_words, find_names, find_words
from nexi.types import Hit, Passage

NAME_WEIGHT = 2.0
OTHER_PAGES = 0.5  # what a further page adds counts half: words gathered from anywhere prove little
LENIENCE = 0.65  # an answer says some of the question in other words: seven tenths of its words are as good as enough
PLACE_WORTH = 0.35
PLACE_STEP = 0.25
MIN_FIT = 0.25
TITLE_IN_QUESTION = 1.0  # added to the score of a hit whose page is about a part of the question,
TITLE_IN_PAGE = 0.8  # about something that a page read before names,
PAGE_IN_SNIPPET = 0.3  # or that names such a page itself
BEGINNING_CHARS = 5  # "director" and "directed" begin alike and have different stems
WORTH_A_PAGE = 0.2  # of the question left out: less is no reason to read another page
MAX_QUERIES = 3

_NESTED = re.compile(
    r"\bof\b.*\bof\b|\w['’]s\s+[\w-]+\s+\w|\w\s.*\b(?:that|which|who|whom|whose)\b|\bthe \w+ (?:of|in)\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_BRACKETS = re.compile(r"\([^()]*\)")
_WORD = re.compile(r"[^\W_][\w.'’+#-]*")
_NAME = re.compile(r"(?<=\s)[^\W\d_a-z][\w.'’-]*(?:\s+(?:of|the|and|de|von)?\s*[^\W\d_a-z][\w.'’-]*)+")
_ASKING_WORDS = """
    name names kind type sort term word called many much following example way thing first known used use did year years date
    time place tell describe explain list give find show difference both earlier later recently older younger larger smaller
    more most"""
_ASKING = frozenset(_ASKING_WORDS.split())  # words that say what is asked for and stand in no answer


def weights_of(question: str) -> dict[str, float]:
    """The roots a question is about, each with its weight."""
    weights: dict[str, float] = {}
    for position, word in enumerate(_WORD.findall(question)):
        is_name = bool(re.search(r"\d|[._]\w|[a-z][A-Z]", word)) or (position > 0 and word[0].isupper())
        for term in extract_terms(word):
            if term in STOP:
                continue
            weight = NAME_WEIGHT if is_name else 0.5 if term in _ASKING else 1.0
            weights[stem(term)] = max(weight, weights.get(stem(term), 0.0))
    return weights


def covered_roots(weights: Mapping[str, float], text: str) -> set[str]:
    """The roots that a text holds."""
    return {root for term in extract_terms(text) if (root := stem(term)) in weights}


def covered_share(weights: Mapping[str, float], roots: Iterable[str]) -> float:
    total = sum(weights.values())
    return sum(weights[root] for root in roots) / total if total else 0.0


def assess_coverage(question: str, passages: Sequence[Passage]) -> Assessment:
    """The share of the question that the best page covers, with what others add: what their titles name, half of the rest."""
    weights = weights_of(question)
    pages: dict[str, set[str]] = {}
    for passage in passages:
        text = f"{passage.title} {passage.heading} {passage.context} {passage.text}"
        pages.setdefault(passage.url, set()).update(covered_roots(weights, text))
    best = max(pages.values(), key=lambda roots: covered_share(weights, roots), default=set())
    together = set().union(*pages.values())
    in_titles = set().union(*(covered_roots(weights, passage.title) for passage in passages))
    score = covered_share(weights, best | (together & in_titles))
    score += OTHER_PAGES * covered_share(weights, together - best - in_titles)
    reason = f"{len(together)} of {len(weights)} words of the question are covered"
    # the question's own words that nothing covers, neighbours joined
    gaps: list[list[str]] = []
    continues = False
    for word in _WORD.findall(question):
        own = [stem(term) for term in extract_terms(word)]
        is_gap = any(root in weights for root in own) and not any(root in together for root in own)
        if is_gap and continues:
            gaps[-1].append(word)
        elif is_gap:
            gaps.append([word])
        continues = is_gap
    return Assessment(round(min(1.0, score) ** LENIENCE, 4), reason, tuple(dict.fromkeys(" ".join(words) for words in gaps)))


def rank_hits(question: str, hits: Sequence[Hit]) -> tuple[UrlScore, ...]:
    """Each hit by what its title, snippet and address hold of the question beside the best hit, and by its place."""
    # what is still missing does not count: it changes with what is stored, and the same question would read other pages
    weights = weights_of(question)
    texts = [f"{hit.title} {hit.snippet} {re.sub(r'[/_-]+', ' ', hit.url)}" for hit in hits]
    roots_by_hit = [covered_roots(weights, text) for text in texts]
    fits = [covered_share(weights, roots) for roots in roots_by_hit]
    best = max(fits, default=0.0)
    if best:
        # a hit that holds what the best one leaves out is as good as the best
        first = fits.index(best)
        rest = {root: weight for root, weight in weights.items() if root not in roots_by_hit[first]}
        if covered_share(weights, rest) >= WORTH_A_PAGE:
            fits = list(map(max, fits, [best * covered_share(rest, roots & rest.keys()) for roots in roots_by_hit]))
    scores = []
    for index, fit in enumerate(fits):
        place = 1 / (1 + PLACE_STEP * index)
        score = fit if best < MIN_FIT else (1 - PLACE_WORTH) * fit / best + PLACE_WORTH * place
        scores.append(UrlScore(index, round(min(1.0, score), 4)))
    return in_order(scores)


def find_open_parts(question: str, titles: Sequence[str]) -> tuple[str, ...]:
    """The names in a question that none of these titles is about."""
    about = [_plain_words(title) for title in titles]
    parts = find_names(question)
    return tuple(p for p in parts if not any(_contains(_plain_words(p), t) or _contains(t, _plain_words(p)) for t in about))


def find_bridge(question: str, read: Sequence[tuple[str, str]]) -> str:
    """The name that leads from the pages read to the rest of a nested question: who "the director of" a film is."""
    # it stands in the sentence that shares most with the question's words besides its names
    if not _NESTED.search(question):
        return ""
    own = " ".join(map(_plain_words, find_names(question)))
    beginnings = {w[:BEGINNING_CHARS] for w in content_words(question) if len(w) > 3 and not _contains(own, w)}
    best, most = "", 0
    for title, text in read:
        context = _plain_words(f"{question} {title}")
        for sentence in _SENTENCE_END.split(text):
            words = {w[:BEGINNING_CHARS] for w in content_words(sentence)}
            names = [n for n in find_names(f"… {sentence}") if " " in n and not _contains(context, _plain_words(n))]
            if names and len(words & beginnings) > most:
                best, most = names[0], len(words & beginnings)
    return best


def score_next_hop(question: str, hit: Hit, score: float, read: Sequence[tuple[str, str]]) -> float:
    """The score of a hit once pages, as titles and texts, were read: higher where it continues them."""
    title = _plain_words(hit.title)
    if _contains(_plain_words(question), title):
        return score + TITLE_IN_QUESTION
    if any(_contains(_plain_words(text), title) for _, text in read):
        return score + TITLE_IN_PAGE
    snippet = _plain_words(hit.snippet)
    return score + PAGE_IN_SNIPPET if any(_contains(snippet, _plain_words(name)) for name, _ in read) else score


def _plain_words(text: str) -> str:
    """Lower-case words without what stands in brackets, where titles tell namesakes apart."""
    return " ".join(find_words(_BRACKETS.sub(" ", text).casefold()))


def _contains(words: str, part: str) -> bool:
    return bool(part) and f" {part} " in f" {words} "


def refine_queries(question: str, current: str) -> tuple[str, ...]:
    """Two or three other queries: the last name, the bare words, all names, the longest words."""
    words = _WORD.findall(question)
    weights = weights_of(question)
    bare = [w for w in words if any(stem(t) in weights for t in extract_terms(w))]
    names = [w for i, w in enumerate(words) if i and w[0].isupper()] or bare[:4]
    drafts = [
        next(iter(_NAME.findall(question)[::-1]), "").strip(),
        " ".join(bare),
        " ".join(names),
        " ".join(sorted(bare, key=lambda w: -len(w))[:4]),
        " ".join(bare[-4:]),
    ]
    former = {current.casefold().strip(), question.casefold().strip()}
    fresh = [q for q in dict.fromkeys(drafts) if q and q.casefold() not in former]
    return tuple(fresh[:MAX_QUERIES]) or (current,)


def hint_queries(question: str, pages: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """For each page: the question's words under the heading of that page which shares most of them."""
    weights = weights_of(question)
    bare = " ".join(w for w in _WORD.findall(question) if any(stem(t) in weights for t in extract_terms(w)))
    hints = []
    for title, headings in pages:
        best = max(headings, key=lambda h: covered_share(weights, covered_roots(weights, h)), default="")
        hints.append(" ".join(dict.fromkeys(f"{title} {best} {bare}".split())))
    return tuple(dict.fromkeys(hints))[:MAX_QUERIES] or (question,)
