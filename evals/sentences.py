"""Sentences that are hard to split: how many of the labelled items come out wrong, and how fast, beside a library.

    python -m evals.sentences [--show] [--save]

Reads `../shared/data/text/sentences.txt`, half of a set whose other half is kept aside. A bar marks each boundary; an item is
wrong when a boundary is missing or too many. Some items carry no bar although they hold several sentences (three in Chinese
and Japanese, and four of dispute); they count as they are marked, and the second figure leaves them out. `sentencex` is
measured where it is installed, with the language of each group.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from nexi.text.sentences import sentence_bounds

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "text" / "sentences.txt"
TABLE = Path(__file__).with_name("sentences.md")
MAX_WRONG = 12.0  # per cent of the items, as they are marked
MAX_CHARS = 4_000
LANGUAGES = {"german": "de", "french": "fr", "spanish": "es", "russian": "ru", "cjk": "ja", "arabic": "ar", "hindi": "hi"}

Splitter = Callable[[str, str], list[str]]


def read_items(lines: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """Each item with the name of its group."""
    group = ""
    for line in filter(None, map(str.strip, lines)):
        if line.startswith("#"):
            group = line[1:]
        else:
            yield group, line.split("|")


def split_here(text: str, _group: str) -> list[str]:
    return [text[start:end] for start, end in sentence_bounds(text, MAX_CHARS)]


def load_peer() -> Splitter | None:
    if not find_spec("sentencex"):
        return None
    import sentencex

    return lambda text, group: [s for s in map(str.strip, sentencex.segment(LANGUAGES.get(group, "en"), text)) if s]


def measure(name: str, split: Splitter, items: list[tuple[str, list[str]]], *, show: bool = False) -> tuple[str, float]:
    """A row of the table, and the share of items that are wrong."""
    wrong = [parts for group, parts in items if split(" ".join(parts), group) != parts]
    marked = sum(len(parts) > 1 for _, parts in items)
    wrong_marked = sum(len(parts) > 1 for parts in wrong)
    if show:
        print(*(" | ".join(parts) for parts in wrong), sep="\n")
    text = "\n".join(" ".join(parts) for _, parts in items) * 200
    begun = time.process_time()
    split(text, "")
    speed = len(text.encode()) / 1e6 / (time.process_time() - begun)
    share = 100 * len(wrong) / len(items)
    return f"| {name} | {len(wrong)} of {len(items)} | {share:.1f} | {wrong_marked} of {marked} | {speed:.1f} |", share


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the items that are wrong")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"no {DATA.name} beside the project: skipped")
        return 0
    items = list(read_items(iter(DATA.read_text("utf-8").splitlines())))
    row, share = measure("nexi", split_here, items, show=options.show)
    peer = load_peer()
    rows = [row, *([measure("sentencex", peer, items)[0]] if peer else [])]
    table = "\n".join(
        (
            "| splitter | wrong as marked | % | wrong of those with a bar | MB per CPU s |",
            "|---|---|---|---|---|",
            *rows,
        )
    )
    print(table)
    if options.save:
        heading = "# Sentences that are hard to split\n\n`python -m evals.sentences --save`\n"
        TABLE.write_text(f"{heading}\n{table}\n", encoding="utf-8")
    return int(share > MAX_WRONG)


if __name__ == "__main__":
    sys.exit(main())
