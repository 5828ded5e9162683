"""The short answer to a question that sets two things side by side: which came first, whether both are the same.

Above `questions`, below `composition`. Reads one sentence about each; says nothing when they do not settle it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from nexi.llm.extractive._lexicon import COUNTRIES, RELATIONS
from nexi.llm.extractive._limits import MAX_HEAD_WORDS, SAME
from nexi.llm.extractive._weights import find_similarity
from nexi.llm.extractive.passages import ContentWords
from nexi.llm.extractive.questions import Question, find_names
from nexi.text.sentences import MONTHS

_EARLIER = re.compile(r"\b(?:first|earlier|older|oldest|before|elder)\b", re.I)
_LATER = re.compile(r"\b(?:later|last|younger|youngest|recent|recently|newer|after|second)\b", re.I)
_LONGER = re.compile(r"\blived? longer\b|\blonger li(?:fe|ved)\b", re.I)
_MORE = re.compile(r"\b(more|most|fewer|fewest|less)\s+(\w+)", re.I)
_SAME_RELATION = re.compile(rf"\bsame ({'|'.join(RELATIONS)})\b", re.I)
_BOTH = re.compile(r"\b(?:both|same)\b", re.I)
_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? )?(?:(?P<m>{'|'.join(MONTHS)}) )?(?:(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?, )?"
    r"(?P<y>1\d{3}|20\d{2})\b",
    re.I,
)
_LIFE_EVENT = re.compile(r"\b(?:born|birth|birthday|birthplace|die|died|death)\b", re.I)
_LIFE_DATES = re.compile(r"\([^()]*\b\d{3,4}\b[^()]*\)|\b(?:born|died)\b[^.;]*\b\d{3,4}\b")
_NAME = r"(?:(?!\b(?:is|was|were|had|married)\b)[^()]){3,80}"
# The date where it belongs, in brackets behind a name or behind the word: "born in Hiram, he read law in 1866" has none.
_LIFE_DAY = re.compile(
    rf"^{_NAME}(?:\([^()]*\){_NAME})?\(\s*[^()]*\b\d{{3,4}}\b[^()]*\)"
    r"|(?<!\()\b(?:born|died)\b(?: (?:on|in|about|around|c\.))?,? (?:[\w.,]+ ){0,6}?\(?[^.;]{0,12}\b\d{3,4}\b"
)
_PARENT = re.compile(r"\b(?:father|mother|parents)\b", re.I)
_TELLS_PARENT = re.compile(
    r"\b(?:sons?|daughters?|child|children) of [\w ]{0,40}?[A-ZÀ-Þ]|\b(?:father|mother)(?: was| is)?,? [A-ZÀ-Þ]"
)
_LIFE_PLACES = re.compile(r"\b(?:born|died|death|birth|buried)\b[^.;]*\b(?:in|at|near) (?:the )?(?!(?:19|20|18)\d\d)[A-ZÀ-Þ]")
_COMPARING = frozenset(ContentWords().stems("both same located used found"))
_AUXILIARY = re.compile(r"^\W*(\w+)\s+")
_CLAUSE_END = re.compile(r"[,;:(—–]| - |\b(?:and|but|because|which|although|since|while)\b")
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|non|neither|nor|without)\b|n['’]t\b", re.I)
_HEDGE = re.compile(
    r"\b(?:may|might|could|should|would|if|unless|whether|some|many|most|few|all|every|only|often|sometimes|usually|generally|"
    r"almost|nearly|once|supposed\w*|claim\w*|believ\w*|thought|said|considered|alleged\w*|argue\w*|except|than)\b|\?",
    re.I,
)
_PAST = re.compile(r"\b(?:was|were|had|did)\b", re.I)
_Value = tuple[int, int]  # of a thing: what it has and how much more, such as months and days
_SMALL = frozenset(ContentWords().stems("never cannot without non neither both itself"))


def find_life_sign(question: Question) -> re.Pattern[str] | None:
    """How a text says when or where someone was born or died, where that was asked."""
    if not _LIFE_EVENT.search(question.text) or question.wants not in ("date", "place"):
        return None
    return _LIFE_DATES if question.wants == "date" else _LIFE_PLACES


def tells_of_life(question: Question, text: str) -> bool:
    """Whether a text says when someone was born or died, or who the parents were, in the words for it, and that was asked."""
    if question.wants == "person" and _PARENT.search(question.text):
        return _TELLS_PARENT.search(text) is not None
    if find_life_sign(question) is not _LIFE_DATES:
        return False
    is_behind = any(re.search(rf"{re.escape(name)} ?\([^()]*\b\d{{3,4}}\b", text) for name in find_names(question.text))
    return is_behind or _LIFE_DAY.search(text) is not None


class Side(Struct, frozen=True):
    """One of the two things: its name as the question has it, the sentence that introduces it, and how its page begins."""

    name: str
    text: str
    opening: str = ""


def compare_sides(question: Question, one: Side, other: Side) -> str:
    """ "A.", "Yes." or "No." when the two texts settle the question, else nothing."""
    if _BOTH.search(question.text) and question.wants == "yesno":
        return _answer_yes_or_no(question, one, other)
    if _LONGER.search(question.text):
        return _answer_by_value(one, other, _life_span(one.text), _life_span(other.text), want_more=True)
    if more := _MORE.search(question.text):
        first, second = (_count_things(f"{side.text} {side.opening}", more[2]) for side in (one, other))
        return _answer_by_value(one, other, first, second, want_more=more[1].lower() in ("more", "most"))
    earlier, later = bool(_EARLIER.search(question.text)), bool(_LATER.search(question.text))
    if earlier == later:
        return ""
    is_death = re.search(r"\bdied?\b", question.text, re.I) is not None
    first, second = _event_date(one.text, is_death), _event_date(other.text, is_death)
    return _answer_by_value(one, other, first, second, want_more=later)


def confirm_statement(question: Question, text: str, about: str) -> str:
    """ "Yes." or "No." where a sentence says just what a question asks, in its words and their order; else nothing."""
    # What the page is `about` need not be said again. One that hedges, says more, or tells of another time settles nothing.
    words = ContentWords()
    clause = _CLAUSE_END.split(text)[0]
    question_stems, clause_stems = words.stems(_AUXILIARY.sub("", question.text)), words.stems(clause)
    is_past = _PAST.match(question.text) is not None
    if _HEDGE.search(clause) or (_PAST.search(clause) is not None) != is_past:
        return ""
    for small_words in (_SMALL, _SMALL.union(words.stems(about))):
        statement = [stem for stem in question_stems if stem not in small_words]
        if len(statement) > 1 and statement == [stem for stem in clause_stems if stem not in small_words][: len(statement)]:
            return ("Yes.", "No.", "")[min(2, len(_NEGATION.findall(clause)))]
    return ""


def _answer_by_value(one: Side, other: Side, first: _Value | None, second: _Value | None, *, want_more: bool) -> str:
    if first is None or second is None or first == second:
        return ""
    return f"{(one if (first > second) == want_more else other).name}."


def _count_things(text: str, noun: str) -> _Value | None:
    """How many of something a text counts: 100 of "75-100 species"."""
    noun_stems = set(ContentWords().stems(noun))
    for match in re.finditer(r"(\d[\d,]*)(?:\s*[-–]\s*(\d[\d,]*))?\s+(?:\w+\s+){0,2}?(\w+)", text):
        if noun_stems & set(ContentWords().stems(match[3])):
            return (int((match[2] or match[1]).replace(",", "")), 0)
    return None


def find_dates(text: str) -> list[_Value]:
    """The dates of a text as months and days, in order."""
    dates: list[_Value] = []
    for match in _DATE.finditer(text):
        month = MONTHS.index(match["m"].lower()) if match["m"] else 0
        day = int(match["d1"] or match["d2"] or 0) if match["m"] else 0
        dates.append((int(match["y"]) * len(MONTHS) + month, day))
    return dates


def _event_date(text: str, is_death: bool) -> _Value | None:
    dates = find_dates(text)
    if is_death:
        dates = dates[1:] or (dates if re.search(r"\bdied\b", text, re.I) else [])
    return dates[0] if dates else None


def _life_span(text: str) -> _Value | None:
    (birth, birth_day), (death, death_day) = (*find_dates(text), (0, 0), (0, 0))[:2]
    return (death - birth, death_day - birth_day) if death > birth else None


def _answer_yes_or_no(question: Question, one: Side, other: Side) -> str:
    if re.search(r"\bsame (?:country|nationality|nation)\b|\bsame\b.*\bcountry\b", question.text, re.I):
        first, second = (_find_countries(side.text) or _find_countries(side.opening) for side in (one, other))
        return "" if not first or not second else "Yes." if first & second else "No."
    if relation := _SAME_RELATION.search(question.text):
        first, second = (_find_related_names(side.text, relation[1].lower()) for side in (one, other))
        return "" if not first or not second else "Yes." if first & second else "No."
    words = ContentWords()
    rest = question.text
    for name in (one.name, other.name):
        rest = re.sub(re.escape(name), " ", rest, flags=re.I)
    question_stems = set(words.stems(rest)) - _COMPARING
    if not question_stems or "same" in question.text.lower():
        return ""
    side_stems = [frozenset(words.stems(f"{side.text} {side.opening}")) for side in (one, other)]
    shares = [sum(find_similarity(word, stems) > SAME for word in question_stems) / len(question_stems) for stems in side_stems]
    return "Yes." if min(shares) == 1 else "No." if max(shares) == 1 and min(shares) == 0 else ""


def _find_related_names(text: str, relation: str) -> frozenset[str]:
    """The names that stand in a relation: those after "directed by" for a director."""
    cue = re.search(rf"\b(?:{'|'.join(RELATIONS[relation])})\b((?:\s+\S+){{1,{MAX_HEAD_WORDS}}})", text, re.I)
    phrase = re.split(r"\b(?:starring|from|about|in|on)\b|[.;(]", cue[1])[0] if cue else ""
    return frozenset(name for name in find_names(phrase) if len(name.split()) > 1)


def _find_countries(text: str) -> frozenset[str]:
    """The countries a text names, by name or by people."""
    names = re.findall(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*", text)
    parts = {part for name in names for part in (name, *name.split())}
    return frozenset(COUNTRIES[p.lower()] for p in parts if p.lower() in COUNTRIES)
