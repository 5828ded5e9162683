"""Whether pages answer a question at all: yes, likely or no.

Above `evidence`, below `composition`, whose `rate_pages` the app hands to the loop, so that every answer is rated in the same
way. The rating is about the question and says nothing of whether a sentence stands in its source.

Five figures decide, weighted by a logistic regression over questions asked of a web that answers them and of one that does not
(`python -m evals.answerable`): the best sentence's share of the question's words by rarity, the share of the two best sentences
together, the share of its names that occur anywhere, whether a page is about something the question names, and whether words
stand side by side as in the question. Where a reading model has chosen the sentence or the unit, another regression decides
(`python -m evals.reading_choice`): over those five, how near it is to the question and how much nearer than others, its chance
among them, which words of the question are missing around it and in the whole answer, and the kind of thing that was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from nexi.llm.extractive._choice import Candidate, load_weights, sum_points
from nexi.llm.extractive._evidence import Scored, SentenceRanking, holds_wanted, is_named, weigh_words
from nexi.llm.extractive._related import general_rarity
from nexi.llm.extractive.questions import Question, read_question
from nexi.types import Answered

__all__ = ["are_missed", "describe_answer", "rate_figures", "rate_words"]


MIN_LIKELY = -0.75  # below: not answered
MIN_YES = 1.5
MAX_MISSED = -3.5  # far below what a page about the question's subject scores, answer or not
MIN_WORDS = 2  # of a question; a shorter one, such as a follow-up, says too little to be refused
MAX_SENTENCES = 40  # the best ones; further down nothing answers
COMMON_SENTENCES = 100
MEASURE = 0.2
WORDS_RATING = "words-rating.json"  # the weights of the five figures
RATING = "rating.json"  # those of an answer that was chosen by a reading model, and the chances that each rating needs
_MEASURE = re.compile(r"\bhow (\w+)", re.I)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_AND = re.compile(r",?\s+and\s+(?=(?:what|how|when|where|why|who|whom|whose|which|is|are|was|were|do|does|did)\b)", re.I)
_URL = re.compile(r"https?://|\bfile:")


def rate_words(question: Question, ranking: SentenceRanking) -> Answered:
    """Whether ranked pages answer a question, by the words that both have."""
    if _URL.search(question.text):
        return "likely"
    score = answer_score(question, ranking)
    if score >= MIN_LIKELY or _is_short(question):
        return "yes" if score >= MIN_YES else "likely"
    parts = [read_question(part) for part in _AND.split(question.text)]
    scores = (answer_score(part, SentenceRanking(part, ranking.pages)) for part in parts if not _is_short(part))
    return "likely" if len(parts) > 1 and any(score >= MIN_LIKELY for score in scores) else "no"


def rate_figures(figures: Mapping[str, float]) -> Answered:
    """The rating of an answer that `describe_answer` describes."""
    weights = load_weights(RATING)
    chance = 1 / (1 + math.exp(-sum_points(figures, weights)))
    return "yes" if chance >= weights["yes"] else "likely" if chance >= weights[name_threshold(figures)] else "no"


def name_threshold(figures: Mapping[str, float]) -> str:
    """The chance that an answer needs to be shown: another one for a unit of a manual and for sentences of two pages."""
    return "likely unit" if figures["unit"] else "likely pages" if figures["pages"] else "likely sentence"


def describe_answer(ranking: SentenceRanking, best: Candidate, chosen: Sequence[Scored]) -> dict[str, float]:
    """What speaks for an answer of the `chosen` sentences or units, of which `best` is the nearest to the question, by name.

    Nothing where a reading model has not chosen them, or where the question has parts, which no one sentence answers: there the
    words of the pages decide.
    """
    question = ranking.question
    if not best.nearness or _URL.search(question.text) or _AND.search(question.text):
        return {}
    misses = ranking.wants in ("person", "date", "number", "place") and not holds_wanted(ranking, best.scored.sentence)
    said = frozenset[str]().union(*(ranking.words_near(s) for s in chosen))
    rarity = {word: weight * general_rarity(word) for word, weight in question.weights.items()}
    unsaid = sum(weight for word, weight in rarity.items() if word not in said) / (sum(rarity.values()) or 1.0)
    own = {name: best.features.get(name, 0.0) for name in ("stands_out", "said", "share", "missing", "defines")}
    asks = {f"asks {kind}": float(question.wants == kind) for kind in ("person", "date", "number", "yesno")}
    whole = {"unsaid": unsaid, "pages": float(len({s.page for s in chosen}) > 1), "wanted": float(not misses)}
    unit = {"unit": 1.0, "unit nearness": best.nearness} if best.scored.last else {"unit": 0.0, "unit nearness": 0.0}
    words = describe_words(question, ranking)
    return {"nearness": best.nearness, "chance": best.chance, **words, **whole, **own, **asks, **unit, "bias": 1.0}


def are_missed(question: Question, ranking: SentenceRanking) -> bool:
    """Whether pages tell of something else than the question asks about, so that a search missed it."""
    return not _is_short(question) and answer_score(question, ranking) < MAX_MISSED


def _is_short(question: Question) -> bool:
    return sum(weight >= 1 for weight in question.weights.values()) < MIN_WORDS


def answer_score(question: Question, ranking: SentenceRanking) -> float:
    """How well the best sentences answer a question, as log odds."""
    return sum_points({**describe_words(question, ranking), "bias": 1.0}, load_weights(WORDS_RATING))


def describe_words(question: Question, ranking: SentenceRanking) -> dict[str, float]:
    """The five figures of the words that a question and the best sentences share; all 0 where there is none."""
    best = [s for s in ranking.ranked if s.score > 0][:MAX_SENTENCES]
    weights = word_weights(question, ranking)
    if not best or not any(weights.values()):
        return dict.fromkeys(("best", "together", "names", "subject", "pairs"), 0.0)
    share = max(weigh_words(weights, ranking.words_by_place(s)) for s in best)
    return {
        "best": share,
        "together": _share_together(ranking, best, weights),
        "names": _share_of_names(question, ranking, weights, share),
        "subject": float(any(is_named(subject, question.text) for subject in ranking.subjects)),
        "pairs": max(ranking.shared_pairs(s) for s in best) / max(1, len(question.pairs)),
    }


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
