"""Learns how the built-in model chooses what it quotes of manuals: entries, lists, code, a few sentences in a row.

    python -m evals.unit_choice [--save] [--data DIR] [--kept FILE]

Asks the questions of the mini-web docs and the everyday questions over it, in process. A softmax over the units of a question
learns from the words which units to compare (`nexi/llm/extractive/units.json`) and, among those, which one answers
(`units-reading.json`); `python -m evals.reading_choice` learns how answers are rated. Folds keep questions about one page
together, so that the table shows weights which never saw the page of a question. Takes about three minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evals.answers import DATA
from evals.reading_choice import PACKAGE, Asked, load_asked
from evals.sentence_choice import FOLDS, SEED, Example, learn
from evals.tables import render_table
from nexi.app.factory import compare_texts
from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking
from nexi.llm.extractive._units import MAX_COMPARED_UNITS, UNIT_READING, UNIT_WORDS, describe_units, pick_apart, unit_text
from nexi.llm.extractive.questions import read_question
from rig import score

WEB = "docs"
TABLE = Path(__file__).with_name("unit_choice.md")
TOPS = (1, 2, 3, MAX_COMPARED_UNITS)
SEEN_TWICE = 2 * MAX_COMPARED_UNITS  # units that the weights of the second choice are learned from
HEADS = ("questions", "asked", "order", *(f"first {top}" for top in TOPS))
HEAD = """# Choosing what is quoted of a manual

Made by `python -m evals.unit_choice --save`. In how many per cent of the questions one of the first units holds the answer, by
weights that never saw a question about the same page ({folds} folds).

"""
Weights = np.ndarray[Any, Any]


class Described:
    """A question with its units: what speaks for each, which of them answer, and how near those of `compared` are to it."""

    def __init__(self, asked: Asked, compare: Compare) -> None:
        question = asked.question["question"]
        ranking = SentenceRanking(read_question(question), asked.pages)
        self.asked, self.group = asked, asked.group
        self.units, rows = describe_units(ranking)
        self.names = list(rows[0]) if rows else []
        self.features = np.array([list(row.values()) for row in rows])
        self.answers = np.array([self._answers(ranking, unit) for unit in self.units], bool)
        self._near = lambda i: (compare(question, [unit_text(ranking, self.units[i])]) or (0.0,))[0]

    def _answers(self, ranking: SentenceRanking, unit: Scored) -> bool:
        is_gold = self.asked.kind.startswith("everyday") or score.canonical(ranking.pages[unit.page].url) in self.asked.gold
        return is_gold and bool(self.asked.holds(f"{unit.sentence.label}: {unit.sentence.text}"))

    def by_words(self) -> Example:
        return Example(self.group, self.features, self.answers)

    def by_reading(self, weights: Weights, count: int) -> Example:
        chosen = pick_apart(self.units, list(self.features @ weights))[:count]
        near = np.array([[self._near(i)] for i in chosen])
        return Example(self.group, np.hstack([self.features[chosen], near]), self.answers[chosen])


def learn_both(described: Sequence[Described]) -> tuple[Weights, Weights]:
    words = learn([d.by_words() for d in described])
    return words, learn([d.by_reading(words, SEEN_TWICE) for d in described])


def measure(described: Sequence[Described]) -> list[tuple[object, ...]]:
    """How often the first units answer, by weights that never saw the page."""
    groups = sorted({d.group for d in described})
    random.Random(SEED).shuffle(groups)
    fold = {group: i % FOLDS for i, group in enumerate(groups)}
    learned = [learn_both([d for d in described if fold[d.group] != i]) for i in range(FOLDS)]
    rows: list[tuple[object, ...]] = []
    for kind in dict.fromkeys(d.asked.kind for d in described):
        shares: dict[str, list[list[bool]]] = {"words": [], "read, unseen pages": []}
        for d in described:
            if d.asked.kind == kind:
                words, reading = learned[fold[d.group]]
                example = d.by_reading(words, MAX_COMPARED_UNITS)
                shares["words"].append([bool(example.answers[:top].any()) for top in TOPS])
                order = np.argsort(-(example.features @ reading), kind="stable")
                shares["read, unseen pages"].append([bool(example.answers[order[:top]].any()) for top in TOPS])
        rows += [(kind, len(found), name, *(100 * np.mean(found, 0)).tolist()) for name, found in shares.items()]
    return rows


def name_weights(names: Sequence[str], weights: Weights) -> dict[str, float]:
    return {name: round(float(w), 3) for name, w in zip(names, weights, strict=True)}


def main(compare: Compare = compare_texts) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--kept", type=Path, help="a file that keeps the pages of the questions from one run to the next")
    parser.add_argument("--save", action="store_true", help="write the learned files and the table")
    options = parser.parse_args()
    asked = [a for a in load_asked(options.data, options.kept) if a.web == WEB and a.is_answerable]
    if not asked or compare("one", ["two"]) is None:
        print("unit_choice: the mini-web or the reading model is missing")
        return 0
    described = [d for a in asked if len((d := Described(a, compare)).units)]
    table = render_table(HEADS, measure(described))
    words, reading = learn_both(described)
    names = described[0].names
    print(table)
    learned = {UNIT_WORDS: name_weights(names, words), UNIT_READING: name_weights([*names, "nearness"], reading)}
    near = np.concatenate([d.by_reading(words, MAX_COMPARED_UNITS).features[:, -1] for d in described])
    learned[UNIT_READING] |= {"usual nearness": round(float(near.mean()), 3)}
    print(json.dumps(learned))
    if options.save:
        for name, weights in learned.items():
            (PACKAGE / name).write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(folds=FOLDS) + table + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
