"""What each rule of `nexi.checking` is worth: every one is switched off alone, and the labelled sets are measured again.

    python -m evals.ablation [--sample N] [--save]

A rule that brings nothing here has no place in the package. Sentences written by hand are those of the development half,
planted errors a few of each class from the development pages: rules are chosen by this table, and the other halves are not.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evals import labelled, redteam
from evals.checkers import Outcome, read_claim, read_claims
from evals.planted import Case, cases
from evals.proof import DATA, SETS, SnapshotCache, check, pages_of
from evals.scores import Judged, score
from nexi.checking.pages import Snapshot, prepare
from nexi.checking.rules import check_answer, check_claim

TABLE = Path(__file__).with_name("ablation.md")
MEASURED = ("attrib", "begin", "wice", "fever", "fcgpt")
PLANTED_EACH, PLANTED_PAGES = 15, 150
HEAD = (
    "| switched off | " + " | ".join(MEASURED) + " | true accused | redteam development: true kept / lies passed"
    " | planted: precision / recall |\n|---|" + "---:|" * (len(MEASURED) + 3)
)


def _nothing(*_: Any, **__: Any) -> tuple[()]:
    return ()


# The names that are replaced, and by what; all of them are looked up in their module when a sentence is checked.
RULES: dict[str, dict[str, object]] = {
    "nothing": {},
    "values that are missing": {"rules.find_missing": _nothing},
    "values that contradict": {"alignment.differ": lambda *_: False},
    "quotations, code, identifiers": {"rules._find_missing_literals": _nothing},
    "names that are absent": {"rules._find_absent_names": _nothing},
    "names and opposites in near copies": {"alignment._find_changes": _nothing},
    "names and nouns exchanged": {"alignment._find_exchanges": _nothing},
    "hedges and conditions left out": {"alignment._find_hedges": _nothing},
    "stronger words": {"rules.find_overstatements": _nothing},
    "negations": {"alignment._list_negations": _nothing},
    "sentences bound by pronouns": {"rules._is_bound": lambda *_: False},
    "words lent by headings": {"rules.CONTEXT_WORTH": 0.0},
    "clauses found apart": {"rules._check_by_clauses": lambda claim, *_: claim},
}
Check = Callable[[], Outcome]


class Pages:
    """Everything that is measured, prepared once."""

    def __init__(self, sample: int) -> None:
        sets = labelled.read_sets(sample=sample)
        self.labelled = {name: [(p.is_true, p.claim, prepare(p.evidence)) for p in sets[name]] for name in MEASURED}
        ready: dict[str, Snapshot] = {name: prepare(text, name) for name, text in redteam.texts(DATA).items()}
        open_half = [s for s in redteam.statements(DATA) if s.half == "development"]
        self.by_hand = [(s.true, redteam.add_marker(s.text), ready[s.page]) for s in open_half]
        self.planted: list[tuple[SnapshotCache, list[Case]]] = []
        for web in SETS:
            pages = list(pages_of(DATA / f"{web}.tar.gz", "development", PLANTED_PAGES))
            self.planted.append((SnapshotCache(pages), list(cases(pages, random.Random(web), PLANTED_EACH))))

    def measure(self) -> Iterator[str]:
        """The cells of one row."""
        everything: list[Judged] = []
        for rows in self.labelled.values():
            judged = [(true, read_claim(check_claim(text, {1: page}))) for true, text, page in rows]
            everything += judged
            yield f"{score(judged, 0).balanced:.1f}"
        yield f"{score(everything, 0).accused:.1f}"
        made = score([(true, read_claims(check_answer(text, {1: p}).checked)) for true, text, p in self.by_hand], 0)
        yield f"{made.recall:.1f} / {made.lies_kept:.1f}"
        planted = score([(c.true, read_claims(check(c, cache)[1])) for cache, some in self.planted for c in some], 0)
        yield f"{planted.precision:.1f} / {planted.recall:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N pairs of each labelled set")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    pages, lines = Pages(options.sample), [HEAD]
    print(HEAD)
    for rule, replaced in RULES.items():
        with ExitStack() as stack:
            for name, stand_in in replaced.items():
                stack.enter_context(patch(f"nexi.checking.{name}", stand_in))
            lines.append(f"| {rule} | {' | '.join(pages.measure())} |")
        print(lines[-1], flush=True)
    if options.save:
        TABLE.write_text(
            "# What each rule is worth\n\n`python -m evals.ablation --save`\n\n" + "\n".join(lines) + "\n", "utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
