"""Answer quality of the built-in model on the mini-webs, through the whole loop.

    python -m evals.answers [--web dev] [--sample 40] [--save] [--data DIR]

Serves each mini-web on loopback, asks nexi its questions, and prints the scorer's table with seconds, pages and model calls
beside it. A web whose share of supported answers falls below its floor in floors.json ends with exit code 1; a sample is
allowed the chance of its size. Questions, pages and answers stay outside the repository; `.eval/` keeps the last answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.tables import render_table
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import PageFetched
from rig import miniweb, score, scripted_llm

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "miniweb"
FLOORS = ROOT / "evals" / "floors.json"
RESULTS = ROOT / "evals" / "results.md"
WEBS = ("dev", "multi", "docs")
COLUMNS = ("supported", "contains", "cited", "precise", "words", "citations", "read")
SEED = 20
DEVIATIONS = 2.33  # one in a hundred samples of a web that holds its floor falls further than this


@dataclass(frozen=True)
class Row:
    """One web's figures; shares are in per cent, the rest are means."""

    web: str
    asked: int
    whole: bool
    figures: Mapping[str, float]
    seconds: float
    pages: float
    model_calls: float
    failed: int


async def ask(config: Config, question: Mapping[str, Any]) -> dict[str, Any]:
    """One question through nexi's public face, in the scorer's form."""
    started = time.perf_counter()
    reply: dict[str, Any] = {"id": question["id"], "answer": ""}
    try:
        async with Nexi(config) as nexi:
            result = await nexi.answer(question["question"])
    except NexiError as error:
        reply["error"] = f"{error.code}: {error}"
    else:
        numbers = {int(n) for n in re.findall(r"\[(\d+)\]", result.answer.text)}
        reply["answer"] = result.answer.text
        reply["citations"] = [s.url for s in result.answer.sources if s.number in numbers]
        reply["fetched"] = [f.url for f in result.facts if isinstance(f, PageFetched)]
        reply["llm_calls"] = result.finished.model_calls
    return {**reply, "seconds": round(time.perf_counter() - started, 3)}


def bare_config(web: str, home: Path, **settings: Any) -> Config:
    """Settings under which every question is answered from the pages of this web alone, as if it were the first."""
    allowed = (web.removeprefix("http://"),)
    return Config(allow_private=allowed, home=home, page_cache=False, knowledge=False, verify_judge=False, **settings)


