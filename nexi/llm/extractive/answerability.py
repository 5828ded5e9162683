"""Whether pages answer a question at all: yes, likely or no.

Above `evidence` and `choice`, below `composition`. The rating is about the question and says nothing of whether a sentence
stands in its source. Both ratings are sums of learned weights; the files have the points from which an answer is likely and
certain.

By words, five figures decide (measured by `python -m evals.answerable`): the best sentence's share of the question's words by
rarity, the share of the two best sentences together, the share of its names that occur anywhere, whether a page is about
something the question names, and whether words stand side by side as in the question. Where a reading model has chosen the
sentence or the unit, the whole answer is rated (`python -m evals.reading_choice`): by those five together, how near it is to
the question and how much nearer than others, which words of the question it leaves unsaid, how many stand side by side in both,
how many pages it quotes, and the kind of thing asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nexi.llm.extractive._choice import Candidate
from nexi.llm.extractive._evidence import Compare, SentenceRanking, holds_wanted, is_named, weigh_words
from nexi.llm.extractive._limits import MAX_CANDIDATES, MIN_SENTENCE_WORDS
from nexi.llm.extractive._weights import load_weights, related_stems, sum_points
from nexi.llm.extractive.passages import PassageSentence
from nexi.llm.extractive.questions import Question, read_question
from nexi.text.scope import find_words_for_now
from nexi.types import Answered

FACTS = ("person", "date", "number", "place")  # kinds of things that a question wants and any sentence may have
MIN_WORDS = 2  # of a question; a shorter one, such as a follow-up, says too little to be refused
# The weights of the five figures, and of an answer that a reading model has chosen; both files have the points or the chance
# from which an answer is "likely" and "yes".
WORDS_RATING, RATING = "words-rating.json", "rating.json"
_REFERS_BACK = re.compile(r"\b(?:it|its|he|him|his|she|her|they|them|their|this|that|these|those|there|one|ones)\b", re.I)
_MEASURE = re.compile(r"\bhow (far (?:away|apart|off)|\w+)", re.I)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_AND = re.compile(r",?\s+and\s+(?=(?:what|how|when|where|why|who|whom|whose|which|is|are|was|were|do|does|did)\b)", re.I)
_URL = re.compile(r"https?://|\bfile:")
# The head of a sentence that says what something is, and what stands in brackets after its name.
_SAYS_WHAT = re.compile(
    r"^([^.;:()]{1,80}?)\s*(?:\(([^)]*)\)[^.;:]{,40}?)?\b(?:(?:is|are|was|were)\s+(?:(?:an?|one|any|some|defined|when|where|how)\b"
    r"|the (?:[\w-]+ ){1,3}(?:of|that|which|who|with|in|by|used|from|between)\b)|means|refers? to|consists? of)",
    re.I,
)


def rate_answer(
    ranking: SentenceRanking, best: Candidate, quotations: Sequence[tuple[str, int]], compare: Compare | None = None
) -> Answered:
    """Whether an answer from `best`, a sentence or a unit, answers: by what was read, else by the words of the pages."""
    # A question in a conversation leaves out what was said before, so that lines may answer it by the whole conversation. The
    # page of a subject has many dates, numbers, people and places. Where one is asked for by a question that does not refer
    # back, the line that holds it must be nearer to the question itself.
    rating, question, weights = _rate_alone(ranking, best, quotations), ranking.question, load_weights(RATING)
    lines = [text for text, _ in quotations]
    if rating != "no" or not compare or not question.context or question.language:
        return rating
    nearness = compare(f"{question.context} {question.text}", lines) or (0.0,)
    if question.wants in FACTS and not _REFERS_BACK.search(question.text):
        own_nearness = compare(question.text, lines) or ()
        held = [near for near, line in zip(own_nearness, lines, strict=False) if holds_wanted(ranking, PassageSentence(line))]
        if max(held, default=0.0) < weights["near to question"]:
            return "no"
    return "likely" if max(nearness) >= weights["near to conversation"] else "no"


def _rate_alone(ranking: SentenceRanking, best: Candidate, quotations: Sequence[tuple[str, int]]) -> Answered:
    """The rating of an answer by the question's own words."""
    question, thing = ranking.question, ranking.question.thing
    rating: Answered
    if not best.nearness or _AND.search(question.text) or _URL.search(question.text):
        rating = rate_words(question, ranking)  # no one sentence answers a question of two parts
    else:
        weights = load_weights(RATING)
        figures = describe_rating(ranking, best, quotations)
        if _is_short(question) and _REFERS_BACK.search(question.text) and not figures["unsaid"]:
            return "likely"  # "what does it conclude", of a file: one word, which the answer has
        points = sum_points(figures, weights)
        likely = weights["likely unit" if best.scored.last else "likely few" if asks_briefly(question) else "likely"]
        rating = "no" if points < likely else "yes" if points >= weights["yes"] else "likely"
    if rating == "no" or not thing or best.scored.last:
        return rating
    # A thing is explained by a page about it, by its name or its initials, or by a line that says what it is. Where neither is
    # there, the answer is at most likely, and none where the thing is one word, since nearly any sentence with it is near to
    # the question.
    name, subject = _name_one(thing), ranking.subjects[best.scored.page]
    initials = "".join(word[0] for word in _WORD.findall(subject) if word[0].isupper())
    heads = [match for line, _ in quotations if (match := _SAYS_WHAT.match(line))]
    explained_names = {_name_one(part) for head in heads for part in (head[1].partition(",")[0], head[2] or "")}
    if name in {_name_one(subject), initials.lower(), *explained_names}:
        return rating
    word = re.escape(thing)
    in_passing = re.compile(
        rf"\b{word}\b(?: \([^)]*\))?, (?:which|who|an?)\b|\b(?:called|termed|known as) (?:an? |the )?{word}\b", re.I
    )
    return "likely" if " " in thing or any(in_passing.search(line) for line, _ in quotations) else "no"


