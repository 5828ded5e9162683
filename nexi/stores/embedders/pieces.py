"""Text to word pieces, by the merges that a tokenizer file lists.

The static embedder asks; below is one JSON file in the format of the tokenizers library, which is not needed to read it.
No piece reaches over a space, so every word is cut once and remembered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

SPACE = "\u2581"  # how the pieces write a space
LONGEST = 256  # a run without a space longer than this is cut: merging costs its square
NEVER = 1 << 30
MAX_WORDS = 200_000
_WORD = re.compile(f"{SPACE}*[^{SPACE}\n]+|{SPACE}+|\n")


class Pieces:
    """The numbers of the pieces of a text."""

    def __init__(self, numbers: Mapping[str, int], merges: Iterable[str]) -> None:
        """A merge is written as its two pieces with a space between them; what comes earlier is done earlier."""
        self._numbers = numbers
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._unknown = numbers.get("<unk>", 0)
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def read(cls, path: Path) -> Pieces:
        """Raises OSError, ValueError or KeyError where the file is not what it should be."""
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        return cls(model["vocab"], (merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]))

    def split_text(self, text: str) -> list[int]:
        numbers: list[int] = []
        words = self._words
        for word in _WORD.findall(SPACE + text.replace(" ", SPACE)):
            pieces = words.get(word)
            if pieces is None:
                if len(words) >= MAX_WORDS:
                    words.clear()
                parts = (word[i : i + LONGEST] for i in range(0, len(word), LONGEST))
                pieces = words[word] = tuple(
                    n for part in parts for piece in self._merge_pairs(part) for n in self._piece_numbers(piece)
                )
            numbers.extend(pieces)
        return numbers

    def _merge_pairs(self, word: str) -> list[str]:
        """Join the pair of neighbours that comes first in the list of merges, until none is in it."""
        pieces = list(word)
        ranks = [self._merge_rank(a, b) for a, b in pairwise(pieces)]
        while ranks and (first := min(ranks)) < NEVER:
            at = ranks.index(first)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._merge_rank(pieces[at - 1], pieces[at])
            if at < len(ranks):
                ranks[at] = self._merge_rank(pieces[at], pieces[at + 1])
        return pieces

    def _merge_rank(self, first: str, second: str) -> int:
        return self._ranks.get(f"{first} {second}", NEVER)

    def _piece_numbers(self, piece: str) -> list[int]:
        """A piece that the file does not know is written in bytes."""
        if piece in self._numbers:
            return [self._numbers[piece]]
        return [self._numbers.get(f"<0x{byte:02X}>", self._unknown) for byte in piece.encode("utf-8", "replace")]
