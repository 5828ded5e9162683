"""Which of several values to quote where pages give different ones: the one that most pages give for the same thing.

Above `_evidence` and the comparison of sentences, below `_readings` and `composition`. Where as many pages give the one as the
other, all of them are quoted, because nothing here can tell which is right; and so are those of texts that may mean another
thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby, permutations

from msgspec import Struct

from nexi.checking.alignment import differ
from nexi.checking.conflicts import find_difference
from nexi.checking.origins import are_altered, are_copies, find_exchanges, shingles
from nexi.checking.pages import parse_text
from nexi.checking.values import Date, Value, list_dates
from nexi.llm.extractive._choice import READING, Candidate, describe_text, rate_candidates
from nexi.llm.extractive._comparison import tells_of_life
from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking, find_wanted_words, holds_wanted, list_candidates
from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_CANDIDATES, MAX_WORDS, MIN_SENTENCE_WORDS, SAME
from nexi.llm.extractive._outdated import leave_out_outdated
from nexi.llm.extractive._quotation import is_file_name, quote_sentence
from nexi.llm.extractive._weights import load_weights
from nexi.llm.extractive.passages import PassageSentence
from nexi.text.references import may_be_same
from nexi.text.words import has_words


class Settled(Struct, frozen=True):
    """The sentence that no better supported one contradicts, or all of a dispute that is not settled; and those set aside."""

    chosen: tuple[Scored, ...]
    aside: tuple[Scored, ...] = ()

    @property
    def is_disputed(self) -> bool:
        return len(self.chosen) > 1


@lru_cache(maxsize=2)
def find_altered(ranking: SentenceRanking) -> list[Scored]:
    """The sentences in which a page differs from a copy of it, in the order of the pages, without those that no longer hold."""
    # Texts that differ in many sentences are versions of each other and no copies that somebody has altered.
    prints = [shingles(page.text) for page in ranking.pages]
    altered: dict[tuple[int, int], Scored] = {}
    for one, other in permutations(range(len(prints)), 2):
        if not are_altered(prints[one], prints[other]):
            continue
        same = {s.text for s in ranking.sentences[one]} & {s.text for s in ranking.sentences[other]}
        ours, theirs = (
            [(place, s) for place, s in enumerate(ranking.sentences[page]) if s.text not in same] for page in (one, other)
        )
        if max(len(ours), len(theirs)) <= MAX_CANDIDATES:
            altered |= {
                (one, place): Scored(0.0, one, place, sentence, frozenset())
                for place, sentence in ours
                for at, text in theirs
                if 2 * len(ranking.stems_of(one, place) & ranking.stems_of(other, at)) >= len(ranking.stems_of(one, place))
                and find_difference(sentence.text, text.text, ranking.subjects[one], is_same_text=True)
            }
    scored_sentences = {(s.page, s.place): s for s in ranking.ranked}
    return leave_out_outdated(ranking, [scored_sentences.get(place, s) for place, s in sorted(altered.items())])


def put_altered_first(
    ranking: SentenceRanking, candidates: list[Candidate], pages: Collection[int], compare: Compare | None
) -> list[Candidate]:
    """The candidates, after the altered sentence of these pages that is nearest to the question, where it is about as near."""
    altered = [s for s in find_altered(ranking) if s.page in pages]
    if not altered or compare is None or ranking.question.language:
        return candidates
    nearness = compare(ranking.question.text, [describe_text(ranking, s) for s in altered])
    if nearness is None or max(nearness) < candidates[0].nearness - load_weights(READING)["altered"]:
        return candidates
    near = max(nearness)
    s = altered[list(nearness).index(near)]
    rest = [c for c in candidates if (c.scored.page, c.scored.place) != (s.page, s.place)]
    return [Candidate(s, candidates[0].chance, near, candidates[0].features), *rest]


def prefer_telling(ranking: SentenceRanking, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates with what is asked for, of these the ones that say it in the words for it, where there are any."""
    if ranking.wants in ("date", "number", "place", "person"):
        candidates = [c for c in candidates if _quotes_wanted(ranking, c)] or candidates
    return [c for c in candidates if tells_of_life(ranking.question, c.scored.sentence.text)] or candidates


def _quotes_wanted(ranking: SentenceRanking, candidate: Candidate) -> bool:
    """Whether a sentence holds what is asked for, without a heading before it: "Nordlys (1981 series)" has no answer's year."""
    return holds_wanted(ranking, PassageSentence(quote_sentence(ranking, candidate.scored)))


