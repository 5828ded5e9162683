"""Names and quoted titles in a text, by their capitals and marks. Pure; no list of names is known here."""

from __future__ import annotations

import re

from nexi.text.stopwords import STOP

_CAPITAL = r"[A-ZÀ-ÞΑ-ΩА-Я][\w'’.-]*"
_NAME = re.compile(
    rf"[\"“«]([^\"”»]{{2,80}})[\"”»]|(?<!=)({_CAPITAL}(?:\s+(?:&\s+|(?:of|the|de|la|von|van|der)\s+)*{_CAPITAL})*)"
)
_OPENING_WORDS = frozenset(
    ("compare", "explain", "describe", "list", "name", "find", "show", "tell", "give", "between", "besides")
)


def find_names(question: str) -> list[str]:
    """Find names and quoted titles, in order; the first word of a sentence is a name only with another one."""
    names = []
    for match in _NAME.finditer(question):
        name = (match[1] or match[2]).strip(" .,'’-")
        starts = match.start() == 0 or question[: match.start()].rstrip()[-1:] in "?!."
        words = name.split()
        while words and not match[1] and words[0].lower() in (STOP | _OPENING_WORDS if starts else STOP - {"the"}):
            words = words[1:]
            starts = False
        if match[1] or len(words) > 1 or (words and not starts):
            names.append(" ".join(words))
    return list(dict.fromkeys(name for name in names if name))
