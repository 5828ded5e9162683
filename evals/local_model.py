"""A model of your own over the mini-webs, beside the built-in model on the same questions: one command adds its rows.

    python -m evals.local_model --base-url http://127.0.0.1:18080/v1 --model qwen2.5-1.5b [--questions 40] [--multi 20] [--save]

Any OpenAI-compatible server will do; none is started here. Every question is asked of the built-in model and of yours. An
answer is right when it contains a gold answer and cites the pages that one needs, in at most 60 words (`rig.score`); it is
malformed when it is empty, a tool call in text, or the same words over and over. Slow machines take minutes for a question, so
each outcome is kept in `.eval/` as it comes, and the same command goes on where it was stopped; `--again` starts anew.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evals.answers import DATA, ROOT, SEED, find_source
from nexi.agent.fallbacks import is_no_answer
from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import ModelReplied, Warned
from rig import miniweb, score

RESULTS = ROOT / "evals" / "local_model.md"
KEPT = ROOT / ".eval"
HEADS: tuple[str, ...] = ("model", "web", "asked", "right", "built-in right", "contains", "built-in contains", "words")
HEADS += ("built-in words", "tokens", "most tokens", "calls", "seconds", "replaced", "malformed")
INTRODUCTION = """# Models of your own over the mini-webs

Each pair of rows is made by `python -m evals.local_model --base-url URL --model MODEL --save`. Right (a gold answer, the pages
it needs, at most 60 words) and contains (a gold answer) are per cent, beside those of the built-in model on the same questions.
Words, tokens, calls and seconds are means for one question, tokens of all its calls; replaced counts answers whose sentence
failed the check, so that the built-in model's stands in its place. Seconds are those of the machine and its load at the time.

"""


class Outcome(Struct, frozen=True):
    """What one answer is worth and what it took."""

    right: bool
    contains: bool
    words: int
    tokens: int
    calls: int
    seconds: float
    is_replaced: bool = False
    is_malformed: bool = False
    text: str = ""


class Pair(Struct, frozen=True):
    """The outcomes of one question: of the model that is measured, and of the built-in one."""

    web: str
    question: str
    model: Outcome
    built_in: Outcome


async def ask(config: Config, question: Mapping[str, Any]) -> Outcome:
    """Ask one question through nexi's public face. A run that fails counts as a malformed end."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        try:
            async with Nexi(config.override(home=Path(home))) as nexi:
                result = await nexi.answer(question["question"])
        except NexiError as error:
            return Outcome(
                False, False, 0, 0, 0, time.perf_counter() - started, is_malformed=True, text=f"{error.code}: {error}"
            )
    text = result.answer.text
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", text)}
    urls = [source.url for source in result.answer.sources if source.number in cited]
    figures = score.score(dict(question), {"answer": text, "citations": urls})
    replies = [fact for fact in result.facts if isinstance(fact, ModelReplied)]
    return Outcome(
        bool(figures["supported"]),
        bool(figures["contains"]),
        len(text.split()),
        sum(fact.usage.total for fact in replies),
        len(replies),
        time.perf_counter() - started,
        any(isinstance(fact, Warned) and fact.code == "replaced" for fact in result.facts),
        is_no_answer(text),
        text,
    )


async def measure(config: Config, webs: Mapping[str, Path], counts: Mapping[str, int], kept: Path) -> list[Pair]:
    """Ask the questions that have no outcome yet, and keep each outcome as it comes."""
    pairs = read_kept(kept)
    for web, source in webs.items():
        questions = miniweb.read_jsonl(source, "questions.jsonl")
        chosen = random.Random(SEED).sample(questions, min(counts[web], len(questions)))
        with miniweb.serve(source) as base_url:
            local = config.override(searxng_url=base_url, allow_private=(base_url.removeprefix("http://"),))
            for question in chosen:
                if (web, question["id"]) in {(pair.web, pair.question) for pair in pairs}:
                    continue
                built_in = await ask(local.override(model="extractive"), question)
                pairs.append(Pair(web, question["id"], await ask(local, question), built_in))
                with kept.open("ab") as file:
                    file.write(msgspec.json.encode(pairs[-1]) + b"\n")
                print(
                    web,
                    question["id"],
                    "right" if pairs[-1].model.right else "-",
                    f"{pairs[-1].model.seconds:.0f} s",
                    flush=True,
                )
    return pairs


