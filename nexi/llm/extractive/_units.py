"""What of a manual can be quoted whole: an entry under its name, a list, a table, a block of code, a few sentences in a row.

Above `choice` and `evidence`, below `composition`. In manuals the thing that answers is seldom one sentence. Learned weights
(`python -m evals.unit_choice`) take the units that promise most by their words, a reading model compares those with the
question, and other weights decide. Two units that are compared never overlap.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from nexi.llm.extractive._choice import Candidate, defines, rate_candidates, share_chances
from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking, holds_wanted, weigh_words
from nexi.llm.extractive._limits import (
    MAX_BLOCK_WORDS,
    MAX_CANDIDATES,
    MAX_COMPARED,
    MAX_COMPARED_CHARS,
    MAX_WORDS,
    MIN_SENTENCE_WORDS,
)
from nexi.llm.extractive._outdated import leave_out_outdated
from nexi.llm.extractive._quotation import introduces
from nexi.llm.extractive._stretches import count_words
from nexi.llm.extractive._weights import find_similarity, load_weights, sum_points
from nexi.llm.extractive.passages import PassageSentence

MAX_COMPARED_UNITS = MAX_COMPARED // 2
UNIT_WORDS, UNIT_READING = "units.json", "units-reading.json"
_BLOCKS = ("item", "row", "code")
# Numbered headings and captions say where something stands; a synopsis shows how a command is written, not what it does.
_NUMBERED = re.compile(r"\W*(?:(?:table|figure|example|listing|chapter|section)\W+)?\d+(?:[.-]\d+)*[.:]?\s", re.I)
_ASKS_SYNTAX = re.compile(r"\b(?:synopsis|syntax|usage|options?|flags?|arguments?|parameters?|command|how)\b", re.I)
_CONTRASTS = re.compile(r"\b(?:while|whereas|unlike|contrast\w*|differ\w*|contrary|opposite)\b", re.I)


class Unit(Struct, frozen=True):
    """Sentences `first` to `last` of a page, the latter not included."""

    first: int
    last: int


@lru_cache(maxsize=2)
def rate_choices(ranking: SentenceRanking, compare: Compare | None) -> list[Candidate]:
    """The units of manuals, where a reading model can compare them, else the sentences, by their chance to answer."""
    # An answer is written and then rated over the same pages, so that the last choices are remembered.
    # A question in a few words asks for what the manual has on them; a longer one says which fact it wants: a sentence.
    is_broad = ranking.is_technical and not ranking.question.language and len(ranking.question.weights) < MIN_SENTENCE_WORDS
    if compare and is_broad:
        units, rows = describe_units(ranking)
        indices = pick_apart(units, [sum_points(row, load_weights(UNIT_WORDS)) for row in rows])[:MAX_COMPARED_UNITS]
        nearness = compare(ranking.question.text, [unit_text(ranking, units[i]) for i in indices])
        if indices and nearness is not None:  # None where no model can tell
            features = [{**rows[i], "nearness": near} for i, near in zip(indices, nearness, strict=True)]
            return share_chances([units[i] for i in indices], features, load_weights(UNIT_READING))
    return rate_candidates(ranking, leave_out_outdated(ranking, [s for s in ranking.ranked if s.is_quotable]), compare)


def choose_sides(ranking: SentenceRanking, compare: Compare, *, as_units: bool) -> list[Scored]:
    """The best sentence or unit about each of two things that a question sets side by side; none where one has none."""
    # What stands under the name of one, on its page, or says what it is comes first, in the order of the page. Before both
    # stands what says how they differ, where a page does.
    choices, question = ranking.question.choices, ranking.question.text
    stems = [frozenset(ranking.words.stems(choice)) for choice in choices]
    pool = list(_score_units(ranking)) if as_units else [s for s in ranking.ranked if s.is_quotable]
    both = [s for s in pool if _CONTRASTS.search(s.sentence.text)]
    both = [s for s in both if frozenset[str]().union(*stems) <= ranking.stems_of(s.page, s.place, s.last)]
    pools = [(question, sorted(both, key=lambda s: -s.score))] if both else []
    for choice, own, other in zip(choices, stems, reversed(stems), strict=True):
        counts = [_names_side(ranking, s, own - other) * (not _names_side(ranking, s, other - own)) for s in pool]
        counts = [count + defines(ranking, s.sentence.text, own) if count else 0 for count, s in zip(counts, pool, strict=True)]
        named = [i for i, count in enumerate(counts) if count]
        indices = sorted(named, key=lambda i: (-counts[i], pool[i].page, pool[i].place))
        pools.append((f"what is {choice}", [pool[i] for i in indices]))
    sides: list[Scored] = []
    for text, candidates in pools:
        nearness = compare(text, [unit_text(ranking, s) for s in candidates[:MAX_COMPARED_UNITS]])
        if not nearness:
            return []
        sides.append(candidates[max(range(len(nearness)), key=lambda i: nearness[i])])
    return sides


def _names_side(ranking: SentenceRanking, s: Scored, words: frozenset[str]) -> int:
    """In how many places something is named: in a sentence or a unit, in the heading above it, in the title of its page."""
    places = (s.sentence.label, ranking.subjects[s.page])
    stems_by_place = (ranking.stems_of(s.page, s.place, s.last), *(frozenset(ranking.words.stems(text)) for text in places))
    return sum(words <= stems for stems in stems_by_place) if words else 0


def pick_apart(units: Sequence[Scored], points: Sequence[float]) -> list[int]:
    """The units in the order of their points, without those that overlap a better one."""
    indices: list[int] = []
    used_places: set[tuple[int, int]] = set()
    for i in sorted(range(len(units)), key=lambda i: -points[i]):
        places = {(units[i].page, place) for place in range(units[i].place, units[i].last)}
        if used_places.isdisjoint(places):
            indices.append(i)
            used_places |= places
    return indices


def unit_text(ranking: SentenceRanking, unit: Scored) -> str:
    """A unit as a reading model is given it: under what its page is about and the heading above it."""
    sentence = unit.sentence
    label = "" if not sentence.label or sentence.text.startswith(sentence.label) else f"{sentence.label}. "
    return f"{ranking.name_page(unit.page)}. {label}{sentence.text}"[:MAX_COMPARED_CHARS]


def find_units(page: Sequence[PassageSentence]) -> Iterator[Unit]:
    """Each sentence; sentences of a paragraph in a row; lists, tables and code with what introduces them; entries."""
    place = 0
    while place < len(page):
        kind = page[place].kind
        last, is_whole = place + 1, False
        if kind == "label":
            entry = _end_of_entry(page, place)
            if entry > place + 1:
                yield Unit(place, entry)
        elif kind in _BLOCKS:
            while last < len(page) and page[last].kind == kind:
                last += 1
            lead = place - 1 - (place > 1 and page[place - 1].kind == "head")  # the head of a table
            first = lead if lead >= 0 and page[lead].kind not in _BLOCKS else place
            is_whole = (last > place + 1 or kind == "code") and count_words(page[first:last]) <= MAX_BLOCK_WORDS
            if is_whole:
                yield Unit(first, last)
        else:
            while (
                last < len(page) and page[last].block == page[place].block and count_words(page[place : last + 1]) <= MAX_WORDS
            ):
                last += 1
            end = last - _leads_on(page, last - 1)
            if end > place + 1:
                yield Unit(place, end)
        for i in range(place, last):
            sentence, is_long = page[i], len(page[i].text.split()) >= MIN_SENTENCE_WORDS
            is_part = _leads_on(page, i) or sentence.kind == "head" or (is_whole and sentence.kind == "code")
            if not is_part and (sentence.kind != "label" or (is_long and not _NUMBERED.match(sentence.text))):
                yield Unit(i, i + 1)
        place = last


def _leads_on(page: Sequence[PassageSentence], place: int) -> bool:
    """Whether a sentence only introduces the list, the table or the code after it."""
    return introduces(page[place]) and place + 1 < len(page) and page[place + 1].kind in (*_BLOCKS, "head")


def _end_of_entry(page: Sequence[PassageSentence], label: int) -> int:
    """Where what stands under a name ends, or as much of it as fits; code is not cut."""
    last = label + 1
    while last < len(page) and page[last].kind != "label":
        kind, end = page[last].kind, last + 1
        while kind in _BLOCKS and end < len(page) and page[end].kind == kind:
            end += 1
        if kind != "code" and count_words(page[label:end]) > MAX_BLOCK_WORDS:
            end = last + 1  # a long list is cut
        limit = MAX_BLOCK_WORDS if last == label + 1 or end > last + 1 else MAX_WORDS
        if count_words(page[label:end]) > limit:
            break
        last = end
    return last - (last > label + 2 and _leads_on(page, last - 1))


def describe_units(ranking: SentenceRanking) -> tuple[list[Scored], list[dict[str, float]]]:
    """The units that share most with the question and those that say what its subject is, and what speaks for each."""
    by_score = sorted(_score_units(ranking), key=lambda unit: -unit.score)
    describe = _Describer(ranking, by_score)
    definitions = (unit for unit in by_score[MAX_CANDIDATES:] if describe.defines(unit))
    units = [*by_score[:MAX_CANDIDATES], *itertools.islice(definitions, MAX_COMPARED)]
    return units, [describe.of_unit(unit) for unit in units]


def _score_units(ranking: SentenceRanking) -> Iterator[Scored]:
    labels: dict[str, frozenset[str]] = {}
    question, asks_syntax = ranking.question, _ASKS_SYNTAX.search(ranking.question.text)
    by_code = question.wants not in ("yesno", "person", "date") and not question.thing
    for number, page in enumerate(ranking.sentences):
        prior = ranking.page_prior(number)
        title = frozenset(ranking.words.stems(ranking.subjects[number]))
        for unit in find_units(page):
            head = page[unit.first]
            label = head.text if head.kind == "label" else head.label
            kinds = {sentence.kind for sentence in page[unit.first : unit.last]}
            if "code" in kinds and not (by_code and (label.lower() != "synopsis" or asks_syntax)):
                continue
            words = ranking.held_by(number, unit.first, unit.last)
            if label not in labels:
                labels[label] = frozenset(ranking.rarity.keys() & ranking.words.stems(label))
            if words or labels[label]:
                text = "\n".join(sentence.text for sentence in page[unit.first : unit.last])
                whole = PassageSentence(text, head.block, label, head.kind)
                if kinds & {"item", "row"} and question.wants in ("date", "number") and not holds_wanted(ranking, whole):
                    continue
                score = prior * weigh_words(ranking.rarity, (words, frozenset(), labels[label], title))
                score /= 1 + ranking.weights["length"] * len(text.split())
                yield Scored(score, number, unit.first, whole, words, unit.last)


class _Describer:
    """What speaks for the units of one question."""

    def __init__(self, ranking: SentenceRanking, units: Sequence[Scored]) -> None:
        self.ranking = ranking
        self.top = max((unit.score for unit in units), default=0.0) or 1.0
        self.weights = ranking.question.word_shares

    def of_unit(self, unit: Scored) -> dict[str, float]:
        ranking, page = self.ranking, self.ranking.sentences[unit.page]
        stems = ranking.stems_of(unit.page, unit.place, unit.last)
        label = frozenset(ranking.words.stems(unit.sentence.label))
        near = stems.union(label, ranking.words.stems(ranking.subjects[unit.page]))
        kinds = [sentence.kind for sentence in page[unit.place : unit.last]]
        form, length = ranking.question.form, len(unit.sentence.text.split())
        return {
            "score": unit.score / self.top,
            "said": self._share_said(stems),
            "label": self._share_said(label),
            "share": sum(word in stems for word in self.weights) / max(1, len(self.weights)),
            "missing": sum(weight for word, weight in self.weights.items() if word not in near),
            "page": ranking.page_prior(unit.page) - 1,
            "place": unit.place / max(1, len(page)),
            "length": length / MAX_WORDS,
            "short": float(length < MIN_SENTENCE_WORDS),
            "defines": float(self.defines(unit)),
            "code": float(form in ("how", "topic") and "code" in kinds),
            "list": float(form == "list" and (kinds.count("item") > 1 or kinds.count("row") > 1)),
        }

    def _share_said(self, stems: frozenset[str]) -> float:
        return sum(weight * find_similarity(word, stems) for word, weight in self.weights.items())

    def defines(self, unit: Scored) -> bool:
        """Whether a unit begins with what is asked about and says what it is."""
        page = self.ranking.sentences[unit.page]
        first = next((s for s in page[unit.place : unit.last] if s.kind != "label"), page[unit.place])
        return defines(self.ranking, first.text, self.weights.keys())
