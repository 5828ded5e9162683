"""Learns how the built-in model chooses its sentence and rates its answer where the reading model is installed.

    python -m evals.reading_choice [--only choice|rating] [--save] [--data DIR] [--kept FILE] [--most N]

Asks the questions of the mini-webs and the everyday questions, in process. A softmax over the candidates of a question learns
the weights by words (`nexi/llm/extractive/choice.json`); those that are best by them are compared with the question by the
reading model, and a second one learns the weights of `reading.json`, both from dev, docs and the everyday questions. A logistic
regression over whole answers learns those of `rating.json`: right ones; wrong ones; those to the same questions over the same
pages without the sentences that answer; those over the pages of another question; and those to everyday questions, and general
ones (`general_questions.jsonl`), that no page answers. `python -m evals.unit_choice` learns what manuals need. Folds keep
questions about one page together, so that the tables show weights which never saw the page of a question. Takes about twelve
minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from evals.answers import DATA, ROOT, find_source
from evals.everyday import QUESTIONS
from evals.everyday import load_scorer as load_everyday_scorer
from evals.sentence_choice import FOLDS, SEED, Example, MiniWeb, holds_answer, learn
from evals.tables import render_table
from nexi.app.factory import compare_texts
from nexi.llm.extractive._choice import READING, WORDS, describe_candidates, describe_text
from nexi.llm.extractive._evidence import Compare, Scored, SentenceRanking, rank_sentences
from nexi.llm.extractive._limits import MAX_CANDIDATES, MAX_COMPARED
from nexi.llm.extractive._outdated import leave_out_outdated
from nexi.llm.extractive._weights import load_weights, sum_points
from nexi.llm.extractive.answerability import RATING, describe_rating
from nexi.llm.extractive.composition import draft_answer
from nexi.llm.extractive.passages import split_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView
from rig import score

GENERAL = Path(__file__).with_name("general_questions.jsonl")  # and how their answers read, which few of the webs have
PACKAGE = ROOT / "nexi" / "llm" / "extractive"
TABLE = Path(__file__).with_name("reading_choice.md")
STEPS, PENALTY = 60, 0.5  # of the regression
TOPS = (1, 2, 3)
CHOICE_HEADS = ("questions", "asked", "order", *(f"first {top}" for top in TOPS))
RATING_HEADS = ("answers to", "are", "asked", "withheld", "rated yes")
Weights = np.ndarray[Any, Any]
WEBS, CHOICE_WEBS = ("dev", "docs", "multi"), ("dev", "docs")
# Of the right answers on unseen pages, the share that may be withheld: questions in few words are answered by many sentences.
MAX_LOST = {"likely": 0.03, "likely few": 0.09, "likely unit": 0.1}
LOST = (0.03, 0.05, 0.08, 0.12, 0.2)
MIN_RIGHT = 0.92  # of the answers that are rated yes, over their own pages
NOT_LEARNED = ("near to conversation", "near to question", "altered")  # here: chosen by evals/turns.py and evals/ramdocs.py
HEADINGS = {
    "choice": """# Choosing the sentence with the reading model

Made by `python -m evals.reading_choice --save`. In how many per cent of the questions one of the first sentences answers, by
weights that never saw a question about the same page ({folds} folds).
""",
    "rating": """# Rating an answer with the reading model

