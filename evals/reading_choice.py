"""Learns how the built-in model chooses its sentence and rates its answer where the reading model is installed.

    python -m evals.reading_choice [--save] [--data DIR]

Asks the questions of the mini-webs dev, multi and docs and the everyday questions, in process. A softmax over the candidates of
a question learns the weights by words (`nexi/llm/extractive/choice.json`); those that are best by them are compared with the
question by the reading model, and a second one learns the weights of `reading.json`. A logistic regression over sentences that
could be added to an answer learns which ones add what is missing (`further.json`), and another one over whole answers how
to rate them (`rating.json`): right ones; wrong ones, among them those to everyday questions that no page answers; those to the
same questions over the same pages without the sentences that answer; and those over the pages of another question.
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

import numpy as np
from msgspec.structs import replace

from evals.answers import DATA, ROOT, find_source
from evals.everyday import QUESTIONS, load_scorer
from evals.sentence_choice import FOLDS, SEED, Example, MiniWeb, holds_answer, learn
from evals.tables import render_table
from nexi.app.factory import compare_texts
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
from nexi.llm.extractive._outdated import leave_out_outdated
from nexi.llm.extractive._units import rate_choices
from nexi.llm.extractive.answerability import RATING, name_threshold
from nexi.llm.extractive.composition import FURTHER, PageSubjects, draft_answer
from nexi.llm.extractive.passages import split_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView
from rig import score

PACKAGE = ROOT / "nexi" / "llm" / "extractive"
TABLE = Path(__file__).with_name("reading_choice.md")
WEBS = ("dev", "multi", "docs")
STEPS, PENALTY = 60, 0.5  # of the regression
MIN_CHANCES = {"least": 0.06, "least elsewhere": 0.25}  # of a further sentence; lower ones add much in vain and little else
MAX_LOST = 0.06  # the share of the right answers that are withheld
MAX_SURE_AND_WRONG = 0.06  # the share of all answers that are wrong and rated yes
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
    def is_answerable(self) -> bool:
        return bool(self.question.get("answerable", True))

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


def describe_draft(asked: Asked, compare: Compare = compare_texts) -> tuple[Mapping[str, float], bool] | None:
    """What the rating looks at, and whether the answer is right; None where it is certain, or words alone rate it."""
    draft = draft_answer(read_question(asked.question["question"]), tuple(asked.pages), compare)
    if not draft.figures:
        return None
    numbers = {number for _, number in draft.answer.lines}
    cited = {score.canonical(page.url) for page in asked.pages if page.number in numbers}
    text = " ".join((draft.answer.short, *(line for line, _ in draft.answer.lines)))
    is_cited = asked.kind.startswith("everyday") or bool(cited & asked.gold)
    return draft.figures, is_cited and bool(asked.holds(re.sub(r"[`*]", "", text)))


@dataclass(frozen=True)
class Row:
    """An answer: what the rating looks at, and whether it is right. `is_asked`: the question was asked of its own pages."""

    kind: str
    group: str
    figures: Mapping[str, float]
    right: bool

    @property
    def is_asked(self) -> bool:
        return not self.kind.endswith((", cut", ", elsewhere"))


def fit_rating(rows: Sequence[Row]) -> dict[str, float]:
    """The weights of a logistic regression, by Newton's method; every kind of question counts alike."""
    names = [name for name in rows[0].figures if name != "bias"]
    values = np.array([[row.figures[name] for name in names] for row in rows])
    counts = Counter(row.kind for row in rows)
    share = np.array([len(rows) / len(counts) / counts[row.kind] for row in rows])
    mean, scale = values.mean(0), values.std(0) + 1e-9
    x, y = np.c_[(values - mean) / scale, np.ones(len(rows))], np.array([row.right for row in rows], float)
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


def describe_steps(asked: Asked, compare: Compare = compare_texts) -> Iterator[Row]:
    """What speaks for each sentence that could be added to an answer; it is right where it adds what was missing."""
    ranking = rank_sentences(read_question(asked.question["question"]), tuple(asked.pages))
    usable = leave_out_outdated(ranking, [s for s in ranking.ranked if s.is_quotable])
    candidates = rate_choices(ranking, compare) if usable else []
    if not candidates or candidates[0].scored.last:
        return
    subjects = PageSubjects(ranking, usable)
    for start in filter(None, ([candidates[0].scored], subjects.linked_pair())):
        others = [c for c in candidates if c.scored.identity not in {s.identity for s in start}]
        had = _share_reached(asked, ranking, start)
        for other in others:
            figures = subjects.describe_further(start, other, 1 - sum(c.chance for c in others))
            adds = _share_reached(asked, ranking, [*start, other.scored]) > had
            yield Row(asked.kind, min(asked.gold, default=""), figures, adds)


