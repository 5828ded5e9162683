"""What must stand in a page as it is written: quotations, code, formulas, identifiers, and names, which are there or are not.

Below `rules`, above `pages`. A literal that is absent is missing; it never contradicts anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from nexi.checking.pages import PREFIX_CHARS, Snapshot
from nexi.checking.parsed import ParsedText
from nexi.checking.values import DOTTED_THOUSANDS
from nexi.text.plain import fold_text
from nexi.text.wordforms import WORD, normalise_word, word_terms

MIN_CLAUSE_WORDS = 3  # fewer, such as an abbreviation in brackets, are no clause
MAX_SAID = 1 / 3  # share of its words that stand in the page, of a clause that the page does not say
MAX_PLACES = 50  # of a page that are looked at for one quotation

_QUOTE = re.compile(r"(?<![^\W_])\"\s?([^\"\n]{2,600}?)\s?\"|「([^」\n]{2,300})」|『([^』\n]{2,300})』")
_SINGLE = re.compile(r"(?<![\w'])'(?=\w)([^'\n]{12,400}(?:'\w[^'\n]{0,200}){0,3})(?<=[\w.,!?])'(?!\w)")
_CODE = re.compile(
    r"(?<![\w/])(?:\$[^$\n]{1,200}[=^\\][^$\n]{1,200}\$|--[a-z][\w-]+|(?!(?:[A-Z]\.)+\w?\b)[A-Za-z]\w*(?:\.\w+)+\(?\)?|\w+\(\)|[A-Za-z0-9]*_[A-Za-z0-9_]+"
    r"|[a-z]{2,}[A-Z]\w+|v?\d+(?:\.\d+){2,}\w*|(?:~|\.{0,2})/[\w.-]+(?:/[\w.-]*)*)"
)
_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Z][A-Za-z]{0,7}-?\d[\w-]*(?![\w-])")
_ASIDE = r"(?:(?<=, of which )|(?<=, because )|(?<=, since )|(?<=, although )|(?<=, while )|(?<= because ))[^,;:]+"
_CLAUSE = re.compile(rf"[;:()]|\s[-–—]+\s|—|{_ASIDE}")  # where one ends, or all of it
_LEFT_OUT = re.compile(r"\s*(?:\[\.{3}\]|\.{3}|…)\s*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")


def missing_literals(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """The quotations, code and identifiers of a sentence that a page does not have."""
    double_quotes = _QUOTE.finditer(claim.text) if claim.text.count('"') % 2 == 0 else ()  # marks that close
    for match in [*double_quotes, *_SINGLE.finditer(claim.text)]:
        for quote in filter(None, _LEFT_OUT.split(next(group for group in match.groups() if group))):
            if not is_quoted(quote, page):
                yield f'"{quote}"'
    text = _ADDRESS.sub(" ", claim.text)
    codes = [code.rstrip("().,=") for code in _CODE.findall(text) if not DOTTED_THOUSANDS.fullmatch(code)]
    for code in dict.fromkeys([*codes, *_IDENTIFIER.findall(text)]):
        if code.casefold() not in page.folded_text:
            yield code


def absent_names(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """Names of which no word stands anywhere in the page, in whatever form."""
    for name in claim.names:
        words = [word for word in name if word.term and len(word.flat) > 1]
        if words and not any(word.term[:PREFIX_CHARS] in page.prefixes for word in words):
            yield claim.text[name[0].start : name[-1].end]


def unsaid_clauses(claim: ParsedText, page: Snapshot) -> Iterator[str]:
    """Clauses and asides of which hardly a content word stands anywhere in the page, however much of the rest does."""
    cuts = {place for match in _CLAUSE.finditer(claim.text) for place in match.span()}
    for start, end in pairwise([0, *sorted(cuts), len(claim.text)] if cuts and not claim.is_unspaced else ()):
        words = [word for word in claim.words if start <= word.start < end]
        terms = [word.term for word in words if word.term]
        count = sum(term[:PREFIX_CHARS] in page.prefixes for term in terms)
        if terms and len(words) >= MIN_CLAUSE_WORDS and count <= MAX_SAID * len(terms):
            yield claim.text[words[0].start : words[-1].end]


def is_quoted(quote: str, page: Snapshot) -> bool:
    """Whether a quotation stands in the page, word for word."""
    words = [normalise_word(word) for word in WORD.findall(fold_text(quote))]
    row = f" {' '.join(words)} "
    places = [page.places.get(term, []) for word in WORD.findall(fold_text(quote)) for term in word_terms(word)]
    if not places:
        return not words or row in _plain_words(page, 0, len(page.bounds) - 1)
    near = ((max(0, at - 2), min(len(page.bounds) - 1, at + 2)) for at in min(places, key=len)[:MAX_PLACES])
    return any(row in _plain_words(page, first, last) for first, last in near)


def _plain_words(page: Snapshot, first: int, last: int) -> str:
    if last < first:
        return ""
    return f" {' '.join(normalise_word(word) for word in WORD.findall(fold_text(page.words_between(first, last))))} "