async def ask_all(
    base_url: str, home: Path, questions: Sequence[Mapping[str, Any]], model: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The replies by question, one at a time so that the seconds mean something.

    Each has a Nexi of its own: a whole web behind one loopback host would otherwise be paced as one site.
    """
    config = bare_config(base_url, home, searxng_url=base_url, **model)
    return {q["id"]: await ask(config, q) for q in questions}


@contextmanager
def answering(scripted: bool) -> Iterator[dict[str, Any]]:
    """The settings of the model that answers: the built-in one, or the rig's scripted one behind a real endpoint."""
    if not scripted:
        yield {"model": "extractive"}
        return
    with scripted_llm.serve() as root:
        yield {"model": "scripted", "base_url": f"{root}/v1"}


def measure(web: str, source: Path, sample: int, *, scripted: bool = False) -> tuple[Row, dict[str, dict[str, Any]]]:
    questions = miniweb.read_jsonl(source, "questions.jsonl")
    whole = not 0 < sample < len(questions)
    if not whole:
        questions = random.Random(SEED).sample(questions, sample)
    with tempfile.TemporaryDirectory() as home, miniweb.serve(source) as base_url, answering(scripted) as model:
        replies = asyncio.run(ask_all(base_url, Path(home), questions, model))
    return summary(web, whole, questions, replies), replies


def summary(web: str, whole: bool, questions: Sequence[dict[str, Any]], replies: dict[str, dict[str, Any]]) -> Row:
    figures = score.table(list(questions), replies)["all"]

    def mean(values: Sequence[float]) -> float:
        return sum(values) / max(1, len(values))

    return Row(
        web,
        len(questions),
        whole,
        {name: figures[name] for name in COLUMNS},
        mean([r["seconds"] for r in replies.values()]),
        mean([len(r.get("fetched", ())) for r in replies.values()]),
        mean([r.get("llm_calls", 0) for r in replies.values()]),
        sum("error" in r for r in replies.values()),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    heads = ("web", "asked", *COLUMNS, "pages", "model calls", "seconds", "failed")
    return render_table(heads, map(_cells_of, rows))


def _cells_of(row: Row) -> tuple[object, ...]:
    shown = (float(row.figures[name]) for name in COLUMNS)
    return (row.web, row.asked, *shown, row.pages, row.model_calls, f"{row.seconds:.2f}", row.failed)


def below_floor(row: Row, floors: Mapping[str, float]) -> str:
    """What to say when a web fell below its floor, else nothing."""
    floor = floors.get(row.web, 0.0)
    share = floor / 100
    margin = 0.0 if row.whole else 100 * DEVIATIONS * math.sqrt(share * (1 - share) / max(1, row.asked))
    got = row.figures["supported"]
    if got >= floor - margin:
        return ""
    allowed = f" (a sample of {row.asked} may reach {floor - margin:.1f})" if margin else ""
    return f"{row.web}: supported {got:.1f} is below its floor {floor:.1f}{allowed}"


def keep(web: str, replies: Mapping[str, Mapping[str, Any]]) -> None:
    folder = ROOT / ".eval"
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(reply, ensure_ascii=False) for reply in replies.values()]
    (folder / f"{web}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def save(rows: Sequence[Row]) -> None:
    RESULTS.write_text(
        "# Answers of the built-in model on the mini-webs\n\n"
        "Made by `python -m evals.answers --save`. Shares in per cent by `rig/score.py`; words, citations, pages, model\n"
        "calls and seconds are means for one question, over loopback, one question at a time.\n\n"
        "The weights of the choice have seen the questions of dev and docs, those of the rating also multi; questions of all\n"
        "three webs had been read before the word lists were written. `evals/reading_choice.md` and `evals/unit_choice.md`\n"
        "have figures of weights that never saw a question about the same page. A web nobody has seen is the test of how far\n"
        "this carries.\n"
        "A BM25 plus sentence-overlap baseline has supported 70.0 on dev, 14.0 on multi and 21.0 on docs.\n\n"
        + table(rows)
        + "\n",
        encoding="utf-8",
    )


def find_source(data: Path, web: str) -> Path | None:
    return next((p for p in (data / web, data / f"{web}.tar.gz") if p.exists()), None)


def main() -> int:
    parser = argparse.ArgumentParser(description="Answer quality of the built-in model on the mini-webs.")
    parser.add_argument("--web", choices=WEBS, action="append", help="only this web (repeatable)")
    parser.add_argument("--sample", type=int, default=0, help="ask only this many questions of each web, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the webs as folders or .tar.gz files")
    parser.add_argument("--scripted", action="store_true", help="let the rig's scripted model answer; it has no floors")
    parser.add_argument("--save", action="store_true", help="write evals/results.md")
    args = parser.parse_args()
    sources = {web: find_source(args.data, web) for web in args.web or WEBS}
    if missing := [web for web, source in sources.items() if source is None]:
        print(f"evals: the mini-webs {', '.join(missing)} are not in {args.data}; give their folder with --data")
    rows = []
    for web, source in sources.items():
        if source is not None:
            row, replies = measure(web, source, args.sample, scripted=args.scripted)
            keep(web, replies)
            rows.append(row)
            print(table([row]) if len(rows) == 1 else table([row]).splitlines()[-1], flush=True)
    if args.save and rows:
        save(rows)
    floors = {} if args.scripted else json.loads(FLOORS.read_text(encoding="utf-8"))
    problems = [problem for row in rows if (problem := below_floor(row, floors))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