Made by `python -m evals.reading_choice --save`: how many answers are withheld and rated yes, by weights that never saw a
question about the same page ({folds} folds). "cut": over the same pages without the sentences that answer; "elsewhere": over
the pages of another question; "unanswerable": everyday and general questions whose pages do not say it. The bounds are those at
which {lost:.0f} % of the right answers are withheld, {few:.0f} % of those to questions in few words, and from which
{right:.0f} % of the answers over their own pages are right.
""",
}


@dataclass(frozen=True)
class Asked:
    """A question with the pages that were read for it on a web; `holds` says whether a text of a page answers it."""

    kind: str
    web: str
    question: Mapping[str, Any]
    pages: Sequence[PageView]

    @property
    def gold(self) -> set[str]:
        return {*self.question.get("gold_urls", ()), *(self.question.get("also_urls") or ()), *self.question.get("urls", ())}

    @property
    def group(self) -> str:
        """What keeps questions about one page together."""
        return min(self.gold, default=self.question["id"])

    @property
    def is_answerable(self) -> bool:
        return bool(self.question.get("answerable", True)) and "," not in self.kind

    def holds(self, text: str) -> bool:
        if not self.is_answerable:
            return False
        if "answers" in self.question:
            return holds_answer(text, self.question["answers"])
        return bool(load_scorer().met(self.question, text)[1])


load_scorer = cache(load_everyday_scorer)


def load_asked(data: Path, kept: Path | None = None, most: int = 10_000) -> list[Asked]:
    """The questions of the webs and the everyday ones; from a file that keeps their pages."""
    if kept and kept.exists():
        return [
            Asked(*row)
            for row in msgspec.msgpack.decode(kept.read_bytes(), type=list[tuple[str, str, dict[str, Any], list[PageView]]])
        ]
    webs = {web: MiniWeb(source) for web in WEBS if (source := find_source(data, web))}
    everyday = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    wanted = [(web, web, question) for web, served in webs.items() for question in take(served.questions, most)]
    wanted += [(f"everyday {question['web']}", question["web"], question) for question in everyday]
    asked = [
        Asked(kind, web, question, webs[web].ask(question["question"])[1]) for kind, web, question in wanted if web in webs
    ]
    for question in map(json.loads, GENERAL.read_text(encoding="utf-8").splitlines()):
        for web in webs.keys() & question["webs"]:
            pages = webs[web].ask(question["question"])[1]
            if not any(re.search(question["answer"], page.text) for page in pages):
                about = {"id": question["question"], "question": question["question"], "answerable": False}
                asked.append(Asked(f"general {web}", web, about, pages))
    if kept:
        kept.write_bytes(msgspec.msgpack.encode([(a.kind, a.web, a.question, a.pages) for a in asked]))
    return asked


def take(questions: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """At most so many questions, always the same ones."""
    return list(questions) if most >= len(questions) else random.Random(SEED).sample(list(questions), most)


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
    return Asked(f"{asked.kind}, cut", asked.web, asked.question, pages)


class Described:
    """A question with its candidates: what speaks for each by its words, and which of them answer."""

    def __init__(self, asked: Asked, compare: Compare) -> None:
        question = asked.question["question"]
        ranking = SentenceRanking(read_question(question), asked.pages)
        candidates = [s for s in ranking.ranked if s.is_quotable][:MAX_CANDIDATES]
        rows = describe_candidates(ranking, candidates)
        self.kind, self.group = asked.kind, asked.group
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


class Rated(NamedTuple):
    """An answer as the rating sees it; `row` has what speaks for it, and `right` says whether it is right."""

    kind: str
    group: str
    row: Mapping[str, float]
    right: bool


def rate_asked(asked: Asked, compare: Compare) -> Rated | None:
    """The answer that would be given, whatever its rating; None where no sentence of the pages bears on the question."""
    ranking = rank_sentences(read_question(asked.question["question"]), tuple(asked.pages))
    usable = leave_out_outdated(ranking, [s for s in ranking.ranked if s.is_quotable])
    if not usable:
        return None
    draft = draft_answer(ranking, usable, compare)
    texts = [text for text, _ in draft.lines]
    numbers = {number for _, number in draft.lines}
    cited = {score.canonical(page.url) for page in asked.pages if page.number in numbers}
    right = bool(cited & asked.gold) and asked.holds(re.sub(r"[`*]", "", " ".join((draft.short, *texts))))
    kind = asked.kind if asked.is_answerable or "," in asked.kind else f"{asked.kind}, unanswerable"
    return Rated(kind, asked.group, describe_rating(ranking, draft.best, draft.lines), right)


def fit_rating(rated: Sequence[Rated]) -> dict[str, float]:
    """The weights of a logistic regression, by Newton's method; every kind of question counts alike."""
    rows = [(r.kind, r.row, r.right) for r in rated]
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
        yield each
        if each.is_answerable:
            yield without_answer(each)
            other = asked[(number + len(asked) // 2) % len(asked)]
            if number % 3 == 0 and other.pages:
                yield Asked(f"{each.kind}, elsewhere", each.web, each.question, other.pages)


def rate_apart(rated: Sequence[Rated]) -> list[float]:
    """The points of each answer by weights that never saw its page."""
    fold = fold_groups(r.group for r in rated)
    learned = [fit_rating([r for r in rated if fold[r.group] != i]) for i in range(FOLDS)]
    return [sum_points(r.row, learned[fold[r.group]]) for r in rated]


def find_least(points: Sequence[float], share: float) -> float:
    """The points that all but a share of right answers have."""
    return float(np.quantile(points, share))


def find_sure(rated: Sequence[Rated], points: Sequence[float], share: float) -> float:
    """The least points from which such a share of the answers to questions over their own pages is right."""
    own = sorted(((p, r.right) for r, p in zip(rated, points, strict=True) if "," not in r.kind), reverse=True)
    right = np.cumsum([good for _, good in own]) / np.arange(1, len(own) + 1)
    enough = [p for (p, _), is_right in zip(own, right, strict=True) if is_right >= share]
    return min(enough, default=own[0][0])


def name_bound(rated: Rated) -> str:
    return "likely unit" if rated.row["unit"] else "likely few" if rated.row["few"] else "likely"


def find_thresholds(rated: Sequence[Rated], points: Sequence[float]) -> dict[str, float]:
    """From which points an answer is likely and certain, on unseen pages."""
    right = [(p, r) for r, p in zip(rated, points, strict=True) if r.right]
    bounds = {name: find_least([p for p, r in right if name_bound(r) == name] or [0.0], MAX_LOST[name]) for name in MAX_LOST}
    return {**bounds, "yes": find_sure(rated, points, MIN_RIGHT)}


def measure_rating(rated: Sequence[Rated], points: Sequence[float], known: Mapping[str, float]) -> list[tuple[object, ...]]:
    """How many answers are withheld and rated yes, by weights that never saw the page."""
    table: list[tuple[object, ...]] = []
    for kind, right in sorted({(r.kind, r.right) for r in rated}, reverse=True):
        own = [(r, p) for r, p in zip(rated, points, strict=True) if (r.kind, r.right) == (kind, right)]
        withheld = [p < known[name_bound(r)] for r, p in own]
        sure = [p >= known["yes"] and not low for (_, p), low in zip(own, withheld, strict=True)]
        table.append((kind, "right" if right else "wrong", len(own), 100 * np.mean(withheld), 100 * np.mean(sure)))
    return table


def trade_off(rated: Sequence[Rated], points: Sequence[float]) -> list[tuple[object, ...]]:
    """How many questions without an answer are withheld at which price, on unseen pages."""
    right = [p for r, p in zip(rated, points, strict=True) if r.right]
    rows: list[tuple[object, ...]] = []
    for lost in LOST:
        least = find_least(right, lost)
        kinds = {k: [p < least for r, p in zip(rated, points, strict=True) if k in r.kind] for k in ("unanswerable", "cut")}
        rows.append((100 * lost, *(100 * np.mean(withheld) for withheld in kinds.values())))
    return rows


def learn_rating(rated: Sequence[Rated]) -> tuple[dict[str, float], str]:
    """The weights of a rating with its thresholds, and the table of unseen pages."""
    points = rate_apart(rated)
    known = find_thresholds(rated, points)
    tables = (
        render_table(RATING_HEADS, measure_rating(rated, points, known)),
        render_table(("right answers withheld", "unanswerable", "cut"), trade_off(rated, points)),
    )
    return {**fit_rating(rated), **known}, "\n\n".join(tables)


def main(compare: Compare = compare_texts) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--kept", type=Path, help="a file that keeps the pages of the questions from one run to the next")
    parser.add_argument("--most", type=int, default=10_000, metavar="N", help="N questions of each mini-web")
    parser.add_argument("--only", choices=("choice", "rating"), help="learn one of both")
    parser.add_argument("--save", action="store_true", help="write the learned files and the tables")
    options = parser.parse_args()
    asked = load_asked(options.data, options.kept, options.most)
    if not asked or compare("one", ["two"]) is None:
        print("reading_choice: the mini-webs or the reading model are missing")
        return 0
    learned: dict[str, Mapping[str, float]] = {}
    tables: dict[str, str] = {}
    if options.only != "rating":
        described = [Described(a, compare) for a in asked if a.is_answerable and a.web in CHOICE_WEBS and a.pages]
        described = [d for d in described if len(d.features)]
        words, reading = learn_both(described)
        names = described[0].names
        near = np.concatenate([d.by_reading(words).features[:, -1] for d in described])
        learned[WORDS] = dict(zip(names, words.tolist(), strict=True))
        learned[READING] = {
            **dict(zip((*names, "nearness"), reading.tolist(), strict=True)),
            "usual nearness": float(near.mean()),
        }
        tables["choice"] = render_table(CHOICE_HEADS, measure_choice(described))
    if options.only != "choice":
        own = [a for a in asked if a.pages and ", over" not in a.kind]
        learned[RATING], tables["rating"] = learn_rating([r for a in vary(own) if (r := rate_asked(a, compare))])
    print(*tables.values(), json.dumps(learned), sep="\n\n")
    if options.save:
        for name, weights in learned.items():
            rounded = {feature: round(weight, 3) for feature, weight in weights.items()}
            rounded |= {feature: weight for feature, weight in load_weights(name).items() if feature in NOT_LEARNED}
            (PACKAGE / name).write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        for name, table in tables.items():
            head = HEADINGS[name].format(
                folds=FOLDS, lost=100 * MAX_LOST["likely"], few=100 * MAX_LOST["likely few"], right=100 * MIN_RIGHT
            )
            TABLE.with_name(f"reading_{name}.md").write_text(f"{head}\n{table}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
