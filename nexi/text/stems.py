"""The root of a word, for comparing words: Snowball's stemmers, and a table of irregular English forms.

Pure. The algorithm follows from the script of the word alone, so a word always has the same root: Latin letters are read as
English, which leaves most words of its neighbours alone.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

VERSION = 2  # raise it when the same word gets another root: an index that stores roots is built anew then
IRREGULAR = {
    form: base
    for base, forms in (
        ("write", "wrote written writer"), ("lead", "led"), ("build", "built"), ("begin", "began begun"), ("win", "won"),
        ("lose", "lost loss"), ("find", "found"), ("make", "made"), ("give", "gave given"), ("take", "took taken"),
        ("hold", "held"), ("know", "knew known"), ("become", "became"), ("sell", "sold sale"), ("die", "died dying dead death"),
        ("born", "birth"), ("see", "saw seen"), ("go", "went gone"), ("come", "came"), ("get", "got gotten"), ("say", "said"),
        ("leave", "left"), ("send", "sent"), ("spend", "spent"), ("teach", "taught"), ("think", "thought"), ("buy", "bought"),
        ("bring", "brought"), ("fight", "fought"),
        ("catch", "caught"), ("choose", "chose chosen choice"), ("rise", "rose risen"),
        ("speak", "spoke spoken"), ("break", "broke broken"), ("drive", "drove driven"), ("eat", "ate eaten"),
        ("fall", "fell fallen"),
        ("grow", "grew grown"), ("draw", "drew drawn"), ("fly", "flew flown"), ("throw", "threw thrown"),
        ("keep", "kept"), ("mean", "meant"), ("meet", "met"), ("pay", "paid"), ("run", "ran"), ("sing", "sang sung song"),
        ("sit", "sat"), ("stand", "stood"), ("tell", "told"), ("understand", "understood"), ("wear", "wore worn"),
        ("people", "person"),
        ("use", "used using uses user"), ("child", "children"), ("man", "men"), ("woman", "women"), ("life", "lives"),
        ("marry", "marriage married"), ("grow", "growth"), ("high", "height"), ("long", "length"), ("strong", "strength"),
    )
    for form in forms.split()
}  # fmt: skip
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
