"""Headings made of the parts of a question."""

from __future__ import annotations

import re

from nexi.text.stems import stem
from nexi.text.stopwords import word_set

COMMAND_STEMS = frozenset(map(stem, word_set("describe compare explain discuss list outline summarise summarize")))


def make_heading(part: str) -> str:
    """A part without the subject that was put in brackets for its search, and without "Describe" or "Compare"."""
    text = re.sub(r"\s*\([^()]*\)(?=\??$)", "", part)
    first, _, rest = text.partition(" ")
    text = rest.rstrip(".") if stem(first.lower()) in COMMAND_STEMS and rest else text
    return text[:1].upper() + text[1:]
