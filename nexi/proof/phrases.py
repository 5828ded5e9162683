"""Phrases that say one thing, brought to one wording before a text is read.

Below `facts`. Only phrases of several words whose single words would mislead, and names that are written in two ways; single
words that mean the same are in `synonyms`.
"""

from __future__ import annotations

import re

_PHRASES = (
    ("at least", r"(?:not|no) (?:less|fewer) than"),
    ("at most", r"(?:not|no) more than|not exceeding|not to exceed"),
    ("occurred", r"t(?:ook|akes?|aken) place"),
    ("began", r"(?:t(?:ook|akes?) effect|c(?:ame|omes?) into (?:force|effect)|enter(?:ed|s) into force|got under way)"),
    ("died", r"passed away"),
    ("supported", r"(?:was|were|is|are) in favou?r of"),
    ("CEO", r"[Cc]hief [Ee]xecutive(?: [Oo]fficer)?"),
    ("CFO", r"[Cc]hief [Ff]inancial [Oo]fficer"),
    ("World War I", r"(?:the )?(?:First World War|WWI|World War One)"),
    ("World War II", r"(?:the )?(?:Second World War|WWII|WW2|World War Two)"),
)
_FIND = re.compile("|".join(rf"(?P<p{n}>\b(?:{pattern})\b)" for n, (_, pattern) in enumerate(_PHRASES)))
_HINTS = re.compile(r" than|exceed|place|effect|force|under way|away|favou?r|xecutive|inancial|World War|WW")
_STATES = re.compile(r"\bUnited States(?: of America)?\b|\bU\.S\.A\b\.?|\bU\.S\.(?! ?[a-z]{0,3}\b[A-Z])|\bUS(?=\b(?!\$))")
_KINGDOM = re.compile(r"\bUnited Kingdom\b|\bU\.K\.")


def one_wording(text: str) -> str:
    """The text with those phrases as one word or one name."""
    text = _KINGDOM.sub("UK", _STATES.sub("USA", text))
    return _FIND.sub(lambda found: _PHRASES[int((found.lastgroup or "p0")[1:])][0], text) if _HINTS.search(text) else text
