"""What a conversation has read in files of this machine, and whether a search query repeats it.

The session above marks such texts; below is only the pattern of a word. A page on the web can tell a model to search for what
it has read in a private note, and a search service is a stranger. What is recognised is a quotation: words in a row, and codes,
numbers and addresses. A paraphrase is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from nexi.text.words import STOP, find_words, has_unspaced

WORDS_IN_A_ROW = 3
LETTERS_IN_A_ROW = 6  # of a script without spaces
MIN_CODE_CHARS = 5

_TOKEN = re.compile(r"(?:[^\s,;()\[\]{}<>\"'`|]|(?<=\d),(?=\d))+")
_CODE = re.compile(r"(?=.*\d).{5,}|(?=.*[A-Z]{2})(?=.+[-_./:+=]).{8,}|.+@.+|.{20,}", re.DOTALL)


class PrivateTexts:
    """The private texts of one conversation; a research run and its researchers share them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._words = " "
        self._codes: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._seen)

    def add(self, text: str) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        self._words += f"{normalise_words(text)} "
        codes = filter(_CODE.fullmatch, (match.strip(".:!?*_") for match in _TOKEN.findall(text)))
        for words in (find_words(code.casefold()) for code in codes):
            self._codes.update(word for word in words if len(word) >= MIN_CODE_CHARS)
            if len(words) > 1:  # 12,500 can be written as two words or as one; three in a row are recognised anyway
                self._codes.update((" ".join(words), "".join(words)))

    def find_quotation(self, query: str, is_public: Callable[[str], bool]) -> str:
        """The first words of a query that quote these texts; "" for none. `is_public` knows what others have said."""
        words = find_words(query.casefold())
        return next((quotation for quotation in self._quotations(words) if not is_public(quotation)), "")

    def _quotations(self, words: list[str]) -> Iterator[str]:
        yield from (word for word in words if word in self._codes)
        yield from (pair for pair in map(" ".join, pairwise(words)) if pair in self._codes)
        for start in range(len(words) - WORDS_IN_A_ROW + 1):
            row = words[start : start + WORDS_IN_A_ROW]
            if f" {' '.join(row)} " in self._words and not all(word in STOP for word in row):
                yield " ".join(row)
        for word in filter(has_unspaced, words):
            rows = (word[start : start + LETTERS_IN_A_ROW] for start in range(len(word) - LETTERS_IN_A_ROW + 1))
            yield from (row for row in rows if row in self._words)


def normalise_words(text: str) -> str:
    """The words of a text in lower case, one blank between two."""
    return " ".join(find_words(text.casefold()))
