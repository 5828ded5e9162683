"""Learns the weights of `nexi.extract.classifier` from annotated pages.

    python -m evals.extraction.weights OUT.json             learn from all pages and write
    python -m evals.extraction.weights --folds 5 [--peers]  the F1 of pages of sites that the weights were not learned from
    python -m evals.extraction.weights --folds 5 --save     the same, and write the table into evals/extraction.md

Logistic regression over the traits of blocks; a block is right as far as its words stand in the annotated content in the same
order, and each page counts the same. Needs numpy, which the environment for development has, and nothing random: the same
pages give the same weights.
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import numpy as np

from evals.extraction import corpus, peers, scoring
from evals.extraction.__main__ import save
from evals.extraction.corpus import Page
from nexi.extract import classifier, features, markup, notation
from nexi.extract.layout import Layout
from nexi.extract.page_head import find_head_parts, read_page_head
from nexi.extract.text import to_markdown

SEEN_ON = 12  # pages; a name that is rarer is not learned
STRENGTH = 0.015
LEAST = 0.02
ROUNDS = 150
COLLAPSED = 0.3  # word F1
KINDS = ("all", "article", "collection", "documentation", "forum", "listing", "product", "service")

_WORD = re.compile(r"\w+")

Row = tuple[set[str], float, float]  # names, how right, how heavy
Vector = np.ndarray[Any, Any]


def rows_of(page: Page) -> list[Row]:
    """The blocks of a page with their names."""
    tree = markup._build_tree(markup._bound_markup(page.html)[0])
    notation.write_notation(tree)
    head = read_page_head(tree, find_head_parts(tree), page.url)
    markup._drop_hidden(tree)
    layout = Layout(tree.body)
    named = features.PageFeatures(layout, features.Scale(list), classifier._settle_genre(layout, head)).judge()
    want = _WORD.findall(page.text.lower())
    joined = f" {' '.join(want)} "
    runs: set[tuple[Any, ...]] = set(zip(want, want[1:], want[2:], want[3:], strict=False))
    most = min(sum(block.words for block in layout.blocks) or 1, 3 * len(want) + 50)
    return [
        (set(names), rightness(block.text, joined, runs), (block.words + 0.5) / most)
        for names, block in zip(named, layout.blocks, strict=True)
    ]


def rightness(text: str, joined: str, runs: set[tuple[Any, ...]]) -> float:
    words = _WORD.findall(text.lower())
    if words and f" {' '.join(words)} " in joined:
        return 1.0
    own = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return sum(run in runs for run in own) / len(own) if len(words) > 4 else 0.0


def learned(by_page: list[list[Row]]) -> dict[str, float]:
    """The weights of names that stand on enough pages."""
    seen = Counter(name for rows in by_page for name in set[str]().union(*(row[0] for row in rows)))
    column = {name: n for n, name in enumerate(sorted(name for name, times in seen.items() if times >= SEEN_ON))}
    rows = [row for rows in by_page for row in rows]
    cells = [sorted(column[name] for name in names if name in column) for names, _, _ in rows]
    counts = np.array([len(part) for part in cells])
    flat = np.concatenate([np.array(part, dtype=np.int32) for part in cells])
    starts = np.cumsum(counts) - counts
    right, heavy = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    heavy *= STRENGTH * len(rows) / heavy.sum()

    def cost(weights: Vector) -> tuple[float, Vector]:
        scores = np.add.reduceat(weights[flat], starts)
        losses = np.logaddexp(0, scores) - right * scores
        slopes = heavy * (1 / (1 + np.exp(-scores)) - right)
        slope = np.bincount(flat, weights=np.repeat(slopes, counts), minlength=len(column))
        return float(heavy @ losses + weights @ weights / 2), slope + weights

    found = dict(zip(column, minimize(cost, len(column)).tolist(), strict=True))
    return {name: round(value, 2) for name, value in found.items() if abs(value) >= LEAST}


def minimize(cost: Callable[[Vector], tuple[float, Vector]], size: int, *, remembered: int = 10) -> Vector:
    """The lowest point of a convex function, by L-BFGS with a step that is halved until it descends."""
    place = np.zeros(size)
    value, slope = cost(place)
    steps: list[tuple[Vector, Vector]] = []
    for _ in range(ROUNDS):
        step = _descend(slope, steps)
        length = 1.0 if steps else 1 / max(1.0, float(np.abs(slope).sum()))
        new_value, new_slope = cost(place + length * step)
        while new_value > value + 1e-4 * length * float(slope @ step) and length > 1e-8:
            length /= 2
            new_value, new_slope = cost(place + length * step)
        if value - new_value <= 1e-6 * abs(value):
            break
        steps = [*steps[1 - remembered :], (length * step, new_slope - slope)]
        place, value, slope = place + length * step, new_value, new_slope
    return place


def _descend(slope: Vector, steps: Sequence[tuple[Vector, Vector]]) -> Vector:
    """The slope, corrected by how it changed over the last steps."""
    direction, factors = slope.copy(), []
    for moved, changed in reversed(steps):
        factor = float(moved @ direction) / float(moved @ changed)
        factors.append(factor)
        direction -= factor * changed
    if steps:
        moved, changed = steps[-1]
        direction *= float(moved @ changed) / float(changed @ changed)
    for (moved, changed), factor in zip(steps, reversed(factors), strict=True):
        direction += moved * (factor - float(changed @ direction) / float(moved @ changed))
    return -direction


def fold_of(page: Page, folds: int) -> int:
    """Pages of one site are in one fold."""
    site = ".".join((urlsplit(page.url).hostname or "").split(".")[-2:])
    return zlib.crc32(site.encode()) % folds


def unseen(over: list[Page], folds: int) -> scoring.Words:
    """Each page through the whole extraction, with weights learned from the other folds."""
    rows = [rows_of(page) for page in over]
    found = scoring.Words()
    for fold in range(folds):
        weights = learned([part for part, page in zip(rows, over, strict=True) if fold_of(page, folds) != fold])
        with patch.object(classifier, "_load_scale", cache(partial(classifier.scale_of, weights))):
            part = scoring.words(to_markdown, [page for page in over if fold_of(page, folds) == fold])
        for kind, scores in part.rows.items():
            found.rows[kind] += scores
    return found


def table(rows: dict[str, scoring.Words]) -> str:
    lines = ["| | F1 | P | R | " + " | ".join(KINDS[1:]) + " | collapsed |", "|---" * (5 + len(KINDS[1:])) + "|"]
    for name, words in rows.items():
        figures = [*(words.mean(column=column) for column in (2, 0, 1)), *(words.mean(kind) for kind in KINDS[1:])]
        collapsed = sum(score[2] < COLLAPSED for score in words.rows["all"])
        lines.append(f"| {name} | " + " | ".join(f"{figure:.3f}" for figure in figures) + f" | {collapsed} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--peers", action="store_true", help="also trafilatura and readability-lxml, in .venv-extractors")
    parser.add_argument("--save", action="store_true", help="write the table into evals/extraction.md")
    parser.add_argument("--data", type=Path, default=corpus.DATA)
    options = parser.parse_args()
    over = corpus.annotated(options.data)
    if options.folds:
        found = {"unseen pages": unseen(over, options.folds)}
        for name, peer in (peers.installed() if options.peers else {}).items():
            found[name] = scoring.words(peer, over)
        print(table(found))
        if options.save:
            save(table(found), mark="unseen")
    if options.out:
        weights = learned([rows_of(page) for page in over])
        options.out.write_text(json.dumps(weights, indent=0, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
