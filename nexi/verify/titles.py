"""Lines that need no citation: headings, labels, lead-ins and heads of tables, as long as they state nothing of their own.

Below `checker` and `recheck`, above `proof`. Such a line may stand when the pages hold its names and values and most of its
other words; one whose words no page has states something, however short it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise

from msgspec.structs import replace

from nexi.proof.lexicon import AUXILIARIES, FRAME_WORDS, PRONOUNS
from nexi.proof.literals import absent_names, missing_literals
from nexi.proof.pages import PREFIX_CHARS, Snapshot
from nexi.proof.parsed import ParsedText, Word, parse_text
from nexi.proof.segments import QUESTION, has_verb, is_title, leads_or_titles, read_sentence
from nexi.proof.values import find_missing
from nexi.proof.verdict import find
from nexi.types import Claim, Verdict

__all__ = ["settle_titles"]

MAX_NEW_WORDS = 2  # that no page has, in a part of a title: a noun and what describes it; a strict check allows one less
MAX_NEW_IN_CLAUSE = 1  # the same where the title has a verb or a pronoun
MAX_NEW_IN_LEAD = 3  # the same in a lead-in
MIN_CLAUSE_WORDS = 3  # fewer, such as "Lessons learned", are no clause
STATED = "states what no source says"  # also of a lead-in or a question
EXCUSED = "a heading: its names and values stand in the pages"
_JOINING = frozenset({"and", "or", "of", "for", "versus", "vs"})  # between the parts of a title
_RELATIVE = frozenset({"that", "which", "who"})


def settle_titles(
    claims: Sequence[Claim],
    snapshots: Mapping[int, Snapshot | None],
    question: str = "",
    *,
    is_head: bool = False,
    strict: bool = False,
) -> tuple[Claim, ...]:
    """The claims, with titles excused that the pages bear out, and titles held to account that state something new."""
    pages = [snapshot for snapshot in snapshots.values() if snapshot is not None]
    known = FRAME_WORDS.union(parse_text(question).terms)

    def settle(claim: Claim) -> Claim:
        if claim.evidence or not (is_head or leads_or_titles(claim.text) or (strict and claim.reason == QUESTION)):
            return claim
        if pages and any(_states_something_new(cell, pages, known, is_head, strict) for cell in _cells(claim.text, is_head)):
            return claim if claim.needs_citation else replace(claim, needs_citation=True, reason=STATED)
        if claim.needs_citation and _stands(claim.text, pages):
            return replace(claim, needs_citation=False, reason=EXCUSED)
        return claim

    return tuple(map(settle, claims))


def _cells(text: str, is_head: bool) -> list[str]:
    return text.strip(" |\n").split("|") if is_head else [text]


def _states_something_new(text: str, pages: Sequence[Snapshot], known: Set[str], is_head: bool, strict: bool) -> bool:
    """Whether a title has more words of its own than a title needs: neither the pages nor the reader's question have them."""
    sentence = read_sentence(text)
    parsed = parse_text(sentence.plain)
    if parsed.is_unspaced or (sentence.reason == QUESTION and not strict):
        return False
    if not (is_head or strict or is_title(text)):
        limit = MAX_NEW_IN_LEAD
    elif _has_auxiliary(parsed):
        limit = 0
    else:
        limit = MAX_NEW_IN_CLAUSE if _reads_like_clause(parsed) else MAX_NEW_WORDS
    new = [0]
    for word in parsed.words:
        if word.flat in _JOINING:
            new.append(0)
        new[-1] += bool(word.term) and _is_new(word, pages, known)
    return max(new) > max(0, limit - strict)


def _is_new(word: Word, pages: Sequence[Snapshot], known: Set[str]) -> bool:
    return word.term not in known and not any(word.term[:PREFIX_CHARS] in page.prefixes for page in pages)


def _has_auxiliary(parsed: ParsedText) -> bool:
    """Whether it has "is", "has", "will" of its own, and not in a relative clause."""
    flat = [word.flat for word in parsed.words]
    return any(word in AUXILIARIES and last not in _RELATIVE for last, word in pairwise(["", *flat]))


def _reads_like_clause(parsed: ParsedText) -> bool:
    words = {word.flat for word in parsed.words} - _RELATIVE
    return len(parsed.words) >= MIN_CLAUSE_WORDS and (has_verb(parsed) or not words.isdisjoint(PRONOUNS))


def _stands(text: str, pages: Sequence[Snapshot]) -> bool:
    """Whether pages hold the names and values of a title, and one of them says it where it reads like a sentence."""
    parsed = parse_text(read_sentence(text).plain)
    if has_verb(parsed):
        return any(find(parsed, page).verdict is Verdict.FOUND for page in pages)
    return bool(pages) and not set.intersection(*({*_list_absent(parsed, page)} for page in pages))


def _list_absent(title: ParsedText, page: Snapshot) -> Iterator[str]:
    stated = [value for at in range(len(page.bounds)) for value in page.parse_between(at, at).values]
    yield from (value.text for value in find_missing(title.values, stated))
    yield from missing_literals(title, page)
    yield from absent_names(title, page)
