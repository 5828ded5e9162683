"""What of the evaluator's reply is the report, told while the reply is still coming.

The evaluator above feeds it what the model writes. Nothing of a delegation is passed on, and nothing before the first
citation, because a report without one is replaced. What was passed on, joined, is the report that `text` holds. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nexi.answers.citations import extract_citation_markers

LEAKED = re.compile(r"<think>.*?</think>|</?(?:think|answer|report|final)>", re.DOTALL)
_TAGS = tuple(f"<{slash}{name}>" for name in ("think", "answer", "report", "final") for slash in ("", "/"))
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_PERHAPS_JSON = "{`"


class ReportStream:
    """One reply. `released` says whether anything of it was passed on."""

    def __init__(self, feed: Callable[[str], None]) -> None:
        self._feed = feed
        self._rest = ""
        self._holds = False
        self.text = ""
        self.released = False

    def take(self, piece: str) -> None:
        told, self._rest = settled(self._rest + piece)
        self._add(told)

    def finish(self) -> str:
        """The reply is over: pass on what was waiting for its end, and give the whole."""
        rest, self._rest = LEAKED.sub("", self._rest), ""
        self._add(rest)
        return self.text.strip()

    def _add(self, told: str) -> None:
        told = told if self.text else told.lstrip()
        if not told:
            return
        self._holds = self._holds or (not self.text and told[0] in _PERHAPS_JSON)
        self.text += told
        if self.released:
            self._feed(told)
        elif not self._holds and extract_citation_markers(self.text):
            self.released = True
            self._feed(self.text)


def settled(text: str) -> tuple[str, str]:
    """The text without leaked tags as far as nothing that follows can change it, and the rest."""
    told, at = [], 0
    while (tag := text.find("<", at)) >= 0:
        told.append(text[at:tag])
        length = _length_at(text, tag)
        if length is None:
            return "".join(told), text[tag:]
        told.append("" if length else "<")
        at = tag + (length or 1)
    return "".join([*told, text[at:]]), ""


def _length_at(text: str, at: int) -> int | None:
    """How much there is to leave out at this angle bracket; None while that cannot be told."""
    if text.startswith(_THOUGHT, at):
        end = text.find(_THOUGHT_END, at)
        return None if end < 0 else end + len(_THOUGHT_END) - at
    if found := next((tag for tag in _TAGS if text.startswith(tag, at)), ""):
        return len(found)
    longest = max(map(len, _TAGS))
    tail = text[at : at + longest]
    return None if any(tag.startswith(tail) for tag in _TAGS) else 0
