"""How well a model judges whether a text supports a claim: the quiz that nexi carries, for any endpoint or pair model.

    python -m evals.judge --base-url http://127.0.0.1:18080/v1 --model qwen2.5-1.5b [--set pairs] [--note TEXT] [--save]
    python -m evals.judge --onnx FOLDER | --overlap

The quiz gives the model its grade and its thresholds, as the first use of a judge does. With `--set` it is then asked about
other labelled pairs, and judged by those thresholds: `pairs` is the open half of those written by hand, every other name a set
of `evals.labelled`, of which `--sample` takes a part. A reply that cannot be read is a gap, counted as nonsense. `--save` puts
the rows into judge.md, in place of older ones of the same model and set.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals import labelled
from evals.checkers import Outcome
from evals.overlap import OverlapPairModel
from evals.redteam.pairs import read_pairs
from evals.scores import auc, score
from nexi.app.clock import SystemClock
from nexi.checking.judge import JudgePairModel, LlmJudge
from nexi.checking.quiz import Grade, Quiz, grade_scores, take_quiz, whole_quiz
from nexi.errors import NexiError
from nexi.llm.openai.client import OpenAICompatible
from nexi.pair_models.folder import installed_model
from nexi.pair_models.onnx import OnnxPairModel
from nexi.ports import LLM, PairModel
from nexi.types import Message, PairScore, Reply, Usage

TABLE = Path(__file__).with_name("judge.md")
SETS = ("pairs", *labelled.SETS)
HEADS = (
    "model", "set", "pairs", "balanced accuracy", "AUC", "true kept", "lies kept", "nonsense", "may", "tokens in", "tokens out",
    "seconds", "note",
)  # fmt: skip
INTRO = """# Judges

