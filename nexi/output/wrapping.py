"""Wraps plain text at words for a terminal, which would break it in the middle of a word.

A word that is longer than a line stays whole, so that a URL can be opened and copied. Code and tables keep their lines.
"""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

MIN_COLUMNS = 10
_INDENT = re.compile(r"\s*(?:(?:[-*•·✓✗○!?+]|\d{1,3}[.)]|\[\d{1,3}\]) +)?")
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


def wrap_text(text: str, columns: int) -> str:
    """Wrap every line; continued lines are indented like the text of their first line."""
    wrapper = WordWrapper(columns)
    return wrapper.feed(text) + wrapper.finish()


class WordWrapper:
    """Wraps text that arrives in parts; holds back the last word until it is complete."""

    def __init__(self, columns: int) -> None:
        self._columns = columns if columns >= MIN_COLUMNS else 0
        self._word = self._blanks = self._line = ""
        self._column = self._indent = 0
        self._in_code = False

    def feed(self, text: str) -> str:
        """Add text; return what can be written now."""
        if not self._columns:
            return text
        out: list[str] = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            out.append(self._place_word())
            if piece != "\n":
                self._blanks += piece
                continue
            if self._line.lstrip().startswith(("```", "~~~")):
                self._in_code = not self._in_code
            out.append(self._blanks if self._column + len(self._blanks) <= self._columns else "")
            out.append("\n")
            self._line = self._blanks = ""
            self._column = self._indent = 0
        return "".join(out)

    def finish(self) -> str:
        rest = self._place_word() + self._blanks
        self._blanks = ""
        return rest

    def _place_word(self) -> str:
        if not self._word:
            return ""
        word, blanks = self._word, self._blanks
        self._word = self._blanks = ""
        is_first = not self._line.strip()
        self._line += blanks + word
        keeps_line = self._in_code or self._line.lstrip().startswith(("|", "```", "~~~"))
        width = sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in word)
        if is_first or keeps_line or self._column + len(blanks) + width <= self._columns:
            self._column += len(blanks) + width
            return blanks + word
        if not self._indent:
            indent = _INDENT.match(self._line)
            self._indent = indent.end() if indent and indent.end() <= self._columns // 3 else 0
        self._column = self._indent + width
        return "\n" + " " * self._indent + word
