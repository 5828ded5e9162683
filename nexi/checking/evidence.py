"""The passages that bear on the sentences of a text: what a judge is shown, each page once.

Below the judge and the correction, above the prepared pages: no model, no clock, no store, and no citation is needed. For
every sentence, windows of whole sentences are weighed by the rare words they share with it. The union of the best windows of
all sentences goes to the judge, as far as the budget reaches: the best window of every sentence first, then the second best.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, zip_longest
from math import log

from msgspec import Struct

from nexi.checking.pages import Pages, Snapshot
from nexi.text.stems import WORD, word_terms

__all__ = ["EvidencePassage", "EvidenceSet", "SentenceQuery", "gather_evidence"]

MAX_TOKENS = 5_000  # of all passages of one answer
CHARS_PER_TOKEN = 4
WINDOW_SENTENCES = 7
MAX_WINDOWS = 8  # of one sentence
SHORT_PAGE_CHARS = 3_000  # a page that is shown whole
TEXT_SHARES = tuple(share / 100 for share in range(99, 79, -1))  # of the budget; headings and joints of passages take the rest
MAX_GAP_SENTENCES = 4  # between two passages of a page, which are then one
MAX_HEADINGS = 3
CITED_WORTH = 2.5  # of a window in a page that the sentence cites
BEFORE_WORTH = 0.15  # of a word of the sentence before
CENTRE_WORTH = 0.4  # of the sentence in the middle of a window, beside the window itself
MAX_TERMS = 60  # of one sentence
MAX_PLACES = 400  # of one term in one page; a word that stands everywhere says nothing

_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|<https?://[^>\s]*>")
_BLANKS = re.compile(r"[ \t\r\f\v]+")


class SentenceQuery(Struct, frozen=True):
    """One sentence to find passages for, and the numbers of the pages it cites."""

    text: str
    numbers: tuple[int, ...] = ()
    before: str = ""  # the sentence before it, whose words count for less


class EvidencePassage(Struct, frozen=True):
    """A stretch of a page. `start` and `end` are offsets into the page's stored text, `page` is the page's number."""

    n: int
    page: int
    start: int
    end: int
    text: str
    trail: str = ""  # the headings above it


class EvidenceSet(Struct, frozen=True):
    """The passages of a text, and for each of its sentences those that were chosen for it, the best first."""

    passages: tuple[EvidencePassage, ...] = ()
    chosen: tuple[tuple[int, ...], ...] = ()

    @property
    def tokens(self) -> int:
        return sum(map(_count_tokens, self.passages))


class _Window(Struct, frozen=True):
    weight: float
    page: int
    first: int
    last: int


def gather_evidence(
    queries: Sequence[SentenceQuery], pages: Pages, *, max_tokens: int = MAX_TOKENS, size: int = WINDOW_SENTENCES
) -> EvidenceSet:
    """The passages of these pages that bear on these sentences, within so many tokens; a window has `size` sentences."""
    readable = {number: page for number, page in sorted(pages.items()) if page is not None and page.bounds}
    # how rare a term is among the sentences of these pages
    terms = {term for query in queries for term in (*list_terms(query.before), *list_terms(query.text))}
    counts = {term: sum(len(page.places.get(term, ())) for page in readable.values()) for term in terms}
    total = sum(len(page.bounds) for page in readable.values())
    weights = {term: log(1 + total / count) for term, count in counts.items() if count}
    windows_by_query = [_find_windows(query, readable, weights, size // 2) for query in queries]
    for share in TEXT_SHARES:
        spans = _choose_spans(windows_by_query, readable, int(max_tokens * share))
        passages: list[EvidencePassage] = []
        for number, page in readable.items():
            # runs of sentences; a few that are missing between two runs belong to them
            places = sorted(spans.get(number, ()))
            cuts = [at for at in range(1, len(places)) if places[at] - places[at - 1] > MAX_GAP_SENTENCES]
            for begin, stop in pairwise((0, *cuts, len(places))) if places else ():
                start, end = page.stored_between(places[begin], places[stop - 1])
                headings = page.trails[places[begin]][-MAX_HEADINGS:]  # the nearest ones, from the outermost
                text, trail = clean_text(page.text[start:end]), " > ".join(map(clean_text, headings))
                passages.append(EvidencePassage(len(passages) + 1, number, start, end, text, trail))
        if sum(map(_count_tokens, passages)) <= max_tokens:
            break
    numbers_by_query: list[tuple[int, ...]] = []
    for windows in windows_by_query:
        numbers: list[int] = []
        for window in windows:
            middle, _ = readable[window.page].stored_between((window.first + window.last) // 2, window.last)
            numbers += (p.n for p in passages if p.page == window.page and p.start <= middle < p.end)
        numbers_by_query.append(tuple(dict.fromkeys(numbers)))
    return EvidenceSet(tuple(passages), tuple(numbers_by_query))


def list_terms(text: str) -> list[str]:
    return list(dict.fromkeys(term for word in WORD.findall(text) for term in word_terms(word)))[:MAX_TERMS]


def _find_windows(query: SentenceQuery, pages: Mapping[int, Snapshot], weights: dict[str, float], half: int) -> list[_Window]:
    """The best windows for a sentence, in any page; those of the pages that it cites count for more."""
    terms = dict.fromkeys(list_terms(query.before), BEFORE_WORTH) | dict.fromkeys(list_terms(query.text), 1.0)
    windows: list[_Window] = []
    for number, page in pages.items():
        worth = CITED_WORTH if number in query.numbers else 1.0
        weights_at: dict[int, dict[str, float]] = defaultdict(dict)  # by sentence, of the terms it holds
        for term, share in terms.items():
            for at in page.places.get(term, ())[:MAX_PLACES]:
                weights_at[at][term] = share * weights[term]
        for at in weights_at:
            first, last = max(0, at - half), min(len(page.bounds) - 1, at + half)
            inside: dict[str, float] = {}
            for other in range(first, last + 1):
                for term, weight in weights_at.get(other, {}).items():
                    inside[term] = max(inside.get(term, 0.0), weight)
            centre = sum(weights_at[at].values())
            while first < at - 1 and first not in weights_at and first + 1 not in weights_at:
                first += 1
            while last > at + 1 and last not in weights_at and last - 1 not in weights_at:
                last -= 1
            windows.append(_Window(worth * (sum(inside.values()) + CENTRE_WORTH * centre), number, first, last))
    windows.sort(key=lambda window: (-window.weight, window.page, window.first))
    apart: list[_Window] = []
    for window in windows:
        if not any(w.page == window.page and w.first <= window.first + half and window.last - half <= w.last for w in apart):
            apart.append(window)
        if len(apart) == MAX_WINDOWS:
            break
    return apart


Spans = dict[int, set[int]]  # the sentences of each page that are shown


def _choose_spans(windows_by_query: Sequence[Sequence[_Window]], pages: Mapping[int, Snapshot], max_tokens: int) -> Spans:
    """Windows in rounds, the best of every sentence first, until the budget is full; short pages whole."""
    spans: Spans = defaultdict(set)
    room = max_tokens * CHARS_PER_TOKEN
    for window in filter(None, chain.from_iterable(zip_longest(*windows_by_query))):
        page = pages[window.page]
        whole = page.bounds[-1][1] - page.bounds[0][0] <= SHORT_PAGE_CHARS
        candidates = range(len(page.bounds)) if whole else range(window.first, window.last + 1)
        middle = (window.first + window.last) // 2
        for at in sorted((at for at in candidates if at not in spans[window.page]), key=lambda at: abs(at - middle)):
            start, end = page.bounds[at]
            if end - start + 1 > room:
                break
            spans[window.page].add(at)
            room -= end - start + 1
    return spans


def clean_text(text: str) -> str:
    """A stretch of a page without links and runs of blanks."""
    return _BLANKS.sub(" ", _LINK.sub(lambda link: link[1] or "", text)).strip()


def _count_tokens(passage: EvidencePassage) -> int:
    return (len(passage.text) + len(passage.trail)) // CHARS_PER_TOKEN + 1
