"""Wraps plain text at words for a terminal, which would break it in the middle of a word.

Pure. A word that is longer than a line stays whole, so that a URL can be opened and copied. Code and tables keep their lines.
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


def _width_of(text: str) -> int:
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


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
        written: list[str] = []
        for piece in _PIECE.findall(text):
            if not piece.isspace():
                self._word += piece
                continue
            written.append(self._place_word())
            if piece == "\n":
                written.append(self._end_line())
            else:
                self._blanks += piece
        return "".join(written)

    def finish(self) -> str:
        """Return what is held back."""
        rest = self._place_word() + self._blanks
        self._blanks = ""
        return rest

    def _place_word(self) -> str:
        if not self._word:
            return ""
        placed, blanks = self._word, self._blanks
        self._word = self._blanks = ""
        is_first = not self._line.strip()
        self._line += blanks + placed
        width = _width_of(placed)
        if is_first or self._keeps_line() or self._column + len(blanks) + width <= self._columns:
            self._column += len(blanks) + width
            return blanks + placed
        if not self._indent:
            found = _INDENT.match(self._line)
            self._indent = found.end() if found and found.end() <= self._columns // 3 else 0
        self._column = self._indent + width
        return "\n" + " " * self._indent + placed

    def _keeps_line(self) -> bool:
        return self._in_code or self._line.lstrip().startswith(("|", "```", "~~~"))

    def _end_line(self) -> str:
        if self._line.lstrip().startswith(("```", "~~~")):
            self._in_code = not self._in_code
        blanks = self._blanks if self._column + len(self._blanks) <= self._columns else ""
        self._line = self._blanks = ""
        self._column = self._indent = 0
        return blanks + "\n"
