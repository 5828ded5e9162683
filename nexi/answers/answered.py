"""What doors say about whether an answer answers its question. The words about sentences and sources are elsewhere."""

from __future__ import annotations

import re

from nexi.types import Answered

NOTHING_ANSWERS = "None of the pages that were read answers this question"  # how a text without an answer begins
NOTHING_FOUND = "Nothing on the pages that could be read answers this question."  # where not even a passage is near
SEVERAL_READINGS = "The question can mean several things; there is a section on each:"
_READING = re.compile(r"^- ([^\n]{2,100}?): .*\[\d{1,3}\]", re.MULTILINE)
_SECTION = re.compile(r"^## ([^\n]{2,100})$", re.MULTILINE)

_TEXTS: dict[Answered, str] = {
    "likely": "Likely answer: the pages match only part of the question.",
    "no": "Not answered: the pages do not seem to answer the question.",
    "depends": "It depends: the question can mean several things, so say which one is meant.",
}


def describe_answered(answered: Answered) -> str:
    """A sentence for the reader; "" where the question is answered, or where nothing rated it."""
    return _TEXTS.get(answered, "")


def list_readings(text: str, answered: Answered) -> list[str]:
    """What the question may mean, where the answer has a line or a section for each reading; none where it is not open."""
    pattern = _SECTION if SEVERAL_READINGS in text else _READING
    readings = list(dict.fromkeys(pattern.findall(text))) if answered == "depends" else []
    return readings if len(readings) > 1 else []


def narrow_question(question: str, reading: str) -> str:
    """The question again, asked about one of the things that it may mean."""
    return f"{question} ({reading})"
