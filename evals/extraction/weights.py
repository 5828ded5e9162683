"""Learns the weights of `nexi.extract.scorecard` from annotated pages, and writes them.

    python -m evals.extraction_weights OUT.json [--data FOLDER] [--half]

Logistic regression over the names of blocks; a block is right as far as its words stand in the annotated content in the same
order, and each page counts the same. With `--half` every second page is left out, to see what unseen pages get. Needs
scikit-learn, which nexi itself does not.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from evals.extraction import DATA, Page, pages
from nexi.extract import markup, scorecard
from nexi.extract.blocks import Layout

SEEN_ON = 12  # pages; a name that is rarer is not learned
STRENGTH = 0.007
LEAST = 0.02

_WORD = re.compile(r"\w+")

Row = tuple[set[str], float, float]  # names, how right, how heavy


def rows_of(page: Page) -> list[Row]:
    """The blocks of a page with their names."""
    tree = markup._tree(markup._bounded(page.html))
    markup._visible(tree)
    layout = Layout(tree.body)
    judge = scorecard.Page(layout, list).judge
    want = _WORD.findall(page.text.lower())
    joined = f" {' '.join(want)} "
    runs: set[tuple[Any, ...]] = set(zip(want, want[1:], want[2:], want[3:], strict=False))
    most = min(sum(block.words for block in layout.blocks) or 1, 3 * len(want) + 50)
    return [
        (set(judge(index)), rightness(block.text, joined, runs), (block.words + 0.5) / most)
        for index, block in enumerate(layout.blocks)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--half", action="store_true")
    options = parser.parse_args()
    over = list(pages(options.data))[:: 2 if options.half else 1]
    weights = learned([rows_of(page) for page in over])
    options.out.write_text(json.dumps(weights, indent=0, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
