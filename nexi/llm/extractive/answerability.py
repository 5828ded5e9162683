"""Whether pages answer a question at all: yes, likely or no.

Above `evidence`, beside `composition`; the app hands `rate_pages` to the loop, so that every answer is rated in the same way.
The rating is about the question and says nothing of whether a sentence stands in its source.

Five figures decide, weighted by a logistic regression over questions asked of a web that answers them and of one that does not
(`python -m evals.answerable`): the best sentence's share of the question's words by rarity, the share of the two best sentences
together, the share of its names that occur anywhere, whether a page is about something the question names, and whether words
stand side by side as in the question. Where a reading model has chosen the sentence or the unit, another regression decides
(`python -m evals.reading_choice`): over those five together, how near it is to the question and how much nearer than others,
its chance among them, which words of the question are missing around it, and the kind of thing that was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from nexi.llm.extractive._choice import Candidate, Compare, load_weights, sum_points
from nexi.llm.extractive._evidence import Scored, SentenceRanking, holds_wanted, is_named, rank_sentences, weigh_words
from nexi.llm.extractive._readings import find_readings
from nexi.llm.extractive._summary import is_about_pages
from nexi.llm.extractive._units import rate_choices
from nexi.llm.extractive.questions import Question, read_question
from nexi.types import Answered, PageView

__all__ = ["are_missed", "rate_pages", "rate_ranking"]


MIN_LIKELY = -0.75  # below: not answered
MIN_YES = 1.5
MAX_MISSED = -3.5  # far below what a page about the question's subject scores, answer or not
MIN_WORDS = 2  # of a question; a shorter one, such as a follow-up, says too little to be refused
MAX_SENTENCES = 40  # the best ones; further down nothing answers
COMMON_SENTENCES = 100
MEASURE = 0.2
WORDS_RATING = "words-rating.json"  # the weights of the five figures
RATING = "rating.json"  # those of an answer that was chosen by a reading model
MIN_CHANCE_LIKELY, MIN_UNIT_LIKELY = 0.1, 0.048  # that such an answer is right, of a sentence and of a unit of a manual
MIN_CHANCE_YES = 0.38
_MEASURE = re.compile(r"\bhow (\w+)", re.I)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_AND = re.compile(r",?\s+and\s+(?=(?:what|how|when|where|why|who|whom|whose|which|is|are|was|were|do|does|did)\b)", re.I)
_URL = re.compile(r"https?://|\bfile:")


def rate_pages(question: str, pages: Sequence[PageView], compare: Compare | None = None) -> Answered:
    """Whether pages answer a question; a question of several parts is likely answered where one of them is."""
    readable = [page for page in pages if page.text and not page.error]
    if not readable:
        return "no"
    if is_about_pages(question, readable):
        return "yes"
    read = read_question(question)
    ranking = rank_sentences(read, tuple(readable))
    if find_readings(ranking, compare) and rate_ranking(read, ranking) != "no":
        return "depends"
    candidates = rate_choices(ranking, compare) if compare else []
    return rate_ranking(read, ranking, candidates[0] if candidates else None)


def rate_ranking(question: Question, ranking: SentenceRanking, best: Candidate | None = None) -> Answered:
    """The same for pages that were ranked already; `best` is the sentence that was chosen."""
    rating = _rate_whole(question, ranking, best)
    parts = _AND.split(question.text) if rating == "no" else []
    for part in map(read_question, parts if len(parts) > 1 else ()):
        if not _is_short(part) and answer_score(part, SentenceRanking(part, ranking.pages)) >= MIN_LIKELY:
            return "likely"
    return rating


def _rate_whole(question: Question, ranking: SentenceRanking, best: Candidate | None) -> Answered:
    if _URL.search(question.text):
        return "likely"
    score = answer_score(question, ranking)
    has_parts = _AND.search(question.text) is not None  # which no one sentence answers: the words of the pages decide
    if best and best.nearness and not has_parts:
        chance = 1 / (1 + math.exp(-sum_points(describe_rating(score, ranking, best), load_weights(RATING))))
        likely = MIN_UNIT_LIKELY if best.scored.last else MIN_CHANCE_LIKELY
        return "yes" if chance >= MIN_CHANCE_YES else "likely" if chance >= likely else "no"
    if score < MIN_LIKELY and not _is_short(question):
        return "no"
    return "yes" if score >= MIN_YES else "likely"


def describe_rating(score: float, ranking: SentenceRanking, best: Candidate) -> dict[str, float]:
    """What speaks for the answer that begins with a sentence, by name."""
    misses = ranking.wants in ("person", "date", "number", "place") and not holds_wanted(ranking, best.scored.sentence)
    own = {name: best.features.get(name, 0.0) for name in ("stands_out", "said", "share", "missing", "defines")}
    asks = {f"asks {kind}": float(ranking.question.wants == kind) for kind in ("person", "date", "number", "yesno")}
    held = {"nearness": best.nearness, "chance": best.chance, "score": score, "wanted": float(not misses), "bias": 1.0}
    unit = {"unit": 1.0, "unit nearness": best.nearness} if best.scored.last else {"unit": 0.0, "unit nearness": 0.0}
    return {**held, **own, **asks, **unit}


def are_missed(question: Question, ranking: SentenceRanking) -> bool:
    """Whether pages tell of something else than the question asks about, so that a search missed it."""
    return not _is_short(question) and answer_score(question, ranking) < MAX_MISSED


def _is_short(question: Question) -> bool:
    return sum(weight >= 1 for weight in question.weights.values()) < MIN_WORDS


def answer_score(question: Question, ranking: SentenceRanking) -> float:
    """How well the best sentences answer a question, as log odds."""
    best = [s for s in ranking.ranked if s.score > 0][:MAX_SENTENCES]
    weights = word_weights(question, ranking)
    if not best or not any(weights.values()):
        return load_weights(WORDS_RATING)["bias"]
    share = max(weigh_words(weights, ranking.words_by_place(s)) for s in best)
    figures = {
        "best": share,
        "together": _share_together(ranking, best, weights),
        "names": _share_of_names(question, ranking, weights, share),
        "subject": float(any(is_named(subject, question.text) for subject in ranking.subjects)),
        "pairs": max(ranking.shared_pairs(s) for s in best) / max(1, len(question.pairs)),
        "bias": 1.0,
    }
    return sum_points(figures, load_weights(WORDS_RATING))


def word_weights(question: Question, ranking: SentenceRanking) -> dict[str, float]:
    """What each word of the question counts; together they are 1.

    Rarity is taken over the pages and as many common sentences more, so that on a short page no word counts for nothing. The
    word after "how" asks for a measure and need not stand in an answer.
    """
    measures = {stem for word in _MEASURE.findall(question.text) for stem in ranking.words.stems(word)}
    seen = ranking.sentences_with()
    total = sum(map(len, ranking.sentences)) + COMMON_SENTENCES
    raw = {
        word: (MEASURE if word in measures else weight) * math.log(1 + (total - seen[word] + 0.5) / (seen[word] + 0.5))
        for word, weight in question.weights.items()
    }
    whole = sum(raw.values()) or 1.0
    return {word: value / whole for word, value in raw.items()}


def _sum_of(weights: Mapping[str, float], words: Iterable[str]) -> float:
    return sum(weights.get(word, 0.0) for word in set(words))


def _share_together(ranking: SentenceRanking, best: Sequence[Scored], weights: Mapping[str, float]) -> float:
    """The share of the question's words in the best sentence and one more, each with what stands around it."""
    around = [frozenset[str]().union(*ranking.words_by_place(s)) for s in best]
    return max(_sum_of(weights, around[0] | other) for other in around)


def _share_of_names(question: Question, ranking: SentenceRanking, weights: Mapping[str, float], share: float) -> float:
    """The share of the question's names and numbers that occur on any page; for a question without one, the best share."""
    marked = [word for word in _WORD.findall(question.text)[1:] if word[0].isupper() or word[0].isdigit()]
    names = {stem for word in marked for stem in ranking.words.stems(word)} & weights.keys()
    whole = _sum_of(weights, names)
    return _sum_of(weights, names & ranking.all_words()) / whole if whole else share
