"""Text as words: the small words of languages, words and names as they are written, and scripts without spaces. Pure.

Names are known by their capitals and marks, and which language a text is in by its small words; no list of names is known here.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def read_word_sets(module_file: str) -> dict[str, frozenset[str]]:
    """The lists of words beside a module, in the JSON file of its name."""
    return msgspec.json.decode(Path(module_file).with_suffix(".json").read_bytes(), type=dict[str, frozenset[str]])


SMALL_WORDS = read_word_sets(__file__)  # by the name of a language, once the two sets below are taken out
STOP = SMALL_WORDS.pop("stop")
FUNCTION_WORDS = SMALL_WORDS.pop("function_words")  # fewer: "not", "I" and "all" say something when a sentence is compared
MIN_SMALL_WORDS = 3  # that tell a language

UNSPACED = (  # what stands inside the brackets of a character class
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = re.compile(r"[^\W_]+")
_QUERY_WORD = re.compile(r"[\w'’.+#-]+")  # with what belongs to names such as C++ and node.js
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
_CAPITAL = r"[A-ZÀ-ÞΑ-ΩА-Я][\w'’.-]*"
_NAME = re.compile(
    rf"[\"“«]([^\"”»]{{2,80}})[\"”»]|(?<!=)({_CAPITAL}(?:\s+(?:&\s+|(?:of|the|de|la|von|van|der)\s+)*{_CAPITAL})*)"
)
_OPENING_WORDS = frozenset(
    ("compare", "explain", "describe", "list", "name", "find", "show", "tell", "give", "between", "besides")
)


def language_of(text: str) -> str:
    """The language whose small words stand in a text of Latin letters; "" where none stands out."""
    words = re.findall(r"[^\W\d_]+", text[:20_000].casefold())
    counts = sorted(((sum(map(small.__contains__, words)), name) for name, small in SMALL_WORDS.items()), reverse=True)
    (most, name), (next_most, _) = counts[:2]
    return name if most >= MIN_SMALL_WORDS and most >= 2 * next_most else ""


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
