"""Cuts streamed Markdown into blocks that will not change any more.

A heading is complete at its line end, code at its closing fence, a list before text that is neither an item nor indented,
anything else at a blank line. The joined blocks are the text.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)")


class BlockStream:
    """Takes streamed text and returns complete blocks; keeps the unfinished one."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # the unfinished block, each line with its line end
        self._line = ""
        self._fence = ""
        self._has_text = self._is_list = self._after_blank = False

    @property
    def open_block(self) -> str:
        return "".join(self._lines) + self._line

    def feed(self, text: str) -> list[str]:
        """Add text; return the blocks that it completes."""
        *whole, rest = text.split("\n")
        blocks: list[str] = []
        for end in whole:
            line, self._line = f"{self._line}{end}\n", ""
            is_flush = bool(line.strip()) and line[0] not in " \t"
            if self._is_list and self._after_blank and is_flush and not _ITEM.match(line):
                blocks.append(self._cut_block())
            if not self._has_text and line.strip():
                self._has_text, self._is_list = True, bool(_ITEM.match(line))
            self._lines.append(line)
            if mark := _FENCE.match(line):
                if not self._fence:
                    self._fence = "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]
                elif mark[1].startswith(self._fence) and not mark[2].strip():
                    self._fence = ""
            self._after_blank = not self._fence and not line.strip()
            may_end = self._has_text and not self._fence and not self._is_list
            if may_end and (self._after_blank or mark or _HEADING.match(line)):
                blocks.append(self._cut_block())
        self._line += rest
        return blocks

    def finish(self) -> str:
        rest = self.open_block
        self._cut_block()
        self._line = self._fence = ""
        return rest

    def _cut_block(self) -> str:
        block, self._lines = "".join(self._lines), []
        self._has_text = self._is_list = self._after_blank = False
        return block
