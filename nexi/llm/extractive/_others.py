"""What further pages answer with other values, where nothing tells whether they mean another thing or disagree.

Above `_choice`, below `composition`. A text that was cut out of a page often does not say what it is about, so that neither its
title nor its words settle which of two values holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from nexi.checking.alignment import differ
from nexi.checking.parsed import parse_text
from nexi.checking.values import Value, list_dates
from nexi.llm.extractive._choice import READING, Candidate, Compare, rate_candidates
from nexi.llm.extractive._evidence import Scored, SentenceRanking, find_wanted_words, holds_wanted, list_candidates
from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_WORDS
from nexi.llm.extractive._quotation import is_file_name, quote_sentence
from nexi.llm.extractive._weights import load_weights


def find_other_answers(
    ranking: SentenceRanking, usable: Sequence[Scored], quoted: Sequence[Scored], compare: Compare | None
) -> list[Scored]:
    """Sentences of further texts without a title that are about as near to the question as the best, with other values."""
    # Pages with titles are told apart by these, and a question may need two of them.
    if compare is None or ranking.question.language or ranking.wants not in ("date", "number", "person", "place", "name"):
        return []
    quoted_pages = {s.page for s in quoted}
    untitled = [number for number, page in enumerate(ranking.pages) if is_file_name(page.title, page.url)]
    best_of_page: list[Candidate] = []  # the sentence that answers most likely, with what is asked for
    for page in untitled:
        candidates = rate_candidates(ranking, list_candidates(ranking, usable, [page]), compare)
        best_of_page += [c for c in candidates if holds_wanted(ranking, c.scored.sentence)][:1]
    weights = load_weights(READING)
    most = max((best.nearness for best in best_of_page), default=0.0)
    others: list[Scored] = []
    for best in sorted(best_of_page, key=lambda candidate: -candidate.nearness):
        s = best.scored
        is_near = best.nearness >= max(weights["other answer"], most - weights["behind the best"])
        if s.page not in quoted_pages and is_near and _is_new(ranking, s, [*quoted, *others]):
            others.append(s)
    return others[: MAX_ALTERNATIVES - min(1, len(quoted))]


def _is_new(ranking: SentenceRanking, s: Scored, quoted: Sequence[Scored]) -> bool:
    """Whether a sentence gives values of the wanted kind that the pages quoted do not have."""
    texts = [ranking.pages[page].text for page in {q.page for q in quoted}]
    if ranking.wants in ("date", "number"):
        values = _read_values(ranking, s.sentence.text)
        seen = [value for q in quoted for value in _read_values(ranking, q.sentence.text)]
        return bool(values) and all(differ(value, other) for value in values for other in seen)
    words = s.sentence.text.split()
    names = {words[place].strip(".,;:()\"'“”") for place in find_wanted_words(ranking, words)}
    return any(all(name not in text for text in texts) for name in names if len(name) > 1)


def _read_values(ranking: SentenceRanking, text: str) -> list[Value]:
    """The dates of a sentence, or its numbers, without years where there are others, and without those of the question."""
    parsed = parse_text(text)
    if ranking.wants == "date":
        return [*list_dates(parsed.values)]
    numbers = [n for n in parsed.numbers if not (n.is_weak or n.is_ordinal) and n.text not in ranking.question.text]
    return [n for n in numbers if not n.year] or [*numbers]


def quote_briefly(ranking: SentenceRanking, s: Scored) -> str:
    """A sentence, or of a long one the words around what is asked for."""
    words = quote_sentence(ranking, s).split()
    if len(words) <= MAX_WORDS:
        return " ".join(words)
    marks = {
        *find_wanted_words(ranking, words),
        *(i for i, w in enumerate(words) if ranking.question.weights.keys() & ranking.words.stems(w)),
    }
    room = MAX_WORDS // 2
    counts = [sum(first <= mark < first + room for mark in marks) for first in range(len(words) - room + 1)]
    starts = [first for first, count in enumerate(counts) if count == max(counts)]
    start = starts[len(starts) // 2]
    return f"{'… ' if start else ''}{' '.join(words[start : start + room])}{' …' if start + room < len(words) else ''}"
