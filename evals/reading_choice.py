"""Learns how the built-in model chooses its sentence and rates its answer where the reading model is installed.

    python -m evals.reading_choice [--save] [--data DIR]

Asks the questions of the mini-webs dev and docs and the everyday questions over both, in process. A softmax over the candidates
of a question learns the weights by words (`nexi/llm/extractive/choice.json`); those that are best by them are compared with the
question by the reading model, and a second one learns the weights of `reading.json`. A logistic regression over whole answers
learns those of `rating.json`: right ones; wrong ones; those to the same questions over the same pages without the sentences
that answer; and those over the pages of another question. The everyday questions that no page answers are in none of them.
`python -m evals.unit_choice` learns what manuals need. Folds keep questions about one page together, so that the tables show
weights which never saw the page of a question. `--most N` takes N questions of each mini-web. Takes about ten minutes of CPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from msgspec.structs import replace

from evals.answers import DATA, ROOT, find_source
from evals.everyday import QUESTIONS, load_scorer
from evals.sentence_choice import FOLDS, SEED, Example, MiniWeb, holds_answer, learn
from evals.tables import render_table
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
    sum_points,
)
from nexi.llm.extractive._evidence import Scored, SentenceRanking, rank_sentences
from nexi.llm.extractive._units import rate_choices
from nexi.llm.extractive.answerability import (
    MIN_CHANCE_LIKELY,
    MIN_CHANCE_YES,
    MIN_UNIT_LIKELY,
    RATING,
    answer_score,
    describe_rating,
)
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.passages import split_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView
from rig import score

PACKAGE = ROOT / "nexi" / "llm" / "extractive"
TABLE = Path(__file__).with_name("reading_choice.md")
STEPS, PENALTY = 60, 0.5  # of the regression
TOPS = (1, 2, 3)
CHOICE_HEADS = ("questions", "asked", "order", *(f"first {top}" for top in TOPS))
RATING_HEADS = ("answers to", "are", "asked", "withheld", "rated yes")
Weights = np.ndarray[Any, Any]
HEAD = """# Choosing the sentence with the reading model

Made by `python -m evals.reading_choice --save`. In how many per cent of the questions one of the first sentences answers, and
how many answers are withheld and rated yes; both by weights that never saw a question about the same page ({folds} folds).

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


def take(asked: Iterator[Asked], most: int) -> Iterator[Asked]:
    """At most so many questions, always the same ones."""
    every = list(asked)
    return iter(every if most >= len(every) else random.Random(SEED).sample(every, most))


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


def without_answer(asked: Asked) -> Asked:
    """The same question over the same pages, from which each sentence with the answer or a part of it was taken out."""
    gold = asked.question.get("answers") or [text for group in asked.question["gold"] for text in group]
    parts = [text.removeprefix("=") for text in gold if text.lower() not in ("yes", "no")]

    def cut(text: str) -> str:
        lines = text.split("\n")
        told = {line for line in lines if holds_answer(line, parts)}
        left = ((s for s in split_sentences(line) if not holds_answer(s, parts)) if line in told else (line,) for line in lines)
        return "\n".join(map(" ".join, left))

    pages = [replace(page, text=cut(page.text)) for page in asked.pages]
    return Asked(f"{asked.kind}, cut", asked.question, pages, lambda text: False)


class Described:
    """A question with its candidates: what speaks for each by its words, and which of them answer."""

    def __init__(self, asked: Asked, compare: Compare = compare_texts) -> None:
        question = asked.question["question"]
        ranking = SentenceRanking(read_question(question), asked.pages)
        candidates = [s for s in ranking.ranked if s.is_quotable][:MAX_CANDIDATES]
        rows = describe_candidates(ranking, candidates)
        self.kind, self.group = asked.kind, min(asked.gold, default="")
        self.names = list(rows[0]) if rows else []
        self.features = np.array([list(row.values()) for row in rows])
        self.answers = np.array([self._answers(asked, ranking, s) for s in candidates], bool)
        self._near = cache(lambda i: (compare(question, [describe_text(ranking, candidates[i])]) or (0.0,))[0])

    @staticmethod
    def _answers(asked: Asked, ranking: SentenceRanking, s: Scored) -> bool:
        text = f"{s.sentence.label}: {s.sentence.text}" if ranking.is_technical else s.sentence.text
        return score.canonical(ranking.pages[s.page].url) in asked.gold and bool(asked.holds(text))

    def by_words(self) -> Example:
        return Example(self.group, self.features, self.answers)

    def by_reading(self, weights: Weights) -> Example:
        order = np.argsort(-(self.features @ weights), kind="stable")[:MAX_COMPARED]
        near = np.array([[self._near(int(i))] for i in order])
        return Example(self.group, np.hstack([self.features[order], near]), self.answers[order])


def learn_both(described: Sequence[Described]) -> tuple[Weights, Weights]:
    """The weights by words and by reading; short questions are few, and count twice."""
    weighed = [d for d in described for _ in range(2 if d.kind.startswith("everyday") else 1)]
    words = learn([d.by_words() for d in weighed])
    return words, learn([d.by_reading(words) for d in weighed])


