"""What nexi knows of languages beside English: small words, question words, months, stemmers, and which one a text is in.

Functions of general language over the data in `languages.json`, used where a question is read and its pages are compared with
it. English needs no entry: it is what everything falls back to.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import msgspec

from nexi.text.words import STOP


class Language(msgspec.Struct, frozen=True):
    """One language: its small words, and patterns of question words by what they ask for, tried in their order."""

    name: str
    stemmer: str
    letters: str
    asks: dict[str, str]
    stop: frozenset[str] = frozenset()
    months: frozenset[str] = frozenset()


LANGUAGES = msgspec.json.decode(Path(__file__).with_name("languages.json").read_bytes(), type=dict[str, Language])
_LETTER_WEIGHT = 2
MANY_WORDS = 12  # in which one that is said again and again, or a letter of a name, tells no language
# One consonant is a word where it is cut short, as in l'eau; else it is a unit or a name.
_WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_](?=['’])|[^\W\d_bcdfghjklmnpqrstvx]")
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "zh": re.compile("[\u3400-\u9fff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}
_CHINESE_SMALL = re.compile(
    "什么时候|什么地方|什么|何时|哪里|哪儿|哪个|哪一?年|谁|多少|多[长高大远重深]|几月|[几吗呢是的了在由有于和与于]"
)
_JAPANESE_SMALL = re.compile(
    "(?:したの|たの|の)は|(?:ました|ます|でした|です)か?|どのくらい|いつ|どこ|どの|だれ|いくつ|[誰何？?]"
    "|(?<=[\u30a0-\u30ff\u3400-\u9fff])(?:では|には|[はがをにでのへと])(?=[\u30a0-\u30ff\u3400-\u9fff『「\\s]|$|ど|い|だ)"
)


@lru_cache(maxsize=512)
def detect_language(text: str) -> str:
    """The language of a text as a code, "en" among them; "" where it is unclear."""
    sample = text[:4000]
    scripts = {code: len(pattern.findall(sample)) for code, pattern in _SCRIPTS.items()}
    if scripts["ja"] and scripts["ja"] + scripts["zh"] > scripts["latin"]:  # Japanese has Chinese signs as well
        return "ja"
    most = max(scripts, key=lambda code: scripts[code])
    if not scripts[most] or most != "latin":
        return most if scripts[most] else ""
    words = _WORD.findall(sample.replace("İ", "i").lower())
    counts = {"en": _count_signs(words, STOP)}
    for code, language in LANGUAGES.items():
        if language.stop and language.stemmer not in ("russian", "arabic"):
            marks = sum(1 for letter in set(language.letters) if letter in sample or letter in sample.lower())
            counts[code] = _count_signs(words, language.stop, marks)
    first, second, *_ = sorted(counts.values(), reverse=True)
    return max(counts, key=lambda code: counts[code]) if first > second else ""


def _count_signs(words: list[str], stop: frozenset[str], letters: int = 0) -> int:
    """How much speaks for a language: its small words, and how many of its own letters; many words need two signs of it."""
    small = [word for word in words if word in stop]
    is_enough = len(words) < MANY_WORDS or len(set(small)) + letters > 1
    return len(small) + _LETTER_WEIGHT * letters if is_enough else 0


def name_language(code: str) -> str:
    """The English name of a language."""
    return LANGUAGES[code].name if code in LANGUAGES else "English"


def strip_question_words(text: str, language: str) -> str:
    """A question without the words that only ask, in a language that puts no spaces between words."""
    if language not in ("zh", "ja"):
        return text
    pieces = (_CHINESE_SMALL if language == "zh" else _JAPANESE_SMALL).sub(" ", text).split()
    return " ".join(piece for piece in pieces if len(piece) > 1)  # one character alone is no pair


def find_asked_kind(text: str, language: str) -> str:
    """What the question words of a language ask for: "date", "person", "place", "number", or nothing."""
    asks = LANGUAGES[language].asks if language in LANGUAGES else {}
    edge = "" if language in ("zh", "ja") else r"\b"
    low = text.replace("İ", "i").lower()
    return next((kind for kind, pattern in asks.items() if re.search(f"{edge}(?:{pattern}){edge}", low)), "")
