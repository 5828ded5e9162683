"""Text as words: one pattern of a word, and which scripts put no spaces between words. Pure."""

from __future__ import annotations

import re

from nexi.text.stopwords import STOP

UNSPACED = (  # what stands inside the brackets of a character class
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = re.compile(r"[^\W_]+")
_QUERY_WORD = re.compile(r"[\w'’.+#-]+")  # with what belongs to names such as C++ and node.js
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")


def find_words(text: str) -> list[str]:
    """Runs of letters and digits, as they are written."""
    return _WORD.findall(text)


def content_words(text: str) -> list[str]:
    """The words of a text in lower case, without stop words."""
    return [word for word in _WORD.findall(text.lower()) if word not in STOP]


def drop_stop_words(query: str) -> str:
    """The words of a query that say something, as they are written; "" where none does."""
    return " ".join(word for word in _QUERY_WORD.findall(query) if word.lower() not in STOP)


def contains_words(text: str, words: str) -> bool:
    """Whether each of the wanted words is somewhere in a text, be it within another word; the case does not matter."""
    low = text.casefold()
    return all(word in low for word in words.casefold().split())


def has_words(text: str, words: str) -> bool:
    """Whether these words stand in a text as whole words, side by side; the case does not matter."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def has_unspaced(text: str) -> bool:
    """Whether a letter of a text is of a script that puts no spaces between words."""
    return bool(_HAS_UNSPACED.search(text))
