"""Tables of words, read once from `words.json`: number words, months, units, rounding words, pronouns, negations, opposites.

Below everything in `nexi.checking`. The tables are data of general language, without a subject or a site; what a word does is
decided by the modules that use them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nexi.text.sentences import MONTHS
from nexi.text.stems import stem
from nexi.text.words import STOP

_TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))


def _read_measures(kind: str) -> dict[str, tuple[str, float]]:
    """Spelling to dimension and factor."""
    return {word: (unit, factor) for unit, words in _TABLES[kind].items() for word, factor in words.items()}


SMALL_NUMBERS: dict[str, float] = _TABLES["numbers"]
ORDINALS: dict[str, float] = _TABLES["ordinals"]
SCALES: dict[str, float] = _TABLES["scales"]
FRACTIONS = {word: 1 / parts for word, parts in _TABLES["fractions"].items()}
MONTH_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(MONTHS, start=1)} | _TABLES["months"]
UNITS, SYMBOLS = _read_measures("units"), _read_measures("symbols")
ROUNDING: dict[str, str] = _TABLES["rounding"]

PRONOUNS, NEGATIONS = frozenset(_TABLES["pronouns"]), frozenset(_TABLES["negations"])
ASKING_WORDS, AUXILIARIES = frozenset(_TABLES["asking"]), frozenset(_TABLES["auxiliaries"])
PARTICLES, DETERMINERS = frozenset(_TABLES["particles"]), frozenset(_TABLES["determiners"])
HEDGES, CONDITIONS = frozenset(_TABLES["hedges"]), frozenset(_TABLES["conditions"])
WEAK_WORDS = HEDGES | CONDITIONS | frozenset(_TABLES["weak"])
# Each word that says more than its neighbours, with those by which a source may say as much.
STRONG_WORDS = {
    word: frozenset(f"{words} {equals}".split()) for words, equals in _TABLES["strong"].items() for word in words.split()
}
OPPOSITES = frozenset((stem(a), stem(b)) for one, other in _TABLES["opposites"] for a, b in ((one, other), (other, one)))
# Second labels under which countries sell names, and hosts whose subdomains belong to different people.
SECOND_LEVEL_DOMAINS, SHARED_HOSTS = frozenset(_TABLES["second_level_domains"]), frozenset(_TABLES["shared_hosts"])
# Words, and patterns of how a sentence begins, that speak of the answer and not of the world.
FRAME_WORDS = frozenset(stem(word) for word in (*_TABLES["frame"], *STOP, *ASKING_WORDS, *AUXILIARIES))
ABOUT_ITSELF, ATTRIBUTIONS = "|".join(_TABLES["about_itself"]), "|".join(_TABLES["attributions"])
