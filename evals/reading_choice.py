"""Learns how the built-in model chooses its sentence and rates its answer where the reading model is installed.

    python -m evals.reading_choice [--save] [--data DIR]

Asks the questions of the mini-webs dev and docs and the everyday questions over both, in process. The candidates that are best
by their words are compared with the question by the reading model; a softmax over the candidates of a question learns the
weights of `nexi/llm/extractive/reading.json`, and a logistic regression over whole answers, right or wrong, those of
`rating.json`, without the questions of docs and with those of multi; `python -m evals.unit_choice` learns what manuals need.
Folds keep questions about one page together, so that the table shows weights which never saw the page of a question. Takes
about ten minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from evals.answers import DATA, ROOT, find_source
from evals.everyday import QUESTIONS, load_scorer
from evals.sentence_choice import FOLDS, SEED, Example, MiniWeb, holds_answer, learn
from nexi.app.factory import compare_texts
from nexi.llm.extractive import composition
from nexi.llm.extractive._choice import (
    MAX_CANDIDATES,
    MAX_COMPARED,
    READING,
    WORDS,
    Compare,
    describe_candidates,
    describe_text,
    load_weights,
    sum_points,
)
from nexi.llm.extractive._evidence import SentenceRanking
from nexi.llm.extractive._units import rate_choices
from nexi.llm.extractive.answerability import RATING, answer_score, describe_rating
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView
from rig import score

PACKAGE = ROOT / "nexi" / "llm" / "extractive"
TABLE = Path(__file__).with_name("reading_choice.md")
STEPS, PENALTY = 60, 0.5  # of the regression
HEAD = """# Choosing the sentence with the reading model

Made by `python -m evals.reading_choice --save`. In how many per cent of the questions one of the first sentences answers, by
weights that never saw a question about the same page ({folds} folds), and by the same candidates in the order of their words.

