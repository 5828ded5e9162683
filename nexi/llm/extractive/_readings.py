"""What a question may mean where it does not say: one thing of several that have the name, or one period of several.

Above `_outdated`, below `composition` and `answerability`. Each reading has the sentence that answers for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nexi.llm.extractive._choice import Compare, rate_candidates
from nexi.llm.extractive._comparison import tells_life, tells_life_day
from nexi.llm.extractive._disputes import settle_values
from nexi.llm.extractive._evidence import Scored, SentenceRanking, holds_wanted
from nexi.llm.extractive._limits import MAX_ALTERNATIVES
from nexi.llm.extractive._outdated import has_same_subject, scope_of
from nexi.text.references import find_namesakes
from nexi.text.scope import asks_for_now, asks_for_past, find_periods

__all__ = ["Reading", "find_readings"]

Reading = tuple[str, tuple[Scored, ...]]  # a name and its sentence; two where pages give different values


@lru_cache(maxsize=2)
def find_readings(ranking: SentenceRanking, compare: Compare | None = None) -> list[Reading]:
    """The readings of a question, each with its best sentence; none where it has only one.

    An answer is written and then rated over the same pages, so that the last readings are remembered.
    """
    if ranking.question.choices:  # it names the things that it asks about
        return []
    usable = [s for s in ranking.ranked if s.is_quotable]
    readings = _find_namesakes(ranking, usable, compare) or _find_periods(ranking, usable)
    return readings[:MAX_ALTERNATIVES] if len(readings) > 1 else []


def _find_namesakes(ranking: SentenceRanking, usable: Sequence[Scored], compare: Compare | None) -> list[Reading]:
    """The things of one name that pages are about, each with the sentence that says what was asked of it."""
    about = find_namesakes(ranking.question.text, [(page.title, page.text) for page in ranking.pages])
    readings: list[Reading] = []
    for label in dict.fromkeys(about.values()):
        asked = ranking.question.weights.keys() - frozenset(ranking.words.stems(label))
        own = [s for s in usable if about.get(s.page) == label]
        if ranking.wants in ("date", "number", "place", "person"):
            own = [s for s in own if holds_wanted(ranking, s.sentence)]
        own = [s for s in own if s.covered & asked or tells_life(ranking.question, s.sentence.text)] or own
        own = [s for s in own if tells_life_day(ranking.question, s.sentence.text)] or own
        if own:
            rated = [c.scored for c in rate_candidates(ranking, own, compare)]
            best, disputed = settle_values(ranking, rated, label)
            is_disputed = bool(disputed) and rated[0] in disputed
            readings.append((label, tuple(disputed) if is_disputed else (best[0],)))
    return readings


def _find_periods(ranking: SentenceRanking, usable: Sequence[Scored]) -> list[Reading]:
    """The same sentence in documents of several periods, the newest first, where the question names no time."""
    question = ranking.question.text
    if not usable or find_periods(question) or asks_for_now(question) or asks_for_past(question):
        return []
    scopes = [scope_of(page) for page in ranking.pages]
    first = usable[0]
    of_period = {scopes[first.page].periods[:1]: first}
    for s in usable:
        scope = scopes[s.page]
        if scope.is_of_family(scopes[first.page]) and not scope.standing and has_same_subject(ranking, s, first):
            of_period.setdefault(scope.periods[:1], s)
    named = [(periods[0], s) for periods, s in of_period.items() if periods]
    return [(str(period), (s,)) for period, s in sorted(named, key=lambda pair: pair[0].end, reverse=True)]
