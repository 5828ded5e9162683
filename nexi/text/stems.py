"""The root of a word, for comparing words: Snowball's stemmers, and a table of irregular English forms.

Pure. The algorithm follows from the script of the word alone, so a word always has the same root: Latin letters are read as
English, which leaves most words of its neighbours alone.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

VERSION = 2  # raise it when the same word gets another root: an index that stores roots is built anew then
_FORMS: dict[str, str] = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes())  # by the word they are read as
IRREGULAR = {form: base for base, forms in _FORMS.items() for form in forms.split()}
_SCRIPTS = (  # first and last letter, and the algorithm
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


@lru_cache(maxsize=32_768)
def stem(word: str, language: str = "") -> str:
    """The root of a lower-case word; `language` names the algorithm for Latin letters, English where it is not given."""
    algorithm, first = "english", word[:1]
    if first >= _SCRIPTS[0][0]:
        algorithm = next((name for low, high, name in _SCRIPTS if low <= first <= high), "english")
    if language and algorithm == "english":
        algorithm = language
    try:
        root: str = _stemmer(algorithm).stemWord(IRREGULAR.get(word, word) if algorithm == "english" else word)
    except UnicodeEncodeError:  # half of a surrogate pair
        return word
    return root


def stem_english(word: str) -> str:
    """The root of a lower-case ASCII word, not cached: for callers that have a larger cache."""
    root: str = _stemmer("english").stemWord(IRREGULAR.get(word, word))
    return root


@cache
def _stemmer(algorithm: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(algorithm, 0)  # without its cache: `stem` has one
