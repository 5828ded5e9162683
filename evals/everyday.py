"""Short questions as people type them, over two mini-webs, with the built-in model.

    python -m evals.everyday [--sample N] [--save] [--data DIR]

Questions and scorer stay outside the repository (`../shared/data/everyday`, `../shared/tools/everyday.py`). An answer is right
when it holds every gold group, is not withheld and has at most 120 words. Fails where a share falls below its floor in
everyday-floors.json; a sample is allowed the chance of its size. The weights of the choice have seen these questions;
`evals/reading_choice.md` has the figures of weights that have not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from evals.answers import DATA, DEVIATIONS, SEED, find_source
from evals.tables import render_table

SHARED = DATA.parent.parent
QUESTIONS = SHARED / "data" / "everyday" / "open.jsonl"
SCORER = SHARED / "tools" / "everyday.py"
FLOORS = Path(__file__).with_name("everyday-floors.json")
TABLE = Path(__file__).with_name("everyday.md")
MAX_WORDS = 120
HEADS = ("web", "kind", "asked", "right", "wrong, rated yes", "withheld", "with a cut", "words", "CPU s")
HEAD = """# Everyday questions without a model

Made by `python -m evals.everyday --save`: 160 short questions, 28 of which the pages cannot answer. Shares in per cent. The
weights of the choice and of the rating have seen these questions.

"""


def load_scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("everyday_scorer", SCORER)
    if spec is None or spec.loader is None:
        raise ImportError(SCORER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(name: tuple[str, str], grades: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    def share(key: str) -> float:
        return 100 * sum(bool(g[key]) for g in grades) / max(1, len(grades))

    def mean(key: str) -> float:
        return sum(float(g[key]) for g in grades) / max(1, len(grades))

    shares = (share("ok"), share("wrongyes"), share("held"), share("anycut"))
    return (*name, len(grades), *shares, mean("words"), f"{mean('cpu'):.2f}")


def find_problem(name: str, got: float, floor: float, asked: int, *, whole: bool) -> str:
    """What to say where a share is below its floor, else nothing."""
    margin = 0.0 if whole else 100 * DEVIATIONS * math.sqrt(floor / 100 * (1 - floor / 100) / max(1, asked))
    return "" if got >= floor - margin else f"everyday: {name} {got:.1f} is below its floor {floor:.1f} (margin {margin:.1f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N questions, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if not QUESTIONS.exists() or not SCORER.exists():
        print(f"everyday: the questions or their scorer are not in {SHARED}")
        return 0
    scorer = load_scorer()
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    whole = not 0 < options.sample < len(questions)
    questions = questions if whole else random.Random(SEED).sample(questions, options.sample)
    webs = list(dict.fromkeys(q["web"] for q in questions))
    corpora = [f"{web}={source}" for web in webs if (source := find_source(options.data, web))]
    with tempfile.TemporaryDirectory() as folder:
        asked = SimpleNamespace(out=f"{folder}/answers.jsonl", resume=False, corpus=corpora, tools=str(SCORER.parent), cli=None)
        replies = scorer.run(asked, questions)
    floors, rows, problems = json.loads(FLOORS.read_text(encoding="utf-8")), [], []
    grades = [(q, scorer.grade(q, replies[q["id"]], MAX_WORDS)) for q in questions if q["id"] in replies]
    for web in webs:
        good = [g for q, g in grades if q["web"] == web and q["answerable"]]
        rows += [row((web, "answerable"), good)]
        rows += [row((web, "unanswerable"), [g for q, g in grades if q["web"] == web and not q["answerable"]])]
        right = 100 * sum(g["ok"] for g in good) / max(1, len(good))
        problems.append(find_problem(f"right answers of {web}", right, floors[web], len(good), whole=whole))
    sure = 100 - 100 * sum(g["wrongyes"] for _, g in grades) / max(1, len(grades))
    problems.append(
        find_problem("answers not wrong and rated yes", sure, floors["not wrong and yes"], len(grades), whole=whole)
    )
    table = render_table(HEADS, rows)
    print(table)
    if options.save:
        TABLE.write_text(HEAD + table + "\n", encoding="utf-8")
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return int(any(problems))


if __name__ == "__main__":
    sys.exit(main())
