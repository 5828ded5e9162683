"""A sentence in parts that can be said in different places.

Below `verdicts`, above `facts`. Markers inside a sentence cut it into segments with sources of their own; conjunctions,
semicolons and relative clauses cut it where both sides still say something. A part never loses the denial that stands before it.
"""

from __future__ import annotations

import re

from nexi.proof.facts import read
from nexi.proof.sentences import numbers_of, without_markers
from nexi.values import frozen

FEWEST = 2  # content words of a part
MOST = 6  # parts of one sentence

_JOINT = re.compile(
    r"\s*[;；。]\s+|\s+[-–—]+\s+|,\s+(?:and|but|while|whereas|although|though|which|who|where|when|with|yet|so|including|as well as)\s+"
    r"|\s+(?:while|whereas|although|and also|as well as|but)\s+|\.\s+(?=[A-Z])|，(?=(?:而|但|并|同时))|,\s+(?=[A-Za-z]+ing\b)|\s+and\s+"
)
_WEAK = re.compile(r"\s+and\s+|,\s+(?:and|including|with)\s+$")


@frozen
class Part:
    """A stretch of a sentence; `numbers` are its own sources, or none where the sentence's are meant."""

    text: str
    numbers: tuple[int, ...] = ()


def segments(text: str, markers: re.Pattern[str]) -> list[Part]:
    """The stretches before each group of markers; what follows the last group belongs to it."""
    parts: list[Part] = []
    start = 0
    for group in re.finditer(rf"(?:(?:{markers.pattern})[ \t]*)+", text):
        words = without_markers(text[start : group.start()]).strip(" ,;.")
        if words and _says_something(words):
            parts.append(Part(words, numbers_of(group[0])))
        elif parts:
            parts[-1] = Part(f"{parts[-1].text} {words}".strip(), (*parts[-1].numbers, *numbers_of(group[0])))
        else:
            continue
        start = group.end()
    rest = without_markers(text[start:]).strip(" ,;.")
    if parts and rest and _says_something(rest):
        parts.append(Part(rest))
    return parts


def split(text: str) -> list[Part]:
    """The clauses of a sentence, as far as each says something by itself."""
    pieces: list[str] = []
    start = 0
    for joint in _JOINT.finditer(text):
        piece = text[start : joint.start()]
        if len(pieces) < MOST - 1 and _says_something(piece) and _says_something(text[joint.end() :]):
            pieces.append(piece)
            start = joint.end()
    return [Part(piece.strip(" ,;")) for piece in [*pieces, text[start:]]]


def _says_something(text: str) -> bool:
    reading = read(text)
    content = sum(bool(w.terms) for w in reading.words)
    return content >= FEWEST and content + 2 * len(reading.numbers) + 2 * len(reading.dates) > FEWEST
