"""Learns the weights of `nexi.extract.classifier` from annotated pages.

    python -m evals.extraction.weights OUT.json     learn from all pages and write
    python -m evals.extraction.weights --folds 5    the F1 of pages that the weights were not learned from

Logistic regression over the traits of blocks; a block is right as far as its words stand in the annotated content in the same
order, and each page counts the same. Needs scikit-learn, which nexi itself does not.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evals.extraction import corpus, scoring
from evals.extraction.corpus import Page
from nexi.extract import classifier, features, markup, to_markdown
from nexi.extract.layout import Layout

SEEN_ON = 12  # pages; a name that is rarer is not learned
STRENGTH = 0.007
LEAST = 0.02

_WORD = re.compile(r"\w+")

Row = tuple[set[str], float, float]  # names, how right, how heavy


def rows_of(page: Page) -> list[Row]:
    """The blocks of a page with their names."""
    tree = markup._parse_tree(markup._bound_markup(page.html))
    markup._drop_hidden(tree)
    layout = Layout(tree.body)
    named = features.PageFeatures(layout, features.Scale(list)).judge()
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
    np, sparse, linear = (import_module(name) for name in ("numpy", "scipy.sparse", "sklearn.linear_model"))
    seen = Counter(name for rows in by_page for name in set[str]().union(*(row[0] for row in rows)))
    column = {name: n for n, name in enumerate(sorted(name for name, times in seen.items() if times >= SEEN_ON))}
    rows = [row for rows in by_page for row in rows]
    cells = [[column[name] for name in names if name in column] for names, _, _ in rows]
    ends = np.cumsum([0, *map(len, cells)])
    flat = np.concatenate([np.array(part, dtype=int) for part in cells])
    table: Any = sparse.csr_matrix((np.ones(len(flat)), flat, ends), shape=(len(rows), len(column)))
    right, heavy = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    weight = np.r_[heavy * right, heavy * (1 - right)] * len(rows) / heavy.sum()
    truth = np.r_[np.ones(len(rows)), np.zeros(len(rows))]
    model = linear.LogisticRegression(C=STRENGTH, max_iter=200)
    model.fit(sparse.vstack([table, table]), truth, sample_weight=weight)
    found = {name: float(model.coef_[0][n]) for name, n in column.items()}
    found["bias"] = found.get("bias", 0.0) + float(model.intercept_[0])
    return {name: round(value, 2) for name, value in sorted(found.items()) if abs(value) >= LEAST}


def unseen(over: list[Page], folds: int) -> scoring.Words:
    """Each page through the whole extraction, with weights learned from the other folds."""
    rows = [rows_of(page) for page in over]
    found = scoring.Words()
    for fold in range(folds):
        weights = learned([part for n, part in enumerate(rows) if n % folds != fold])
        with patch.object(classifier, "_load_scale", cache(partial(classifier.scale_of, weights))):
            part = scoring.words(to_markdown, over[fold::folds])
        for kind, scores in part.rows.items():
            found.rows[kind] += scores
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--data", type=Path, default=corpus.DATA)
    options = parser.parse_args()
    over = corpus.annotated(options.data)
    if options.folds:
        found = unseen(over, options.folds)
        kinds = "  ".join(f"{kind} {found.mean(kind):.3f}" for kind in sorted(found.rows))
        print(f"unseen, {options.folds} folds: {kinds}  P {found.mean(column=0):.3f}  R {found.mean(column=1):.3f}")
    if options.out:
        weights = learned([rows_of(page) for page in over])
        options.out.write_text(json.dumps(weights, indent=0, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
