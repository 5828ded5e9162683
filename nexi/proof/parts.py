"""A sentence in parts that can be said in different places.

Below `verdicts`, above `facts`. Markers inside a sentence cut it into segments with sources of their own; conjunctions,
semicolons and relative clauses cut it where both sides still say something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from nexi.proof.facts import read
from nexi.proof.sentences import numbers_of, without_markers

FEWEST = 2  # content words of a part
MOST = 6  # parts of one sentence

_JOINT = re.compile(
    r"\s*[;；。]\s*|\s+[-–—]+\s+|\.\s+(?=[A-Z])|，(?=而|但|并|同时)|,\s+(?=[A-Za-z]+ing\b)"
    r"|,?\s+(?:and|but|while|whereas|although|though|which|who|where|when|with|yet|so|including|as well as|and also)\s+"
)
_LEADING = re.compile(r"(?:and|but|while|whereas|although|though|yet|so|whilst)\s+")
_STRONG = re.compile(r"\s*[;；。.，]\s*|\s+[-–—]+\s+|,?\s+(?:but|while|whereas|although|though)\s+|,\s+and\s+")


class Part(Struct, frozen=True):
    """A stretch of a sentence; `numbers` are its own sources, or none where the sentence's are meant."""

    text: str
    numbers: tuple[int, ...] = ()


def segments(text: str, markers: re.Pattern[str]) -> list[Part]:
    """The stretches before each group of markers; what follows the last group belongs to it."""
    parts: list[Part] = []
    start = 0
    for group in re.finditer(rf"(?:(?:{markers.pattern})[ \t]*)+", text):
        words = _LEADING.sub("", without_markers(text[start : group.start()]).strip(" ,;."))
        if words and _is_clause(words):
            parts.append(Part(words, numbers_of(group[0])))
        elif parts:
            parts[-1] = Part(f"{parts[-1].text} {words}".strip(), (*parts[-1].numbers, *numbers_of(group[0])))
        else:
            continue
        start = group.end()
    rest = _LEADING.sub("", without_markers(text[start:]).strip(" ,;."))
    if parts and rest and _is_clause(rest):
        parts.append(Part(rest))
    return parts


def splits(text: str) -> Iterator[list[Part]]:
    """Ways to cut a sentence, the surest first: at every strong joint, then in two at one joint."""
    joints = list(_JOINT.finditer(text))
    strong = [j for j in joints if _STRONG.fullmatch(j[0])]
    yield from _pieces(text, strong) if len(strong) > 1 else ()
    for joint in sorted(joints, key=lambda j: j not in strong)[:MOST]:
        yield from _pieces(text, [joint])


def _pieces(text: str, joints: Sequence[re.Match[str]]) -> Iterator[list[Part]]:
    cuts = [(0, 0), *(j.span() for j in joints[: MOST - 1]), (len(text), len(text))]
    pieces = [text[a[1] : b[0]].strip(" ,;") for a, b in pairwise(cuts)]
    if len(pieces) > 1 and all(map(_says_something, pieces)):
        yield [Part(piece) for piece in pieces]


def _is_clause(text: str) -> bool:
    """What somebody put a source behind need not say much."""
    reading = read(text)
    return sum(bool(w.terms) or w.fact for w in reading.words) >= FEWEST


def _says_something(text: str) -> bool:
    reading = read(text)
    content = sum(bool(w.terms) for w in reading.words)
    return content >= FEWEST and content + 2 * len(reading.numbers) + 2 * len(reading.dates) > FEWEST
