"""Learns how sentences and search results are ranked before anything is chosen among them.

    python -m evals.ranking_weights [--save] [--data DIR] [--kept FILE]

Asks the questions of the mini-webs dev and docs and the everyday questions over both, in process. A search over one weight
after the other raises the mean reciprocal rank of the first sentence that answers, over pages, and of the first gold page, over
search results; all kinds of questions count alike. Writes `nexi/llm/extractive/ranking.json`. Folds keep questions about one
page together, so that the table shows weights which never saw the page of a question.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evals.answers import DATA, find_source
from evals.reading_choice import CHOICE_WEBS, PACKAGE, Asked, fold_groups, load_asked
from evals.sentence_choice import FOLDS, MiniWeb
from evals.tables import render_table
from nexi.llm.extractive._evidence import SentenceRanking, describe_hit, holds_wanted, is_fact, is_fragment
from nexi.llm.extractive._weights import load_weights
from nexi.llm.extractive.questions import RANKING, read_question, search_queries
from rig import score

TABLE = Path(__file__).with_name("ranking_weights.md")
HITS = ("hit cover", "hit about", "hit named", "hit place")
FACTORS = (0.0, 0.5, 0.75, 1.33, 2.0)
ROUNDS = 3
MAX_ROWS = 300  # sentences of a question, the best ones by the weights that were in the package
TIED = 1e-9  # scores that are nearer to one another are the same, and the wrong sentence comes first
MIN_GAIN = 0.0005  # of the mean reciprocal rank, below which a weight stays as it is
MIN_BETTER = 0.01  # the same on unseen pages, below which all of them stay
HEADS = ("questions", "asked", "mean reciprocal rank before", "learned, unseen pages")
HEAD = """# Ranking sentences and search results

Made by `python -m evals.ranking_weights --save`: the mean reciprocal rank of the first sentence that answers, and of the first
gold page among search results. "Before" are the weights that were in the package, which had seen these questions; the learned
ones never saw a question about the same page ({folds} folds). Learned weights are taken where they are better by .01 over all
kinds of questions.

