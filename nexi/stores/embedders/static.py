"""Static vectors, made on this machine with no network: a text is the mean of its pieces' vectors.

The package wordllama's files are read and its code is never run: its own loader would reach for a hub.
"""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from nexi.errors import StoreError
from nexi.install import find_package, install_command
from nexi.stores._vectors import load_numpy
from nexi.types import Embedded, Vector

__all__ = ["StaticEmbedder"]

PACKAGE = "wordllama"
FEW = 4  # texts that are embedded at once: a thread costs more
LONGEST = 200_000
MAX_HEADER_BYTES = 1_000_000
_KINDS = {"F16": "<f2", "F32": "<f4"}
SPACE = "\u2581"  # how the pieces write a space
LONGEST_WORD = 256  # a run without a space longer than this is cut: merging costs its square
NEVER = 1 << 30
MAX_WORDS = 200_000
_WORD = re.compile(f"{SPACE}*[^{SPACE}\n]+|{SPACE}+|\n")


class StaticEmbedder:
    """The Embedder port over a folder with `weights/*.safetensors` and `tokenizers/*.json`, the package's own by default."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or find_package(PACKAGE)
        if folder is None:
            fix = f"Install them with: {install_command('vectors')}"
            raise StoreError("Vectors need a part of nexi that is not installed", cause=f"{PACKAGE} is missing", fix=fix)
        self._folder = folder
        self._loaded: tuple[Any, Pieces] | None = None
        self._weights = _only_file(folder, "weights/*.safetensors")
        self.name = f"{PACKAGE}:{self._weights.stem}"
        self.dims = int(_read_header(self._weights)[0]["shape"][1])

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Embedded:
        """A text without a single piece gets the vector of a space."""
        if len(texts) <= FEW and self._loaded:
            return self._embed_texts(texts)
        return await asyncio.to_thread(self._embed_texts, texts)

    def _embed_texts(self, texts: Sequence[str]) -> Embedded:
        np = load_numpy()
        if self._loaded is None:
            try:
                loaded_pieces = Pieces.read(_only_file(self._folder, "tokenizers/*.json"))
                header, start = _read_header(self._weights)
                place = start + int(header["data_offsets"][0])
                table = np.memmap(self._weights, header["kind"], "r", place, tuple(header["shape"])).view(np.ndarray)
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _broken_error(self._weights, error) from None
            self._loaded = table, loaded_pieces
        weights, pieces = self._loaded
        vectors: list[Vector] = []
        for text in texts:
            numbers = pieces.split_text(text[:LONGEST])
            rows = weights[np.minimum(np.array(numbers, np.int64), len(weights) - 1)]
            total = rows.sum(axis=0, dtype=np.float32)
            length = float(np.sqrt(total @ total))
            vectors.append(array("f", (total / (length or 1.0)).tobytes()))
        return Embedded(tuple(vectors))


def _only_file(folder: Path, pattern: str) -> Path:
    matches = sorted(folder.glob(pattern))
    if not matches:
        raise _broken_error(folder / pattern, "the file is missing")
    return matches[0]


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """What a safetensors file says of its one table, and where the numbers begin."""
    try:
        with path.open("rb") as file:
            size = min(int.from_bytes(file.read(8), "little"), MAX_HEADER_BYTES)
            [table] = [value for key, value in json.loads(file.read(size)).items() if key != "__metadata__"]
        kind, (_, _) = _KINDS[table["dtype"]], table["shape"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken_error(path, error) from None
    return {**table, "kind": kind}, 8 + size


def _broken_error(path: Path, error: object) -> StoreError:
    fix = f"Install them again with: {install_command('vectors')} --force-reinstall"
    return StoreError("The static vectors cannot be read", cause=f"{error} ({path})", fix=fix)


class Pieces:
    """The numbers of the word pieces of a text, by the merges that a file in the format of the tokenizers library lists.

    No piece reaches over a space, so every word is cut once and remembered."""

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
                parts = (word[i : i + LONGEST_WORD] for i in range(0, len(word), LONGEST_WORD))
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