def read_kept(path: Path) -> list[Pair]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Pair) for line in lines]


def rows(model: str, pairs: Sequence[Pair]) -> list[str]:
    """One row for each web."""
    return [_row(model, web, [pair for pair in pairs if pair.web == web]) for web in dict.fromkeys(pair.web for pair in pairs)]


def _row(model: str, web: str, pairs: Sequence[Pair]) -> str:
    ours, theirs = [pair.model for pair in pairs], [pair.built_in for pair in pairs]

    def share(values: Iterable[bool]) -> str:
        return f"{100 * sum(values) / len(pairs):.1f}"

    def mean(values: Iterable[float]) -> str:
        return f"{sum(values) / len(pairs):.1f}"

    cells = [
        *(model, web, str(len(pairs))),
        *(share(o.right for o in ours), share(o.right for o in theirs)),
        *(share(o.contains for o in ours), share(o.contains for o in theirs)),
        *(mean(o.words for o in ours), mean(o.words for o in theirs)),
        *(mean(o.tokens for o in ours), str(max(o.tokens for o in ours)), mean(o.calls for o in ours)),
        *(mean(o.seconds for o in ours), str(sum(o.is_replaced for o in ours)), str(sum(o.is_malformed for o in ours))),
    ]
    return f"| {' | '.join(cells)} |"


def table(lines: Sequence[str]) -> str:
    return "\n".join((f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS), *lines)) + "\n"


def merge_rows(saved: str, fresh: Sequence[str]) -> list[str]:
    """The rows of a saved table with those of this measurement, which replace earlier ones of the same model and web."""
    keys = {tuple(row.split("|")[1:3]) for row in fresh}
    old = [line for line in saved.splitlines() if line.startswith("| ") and not line.startswith("| model ")]
    return [*(row for row in old if tuple(row.split("|")[1:3]) not in keys), *fresh]


def main() -> int:
    parser = argparse.ArgumentParser(description="A model of your own over the mini-webs.")
    parser.add_argument("--base-url", default="http://127.0.0.1:18080/v1", help="an OpenAI-compatible server")
    parser.add_argument("--model", required=True, help="the name that server knows it by")
    parser.add_argument("--context", type=int, default=8192, help="its context in tokens")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a reply")
    parser.add_argument("--questions", type=int, default=40, help="questions of one page")
    parser.add_argument("--multi", type=int, default=20, help="questions of two pages")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the webs as folders or .tar.gz files")
    parser.add_argument("--again", action="store_true", help="forget outcomes that were kept")
    parser.add_argument("--save", action="store_true", help="write the rows into evals/local_model.md")
    args = parser.parse_args()
    webs = {web: source for web in ("dev", "multi") if (source := find_source(args.data, web))}
    if len(webs) < 2:
        print(f"evals: the mini-webs are not in {args.data}; give their folder with --data")
        return 0
    kept = KEPT / f"local-model-{re.sub(r'[^A-Za-z0-9.-]', '-', args.model)}.jsonl"
    kept.parent.mkdir(exist_ok=True)
    if args.again:
        kept.unlink(missing_ok=True)
    endpoint = {"base_url": args.base_url, "model": args.model, "max_context": args.context, "llm_timeout": args.timeout}
    config = Config(page_cache=False, knowledge=False, verify_judge=False, **endpoint)
    pairs = asyncio.run(measure(config, webs, {"dev": args.questions, "multi": args.multi}, kept))
    fresh = rows(args.model, pairs)
    print(table(fresh))
    if args.save:
        saved = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        RESULTS.write_text(INTRODUCTION + table(merge_rows(saved, fresh)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
