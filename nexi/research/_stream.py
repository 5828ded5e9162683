"""Releases the report in the evaluator's reply while the reply is still arriving.

The evaluator above passes it what the model writes. Nothing of a delegation is released, nor of the prose that may introduce
one, and nothing before the first citation, because a report without one is replaced. The released pieces, joined, are the
report in `text`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nexi.answers.citations import extract_citation_markers

LEAKED_TAGS = re.compile(r"<think>.*?</think>|</?(?:think|answer|report|final)>", re.DOTALL)
_TAGS = tuple(f"<{slash}{name}>" for name in ("think", "answer", "report", "final") for slash in ("", "/"))
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_JSON_STARTS = "{`"
MAX_PROSE_CHARS = 600  # before a delegation; a longer text is the report


class ReportStream:
    """One reply. `released` says whether any of it was passed to `release`."""

    def __init__(self, release: Callable[[str], None]) -> None:
        self._release = release
        self._pending = self.text = ""
        self.released = False

    def receive(self, piece: str) -> None:
        """Take a piece; what comes after it can still make a leaked tag of its end, which stays pending."""
        text, settled, at = self._pending + piece, [], 0
        self._pending = ""
        while (tag := text.find("<", at)) >= 0:
            settled.append(text[at:tag])
            length = _tag_length(text, tag)
            if length is None:
                self._pending, at = text[tag:], len(text)
                break
            settled.append("" if length else "<")
            at = tag + (length or 1)
        self._append("".join([*settled, text[at:]]))

    def finish(self) -> str:
        """End the reply: release what was pending, and return the whole report."""
        rest, self._pending = LEAKED_TAGS.sub("", self._pending), ""
        self._append(rest)
        return self.text.strip()

    def _append(self, piece: str) -> None:
        piece = piece if self.text else piece.lstrip()
        if not piece:
            return
        self.text += piece
        if self.released:
            self._release(piece)
            return
        may_delegate = self.text[0] in _JSON_STARTS or (not self.text.startswith("#") and len(self.text) <= MAX_PROSE_CHARS)
        if not may_delegate and extract_citation_markers(self.text):
            self.released = True
            self._release(self.text)


def _tag_length(text: str, at: int) -> int | None:
    """Return how many characters to leave out at this angle bracket; None while that is not certain."""
    if text.startswith(_THOUGHT, at):
        end = text.find(_THOUGHT_END, at)
        return None if end < 0 else end + len(_THOUGHT_END) - at
    if tag_name := next((tag for tag in _TAGS if text.startswith(tag, at)), ""):
        return len(tag_name)
    tail = text[at : at + max(map(len, _TAGS))]
    return None if any(tag.startswith(tail) for tag in _TAGS) else 0