"""
Array = np.ndarray[Any, Any]
Weights = Mapping[str, float]


@dataclass(frozen=True)
class Ranked:
    """What a question ranks: `rate` gives the scores by weights, `answers` says which of the ranked answer."""

    kind: str
    group: str
    rate: Callable[[Weights], Array]
    answers: Array

    def reciprocal_rank(self, weights: Weights) -> float:
        if not self.answers.any():
            return 0.0
        scores = self.rate(weights)
        return float(1 / (1 + (scores[~self.answers] >= scores[self.answers].max() - TIED).sum()))


def rank_page_sentences(asked: Asked) -> Ranked:
    ranking = SentenceRanking(read_question(asked.question["question"]), asked.pages)
    words = list(ranking.rarity)
    weights = np.array([ranking.question.weights[word] for word in words])
    plain = np.array([ranking.rarity[word] for word in words]) / np.where(weights, weights, 1.0)
    rows = [s for s in ranking.ranked if s.score > 0][:MAX_ROWS]
    described = [ranking.describe_page(number) for number in range(len(asked.pages))]
    places = [[[word in have for word in words] for have in ranking.words_by_place(s)] for s in rows]
    held = np.array(places, float).reshape(len(rows), 4, len(words))
    pairs = np.array([ranking.weigh_pairs(s.page, s.place) for s in rows])
    pages = np.array([[described[s.page][name] for name in ("cover", "about", "first")] for s in rows])
    length = np.array([len(s.sentence.text.split()) for s in rows])
    wanted = np.array([holds_wanted(ranking, s.sentence) for s in rows])
    fragment = np.array([is_fragment(s.sentence, is_fact(ranking.sentences[s.page], s.place)) for s in rows])

    def rate(known: Weights) -> Array:
        shares = np.array([1.0, known["near"], known["label"], known["title"]])
        rarity = plain * np.where(weights < 1, known["little"], 1.0)
        by_words = (held * shares[:, None]).max(1) @ rarity if len(rows) else np.zeros(0)
        prior = 1 + pages @ np.array([known["cover"], known["about"], known["first"]]) if len(rows) else 1.0
        form = (1 + known["wanted"] * wanted) / (1 + known["length"] * length) * np.where(fragment, known["fragment"], 1.0)
        return np.asarray(prior * (by_words + known["pair"] * pairs) * form)

    gold = asked.gold
    answers = [
        score.canonical(ranking.pages[s.page].url) in gold and s.is_quotable and asked.holds(s.sentence.text) for s in rows
    ]
    return Ranked(asked.kind, min(gold, default=""), rate, np.array(answers, bool))


def rank_search_results(served: MiniWeb, asked: Asked) -> Ranked:
    question = read_question(asked.question["question"])
    hits = [(place, hit) for query in search_queries(question) for place, hit in enumerate(served.search(query).hits)]
    rows = [describe_hit(question, hit, place) for place, hit in hits]
    values = np.array([[row[name] for name in HITS] for row in rows]).reshape(len(rows), len(HITS))
    answers = [score.canonical(hit.url) in asked.gold for _, hit in hits]

    def rate(known: Weights) -> Array:
        return np.asarray(values @ np.array([known[name] for name in HITS]))

    return Ranked(f"{asked.kind}, results", min(asked.gold, default=""), rate, np.array(answers, bool))


def mean_by_kind(ranked: Iterable[Ranked], weights: Weights) -> float:
    by_kind: dict[str, list[float]] = {}
    for each in ranked:
        by_kind.setdefault(each.kind, []).append(each.reciprocal_rank(weights))
    return float(np.mean([np.mean(values) for values in by_kind.values()]))


def search_weights(ranked: Sequence[Ranked], start: Weights, names: Sequence[str]) -> dict[str, float]:
    """One weight after the other by the factor that helps most, as long as one does."""
    weights, best = dict(start), mean_by_kind(ranked, start)
    for _ in range(ROUNDS):
        for name in names:
            tries = {factor: mean_by_kind(ranked, {**weights, name: factor * weights[name]}) for factor in FACTORS}
            factor = max(tries, key=lambda f: tries[f])
            if tries[factor] > best + MIN_GAIN:
                weights[name], best = round(factor * weights[name], 4), tries[factor]
    return weights


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--kept", type=Path, help="a file that keeps the pages of the questions from one run to the next")
    parser.add_argument("--most", type=int, default=10_000, metavar="N", help="N questions of each mini-web")
    parser.add_argument("--save", action="store_true", help="write the learned file and the table")
    options = parser.parse_args()
    asked = [a for a in load_asked(options.data, options.kept, options.most) if a.is_answerable and a.web in CHOICE_WEBS]
    if not asked:
        print("ranking_weights: the mini-webs are missing")
        return 0
    start = dict(load_weights(RANKING))
    served = {web: MiniWeb(source) for web in CHOICE_WEBS if (source := find_source(options.data, web))}
    sentences = [rank_page_sentences(a) for a in asked]
    results = [rank_search_results(served[a.web], a) for a in asked]
    names = [name for name in start if not name.startswith("hit ")]
    rows: list[tuple[object, ...]] = []
    learned = dict(start)
    for ranked, own in ((sentences, names), (results, HITS)):
        fold = fold_groups(r.group for r in ranked)
        apart = [search_weights([r for r in ranked if fold[r.group] != i], start, own) for i in range(FOLDS)]
        gains = []
        for kind in dict.fromkeys(r.kind for r in ranked):
            same = [r for r in ranked if r.kind == kind]
            before, unseen = (
                float(np.mean([r.reciprocal_rank(weights) for r, weights in zip(same, each, strict=True)]))
                for each in ([start] * len(same), [apart[fold[r.group]] for r in same])
            )
            rows.append((kind, len(same), f"{before:.3f}", f"{unseen:.3f}"))
            gains.append(unseen - before)
        if np.mean(gains) >= MIN_BETTER:
            whole = search_weights(ranked, start, own)
            learned |= {name: whole[name] for name in own}
    table = render_table(HEADS, rows)
    print(table, json.dumps(learned), sep="\n\n")
    if options.save:
        (PACKAGE / RANKING).write_text(json.dumps(learned, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(folds=FOLDS) + table + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
