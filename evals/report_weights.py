"""Learns which stretches of pages a report without a model quotes under which part.

    python -m evals.report_weights [--save] [--data DIR] [--kept FILE]

Researches the questions of `rubric.json` and `broad.json`, and writes their reports again by other weights: a search over one
weight after the other raises the share of parts that are answered, less the share of stray sentences, with the reading model
(`nexi/llm/extractive/report.json`) and by words alone (`report-words.json`). Folds leave questions out, so that the table shows
weights which never saw a question; the weights that the search begins with were chosen by the same questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from evals import broad, rubric
from evals.answers import DATA, find_source
from evals.reading_choice import PACKAGE
from evals.rubric import Judged
from evals.tables import render_table
from nexi.app.factory import compare_texts
from nexi.llm.extractive import report
from nexi.llm.extractive._evidence import Compare
from nexi.llm.extractive._weights import load_weights
from nexi.research.titles import make_title
from nexi.types import PageView
from rig import miniweb
from rig.score import canonical

TABLE = Path(__file__).with_name("report_weights.md")
SETS = {"rubric": rubric, "broad": broad, "manuals": broad}
FILES = {"rubric": rubric.QUESTIONS, "broad": broad.QUESTIONS, "manuals": broad.MANUALS}
FOLDS, ROUNDS = 3, 1
FACTORS = (0.0, 0.7, 1.4)
GATE = ("nearness", "stands out", "lacks asked", "bias", "least")  # what says "not found", which the labels do not reward
MIN_BETTER = 2.0  # the same on unseen questions, below which all weights stay
MIN_GAIN = 0.4  # in per cent, below which a weight stays as it is: half a part
HEADS = ("questions", "weights", "parts", "answered", "sentences", "stray", "words")
HEAD = """# Choosing what a report quotes

Made by `python -m evals.report_weights --save`: reports with the reading model and by words alone, over the pages that research
without a model had read. Stray sentences and answered parts are in per cent. "In the package" are the weights before, which had
seen the questions; the learned ones never saw the question ({folds} folds).

