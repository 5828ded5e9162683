"""A word in the form in which it is compared: its root, and the word without case, accents, endings and possessive.

Pure. Roots are those of Snowball's stemmers and of a table of irregular English forms. The algorithm follows from the script of
the word alone, so a word always has the same root: Latin letters are read as English, which leaves most words of its
neighbours alone. Scripts without spaces give pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from nexi.text.words import FUNCTION_WORDS, UNSPACED, has_unspaced

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
WORD = re.compile(rf"(?:[A-Z]\.){{2,}}|[^\W_{UNSPACED}]+(?:['’ʼ][^\W_{UNSPACED}]+)?|[{UNSPACED}]+")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652\u0670\u0640]")
_POSSESSIVE = re.compile(r"'s$|'$")


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


@lru_cache(maxsize=30_000)
def normalise_word(word: str) -> str:
    """A word without case, accents, possessive and the dots of an abbreviation."""
    if not word.isascii():
        word = _ACCENTS.sub("", unicodedata.normalize("NFKD", word)).replace("’", "'").replace("ʼ", "'")
    return _POSSESSIVE.sub("", word.casefold()).replace(".", "")


@lru_cache(maxsize=30_000)
def word_terms(word: str) -> tuple[str, ...]:
    """The comparable forms of one word; none for small words."""
    if has_unspaced(word):
        word = unicodedata.normalize("NFKC", word)
        return tuple(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    low = normalise_word(word)
    if low in FUNCTION_WORDS or not low:
        return ()
    if low.endswith("n't") or low == "cannot":
        return ("not",)
    return (stem(low),)
