"""The stretches of a page that hold most of a sentence's words.

Below `rules`, above `pages`. A stretch is one sentence of the page, with the one or two before it where a pronoun binds
them; its heading, the head of its table, the first sentence and the title of the page lend it words at a discount. Every
word counts the same: on labelled sentences a weight by rarity brought nothing.
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest

from msgspec import Struct

from nexi.checking.lexicon import PRONOUNS
from nexi.checking.pages import Snapshot
from nexi.checking.parsed import ParsedText
from nexi.text.wordforms import WORD, normalise_word, word_terms

MAX_TERMS = 96  # of one sentence that are looked for
MAX_CANDIDATES = 6  # sentences of a page that are looked at
MAX_BOUND = 2  # sentences before one that its pronouns may speak of
CONTEXT_WORTH = 0.6  # of a word that stands only in the heading or at the head of the page


class Window(Struct, frozen=True):
    """A stretch of a page from sentence `first` to `last`; `share` is how much of the claim's words it holds."""

    first: int
    last: int
    share: float
    context: tuple[int, ...] = ()  # the sentences that lend it words


def find_windows(claim: ParsedText, page: Snapshot) -> list[Window]:
    """The few best stretches, the best first."""
    terms = claim.terms[:MAX_TERMS]
    digits = [term for word in claim.words if word.value for term in word_terms(word.text)]
    counts: Counter[int] = Counter()
    for term in dict.fromkeys([*terms, *digits]):
        counts.update(page.places.get(term, ()))
    best = nsmallest(MAX_CANDIDATES, counts, key=lambda at: (-counts[at], at))
    windows = [_build_window(at, frozenset(terms), page) for at in best]
    return sorted(windows, key=lambda w: (-w.share, w.last - w.first, w.first))


def _build_window(last: int, terms: frozenset[str], page: Snapshot) -> Window:
    first = last
    while first > 0 and last - first < MAX_BOUND and _is_bound(first, page):
        first -= 1
    terms_by_sentence = [terms & _terms_at(at, page) for at in range(first, last + 1)]
    while len(terms_by_sentence) > 1 and terms_by_sentence[0] <= frozenset().union(*terms_by_sentence[1:]):
        terms_by_sentence, first = terms_by_sentence[1:], first + 1  # a sentence that adds no word is no part of the evidence
    context = tuple(sorted({0, page.above[last], page.head_of_table(last)} - {-1, *range(first, last + 1)}))
    own_terms = frozenset[str]().union(*terms_by_sentence)
    borrowed_terms = (terms & set(page.parsed_title.terms)).union(*(terms & _terms_at(at, page) for at in context)) - own_terms
    share = (len(own_terms) + CONTEXT_WORTH * len(borrowed_terms)) / len(terms) if terms else 0.0
    return Window(first, last, share, context)


def _terms_at(index: int, page: Snapshot) -> frozenset[str]:
    return frozenset(term for word in WORD.findall(page.words_between(index, index)) for term in word_terms(word))


def _is_bound(index: int, page: Snapshot) -> bool:
    """Whether a sentence speaks of something that the one before it names; a row of a table never does."""
    if page.is_row(index) or page.is_row(index - 1):
        return False
    return any(normalise_word(word) in PRONOUNS for word in WORD.findall(page.words_between(index, index)))
