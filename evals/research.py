"""Research without a model on the multi-hop mini-web: what its reports hold, beside ordinary answers to the same questions.

    python -m evals.research [--sample 20] [--save] [--scripted] [--data DIR]

Serves the mini-web on loopback and researches a sample of its questions, always the same ones. A report counts as answering
when it contains a gold answer and cites every page that answer needs. Reports stay outside the repository; `.eval/` keeps the
last ones.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from evals.answers import DATA, ROOT, SEED, answering, find_source, keep
from evals.tables import render_table
from nexi.app import Nexi, RunRequest, RunResult
from nexi.app.request import ReportLength
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import PageFetched
from nexi.types import Verdict
from rig import miniweb, score

RESULTS = ROOT / "evals" / "research.md"
WEB = "multi"
HEADS = ("mode", "asked", "answering", "contains", "cited", "words", "sections", "pages", "verified", "seconds", "failed")


@dataclass(frozen=True)
class Row:
    """One mode's figures; shares are in per cent, the rest are means."""

    mode: str
    asked: int
    answering: float
    contains: float
    cited: float
    words: float
    sections: float
    pages: float
    verified: float
    seconds: float
    failed: int


async def researched(config: Config, question: str, mode: str, length: str) -> RunResult:
    async with Nexi(config) as nexi:
        request = RunRequest(question, "research", length=cast("ReportLength", length))
        opening = nexi.research(request) if mode == "research" else nexi.search(question)
        async with opening as run:
            async for _ in run:
                pass
            return run.result()


async def report_on(config: Config, question: Mapping[str, Any], mode: str, *, length: str = "") -> dict[str, Any]:
    """One report in the scorer's form, with what the scorer does not know."""
    started = time.perf_counter()
    reply: dict[str, Any] = {"id": question["id"], "question": question["question"], "answer": ""}
    try:
        result = await researched(config, question["question"], mode, length)
    except NexiError as error:
        reply["error"] = f"{error.code}: {error}"
    else:
        text = result.answer.text
        cited = {int(n) for n in re.findall(r"\[(\d+)\]", text)}
        checked = result.answer.review.proof.checked if result.answer.review else ()
        reply |= {
            "answer": text,
            "citations": [s.url for s in result.answer.sources if s.number in cited],
            "sources": {s.number: s.url for s in result.answer.sources},
            "fetched": [f.url for f in result.facts if isinstance(f, PageFetched)],
            "calls": result.finished.model_calls,
            "tokens": result.finished.usage.total,
            "sections": len(re.findall(r"^## ", text, re.MULTILINE)),
            "checked": len(checked),
            "verified": sum(claim.verdict in (Verdict.FOUND, Verdict.SUPPORTED) for claim in checked),
        }
    return {**reply, "seconds": round(time.perf_counter() - started, 3)}


async def report_on_all(
    base_url: str, home: Path, questions: Sequence[Mapping[str, Any]], mode: str, model: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """One at a time, each with a Nexi of its own: a web behind one loopback host would otherwise be paced as one site."""
    allowed = (base_url.removeprefix("http://"),)
    config = Config(searxng_url=base_url, allow_private=allowed, home=home, page_cache=False, verify_judge=False, **model)
    return {q["id"]: await report_on(config, q, mode) for q in questions}


def summary(mode: str, questions: Sequence[dict[str, Any]], replies: Mapping[str, dict[str, Any]]) -> Row:
    scores = [score.score(q, replies[q["id"]]) for q in questions]
    answers = list(replies.values())

    def mean(values: Sequence[float]) -> float:
        return sum(values) / max(1, len(values))

    return Row(
        mode,
        len(questions),
        100 * mean([s["contains"] and s["cited"] for s in scores]),
        100 * mean([s["contains"] for s in scores]),
        100 * mean([s["cited"] for s in scores]),
        100 * mean([s["words"] for s in scores]),
        mean([r.get("sections", 0) for r in answers]),
        mean([len(r.get("fetched", ())) for r in answers]),
        100 * sum(r.get("verified", 0) for r in answers) / max(1, sum(r.get("checked", 0) for r in answers)),
        mean([r["seconds"] for r in answers]),
        sum("error" in r for r in answers),
    )


def table(rows: Sequence[Row]) -> str:
    return render_table(HEADS, ([getattr(row, name) for name in HEADS] for row in rows))


def save(rows: Sequence[Row]) -> None:
    RESULTS.write_text(
        "# Research on the multi-hop mini-web\n\n"
        f"Made by `python -m evals.research --sample {rows[0].asked} --save`, without a model. `search` is an ordinary answer\n"
        "to the same questions. A report answers when it contains a gold answer and cites every page that answer needs.\n"
        "Answering, contains, cited and verified (sentences that the check supports) are per cent; the rest are means for one\n"
        "question, one question at a time over loopback.\n\n" + table(rows) + "\n",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="What reports written without a model hold.")
    parser.add_argument("--sample", type=int, default=20, help="research this many questions, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the web as a folder or a .tar.gz file")
    parser.add_argument("--scripted", action="store_true", help="let the rig's scripted model research")
    parser.add_argument("--save", action="store_true", help="write evals/research.md")
    args = parser.parse_args()
    source = find_source(args.data, WEB)
    if source is None:
        print(f"evals: the mini-web {WEB} is not in {args.data}; give its folder with --data")
        return 0
    questions = miniweb.read_jsonl(source, "questions.jsonl")
    questions = random.Random(SEED).sample(questions, min(args.sample, len(questions)))
    rows = []
    with miniweb.serve(source) as base_url, answering(args.scripted) as model:
        for mode in ("search", "research"):
            with tempfile.TemporaryDirectory() as home:
                replies = asyncio.run(report_on_all(base_url, Path(home), questions, mode, model))
            keep(f"{mode}-reports", replies)
            rows.append(summary(mode, questions, replies))
            print(table(rows) if len(rows) == 1 else table(rows).splitlines()[-1], flush=True)
    if args.save:
        save(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
