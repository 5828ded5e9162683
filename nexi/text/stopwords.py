"""The small words of languages: which words say nothing, and which language a text is in."""

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


def language_of(text: str) -> str:
    """The language whose small words stand in a text of Latin letters; "" where none stands out."""
    words = re.findall(r"[^\W\d_]+", text[:20_000].casefold())
    counts = sorted(((sum(map(small.__contains__, words)), name) for name, small in SMALL_WORDS.items()), reverse=True)
    (most, name), (next_most, _) = counts[:2]
    return name if most >= MIN_SMALL_WORDS and most >= 2 * next_most else ""