def describe_answer(asked: Asked, compare: Compare = compare_texts) -> tuple[dict[str, float], bool] | None:
    """What the rating looks at, and whether the answer is right."""
    question = read_question(asked.question["question"])
    ranking = rank_sentences(question, tuple(asked.pages))
    if not any(s.is_quotable for s in ranking.ranked):
        return None
    with patch.object(composition, "rate_ranking", return_value="likely"):
        draft = compose_answer(question, asked.pages, compare)
    numbers = {number for _, number in draft.lines}
    cited = {score.canonical(page.url) for page in asked.pages if page.number in numbers}
    text = " ".join((draft.short, *(line for line, _ in draft.lines)))
    right = bool(cited & asked.gold) and bool(asked.holds(re.sub(r"[`*]", "", text)))
    return describe_rating(answer_score(question, ranking), ranking, rate_choices(ranking, compare)[0]), right


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


def fold_groups(groups: Iterable[str]) -> dict[str, int]:
    shuffled = sorted(set(groups))
    random.Random(SEED).shuffle(shuffled)
    return {group: i % FOLDS for i, group in enumerate(shuffled)}


def measure_choice(described: Sequence[Described]) -> list[tuple[object, ...]]:
    """How often the first sentences answer, by weights that never saw the page."""
    fold = fold_groups(d.group for d in described)
    learned = [learn_both([d for d in described if fold[d.group] != i]) for i in range(FOLDS)]
    rows: list[tuple[object, ...]] = []
    for kind in dict.fromkeys(d.kind for d in described):
        shares: dict[str, list[list[bool]]] = {"words, unseen pages": [], "read, unseen pages": []}
        for d in described:
            if d.kind == kind:
                words, reading = learned[fold[d.group]]
                example = d.by_reading(words)
                shares["words, unseen pages"].append([bool(example.answers[:top].any()) for top in TOPS])
                order = np.argsort(-(example.features @ reading), kind="stable")
                shares["read, unseen pages"].append([bool(example.answers[order[:top]].any()) for top in TOPS])
        rows += [(kind, len(answers), name, *(100 * np.mean(answers, 0)).tolist()) for name, answers in shares.items()]
    return rows


def vary(asked: Sequence[Asked]) -> Iterator[Asked]:
    """Each question, the same without its answer, and a third of them over the pages of another question."""
    for number, each in enumerate(asked):
        other = asked[(number + len(asked) // 2) % len(asked)]
        yield each
        if each.question.get("answerable", True):
            yield without_answer(each)
            if number % 3 == 0:
                yield Asked(f"{each.kind}, elsewhere", each.question, other.pages, lambda text: False)


def measure_rating(rows: Sequence[tuple[str, str, Mapping[str, float], bool]]) -> list[tuple[object, ...]]:
    """How many answers are withheld and rated yes, by weights that never saw the page."""
    fold = fold_groups(group for _, group, _, _ in rows)
    learned = [fit_rating([(kind, row, right) for kind, g, row, right in rows if fold[g] != i]) for i in range(FOLDS)]
    table: list[tuple[object, ...]] = []
    for kind, right in sorted({(kind, right) for kind, _, _, right in rows}, reverse=True):
        own = [(group, row) for its, group, row, good in rows if (its, good) == (kind, right)]
        chances = [1 / (1 + math.exp(-sum_points(row, learned[fold[group]]))) for group, row in own]
        least = [MIN_UNIT_LIKELY if row["unit"] else MIN_CHANCE_LIKELY for _, row in own]
        withheld = 100 * np.mean([chance < low for chance, low in zip(chances, least, strict=True)])
        table.append(
            (kind, "right" if right else "wrong", len(own), withheld, 100 * np.mean(np.array(chances) >= MIN_CHANCE_YES))
        )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument(
        "--most", type=int, default=10_000, metavar="N", help="N questions of each mini-web, always the same ones"
    )
    parser.add_argument("--save", action="store_true", help="write the learned files and the tables")
    options = parser.parse_args()
    sources = {web: find_source(options.data, web) for web in ("dev", "docs")}
    if not all(sources.values()) or compare_texts("one", ["two"]) is None:
        print("reading_choice: the mini-webs or the reading model are missing")
        return 0
    webs = {web: MiniWeb(source) for web, source in sources.items() if source}
    asked = {
        web: list(itertools.chain(take(ask_web(webs[web], web), options.most), ask_everyday(webs[web], web))) for web in webs
    }
    described = [Described(a) for own in asked.values() for a in own if a.question.get("answerable", True)]
    described = [d for d in described if len(d.features)]
    words, reading = learn_both(described)
    names = described[0].names
    rows = [
        (a.kind, min(a.gold, default=""), *answer)
        for own in asked.values()
        for a in vary(own)
        if a.question.get("answerable", True) and a.pages and (answer := describe_answer(a))
    ]
    learned = {
        WORDS: dict(zip(names, words.tolist(), strict=True)),
        READING: dict(zip((*names, "nearness"), reading.tolist(), strict=True)),
        RATING: fit_rating([(kind, row, right) for kind, _, row, right in rows]),
    }
    tables = (render_table(CHOICE_HEADS, measure_choice(described)), render_table(RATING_HEADS, measure_rating(rows)))
    print(*tables, json.dumps(learned), sep="\n\n")
    if options.save:
        for name, weights in learned.items():
            rounded = {feature: round(weight, 3) for feature, weight in weights.items()}
            (PACKAGE / name).write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(folds=FOLDS) + "\n\n".join(tables) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