`python -m evals.judge --base-url URL --model NAME --save`: the quiz of 60 pairs in `nexi/checking/quiz.json`, half of them
lies, asked as nexi asks a judge. Balanced accuracy is measured on each half of the quiz with the threshold of the other half; a
gap counts as wrong. Rows of other sets use the thresholds that the quiz gave. A judge below 75 % may only lower a mark, and one
below 60 % is not asked. Seconds are of one machine and its load on the day.
"""


class CountingLLM:
    """The LLM port over another one, with the tokens of all its replies."""

    def __init__(self, llm: LLM, most_tokens: int = 0) -> None:
        self._llm = llm
        self._most_tokens = most_tokens
        self.usage = Usage()

    @property
    def name(self) -> str:
        return self._llm.name

    async def complete(self, messages: Sequence[Message], *rest: Any, max_tokens: int, **options: Any) -> Reply:
        most = min(max_tokens, self._most_tokens or max_tokens)
        reply = await self._llm.complete(messages, *rest, max_tokens=most, **options)
        self.usage += reply.usage
        return reply


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    model: str
    source: str
    pairs: int
    balanced: float
    auc: float | None
    true_kept: float
    lies_kept: float
    nonsense: int
    role: str
    usage: Usage
    seconds: float
    note: str = ""

    def render(self) -> str:
        shares = (f"{self.balanced:.1f}", "-" if self.auc is None else f"{self.auc:.1f}", f"{self.true_kept:.1f}")
        counts = (str(self.nonsense), self.role, str(self.usage.input_tokens), str(self.usage.output_tokens))
        cells = (self.model, self.source, str(self.pairs), *shares, f"{self.lies_kept:.1f}", *counts, f"{self.seconds:.0f}")
        return f"| {' | '.join((*cells, self.note))} |"


def grade_row(name: str, quiz: Quiz, scores: Sequence[PairScore], usage: Usage, seconds: float, note: str) -> tuple[Grade, Row]:
    """The grade of a model by its scores, and the row that says so."""
    grade = grade_scores(quiz, scores)
    area = auc(*([_rank(s) for p, s in zip(quiz.pairs, scores, strict=True) if p.is_true is label] for label in (True, False)))
    shares = (100 * grade.balanced_accuracy, area, 100 * grade.true_kept, 100 * grade.lies_passed)
    role = grade.role.removeprefix("it ").removeprefix("may ")
    return grade, Row(name, "quiz", len(scores), *shares, grade.gaps, role, usage, seconds, note)


def measure_row(
    name: str, source: str, grade: Grade, labels: Sequence[bool], scores: Sequence[PairScore], usage: Usage, seconds: float
) -> Row:
    """A model on another set, with the thresholds of its grade; a gap keeps no claim."""
    outcomes = [
        Outcome(s.known and s.supported >= grade.supported_from, s.known and s.contradicted >= 0.5, _rank(s)) for s in scores
    ]
    figures = score(list(zip(labels, outcomes, strict=True)), 0.0)
    shares = (figures.balanced or 0.0, figures.auc, figures.recall or 0.0, figures.lies_kept or 0.0)
    return Row(name, source, len(scores), *shares, sum(not s.known for s in scores), "", usage, seconds)


def _rank(score: PairScore) -> float:
    return score.supported if score.known else 0.5


def read_set(name: str, sample: int) -> tuple[list[tuple[str, str]], list[bool]]:
    """Premises with hypotheses, and whether each is true."""
    if name == "pairs":
        return [(p.passage, p.claim) for p in read_pairs("open")], [p.label for p in read_pairs("open")]
    pairs = labelled.read_sets(sample=sample)[name]
    return [(p.evidence, p.claim) for p in pairs], [p.is_true for p in pairs]


async def run(model: PairModel, counter: CountingLLM | None, options: argparse.Namespace) -> list[Row]:
    """The quiz, then every other set that was asked for. Raises NexiError where the model cannot be asked."""
    clock = SystemClock()

    def spent() -> Usage:
        return counter.usage if counter else Usage()

    start, quiz = time.monotonic(), whole_quiz()
    scores = await take_quiz(model, quiz, deadline=clock.monotonic() + options.wait)
    name = options.name or model.name
    grade, row = grade_row(name, quiz, scores, spent(), time.monotonic() - start, options.note)
    rows = [row]
    for source in options.set:
        pairs, labels = read_set(source, options.sample)
        start, before = time.monotonic(), spent()
        scores = list(await model.score(pairs, deadline=clock.monotonic() + options.wait))
        usage = Usage(spent().input_tokens - before.input_tokens, spent().output_tokens - before.output_tokens)
        rows.append(measure_row(name, source, grade, labels, scores, usage, time.monotonic() - start))
    return rows


async def build_and_run(options: argparse.Namespace) -> list[Row]:
    if options.overlap:
        return await run(OverlapPairModel(), None, options)
    if options.onnx:
        folder = installed_model(options.onnx)
        if folder is None:
            raise NexiError(f"there is no installed model in {options.onnx}")
        return await run(OnnxPairModel(folder, SystemClock()), None, options)
    llm = OpenAICompatible(options.base_url, options.model, clock=SystemClock(), idle_timeout_s=options.wait)
    counter = CountingLLM(llm, options.max_tokens)
    try:
        return await run(JudgePairModel(LlmJudge(counter, SystemClock())), counter, options)
    finally:
        await llm.aclose()


def merge_rows(text: str, rows: Sequence[Row]) -> str:
    """The saved table with these rows in place of older ones of the same model and set."""
    lines = {_key(line): line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| model ")}
    lines |= {_key(row.render()): row.render() for row in rows}
    head = f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}"
    return f"{INTRO}\n{head}\n" + "\n".join(lines.values()) + "\n"


def _key(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split("|")[1:3])


def main(table: Path = TABLE) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", help="an OpenAI-compatible server")
    parser.add_argument("--model", default="", help="the name that server knows the model by")
    parser.add_argument("--onnx", type=Path, help="folder of an installed cross-encoder")
    parser.add_argument("--overlap", action="store_true", help="the word count that stands in where there is no model")
    parser.add_argument("--set", action="append", default=[], choices=SETS, help="also ask about this set; may be given again")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N pairs of each labelled set")
    parser.add_argument("--max-tokens", type=int, default=0, metavar="N", help="of one reply, where less than nexi allows")
    parser.add_argument("--wait", type=float, default=3600.0, metavar="S", help="seconds for one set")
    parser.add_argument("--name", default="", help="the model's name in the table")
    parser.add_argument("--note", default="", help="a remark for the table")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if not (options.overlap or options.onnx or (options.base_url and options.model)):
        parser.error("give --base-url with --model, or --onnx, or --overlap")
    try:
        rows = asyncio.run(build_and_run(options))
    except NexiError as error:
        print(f"judge: {error}", file=sys.stderr)
        return 1
    print(merge_rows("", rows).partition("\n| model")[2].join(("| model", "")))
    if options.save:
        text = table.read_text(encoding="utf-8") if table.exists() else ""
        table.write_text(merge_rows(text, rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
