"""What a question may mean where it does not say: one thing of several that have the name, or one period of several.

Above `_outdated`, below `composition` and `answerability`. Each reading has the sentence that answers for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from nexi.llm.extractive._evidence import Scored, SentenceRanking, holds_wanted
from nexi.llm.extractive._outdated import has_same_subject, scope_of
from nexi.text.references import find_namesakes
from nexi.text.scope import asks_for_now, asks_for_past, find_periods

__all__ = ["Reading", "find_readings"]

MAX_READINGS = 5
MIN_SHARE = 0.4  # of the best score, for a sentence that answers for another reading

Reading = tuple[str, Scored]


def find_readings(ranking: SentenceRanking, usable: Sequence[Scored]) -> list[Reading]:
    """The readings of a question, each with its best sentence; none where it has only one."""
    readings = _find_namesakes(ranking, usable) or _find_periods(ranking, usable)
    return readings[:MAX_READINGS] if len(readings) > 1 else []


def _find_namesakes(ranking: SentenceRanking, usable: Sequence[Scored]) -> list[Reading]:
    about = find_namesakes(ranking.question.text, [(page.title, page.text) for page in ranking.pages])
    best: dict[str, Scored] = {}
    for s in usable:
        label = about.get(s.page)
        answers = s.score >= MIN_SHARE * usable[0].score and (not ranking.wants or holds_wanted(ranking, s.sentence))
        if label and answers:
            best.setdefault(label, s)
    return list(best.items())


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
    return [(str(period), s) for period, s in sorted(named, key=lambda pair: pair[0].end, reverse=True)]
