"""Turns what the model writes into what the reader gets, stretch by stretch.

Pure: text goes in as it streams, checked text comes out, and what came out is never taken back. The final answer is the
concatenation of the released stretches, so streaming and storing cannot disagree. It also reads the `answer` string out
of a final_answer call whose JSON is still arriving.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nexi.citations import SentenceStream, drop_unknown, normalise_markers, strip_sources_section

_SOURCES_HEAD = re.compile(r"^\s{0,3}(?:#{1,6}\s*|\*\*|__)?(?:sources|references|citations)\b[\s:*_]*$", re.IGNORECASE)
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


class AnswerStream:
    """Releases an answer whose citations all name a source. `release` is called with each stretch."""

    def __init__(self, known: set[int], release: Callable[[str], None] | None = None) -> None:
        self._known = known
        self._release = release or (lambda _: None)
        self._sentences = SentenceStream()
        self._held: list[str] = []
        self._out: list[str] = []
        self._in_code = False
        self.dropped: set[int] = set()

    @property
    def released(self) -> bool:
        """Whether anything of the answer is out."""
        return bool(self._out)

    def feed(self, text: str) -> None:
        for stretch in self._sentences.feed(text):
            self._take(stretch)

    def finish(self) -> str:
        """Release what is left and return the whole answer."""
        self._take(self._sentences.finish())
        rest = strip_sources_section("".join(self._held))
        self._held = []
        if rest.strip():
            self._pass(rest)
        return "".join(self._out).strip()

    def _take(self, stretch: str) -> None:
        """A model-written list of sources is held back until the end shows whether it is one."""
        if self._held or (not self._in_code and _SOURCES_HEAD.match(stretch)):
            self._held.append(stretch)
        elif stretch:
            self._pass(stretch)

    def _pass(self, stretch: str) -> None:
        fences = sum(bool(_FENCE.match(line)) for line in stretch.split("\n"))
        if not self._in_code and not fences:
            stretch, dropped = drop_unknown(normalise_markers(stretch), self._known)
            self.dropped |= set(dropped)
        self._in_code ^= fences % 2 == 1
        self._out.append(stretch)
        self._release(stretch)


class AnswerArgument:
    """Reads the value of "answer" from the pieces of a JSON object, as far as it has arrived."""

    def __init__(self, feed: Callable[[str], None]) -> None:
        self._feed = feed
        self._buffer = ""
        self._inside = False
        self._done = False

    @property
    def is_open(self) -> bool:
        """Whether the value has begun and its end has not come."""
        return self._inside and not self._done

    def take(self, piece: str) -> None:
        if self._done:
            return
        self._buffer += piece
        if not self._inside and not self._enter():
            return
        self._drain()

    def _enter(self) -> bool:
        match = re.match(r'\s*\{\s*"answer"\s*:\s*"', self._buffer)
        if match:
            self._buffer, self._inside = self._buffer[match.end() :], True
        return self._inside

    def _drain(self) -> None:
        text, used = [], 0
        while used < len(self._buffer):
            char = self._buffer[used]
            if char == '"':
                self._done = True
                break
            if char != "\\":
                text.append(char)
                used += 1
                continue
            decoded, length = self._escape(used)
            if not length:
                break
            text.append(decoded)
            used += length
        self._buffer = self._buffer[used:]
        if text:
            self._feed("".join(text))

    def _escape(self, at: int) -> tuple[str, int]:
        """The character an escape stands for and how long the escape is; length 0 while it is incomplete."""
        rest = self._buffer[at + 1 : at + 12]
        if not rest:
            return "", 0
        if rest[0] != "u":
            return _ESCAPES.get(rest[0], rest[0]), 2
        if len(rest) < 5:
            return "", 0
        code = int(rest[1:5], 16) if re.fullmatch(r"[0-9a-fA-F]{4}", rest[1:5]) else 0xFFFD
        if not 0xD800 <= code < 0xDC00:
            return chr(code) if not 0xDC00 <= code < 0xE000 else "�", 6
        if len(rest) < 11 and "\\u".startswith(rest[5:7]):
            return "", 0
        low = int(rest[7:11], 16) if re.fullmatch(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}", rest[5:11]) else 0
        return (chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), 12) if low else ("�", 6)
