"""Prints how many hand-written sentences were judged rightly, class by class."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from evals.redteam import Statement, judge
from nexi.types import Proof

Rows = dict[str, tuple[bool, int, int]]


def rows(judged: Iterable[tuple[Statement, bool, Proof]], show: str = "") -> Rows:
    """For each class: whether it is true, how many sentences, how many rightly judged."""
    made: Rows = {}
    for statement, passed, proof in judged:
        kind = f"{statement.kind}{'' if statement.true else ' (lie)'}"
        _, n, hits = made.get(kind, (statement.true, 0, 0))
        made[kind] = (statement.true, n + 1, hits + (passed == statement.true))
        if show in kind and show and passed != statement.true:
            _explain(statement, proof)
    return dict(sorted(made.items(), key=lambda item: (not item[1][0], item[0])))


def _explain(statement: Statement, proof: Proof) -> None:
    print(f"--- {statement.page}: {statement.kind}, {'true' if statement.true else 'a lie'}\n  {statement.text}")
    for claim in proof.claims:
        print(f"  {claim.verdict}: {claim.reason}\n      {[e.span[:200] for e in claim.evidence]}")


def main() -> int:
    from evals.proof import DATA, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--part", choices=("held-out", "development", "both"), default="held-out")
    parser.add_argument("--show", default="", help="print what went wrong in classes with this in their name")
    options = parser.parse_args()
    data = options.data if options.data.exists() else None
    print("\n".join(table(rows(judge(data, options.part), options.show))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
