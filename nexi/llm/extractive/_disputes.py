"""Which of several values to quote where pages give different ones for the same thing: the one that most pages give.

Above `_evidence` and the comparison of sentences, below `_readings` and `composition`. Where as many pages give the one as the
other, both are quoted, because nothing here can tell which is right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from nexi.checking.conflicts import find_difference
from nexi.checking.origins import are_copies
from nexi.llm.extractive._evidence import Scored, SentenceRanking
from nexi.llm.extractive._limits import MAX_COMPARED
from nexi.llm.extractive._outdated import has_same_subject
from nexi.llm.extractive._quotation import quote_sentence

__all__ = ["Settled", "settle_values"]

# The sentences that no better supported one contradicts, and the two of a dispute that is not settled.
Settled = tuple[list[Scored], list[Scored]]


def settle_values(ranking: SentenceRanking, sentences: Sequence[Scored], about: str = "") -> Settled:
    """Sentences, best first, without those whose value fewer pages give than another; and two that nothing decides between."""
    outvoted: list[Scored] = []
    for place, one in enumerate(sentences[:MAX_COMPARED]):
        for other in sentences[place + 1 : MAX_COMPARED]:
            if one.page == other.page or one in outvoted or other in outvoted or not has_same_subject(ranking, one, other):
                continue
            subject = about or ranking.subjects[one.page] or ranking.question.text
            texts = ranking.pages[one.page].text, ranking.pages[other.page].text
            quotes = quote_sentence(ranking, one), quote_sentence(ranking, other)
            values = find_difference(*quotes, subject, partial(are_copies, *texts))
            if values is None:
                continue
            ours, theirs = (_count_pages(ranking, value) for value in values)
            if ours == theirs:
                return [s for s in sentences if s not in outvoted], [one, other]
            outvoted.append(other if ours > theirs else one)
    return [s for s in sentences if s not in outvoted], []


def _count_pages(ranking: SentenceRanking, value: str) -> int:
    """The number of pages that have a value anywhere."""
    words = r"[\s,]+".join(re.escape(word) for word in re.split(r"[\s,]+", value))
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    return sum(pattern.search(page.text) is not None for page in ranking.pages)
