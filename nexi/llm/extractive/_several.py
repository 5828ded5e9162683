"""Questions of several questions: "Who founded the library, when was that and how big is it?"

Above `questions`, below `composition`. Pure, English: a sentence that does not plainly ask several things stays whole, since
the words of a subordinate clause look much like those of a question.
"""

from __future__ import annotations

import re

from nexi.llm.extractive._limits import MAX_ALTERNATIVES, MAX_QUERY_CHARS
from nexi.llm.extractive.questions import Question, extract_keywords, read_question, search_queries

__all__ = ["list_queries", "split_question"]

_QUESTION_WORD = r"(?:what|how|when|where|why|who|which|whose)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|should|will|would|must)"
_BEGINS = re.compile(rf"\W*(?:(?:in|at|on|for|from|to) )?(?:{_QUESTION_WORD}|{_AUXILIARY})\b", re.IGNORECASE)
_JOINT = re.compile(
    rf"(?:\?\s+(?:and\s+)?(?=\w)|[,;]?\s+and\s+(?:also\s+)?(?={_QUESTION_WORD}\s+\w)"
    rf"|[,;]\s+(?=(?:what|how|when|where|why)\s+(?:{_AUXILIARY}|much|many|long|often|old|big|far|large|high)\b))",
    re.IGNORECASE,
)
_ENDS_OPEN = re.compile(rf"\b(?:{_QUESTION_WORD}|to|and|or|than|as)\W*$", re.IGNORECASE)
_REFERS_BACK = re.compile(r"\b(?:it|its|he|him|his|she|her|they|them|their|there|this|that|these|those)\b", re.IGNORECASE)
_IS_ONE = re.compile(
    r"\b(?:difference|differences|compare|compared|both|same|versus|vs|relationship|between|either|older|younger|earlier|later)\b",
    re.IGNORECASE,
)


def split_question(question: Question) -> list[Question]:
    """The questions that one sentence asks; none where it asks one thing. Those before it are the context of an "it"."""
    if question.language or question.choices or _IS_ONE.search(question.text):
        return []
    texts = [text.strip(" ,;?") for text in _JOINT.split(question.text)]
    if len(texts) < 2 or not all(map(_BEGINS.match, texts)) or any(map(_ENDS_OPEN.search, texts)):
        return []
    parts = []
    for n, text in enumerate(texts):
        earlier = texts[:n] if _REFERS_BACK.search(text) else ()
        parts.append(read_question(f"{text}?", " ".join((question.context, *earlier)).strip()))
    return parts[:MAX_ALTERNATIVES] if all(part.stems for part in parts) else []


def list_queries(question: Question) -> list[str]:
    """What to ask a backend: the question itself, and each question in it with the thing that its "it" refers to."""
    parts = split_question(question)
    first = extract_keywords(parts[0]) if parts else ""
    named = [f"{part.text} {first}" if _REFERS_BACK.search(part.text) else part.text for part in parts]
    return list(dict.fromkeys([*search_queries(question), *(text[:MAX_QUERY_CHARS] for text in named)]))