def rate_words(question: Question, ranking: SentenceRanking) -> Answered:
    """Whether the words of pages promise an answer; a question of several parts is likely answered where one of them is."""
    if _URL.search(question.text):
        return "likely"
    weights, score = load_weights(WORDS_RATING), _answer_score(question, ranking)
    if score >= weights["likely"] or _is_short(question):
        return "yes" if score >= weights["yes"] else "likely"
    parts = _AND.split(question.text)
    for part in map(read_question, parts if len(parts) > 1 else ()):
        if not _is_short(part) and _answer_score(part, SentenceRanking(part, ranking.pages)) >= weights["likely"]:
            return "likely"
    return "no"


def _name_one(name: str) -> str:
    """A name without its article, in lower case and in the singular."""
    words = [re.sub(r"(?<=\w\w)s$", "", re.sub(r"ies$", "y", word)) for word in _WORD.findall(name.lower())]
    return " ".join(words[1:] if words[:1] in (["a"], ["an"], ["the"]) else words)


def describe_rating(ranking: SentenceRanking, best: Candidate, quotations: Sequence[tuple[str, int]]) -> dict[str, float]:
    """What speaks for an answer of these lines, each with its page's number, that begins with a sentence or a unit, by name."""
    question, lines = ranking.question, [text for text, _ in quotations]
    own = {name: best.features.get(name, 0.0) for name in ("stands_out", "said", "share", "missing", "defines")}
    asks = {f"asks {kind}": float(question.wants == kind) for kind in ("person", "date", "number", "yesno")}
    texts = (*lines, best.scored.sentence.label, ranking.name_page(best.scored.page))
    answer_stems = frozenset(ranking.words.stems(" ".join(texts))).union(*map(ranking.find_measured, lines))
    unsaid = {
        word: share * (1 - max(related_stems(word).get(stem, 0.0) for stem in answer_stems or {""}))
        for word, share in question.word_shares.items()
        if word not in answer_stems
    }
    measures = sum(unsaid.get(word, 0.0) for word in _find_measures(question, ranking))
    has_wanted = any(holds_wanted(ranking, PassageSentence(line)) for line in lines)
    is_unit = float(best.scored.last > 0)
    pairs = ranking.shared_pairs(best.scored) / max(1, len(question.pairs))
    return {
        **own,
        **asks,
        "missing": max(0.0, own["missing"] - measures),
        "nearness": best.nearness,
        "chance": best.chance,
        "score": _answer_score(question, ranking),
        "wanted": float(has_wanted or ranking.wants not in FACTS),
        "unsaid": sum(unsaid.values()) - measures,
        # words far apart, or on several pages, may be those of another question
        "pairs": pairs,
        "no pair": float(bool(question.pairs) and not pairs),
        "pages": float(len({number for _, number in quotations})),
        "few": float(asks_briefly(question)),
        "unit": is_unit,
        "unit nearness": is_unit * best.nearness,
        "bias": 1.0,
    }


def are_missed(question: Question, ranking: SentenceRanking) -> bool:
    """Whether pages tell of something else than the question asks about, so that a search missed it."""
    return not _is_short(question) and _answer_score(question, ranking) < load_weights(WORDS_RATING)["missed"]


def asks_briefly(question: Question) -> bool:
    """Whether a question has few words of its own, so that many sentences have them all."""
    return len(set(question.stems)) < MIN_SENTENCE_WORDS


def _is_short(question: Question) -> bool:
    return sum(weight >= 1 for weight in question.weights.values()) < MIN_WORDS


def _answer_score(question: Question, ranking: SentenceRanking) -> float:
    """How well the best sentences answer a question, as log odds."""
    return sum_points({**_describe_words(question, ranking), "bias": 1.0}, load_weights(WORDS_RATING))


def _describe_words(question: Question, ranking: SentenceRanking) -> dict[str, float]:
    """The five figures by name; all are 0 where no sentence has a word of the question."""
    best = [s for s in ranking.ranked if s.score > 0][:MAX_CANDIDATES]
    measures = _find_measures(question, ranking)
    shares = {word: share for word, share in question.word_shares.items() if word not in measures} or question.word_shares
    whole = sum(shares.values())
    weights = {word: share / whole for word, share in shares.items()}
    if not best or not any(weights.values()):
        return dict.fromkeys(("best", "together", "names", "subject", "pairs"), 0.0)
    share = max(weigh_words(weights, ranking.words_by_place(s)) for s in best)
    name_words = [word for word in _WORD.findall(question.text)[1:] if word[0].isupper() or word[0].isdigit()]
    names = {stem for word in name_words for stem in ranking.words.stems(word)} & weights.keys()
    of_names = sum(weights[stem] for stem in names)
    # The best sentence and one more, each with what stands around it.
    around = [frozenset[str]().union(*ranking.words_by_place(s)) for s in best]
    return {
        "best": share,
        "together": max(sum(weights.get(word, 0.0) for word in around[0] | other) for other in around),
        # the share of the names and numbers that occur on any page; for a question without one, the best share
        "names": sum(weights[stem] for stem in names & ranking.all_words()) / of_names if of_names else share,
        "subject": float(any(is_named(subject, question.text) for subject in ranking.subjects)),
        "pairs": max(ranking.shared_pairs(s) for s in best) / max(1, len(question.pairs)),
    }


def _find_measures(question: Question, ranking: SentenceRanking) -> set[str]:
    """The word after "how", which asks for a measure, and words for now: neither need stand in an answer."""
    words = (*_MEASURE.findall(question.text), *find_words_for_now(question.text))
    return {stem for word in words for stem in ranking.words.stems(word)}