def _share_reached(asked: Asked, ranking: SentenceRanking, chosen: Sequence[Scored]) -> float:
    """How much of what is needed sentences have: the answer, and the gold pages where a question needs two."""
    cited = {score.canonical(ranking.pages[s.page].url) for s in chosen}
    holds = bool(asked.holds(" ".join(s.sentence.text for s in chosen)))
    if asked.question.get("kind") not in ("hotpot", "2wiki"):
        return float(holds and bool(cited & asked.gold))
    needed = set(asked.question["gold_urls"])
    return (holds or asked.question["answers"][0].lower() in ("yes", "no")) + len(needed & cited) / len(needed)


def vary(asked: Sequence[Asked]) -> Iterator[Asked]:
    """Each question, the same without its answer, and a third of them over the pages of another question."""
    for number, each in enumerate(asked):
        other = asked[(number + len(asked) // 2) % len(asked)]
        yield each
        if each.is_answerable:
            yield without_answer(each)
            if number % 3 == 0:
                yield Asked(f"{each.kind}, elsewhere", each.question, other.pages, lambda text: False)


def chances_apart(rows: Sequence[Row]) -> list[float]:
    """The chance of each answer to be right, by weights that never saw its page."""
    fold = fold_groups(row.group for row in rows)
    learned = [fit_rating([row for row in rows if fold[row.group] != i]) for i in range(FOLDS)]
    return [1 / (1 + math.exp(-sum_points(row.figures, learned[fold[row.group]]))) for row in rows]


def choose_thresholds(rows: Sequence[Row], chances: Sequence[float]) -> dict[str, float]:
    """The chances that a rating needs: few right answers are withheld, and few wrong ones are rated yes."""
    asked = [(row, chance) for row, chance in zip(rows, chances, strict=True) if row.is_asked]
    least = {}
    for name in ("likely unit", "likely pages", "likely sentence"):
        right = sorted(chance for row, chance in asked if row.right and name_threshold(row.figures) == name)
        least[name] = right[int(MAX_LOST * len(right))] if right else 0.0
    wrong = sorted((chance for row, chance in asked if not row.right), reverse=True)
    return {**least, "yes": wrong[int(MAX_SURE_AND_WRONG * len(asked))]}


def measure_rating(rows: Sequence[Row], chances: Sequence[float], least: Mapping[str, float]) -> list[tuple[object, ...]]:
    """How many answers are withheld and rated yes, by weights that never saw the page."""
    table: list[tuple[object, ...]] = []
    for kind, right in sorted({(row.kind, row.right) for row in rows}, reverse=True):
        own = [(row, chance) for row, chance in zip(rows, chances, strict=True) if (row.kind, row.right) == (kind, right)]
        withheld = [chance < least[name_threshold(row.figures)] for row, chance in own]
        sure = [chance >= least["yes"] for _, chance in own]
        table.append((kind, "right" if right else "wrong", len(own), 100 * np.mean(withheld), 100 * np.mean(sure)))
    return table


def learn_all(
    asked: Mapping[str, Sequence[Asked]], compare: Compare = compare_texts
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The learned files by their names, and the tables of weights that never saw the page."""
    described = [Described(a, compare) for web in asked if web != "multi" for a in asked[web] if a.is_answerable]
    described = [d for d in described if len(d.features)]
    words, reading = learn_both(described)
    names = described[0].names
    rows = [
        Row(a.kind, min(a.gold, default=""), *answer)
        for own in asked.values()
        for a in vary(own)
        if a.pages and (answer := describe_draft(a, compare))
    ]
    chances = chances_apart(rows)
    least = choose_thresholds(rows, chances)
    steps = [row for own in asked.values() for a in own if a.pages and a.is_answerable for row in describe_steps(a, compare)]
    learned = {
        WORDS: dict(zip(names, words.tolist(), strict=True)),
        READING: dict(zip((*names, "nearness"), reading.tolist(), strict=True)),
        RATING: {**fit_rating(rows), **least},
        FURTHER: {**fit_rating(steps), **MIN_CHANCES},
    }
    choice, rating = measure_choice(described), measure_rating(rows, chances, least)
    return learned, [render_table(CHOICE_HEADS, choice), render_table(RATING_HEADS, rating)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument(
        "--most", type=int, default=10_000, metavar="N", help="N questions of each mini-web, always the same ones"
    )
    parser.add_argument("--save", action="store_true", help="write the learned files and the tables")
    options = parser.parse_args()
    sources = {web: find_source(options.data, web) for web in WEBS}
    if not all(sources.values()) or compare_texts("one", ["two"]) is None:
        print("reading_choice: the mini-webs or the reading model are missing")
        return 0
    webs = {web: MiniWeb(source) for web, source in sources.items() if source}
    asked = {
        web: list(itertools.chain(take(ask_web(webs[web], web), options.most), ask_everyday(webs[web], web))) for web in webs
    }
    learned, tables = learn_all(asked)
    print(*tables, json.dumps(learned), sep="\n\n")
    if options.save:
        for name, weights in learned.items():
            rounded = {feature: round(weight, 3) for feature, weight in weights.items()}
            (PACKAGE / name).write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(folds=FOLDS) + "\n\n".join(tables) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
