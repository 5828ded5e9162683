"""Claims and their evidence, labelled by people: the public sets beside the project, read row by row.

`measure` is never trained on. Of `train` only the part that `is_held_out` names is measured, and whatever is trained on the
rest asks the same function first. A claim that is supported in part counts as not supported, as the makers of WiCE count it.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "proof"
MEASURE = ("attrib", "begin")
# Of so many parts one is held out, chosen by the text that many rows of a set have in common.
HELD_OUT = {
    "fever": ("evidence", 10),
    "wice": ("evidence", 1),
    "fcgpt": ("claim", 2),
    "conjnli": ("evidence", 10),
    "med": ("evidence", 5),
}
SETS = (*MEASURE, *HELD_OUT)


@dataclass(frozen=True)
class LabelledPair:
    """A claim, the text it was judged by, and whether people said the text supports it."""

    source: str
    claim: str
    evidence: str
    is_true: bool


def is_held_out(row: dict[str, str]) -> bool:
    """Whether a row of the training file is kept for measuring."""
    field, parts = HELD_OUT.get(row["set"], ("claim", 0))
    return parts > 0 and _hash(row[field]) % parts == 0


def read_rows(file: Path) -> Iterator[dict[str, str]]:
    """The rows of a compressed file, by the package `zstandard` (nexi[compression]) or else the command `zstd`."""
    for line in _decompress(file).splitlines():
        yield json.loads(line)


def _decompress(file: Path) -> bytes:
    if find_spec("zstandard"):
        with file.open("rb") as packed:
            data: bytes = import_module("zstandard").ZstdDecompressor().stream_reader(packed).read()
            return data
    command = shutil.which("zstd")
    if command is None:
        raise SystemExit("proof: reading the labelled sets needs zstandard (pip install zstandard) or the command zstd")
    return subprocess.run([command, "-dc", str(file)], check=True, capture_output=True).stdout


def read_sets(data: Path = DATA, sample: int = 0) -> dict[str, list[LabelledPair]]:
    """The pairs to measure with, set by set; a sample is so many of each set, always the same ones."""
    rows = [*read_rows(data / "measure.jsonl.zst"), *(r for r in read_rows(data / "train.jsonl.zst") if is_held_out(r))]
    sets: dict[str, list[LabelledPair]] = {name: [] for name in SETS}
    for row in rows:
        sets[row["set"]].append(LabelledPair(row["set"], row["claim"], row["evidence"], row["label"] == "S"))
    return {name: _sample(pairs, sample) for name, pairs in sets.items()}


def _sample(pairs: list[LabelledPair], most: int) -> list[LabelledPair]:
    return random.Random(15).sample(pairs, most) if 0 < most < len(pairs) else pairs


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
