"""Which sentences another document makes outdated: of a former version, of another period, of a document that no longer holds.

So do those about another thing of the same name than the one that the question means.

Above `_evidence`, below `composition`. A document that says of itself that it is superseded, or is of another period than the
one asked for, gives way as a whole; of an older one only what the newer one says again. Knows no clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.llm.extractive._evidence import Scored, SentenceRanking
from nexi.llm.extractive._limits import MAX_CANDIDATES, SAME
from nexi.llm.extractive.questions import Question
from nexi.text.references import find_other_things
from nexi.text.scope import (
    MAX_HEAD_CHARS,
    DocumentScope,
    Period,
    asks_for_future,
    asks_for_now,
    asks_for_past,
    find_others_of_family,
    find_periods,
    is_newer,
    read_scope,
)
from nexi.types import PageView

_DIGITS = re.compile(r"\d[\d.,]*")


def scope_of(page: PageView, question: str) -> DocumentScope:
    """What a page is about; where the question asks for the future, what is announced for then holds like anything else."""
    read_on = "" if asks_for_future(question) else page.read_on
    return read_scope(page.title, page.url, page.text[:MAX_HEAD_CHARS], page.day, read_on)


def leave_out_outdated(ranking: SentenceRanking, usable: Sequence[Scored]) -> list[Scored]:
    """The sentences that hold for the time that the question asks for; all of them where none does."""
    scopes = [scope_of(page, ranking.question.text) for page in ranking.pages]
    periods = find_periods(ranking.question.text)
    wants_past = asks_for_past(ranking.question.text)
    aside = {
        n
        for n, scope in enumerate(scopes)
        if (scope.standing and not wants_past) or _is_of_other_period(scope, periods, scopes)
    } | find_other_things(ranking.question.text, [(page.title, page.text) for page in ranking.pages])
    aside |= find_others_of_family(scopes, ranking.parties)
    rows = _find_rows_of_other_periods(ranking, periods)
    in_time = [s for s in usable if s.page not in aside and (s.page, s.place) not in rows]
    newer = [[m for m in range(len(scopes)) if m not in aside and _replaces(scopes[m], scope)] for scope in scopes]
    contents = {
        m: [_content(ranking.stems_of(m, place)) for place in range(len(ranking.sentences[m]))]
        for m in {m for others in newer for m in others if not wants_past}
    }
    former = {
        (s.page, s.place)
        for s in in_time[:MAX_CANDIDATES]
        for m in newer[s.page]
        if m in contents and _says_again(ranking, s, m, contents[m], is_version=scopes[m].is_of_family(scopes[s.page]))
    }
    return [s for s in in_time if (s.page, s.place) not in former] or list(usable)


def list_current_pages(question: Question, pages: Sequence[PageView]) -> list[PageView]:
    """The pages without those that do not hold at the time asked for: drafts, and versions that another page replaces."""
    # A version is replaced where the other says most of it again; the minutes of an earlier meeting stay.
    ranking = SentenceRanking(question, tuple(pages))
    scopes = [scope_of(page, question.text) for page in pages]
    contents = [[_content(ranking.stems_of(n, place)) for place in range(len(own))] for n, own in enumerate(ranking.sentences)]
    periods = find_periods(question.text)
    others = find_others_of_family(scopes, ranking.parties)
    if asks_for_past(question.text):
        return [page for n, page in enumerate(pages) if n not in others]

    def is_replaced(n: int) -> bool:
        family = [m for m, scope in enumerate(scopes) if m not in others and scope.is_of_family(scopes[n])]
        newer = [m for m in family if is_newer(scopes[m], scopes[n])]
        words = sum(map(len, contents[n]))
        return any(
            2 * sum(len(own) for own in contents[n] if any(2 * len(own & other) > len(own) for other in contents[m])) > words
            for m in newer
        )

    current = [
        page
        for n, page in enumerate(pages)
        if n not in others
        and not scopes[n].standing
        and not _is_of_other_period(scopes[n], periods, scopes)
        and (_meet(scopes[n].periods, periods) or not is_replaced(n))
    ]
    return current or list(pages)


def _find_rows_of_other_periods(ranking: SentenceRanking, periods: Sequence[Period]) -> set[tuple[int, int]]:
    """The rows of tables that are not of the period asked for, or not of the last one where what holds now is asked for."""
    others = set()
    wants_last = asks_for_now(ranking.question.text)
    for page, sentences in enumerate(ranking.sentences):
        rows = {place: own for place, s in enumerate(sentences) if s.kind == "row" and (own := find_periods(s.text))}
        read_on = ranking.pages[page].read_on
        begun = [max(own) for own in rows.values() if not (read_on and max(own).begins_after(read_on))]
        last = max((period.end for period in begun), default=None) if wants_last else None
        if any(_meet(own, periods) for own in rows.values()) or last:
            others |= {
                (page, place) for place, own in rows.items() if (max(own).end != last if last else not _meet(own, periods))
            }
    return others


def _replaces(one: DocumentScope, other: DocumentScope) -> bool:
    """Whether what a document says holds instead of what the other says of the same thing: a newer version, or a later day."""
    if one.is_of_family(other):
        return is_newer(one, other)
    return "" < other.day < one.day and one.validity != "announced"


def _is_of_other_period(scope: DocumentScope, periods: Sequence[Period], scopes: Sequence[DocumentScope]) -> bool:
    """Whether a document is of another period than the one asked for, and another version of it is of that one."""
    if not periods or not scope.periods or _meet(scope.periods, periods):
        return False
    return any(other.is_of_family(scope) and _meet(other.periods, periods) for other in scopes)


def _says_again(
    ranking: SentenceRanking, s: Scored, newer: int, contents: Sequence[frozenset[str]], *, is_version: bool
) -> bool:
    """Whether a newer page has a sentence about the same thing as this one; one of another document must have another value."""
    own, text = _content(ranking.stems_of(s.page, s.place)), s.sentence.text
    for place, other in enumerate(contents):
        shared = len(own & other)
        # a version may have another name in the sentence: more than half of its words are enough
        if not (_are_alike(own, other) or (is_version and shared > 1 and 2 * shared > min(len(own), len(other)))):
            continue
        newer_text = ranking.sentences[newer][place].text
        times = find_periods(text), find_periods(newer_text)
        values = _DIGITS.findall(text), _DIGITS.findall(newer_text)
        is_same_time = _meet(*times) if all(times) else is_version or not any(times)
        if is_same_time and (is_version or (all(values) and values[0] != values[1])):
            return True
    return False


def has_same_subject(ranking: SentenceRanking, one: Scored, other: Scored) -> bool:
    """Whether sentences of two versions of a document say the same thing, with whatever value."""
    return _are_alike(*(_content(ranking.stems_of(s.page, s.place)) for s in (one, other)))


def _are_alike(own: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sentences have most words in common, and more than one."""
    overlap = len(own & other)
    return overlap > 1 and overlap >= SAME * min(len(own), len(other))


def _content(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(stem for stem in stems if not stem[:1].isdigit())


def _meet(one: Sequence[Period], other: Sequence[Period]) -> bool:
    return any(a.meets(b) for a in one for b in other)
