"""A text as words that can be compared: case, endings, accents and common synonyms set aside.

Below `facts` and `snapshots`. Scripts without spaces give pairs of characters. A word's terms depend on nothing but the word,
so they are remembered.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from nexi.proof.lexicon import AUXILIARIES, DENIALS, FOREIGN_SMALL, PRONOUNS
from nexi.proof.synonyms import GROUP_OF
from nexi.text.stems import stem
from nexi.text.stopwords import STOP

_WIDE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[{_WIDE}]")
WORD = re.compile(rf"[^\W_{_WIDE}]+(?:['’ʼ][^\W_{_WIDE}]+)?|[{_WIDE}]+")
_MARKS = re.compile("[\u0300-\u036f\u064b-\u0652\u0670\u0640]")
_LATIN = re.compile(r"[a-z0-9']+$")
_EMPTY = STOP | AUXILIARIES | DENIALS | PRONOUNS | FOREIGN_SMALL | {"without"}
_POSSESSIVE = re.compile(r"'s$|'$")
_CYRILLIC_ENDING = re.compile("(?<=[а-яё]{3})(?:[аеиоуыэюяйь]{1,2}|ом|ем|ов|ев|ам|ям|ах|ях)$")
ROOT = 5  # letters of a word kept in alphabets whose endings nobody here knows


@lru_cache(maxsize=30_000)
def flat(word: str) -> str:
    """A word without case, accents and possessive."""
    low = word if word.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", word)).replace("’", "'").replace("ʼ", "'")
    return _POSSESSIVE.sub("", low.casefold())


@lru_cache(maxsize=30_000)
def root(word: str) -> str:
    """The root of a flat word."""
    return stem(word)


@lru_cache(maxsize=30_000)
def terms(word: str) -> tuple[str, ...]:
    """The comparable forms of one word; none for small words and bare digits."""
    if UNSPACED.search(word):
        word = unicodedata.normalize("NFKC", word)
        return tuple(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    low = flat(word)
    if low in _EMPTY or low.isdecimal() or not low or low.endswith("n't"):
        return ()
    if not _LATIN.match(low):
        low = low.removeprefix("ال") if len(low) > 4 else low
        low = _CYRILLIC_ENDING.sub("", low) if len(low) > 3 else low
        return (low[:ROOT] if len(low) > ROOT else low,)
    found = root(low)
    return (GROUP_OF.get(found, found),)


def is_known(word: str) -> bool:
    """Whether the words that mean the same as this one are listed."""
    return root(word) in GROUP_OF