"""


@dataclass(frozen=True)
class Asked:
    """A question with the pages that were read for it; `holds` says whether a text of a page answers it."""

    kind: str
    question: Mapping[str, Any]
    pages: Sequence[PageView]
    holds: Callable[[str], bool]

    @property
    def gold(self) -> set[str]:
        return {*self.question.get("gold_urls", ()), *(self.question.get("also_urls") or ()), *self.question.get("urls", ())}


def ask_web(served: MiniWeb, web: str) -> Iterator[Asked]:
    for question in served.questions:
        answers = question["answers"]
        yield Asked(web, question, served.ask(question["question"])[1], lambda text, a=answers: holds_answer(text, a))


def ask_everyday(served: MiniWeb, web: str) -> Iterator[Asked]:
    scorer = load_scorer()
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question["web"] == web:
            pages = served.ask(question["question"])[1]
            yield Asked(f"everyday {web}", question, pages, lambda text, q=question: q["answerable"] and scorer.met(q, text)[1])


def describe(asked: Asked) -> tuple[Example, np.ndarray[Any, Any], list[str]] | None:
    """The features of the candidates that are compared, their points by words, and the names of the features."""
    ranking = SentenceRanking(read_question(asked.question["question"]), asked.pages)
    candidates = [s for s in ranking.ranked if s.is_quotable][:MAX_CANDIDATES]
    rows = describe_candidates(ranking, candidates)
    points = [sum_points(row, load_weights(WORDS)) for row in rows]
    order = sorted(range(len(candidates)), key=lambda i: -points[i])[:MAX_COMPARED]
    nearness = compare_texts(asked.question["question"], [describe_text(ranking, candidates[i]) for i in order])
    if not order or nearness is None:
        return None
    described = [{**rows[i], "nearness": near} for i, near in zip(order, nearness, strict=True)]
    answers = []
    for i in order:
        s = candidates[i]
        text = f"{s.sentence.label}: {s.sentence.text}" if ranking.is_technical else s.sentence.text
        answers.append(score.canonical(ranking.pages[s.page].url) in asked.gold and bool(asked.holds(text)))
    features = np.array([list(row.values()) for row in described])
    group = min(asked.gold, default="")
    return Example(group, features, np.array(answers, bool)), np.array([points[i] for i in order]), list(described[0])


def describe_answer(asked: Asked, compare: Compare = compare_texts) -> tuple[dict[str, float], bool] | None:
    """What the rating looks at, and whether the answer is right."""
    question = read_question(asked.question["question"])
    ranking = SentenceRanking(question, asked.pages)
    usable = [s for s in ranking.ranked if s.is_quotable]
    if not usable:
        return None
    with patch.object(composition, "rate_ranking", return_value="likely"):
        draft = compose_answer(question, asked.pages, compare)
    numbers = {number for _, number in draft.lines}
    cited = {score.canonical(page.url) for page in asked.pages if page.number in numbers}
    text = " ".join((draft.short, *(line for line, _ in draft.lines)))
    right = bool(cited & asked.gold) and bool(asked.holds(re.sub(r"[`*]", "", text)))
    return describe_rating(answer_score(question, ranking), ranking, rate_choices(ranking, usable, compare)[0]), right


def fit_rating(rows: Sequence[tuple[str, Mapping[str, float], bool]]) -> dict[str, float]:
    """The weights of a logistic regression, by Newton's method; every kind of question counts alike."""
    names = [name for name in rows[0][1] if name != "bias"]
    values = np.array([[row[name] for name in names] for _, row, _ in rows])
    counts = Counter(kind for kind, _, _ in rows)
    share = np.array([len(rows) / len(counts) / counts[kind] for kind, _, _ in rows])
    mean, scale = values.mean(0), values.std(0) + 1e-9
    x, y = np.c_[(values - mean) / scale, np.ones(len(rows))], np.array([right for *_, right in rows], float)
    penalty = PENALTY * np.r_[np.ones(len(names)), 0.0]
    weights = np.zeros(len(names) + 1)
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (share * (chances - y)) + penalty * weights
        weights -= np.linalg.solve((x * (share * chances * (1 - chances))[:, None]).T @ x + np.diag(penalty + 1e-9), slope)
    bias = float(weights[-1] - (weights[:-1] * mean / scale).sum())
    return {**{name: float(w) for name, w in zip(names, weights[:-1] / scale, strict=True)}, "bias": bias}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--save", action="store_true", help="write the learned files and the table")
    options = parser.parse_args()
    sources = {web: find_source(options.data, web) for web in ("dev", "docs", "multi")}
    if not all(sources.values()) or compare_texts("one", ["two"]) is None:
        print("reading_choice: the mini-webs or the reading model are missing")
        return 0
    webs = {web: MiniWeb(source) for web, source in sources.items() if source}
    asked = [a for web in ("dev", "docs") for ask in (ask_web, ask_everyday) for a in ask(webs[web], web)]
    described = [(a.kind, found) for a in asked if a.question.get("answerable", True) and (found := describe(a))]
    examples, names = [example for _, (example, _, _) in described], described[0][1][2]
    groups = sorted({e.group for e in examples})
    random.Random(SEED).shuffle(groups)
    fold = {group: i % FOLDS for i, group in enumerate(groups)}
    learned = [learn([e for e in examples if fold[e.group] != i]) for i in range(FOLDS)]
    lines = ["| questions | asked | order | first 1 | first 2 | first 3 |", "|---|---|---|---|---|---|"]
    for kind in dict.fromkeys(kind for kind, _ in described):
        own = [found for its, found in described if its == kind]
        for order, points in (
            ("words", [words for _, words, _ in own]),
            ("read, unseen pages", [e.features @ learned[fold[e.group]] for e, _, _ in own]),
        ):
            tops = [
                100
                * sum(e.answers[np.argsort(-p, kind="stable")[:top]].any() for (e, _, _), p in zip(own, points, strict=True))
                for top in (1, 2, 3)
            ]
            lines.append(f"| {kind} | {len(own)} | {order} | " + " | ".join(f"{share / len(own):.1f}" for share in tops) + " |")
    weights = {name: round(float(w), 3) for name, w in zip(names, learn(examples), strict=True)}
    asked += list(ask_web(webs["multi"], "multi"))
    rating = fit_rating([(a.kind, *found) for a in asked if "docs" not in a.kind and a.pages and (found := describe_answer(a))])
    print("\n".join(lines), json.dumps(weights), json.dumps(rating), sep="\n\n")
    if options.save:
        (PACKAGE / READING).write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
        (PACKAGE / RATING).write_text(
            json.dumps({k: round(v, 3) for k, v in rating.items()}, indent=1) + "\n", encoding="utf-8"
        )
        TABLE.write_text(HEAD.format(folds=FOLDS) + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
