"""What a question may mean where it does not say: one thing of several that have the name, or one period of several.

Above `_outdated`, below `composition` and `answerability`. Each reading has the sentence that answers for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from nexi.checking.origins import merge_copies
from nexi.llm.extractive._choice import Candidate, rate_candidates
from nexi.llm.extractive._disputes import prefer_telling, put_altered_first, settle_values
from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking, find_wanted_words, list_candidates
from nexi.llm.extractive._limits import CERTAIN, MAX_ALTERNATIVES, MAX_WORDS
from nexi.llm.extractive._outdated import has_same_subject, leave_out_outdated, scope_of
from nexi.llm.extractive._quotation import is_file_name
from nexi.llm.extractive.answerability import rate_answer
from nexi.text.references import find_namesakes, find_qualified, find_things_of_kind, name_subject
from nexi.text.scope import asks_for_now, asks_for_past, asks_for_state, find_periods


class Reading(Struct, frozen=True):
    """A thing or a period that a question may mean, with the sentences that answer for it; all of them where pages disagree."""

    label: str  # "" where nothing says what the page is about
    sentences: tuple[Scored, ...]
    is_disputed: bool = False
    best: Candidate | None = None
    aside: tuple[Scored, ...] = ()  # those of fewer pages that give other values


@lru_cache(maxsize=2)
def find_readings(ranking: SentenceRanking, compare: Compare | None = None) -> list[Reading]:
    """The readings of a question, each with its best sentence; none where it has only one."""
    # An answer is written and then rated over the same pages, so that the last readings are remembered.
    if ranking.question.choices:  # it names the things that it asks about
        return []
    usable = [s for s in ranking.ranked if s.is_quotable]
    readings = _find_namesakes(ranking, usable, compare)
    if len(readings) < 2:
        readings = _find_periods(ranking, usable, compare)
    return readings[:MAX_ALTERNATIVES] if len(readings) > 1 else []


def _find_namesakes(ranking: SentenceRanking, usable: Sequence[Scored], compare: Compare | None) -> list[Reading]:
    """The things of one name or of an open kind that pages are about, each with the sentence that says what was asked of it."""
    question, leads = ranking.question, [(page.title, page.text) for page in ranking.pages]
    about = find_namesakes(question.text, leads) or find_qualified(question.text, leads)
    if not about and not question.context:  # a conversation may have named one
        about = find_things_of_kind(question.text, leads)
    about = merge_copies(about, [page.text for page in ranking.pages])
    readings: list[Reading] = []
    for label in dict.fromkeys(about.values()):
        pages = [page for page, thing in about.items() if thing == label]
        if own := list_candidates(ranking, usable, pages):
            rest = [s for s in usable if about.get(s.page, label) == label]
            candidates = put_altered_first(ranking, rate_candidates(ranking, own, compare), pages, compare)
            readings.append(_answer_reading(ranking, rest, candidates, label))
    rest = [s for s in leave_out_outdated(ranking, usable) if s.page not in about]
    rest = rest if readings and not ranking.is_technical else []
    for page in range(len(ranking.pages)):
        quoted_pages = {s.page for reading in readings for s in reading.sentences}
        if own := [s for s in rest if s.page == page and page not in quoted_pages]:
            candidates = put_altered_first(ranking, rate_candidates(ranking, own, compare), [page], compare)
            other = _answer_otherwise(ranking, rest, candidates, readings)
            readings += [other] if other else []
    return readings


def _answer_otherwise(
    ranking: SentenceRanking, usable: Sequence[Scored], candidates: Sequence[Candidate], readings: Sequence[Reading]
) -> Reading | None:
    """What a page that names none of the things says, where it answers the question with something that no reading has."""
    page = ranking.pages[candidates[0].scored.page]
    # what the page is about where that has a word of the question, else its title, unless it has only a file name
    subject = name_subject(page.title, page.text)
    is_named = ranking.question.weights.keys() & set(ranking.words.stems(subject))
    label = subject if is_named else "" if is_file_name(page.title, page.url) else page.title
    reading = _answer_reading(ranking, usable, candidates, label)
    best = reading.best
    if best is None or rate_answer(ranking, best, [(best.scored.sentence.text, page.number)]) != "yes":
        return None
    words = best.scored.sentence.text.split()
    values = {words[n].strip(".,;:()") for n in find_wanted_words(ranking, words)}
    quotations = " ".join(s.sentence.text for r in readings for s in r.sentences)
    is_repeated = any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", quotations) for value in values)
    return None if is_repeated and not reading.is_disputed else reading


def _answer_reading(ranking: SentenceRanking, usable: Sequence[Scored], candidates: Sequence[Candidate], label: str) -> Reading:
    """The sentence that answers most likely for a reading, or all of a dispute; and a second one while that is not certain."""
    candidates = prefer_telling(ranking, candidates)
    values = settle_values(ranking, candidates[0].scored, usable, label)
    if values.is_disputed:
        return Reading(label, values.chosen, is_disputed=True, best=candidates[0], aside=values.aside)
    used_places = {(s.page, s.place) for s in (*values.chosen, *values.aside)}
    room = MAX_WORDS - len(values.chosen[0].sentence.text.split())
    unused = [c.scored for c in candidates if (c.scored.page, c.scored.place) not in used_places]
    more = unused if candidates[0].chance < CERTAIN else []
    texts = {s.sentence.text for s in values.chosen}
    second = [s for s in more if len(s.sentence.text.split()) <= room and s.sentence.text not in texts][:1]
    return Reading(label, (*values.chosen, *second), best=candidates[0], aside=values.aside)


def _find_periods(ranking: SentenceRanking, usable: Sequence[Scored], compare: Compare | None) -> list[Reading]:
    """The same sentence in documents of several periods, the newest first, where the question names none and it matters."""
    question = ranking.question.text
    if not usable or find_periods(question) or asks_for_now(question) or asks_for_past(question) or asks_for_state(question):
        return []
    scopes = [scope_of(page, ranking.question.text) for page in ranking.pages]
    if len({scope.periods[:1] for scope in scopes if scope.periods}) < 2:
        return []
    first = rate_candidates(ranking, usable, compare)[0].scored
    of_period = {scopes[first.page].periods[:1]: first}
    for s in usable:
        scope = scopes[s.page]
        if scope.is_of_family(scopes[first.page]) and not scope.standing and has_same_subject(ranking, s, first):
            of_period.setdefault(scope.periods[:1], s)
    dated_sentences = [(periods[0], s) for periods, s in of_period.items() if periods]
    return [Reading(str(period), (s,)) for period, s in sorted(dated_sentences, key=lambda pair: pair[0].end, reverse=True)]
