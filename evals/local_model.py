"""A real model of your own over the mini-webs: every way of asking, with what it cost beside what it found.

    python -m evals.local_model --base-url http://127.0.0.1:18080/v1 --model qwen [--questions 5] [--reports 1] [--save]

Any OpenAI-compatible server will do; none is started here. Each question is answered, then searched agentically twice with one
store, so that the second time shows what was kept; then a few of the multi-hop questions are researched at depth 1. An answer
is supported when it contains a gold answer and cites every page that one needs; of an agentic search the passages are searched.
Slow machines take minutes for one question: the table is printed as it grows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.answers import DATA, ROOT, SEED, find_source
from nexi.app import Nexi, RunOpening, RunRequest, RunResult
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import ModelReplied, PageFetched
from nexi.types import Verdict
from rig import miniweb, score

RESULTS = ROOT / "evals" / "local_model.md"
SHARES = ("contains", "cited", "verified")
MEANS = ("words", "citations", "calls", "in", "out", "pages", "seconds")
HEADS = ("way", "asked", *SHARES, *MEANS, "failed")


@dataclass(frozen=True)
class Outcome:
    """What one question took, in one way of asking."""

    way: str
    contains: bool
    cited: bool
    verified: int
    checked: int
    words: int
    citations: int
    calls: int
    tokens_in: int
    tokens_out: int
    pages: int
    seconds: float
    failure: str = ""


async def ended(opening: RunOpening) -> RunResult:
    async with opening as run:
        async for _ in run:
            pass
        return run.result()


async def outcome(way: str, run: RunOpening, question: Mapping[str, Any]) -> Outcome:
    started, failure, text, verified, checked = time.perf_counter(), "", "", 0, 0
    urls: list[str] = []
    try:
        result = await ended(run)
    except NexiError as error:
        failure = f"{error.code}: {error.message}"
    else:
        text, urls = _said(way, result)
        claims = result.answer.review.proof.checked if result.answer.review else ()
        verified, checked = sum(claim.verdict in (Verdict.FOUND, Verdict.SUPPORTED) for claim in claims), len(claims)
    figures = score.score(dict(question), {"answer": text, "citations": urls})
    replies = [fact for fact in run.facts if isinstance(fact, ModelReplied)]
    return Outcome(
        way,
        bool(figures["contains"]),
        bool(figures["cited"]),
        verified,
        checked,
        len(text.split()),
        len(urls),
        len(replies),
        sum(fact.usage.input_tokens for fact in replies),
        sum(fact.usage.output_tokens for fact in replies),
        sum(isinstance(fact, PageFetched) for fact in run.facts),
        time.perf_counter() - started,
        failure,
    )


def _said(way: str, result: RunResult) -> tuple[str, list[str]]:
    """The text to look for an answer in, and the pages it names."""
    if way.startswith("agentic"):
        passages = json.loads(result.answer.text)["results"]
        return "\n".join(passage["content"] for passage in passages), [passage["url"] for passage in passages]
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", result.answer.text)}
    return result.answer.text, [source.url for source in result.answer.sources if source.number in cited]


async def asked_in_every_way(config: Config, questions: Sequence[Mapping[str, Any]]) -> AsyncIterator[Outcome]:
    for question in questions:
        text = question["question"]
        with tempfile.TemporaryDirectory() as home:
            async with Nexi(config.override(home=Path(home))) as nexi:
                yield await outcome("answer", nexi.search(text), question)
        with tempfile.TemporaryDirectory() as home:
            async with Nexi(config.override(home=Path(home))) as nexi:
                yield await outcome("agentic, first time", nexi.agentic(text), question)
                yield await outcome("agentic, second time", nexi.agentic(text), question)


async def researched(config: Config, questions: Sequence[Mapping[str, Any]]) -> AsyncIterator[Outcome]:
    for question in questions:
        with tempfile.TemporaryDirectory() as home:
            async with Nexi(config.override(home=Path(home))) as nexi:
                run = nexi.research(RunRequest(question["question"], depth=1))
                yield await outcome("research, depth 1", run, question)


def row(way: str, outcomes: Sequence[Outcome]) -> str:
    def mean(name: str) -> float:
        return sum(float(getattr(o, name)) for o in outcomes) / len(outcomes)

    checked = sum(o.checked for o in outcomes)
    verified = f"{100 * sum(o.verified for o in outcomes) / checked:.0f}" if checked else "-"
    shares = [f"{100 * mean('contains'):.0f}", f"{100 * mean('cited'):.0f}", verified]
    means = [f"{mean(n):.1f}" for n in ("words", "citations", "calls", "tokens_in", "tokens_out", "pages", "seconds")]
    failed = str(sum(bool(o.failure) for o in outcomes))
    return "| " + " | ".join([way, str(len(outcomes)), *shares, *means, failed]) + " |"


def table(outcomes: Sequence[Outcome]) -> str:
    ways = list(dict.fromkeys(o.way for o in outcomes))
    rows = [row(way, [o for o in outcomes if o.way == way]) for way in ways]
    return "\n".join(["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS), *rows])


async def gather(config: Config, webs: Mapping[str, Path], counts: Mapping[str, int]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for web, ask in (("dev", asked_in_every_way), ("multi", researched)):
        questions = miniweb.read_jsonl(webs[web], "questions.jsonl")
        questions = random.Random(SEED).sample(questions, min(counts[web], len(questions)))
        with miniweb.serve(webs[web]) as base_url:
            reachable = config.override(searxng_url=base_url, allow_private=(base_url.removeprefix("http://"),))
            async for result in ask(reachable, questions):
                outcomes.append(result)
                print(row(result.way, [result]), result.failure, flush=True)
    return outcomes


def saved(model: str, outcomes: Sequence[Outcome]) -> str:
    return (
        "# A real small model over the mini-webs\n\n"
        f"Made by `python -m evals.local_model --model {model} --save` against a model on the same two cores.\n"
        "Contains a gold answer, cites the pages it needs, and verified sentences (of those checked) are per cent; the rest\n"
        "are means for one question. In and out are tokens of all its calls. Of an agentic search the passages are counted.\n\n"
        + table(outcomes)
        + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="A real model over the mini-webs.")
    parser.add_argument("--base-url", default="http://127.0.0.1:18080/v1", help="an OpenAI-compatible server")
    parser.add_argument("--model", required=True, help="the name that server knows it by")
    parser.add_argument("--context", type=int, default=8192, help="its context in tokens")
    parser.add_argument("--questions", type=int, default=5, help="questions to answer, and to search for agentically")
    parser.add_argument("--reports", type=int, default=1, help="multi-hop questions to research")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the webs as folders or .tar.gz files")
    parser.add_argument("--save", action="store_true", help="write evals/local_model.md")
    args = parser.parse_args()
    webs = {web: source for web in ("dev", "multi") if (source := find_source(args.data, web))}
    if len(webs) < 2:
        print(f"evals: the mini-webs are not in {args.data}; give their folder with --data")
        return 0
    config = Config(
        base_url=args.base_url,
        model=args.model,
        max_context=args.context,
        llm_timeout=600,
        page_cache=False,
        verify_judge=False,
    )
    outcomes = asyncio.run(gather(config, webs, {"dev": args.questions, "multi": args.reports}))
    print(table(outcomes))
    if args.save:
        RESULTS.write_text(saved(args.model, outcomes), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