"""


Weights = Mapping[str, float]


class Researched(NamedTuple):
    """What a report was written from."""

    kind: str
    question: dict[str, Any]
    headings: dict[str, str]
    pages: list[PageView]


def research_all(data: Path, kept: Path | None) -> list[Researched]:
    if kept and kept.exists():
        return msgspec.msgpack.decode(kept.read_bytes(), type=list[Researched])
    found: list[Researched] = []
    for kind, module in SETS.items():
        questions = json.loads(FILES[kind].read_text(encoding="utf-8"))
        for web in dict.fromkeys(q["web"] for q in questions):
            written: dict[str, tuple[dict[str, str], list[PageView]]] = {}

            def write(question: str, headings: Mapping[str, str], pages: Sequence[PageView], *_: Any, **__: Any) -> str:
                written[question] = (dict(headings), list(pages))  # noqa: B023
                return ""

            own = [q for q in questions if q["web"] == web]
            if source := find_source(data, web):
                with patch.object(report, "write_report", write):
                    rest = (partial(rubric.researching, argparse.Namespace(base_url="", scripted=False)),)
                    module.measure_web(web, source, own, *(rest if kind == "rubric" else ("",)))
            found += [Researched(kind, q, *written[q["question"]]) for q in own if q["question"] in written]
    if kept:
        kept.write_bytes(msgspec.msgpack.encode(found))
    return found


def read_texts(data: Path, researched: Sequence[Researched]) -> dict[str, str]:
    """The texts of the webs as the labels quote them, by address."""
    texts: dict[str, str] = {}
    for web in dict.fromkeys(r.question["web"] for r in researched):
        if source := find_source(data, web):
            named = {canonical(page.url) for r in researched for page in r.pages} | {
                p for r in researched for p in list_pages(r)
            }
            rows = miniweb.read_jsonl(source, "pages.jsonl")
            texts |= {row["url"]: miniweb.html_to_text(row["html"]) for row in rows if row["url"] in named}
    return texts


def list_pages(researched: Researched) -> set[str]:
    listed = [*researched.question["parts"], *researched.question["related"]]
    if researched.kind == "rubric":
        return {each["page"] for each in listed}
    return {passage[0] for part in researched.question["parts"] for passage in part["passages"]} | {
        passage[0] for passage in researched.question["related"]
    }


class Written:
    """A question whose report is written again and again, by other weights."""

    def __init__(self, researched: Researched, texts: Mapping[str, str], compare: Compare | None) -> None:
        self.researched, self.texts = researched, texts
        readable = [page for page in researched.pages if page.text and not page.error and page.number > 0]
        question = researched.question["question"]
        self.writer = report.ReportWriter(question, list(researched.headings), readable, compare, 0, make_title(question))
        setattr(self.writer, "describe_part", cache(self.writer.describe_part))  # noqa: B010
        for part in range(len(researched.headings)):  # by the weights of the package, which choose what is compared
            self.writer.describe_part(part)

    def judge(self, name: str, weights: Weights) -> tuple[Judged, int]:
        """The report by these weights, judged, and its words."""
        with patch.object(report, "load_weights", lambda each: weights if each == name else load_weights(each)):
            text = report.render_report(self.writer, self.researched.headings, "Report")
        sources = {page.number: canonical(page.url) for page in self.researched.pages}
        return SETS[self.researched.kind].judge(self.researched.question, text, sources, self.texts), len(text.split())


def search_weights(written: Sequence[Written], name: str, start: Weights) -> dict[str, float]:
    """One weight after the other by the factor that helps the reports most, as long as one does."""
    weights, best = dict(start), gain([w.judge(name, start) for w in written])
    for feature in [each for _ in range(ROUNDS) for each in start if each not in GATE]:
        for factor in FACTORS:
            tried = {**weights, feature: round(factor * weights[feature], 4)}
            if (value := gain([w.judge(name, tried) for w in written])) > best + MIN_GAIN:
                weights, best = tried, value
    return weights


def row(kind: str, weights: str, judged: Sequence[tuple[Judged, int]]) -> tuple[object, ...]:
    parts, sentences = (sum(getattr(j, name) for j, _ in judged) for name in ("parts", "sentences"))
    answered, stray = sum(j.covered for j, _ in judged), sum(len(j.stray) for j, _ in judged)
    shares = (100 * answered / max(1, parts), sentences, 100 * stray / max(1, sentences))
    return (kind, weights, parts, *shares, sum(words for _, words in judged) / max(1, len(judged)))


def gain(judged: Sequence[tuple[Judged, int]]) -> float:
    """Answered parts in per cent, less twice the stray sentences in per cent."""
    *_, answered, _, stray, _ = row("", "", judged)
    return float(str(answered)) - 2 * float(str(stray))


def main(compare: Compare = compare_texts) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--kept", type=Path, help="a file that keeps what was researched from one run to the next")
    parser.add_argument("--save", action="store_true", help="write the learned files and the table")
    options = parser.parse_args()
    researched = research_all(options.data, options.kept)
    if not researched or compare("one", ["two"]) is None:
        print("report_weights: the mini-webs or the reading model are missing")
        return 0
    texts = read_texts(options.data, researched)
    rows: list[tuple[object, ...]] = []
    learned = {}
    for name, reader in ((report.READ, compare), (report.WORDS, None)):
        written = [Written(r, texts, reader) for r in researched]
        start = load_weights(name)
        unseen: dict[int, tuple[Judged, int]] = {}
        for i in range(FOLDS):
            apart = search_weights([w for n, w in enumerate(written) if n % FOLDS != i], name, start)
            unseen |= {n: w.judge(name, apart) for n, w in enumerate(written) if n % FOLDS == i}
        for kind in SETS:
            own = [n for n, r in enumerate(researched) if r.kind == kind]
            label = f"{kind}, {'read' if reader else 'words'}"
            rows.append(row(label, "in the package", [written[n].judge(name, start) for n in own]))
            rows.append(row(label, "learned, unseen questions", [unseen[n] for n in own]))
        known, learnt = (gain(judged) for judged in ([w.judge(name, start) for w in written], list(unseen.values())))
        learned[name] = search_weights(written, name, start) if learnt > known + MIN_BETTER else dict(start)
    table = render_table(HEADS, rows)
    print(table, json.dumps(learned), sep="\n\n")
    if options.save:
        for name, weights in learned.items():
            (PACKAGE / name).write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")
        TABLE.write_text(HEAD.format(folds=FOLDS) + table + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
