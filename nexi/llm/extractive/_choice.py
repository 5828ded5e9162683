"""Which of the best sentences answers a question: a small linear model over what speaks for each.

Above `evidence`, below `composition`. The weights are learned data (`python -m evals.reading_choice`); each feature has
one weight, so a choice can be read off. The chances of what is said differently add up to 1. Where a reading model is
given, it compares the question with the candidates that are best by their words, and other weights decide among those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking, find_new_names, holds_wanted
from nexi.llm.extractive._limits import MAX_CANDIDATES, MAX_COMPARED, MAX_COMPARED_CHARS, MAX_WORDS
from nexi.llm.extractive._stretches import NAME_LINE
from nexi.llm.extractive._weights import find_similarity, load_weights, sum_points

WORDS, READING = "choice.json", "reading.json"  # the weights without and with a reading model
_FOCUS = re.compile(
    r"\b(?:what|which)\s+((?:(?!(?:is|are|was|were|did|do|does|has|had|have|can|could|would|will)\b)[\w-]+\s+){1,3})", re.I
)
_DEFINES = re.compile(
    r"^(?:(?:the|an?)\s+)?(.{1,60}?)\s+(?:\([^)]*\)\s*)?(?:is|are|was|were|means|refers to|returns?|allows?|provides?|lets)\b",
    re.I,
)
_DIGITS = re.compile(r"\d+")
_ENUMERATES = re.compile(r"[^\s,][^,;.]{0,50}, (?:[^,;.]{1,50}, )*(?:and |or )?[^,;.]{1,50},? (?:and|or) \w")


class Candidate(Struct, frozen=True):
    """A sentence, the chance that it answers, how near it is to the question where that was compared, and its features."""

    scored: Scored
    chance: float
    nearness: float = 0.0
    features: Mapping[str, float] = {}


def rate_candidates(ranking: SentenceRanking, usable: Sequence[Scored], compare: Compare | None = None) -> list[Candidate]:
    """The best sentences by their chance to answer, best first."""
    candidates = list(usable[:MAX_CANDIDATES])
    features = describe_candidates(ranking, candidates)
    points = [sum_points(row, load_weights(WORDS)) for row in features]
    order = sorted(range(len(candidates)), key=lambda i: -points[i])
    if compare and not ranking.question.language:  # the reading model knows English only
        nearest = order[:MAX_COMPARED]
        nearness = compare(ranking.question.text, [describe_text(ranking, candidates[i]) for i in nearest])
        if nearness is not None:
            rows = [{**features[i], "nearness": near} for i, near in zip(nearest, nearness, strict=True)]
            return share_chances([candidates[i] for i in nearest], rows, load_weights(READING))
    return share_chances([candidates[i] for i in order], [features[i] for i in order], load_weights(WORDS))


def describe_text(ranking: SentenceRanking, s: Scored) -> str:
    """A sentence as a reading model is given it: with what its page is about and, in a manual, the name it stands under."""
    label = f"{s.sentence.label}. " if ranking.is_technical and s.sentence.label else ""
    return f"{ranking.name_page(s.page)}. {label}{s.sentence.text}"[:MAX_COMPARED_CHARS]


def share_chances(
    candidates: Sequence[Scored], rows: Sequence[Mapping[str, float]], weights: Mapping[str, float]
) -> list[Candidate]:
    points = [sum_points(row, weights) for row in rows]
    best = max(points, default=0.0)
    powers = [math.exp(value - best) for value in points]
    # What several pages say, whatever their numbers, is one candidate: it is no less an answer, nor does it stand out less.
    texts = [str(place) if s.last else _DIGITS.sub("0", s.sentence.text.casefold()) for place, s in enumerate(candidates)]
    first_pages = {text: s.page for text, s in zip(reversed(texts), reversed(candidates), strict=True)}
    distinct = [place for place, s in enumerate(candidates) if first_pages[texts[place]] == s.page]
    # A page of one sentence has nothing that it could stand out from but what is usual.
    usual = sum(rows[place].get("nearness", 0.0) for place in distinct) + weights.get("usual nearness", 0.0)
    usual, whole = usual / (1 + len(distinct)), sum(powers[place] for place in distinct)
    likely_candidates = [
        Candidate(s, min(1.0, power / whole), near, {**row, "stands_out": near - usual})
        for s, power, row in zip(candidates, powers, rows, strict=True)
        for near in (row.get("nearness", 0.0),)
    ]
    return sorted(likely_candidates, key=lambda c: -c.chance)


def describe_candidates(ranking: SentenceRanking, candidates: Sequence[Scored]) -> list[dict[str, float]]:
    """The features of each candidate, by name."""
    describe = _Features(ranking, candidates)
    return [describe.of_sentence(s) for s in candidates]


def find_defined(text: str) -> str:
    """What a text begins with, where it says what that is or does; "" where it does not."""
    match = NAME_LINE.match(text) or _DEFINES.match(text)
    return match[1] if match else ""


def defines(ranking: SentenceRanking, text: str, subject_stems: Collection[str]) -> bool:
    """Whether a text begins with what is asked about and says what it is."""
    name = find_defined(text)
    subject = ranking.words.stems(name)
    if not subject or ("," in name and subject[0] not in subject_stems):  # "Because of MVCC, it is"
        return False
    return 2 * len(set(subject).intersection(subject_stems)) >= len(set(subject))


class _Features:
    """What speaks for the candidates of one question."""

    def __init__(self, ranking: SentenceRanking, candidates: Sequence[Scored]) -> None:
        self.ranking = ranking
        self.top = max((s.score for s in candidates), default=0.0) or 1.0
        self.weights = ranking.question.word_shares
        focus = _FOCUS.search(ranking.question.text)
        self.form = ranking.question.form
        self.focus = (ranking.words.stems(focus[1]) if focus else [])[-1:]
        self._said: dict[frozenset[str], dict[str, float]] = {}

    def of_sentence(self, s: Scored) -> dict[str, float]:
        ranking, page = self.ranking, self.ranking.sentences[s.page]
        before, after, block, title = ranking.words_around(s)
        own = ranking.stems_of(s.page, s.place)
        label = frozenset(ranking.words.stems(s.sentence.label))
        similarities = self._similarities(own)
        near = own | before | after | label | title
        has_wanted, text = float(holds_wanted(ranking, s.sentence)), s.sentence.text
        return {
            "score": s.score / self.top,
            "said": sum(weight * similarities[word] for word, weight in self.weights.items()),
            "said_before": self._gain(similarities, before),
            "said_after": self._gain(similarities, after),
            "said_in_paragraph": self._gain(similarities, block),
            "words": sum(w for word, w in self.weights.items() if word in own),
            "share": sum(word in own for word in self.weights) / max(1, len(self.weights)),
            "missing": sum(w for word, w in self.weights.items() if word not in near),
            "new_names": float(next(find_new_names(ranking, s.sentence), "") != ""),
            "page": ranking.page_prior(s.page) - 1,
            "first_page": float(s.page == 0),
            "wanted": has_wanted,
            "wanted_date": has_wanted * (ranking.wants == "date"),
            "focus": float(bool(self.focus) and self.focus[0] in own),
            "place": s.place / max(1, len(page)),
            "length": len(text.split()) / MAX_WORDS,
            "defines": float(self.form in ("definition", "topic") and defines(ranking, text, self.weights.keys())),
            "enumerates": float(
                self.form == "list"
                and (s.sentence.kind == "item" or text.endswith(":") or _ENUMERATES.search(text) is not None)
            ),
        }

    def _similarities(self, stems: frozenset[str]) -> dict[str, float]:
        similarities = self._said.get(stems)
        if similarities is None:
            similarities = self._said[stems] = {word: find_similarity(word, stems) for word in self.weights}
        return similarities

    def _gain(self, similarities: Mapping[str, float], stems: frozenset[str]) -> float:
        """What other words say of the question that the sentence does not."""
        more = self._similarities(stems)
        return sum(weight * max(0.0, more[word] - similarities[word]) for word, weight in self.weights.items())
