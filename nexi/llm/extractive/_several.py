"""Questions of several questions: "Who founded the library, when was that and how big is it?"

Above `questions`, below `composition`. Pure, English: a sentence that does not plainly ask several things stays whole, since
the words of a subordinate clause look much like those of a question.
"""

from __future__ import annotations

import re

from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_QUERY_CHARS
from nexi.llm.extractive.questions import Question, find_names, read_question, search_queries
from nexi.text.parts import find_antecedent, find_subject, has_pronoun, name_subject

_QUESTION_WORD = r"(?:what|how|when|where|why|who|which|whose)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|should|will|would|must)"
_BEGINS = re.compile(rf"\W*(?:(?:in|at|on|for|from|to) )?(?:{_QUESTION_WORD}|{_AUXILIARY})\b", re.IGNORECASE)
_JOINT = re.compile(
    rf"(?:\?\s+(?:and\s+)?(?=\w)|[,;]?\s+and\s+(?:also\s+)?(?={_QUESTION_WORD}\s+\w)"
    rf"|[,;]\s+(?=(?:what|how|when|where|why)\s+(?:{_AUXILIARY}|much|many|long|often|old|big|far|large|high)\b))",
    re.IGNORECASE,
)
_ENDS_OPEN = re.compile(rf"\b(?:{_QUESTION_WORD}|to|and|or|than|as)\W*$", re.IGNORECASE)
_IS_ONE = re.compile(
    r"\b(?:difference|differences|compare|compared|both|same|versus|vs|relationship|between|either|older|younger|earlier|later)\b",
    re.IGNORECASE,
)


def split_question(question: Question) -> list[Question]:
    """The questions that one sentence asks; none where it asks one thing. A pronoun gives way to what it refers to."""
    if question.language or question.choices or _IS_ONE.search(question.text):
        return []
    texts = [text.strip(" ,;?") for text in _JOINT.split(question.text)]
    if len(texts) < 2 or not all(map(_BEGINS.match, texts)) or any(map(_ENDS_OPEN.search, texts)):
        return []
    wholes, subjects = list[str](), list[str]()
    names = " ".join(find_names(texts[0].partition(" ")[2]))
    for text in texts:
        whole = name_subject(text, find_antecedent(text, subjects)) if has_pronoun(text) else text
        # "Who was the commander?" after the name of a mission is asked of that mission
        is_bare = wholes and whole == text and not has_pronoun(text) and not find_names(text.partition(" ")[2])
        wholes.append(f"{text} ({names})" if is_bare and names else whole)
        subjects.append(find_subject(whole))
    parts = [read_question(f"{whole}?", question.context) for whole in wholes[:MAX_ALTERNATIVES]]
    return parts if all(part.stems for part in parts) else []


def list_queries(question: Question) -> list[str]:
    """What to ask a backend: the question itself, and each question in it."""
    return list(dict.fromkeys([*search_queries(question), *(part.text[:MAX_QUERY_CHARS] for part in split_question(question))]))
