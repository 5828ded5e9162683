"""A word in the form in which it is compared: without case, accents, endings and possessive.

Below `proof`. Scripts without spaces give pairs of characters. Remembered, since a word's term depends on nothing but the word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from nexi.text.stems import stem
from nexi.text.stopwords import FUNCTION_WORDS
from nexi.text.words import UNSPACED, has_unspaced

WORD = re.compile(rf"(?:[A-Z]\.){{2,}}|[^\W_{UNSPACED}]+(?:['’ʼ][^\W_{UNSPACED}]+)?|[{UNSPACED}]+")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652\u0670\u0640]")
_POSSESSIVE = re.compile(r"'s$|'$")


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