def settle_values(ranking: SentenceRanking, s: Scored, usable: Sequence[Scored], about: str = "") -> Settled:
    """A sentence beside those of other pages that say the same thing with another value."""
    # `usable` are the sentences that hold for the time asked for and are not about another thing of the name. What differs in a
    # copy need not have a word of the question.
    places = {(u.page, u.place) for u in usable}
    usable = [*usable, *(a for a in find_altered(ranking) if (a.page, a.place) not in places)]
    subject = about or ranking.subjects[s.page] or ranking.question.text
    own, own_stems = quote_sentence(ranking, s), ranking.stems_of(s.page, s.place)
    support: dict[str, int] = {}  # the number of pages that have a value anywhere
    others: dict[str, list[Scored]] = {}
    for page, sentences in groupby(sorted(usable, key=lambda o: o.page), key=lambda o: o.page):
        if page == s.page:
            continue
        ours, theirs = ranking.pages[s.page], ranking.pages[page]
        is_copy = may_be_same((ours.title, ours.text), (theirs.title, theirs.text)) and are_copies(ours.text, theirs.text)
        # those that have most words in common with this one, those with the most first; of a copy, whatever they have
        shared = [(len(own_stems & ranking.stems_of(o.page, o.place)), o) for o in sentences]
        alike = [pair for pair in shared if is_copy or (pair[0] > 1 and 2 * pair[0] >= len(own_stems))]
        for count, other in sorted(alike, key=lambda pair: -pair[0])[:MAX_ALTERNATIVES]:
            # a sentence may be copied into another text
            longest = max(len(own_stems), len(ranking.stems_of(other.page, other.place)))
            is_same = is_copy or count >= max(MIN_SENTENCE_WORDS, SAME * longest)
            if values := find_difference(own, quote_sentence(ranking, other), subject, is_same_text=is_same):
                for value in values:
                    words = r"[\s,]+".join(map(re.escape, re.split(r"[\s,]+", value)))
                    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
                    support[value] = sum(pattern.search(page.text) is not None for page in ranking.pages)
                others.setdefault(values[1], []).append(other)
                own_value = values[0]
                break
    if not others:
        return Settled((s,))
    most = max(support.values())
    best = [s] if support[own_value] == most else []
    best += [group[0] for value, group in others.items() if support[value] == most]
    choice = tuple(best[:MAX_ALTERNATIVES])
    return Settled(choice, tuple(o for o in (s, *(o for group in others.values() for o in group)) if o not in choice))


def find_other_answers(
    ranking: SentenceRanking, usable: Sequence[Scored], settled: Settled, compare: Compare | None
) -> list[Scored]:
    """Sentences of further texts without a title that are about as near to the question as the best, with other values."""
    # Pages with titles are told apart by these, and a question may need two of them. A text that was cut out of a page often
    # does not say what it is about, so that neither its title nor its words settle which of two values holds.
    if compare is None or ranking.question.language or ranking.wants not in ("date", "number", "person", "place", "name"):
        return []
    quoted_pages, places = {s.page for s in settled.chosen}, {(s.page, s.place) for s in settled.aside}
    untitled = [number for number, page in enumerate(ranking.pages) if is_file_name(page.title, page.url)]
    best_of_page: list[Candidate] = []  # the sentence that answers most likely, with what is asked for
    for page in untitled:
        candidates = rate_candidates(ranking, list_candidates(ranking, usable, [page]), compare)
        best_of_page += prefer_telling(ranking, [c for c in candidates if _quotes_wanted(ranking, c)])[:1]
    weights = load_weights(READING)
    most = max((best.nearness for best in best_of_page), default=0.0)
    others: list[Scored] = []
    for best in sorted(best_of_page, key=lambda candidate: -candidate.nearness):
        s = best.scored
        is_near = best.nearness >= max(weights["other answer"], most - weights["behind the best"])
        is_aside = (s.page, s.place) in places or _is_altered(ranking, s, settled.chosen)
        if s.page not in quoted_pages and is_near and not is_aside and _is_new(ranking, s, [*settled.chosen, *others]):
            others.append(s)
    return others[: MAX_ALTERNATIVES - min(1, len(settled.chosen))]


def _is_altered(ranking: SentenceRanking, s: Scored, quoted: Sequence[Scored]) -> bool:
    """Whether a sentence differs from a copy of it by a value in the place of one that is quoted."""
    text, quotations = ranking.pages[s.page].text, " ".join(q.sentence.text for q in quoted)
    return any(
        has_words(s.sentence.text, text[slice(*exchange.ours)]) and has_words(quotations, page.text[slice(*exchange.theirs)])
        for number, page in enumerate(ranking.pages)
        for exchange in (find_exchanges(text, page.text) if number != s.page else ())
    )


def _is_new(ranking: SentenceRanking, s: Scored, quoted: Sequence[Scored]) -> bool:
    """Whether a sentence gives values of the wanted kind that the pages quoted do not have."""
    texts = [ranking.pages[page].text for page in {q.page for q in quoted}]
    if ranking.wants in ("date", "number"):
        values = _read_values(ranking, s.sentence.text)
        seen = [value for q in quoted for value in _read_values(ranking, q.sentence.text)]
        return bool(values) and all(differ(one, two) or _are_far_apart(one, two) for one in values for two in seen)
    words = s.sentence.text.split()
    names = {words[place].strip(".,;:()\"'“”") for place in find_wanted_words(ranking, words)}
    return any(all(name not in text for text in texts) for name in names if len(name) > 1)


def _are_far_apart(one: Value, two: Value) -> bool:
    """Whether a decade or a century lies apart from a year or another length of time: the 1970s from 1878."""
    return isinstance(one, Date) and isinstance(two, Date) and abs(one.year - two.year) > max(one.span, two.span)


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
    question_places = (i for i, w in enumerate(words) if ranking.question.weights.keys() & ranking.words.stems(w))
    marks = {*find_wanted_words(ranking, words), *question_places}
    room = MAX_WORDS // 2
    counts = [sum(first <= mark < first + room for mark in marks) for first in range(len(words) - room + 1)]
    starts = [first for first, count in enumerate(counts) if count == max(counts)]
    start = starts[len(starts) // 2]
    return f"{'… ' if start else ''}{' '.join(words[start : start + room])}{' …' if start + room < len(words) else ''}"
