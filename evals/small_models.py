"""Right replies of a small model: whether it is asked, has the answer before it, and whether its sentence stands.

    python -m evals.small_models [--save] [--show]

Twelve plain questions over the dev and docs mini-webs. The model is scripted: it gives a right sentence of its own words,
with the number under which the page was shown to it. Nothing judges here but rules, as where only a small model is set up. A
right reply that is replaced by a quotation, or that was not asked for, ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from evals.answers import DATA, ROOT, find_source
from evals.tables import render_table
from nexi.app import Nexi
from nexi.config import Config
from nexi.testing import ScriptedLLM
from nexi.types import Message, Reply
from rig import miniweb

TABLE = ROOT / "evals" / "small_models.md"
_SOURCE = re.compile(r"^Source \[(\d+)\], (.*):$", re.MULTILINE)


class Case(Struct, frozen=True):
    """A question, a right reply to it, the title of the page it rests on, and words of that page which hold the answer."""

    web: str
    question: str
    reply: str
    title: str
    words: str


RHINE, PLAGUE, ONE = "How long is the Rhine?", "When did the Black Death reach England?", "Is 1 a prime number?"
CASES = (
    Case("dev", RHINE, "The Rhine is 1,230 kilometres long.", "Rhine", "1,230"),
    Case(
        "dev",
        RHINE,
        "The total length of the Rhine was cited as 1,232 kilometres by the Dutch Rijkswaterstaat in 2010.",
        "Rhine",
        "1,232",
    ),
    Case("dev", PLAGUE, "The Black Death reached England in the spring of 1349.", "Black Death", "spring of 1349"),
    Case("dev", PLAGUE, "The Black Death reached England in 1349.", "Black Death", "spring of 1349"),
    Case("dev", ONE, "No, 1 is not a prime number.", "Prime number", "1 is not a prime number"),
    Case("dev", ONE, "1 is not a prime number.", "Prime number", "1 is not a prime number"),
    Case(
        "dev",
        "What is a prime number?",
        "A prime number is a natural number greater than 1 that can be divided only by 1 and itself.",
        "Prime number",
        "no positive divisors",
    ),
    Case("dev", "Who founded the Yuan dynasty?", "The Yuan dynasty was established by Kublai Khan.", "Yuan", "by Kublai Khan"),
    Case(
        "docs",
        "Which isolation levels does PostgreSQL implement?",
        "PostgreSQL implements only three distinct isolation levels.",
        "Isolation",
        "three distinct isolation levels",
    ),
    Case(
        "docs",
        "How do I create an index in PostgreSQL?",
        "CREATE INDEX constructs an index on the specified columns of a table.",
        "CREATE INDEX",
        "constructs an index",
    ),
    Case(
        "docs",
        "What does git stash do?",
        "The git stash command saves your local modifications and goes back to a clean working directory.",
        "git-stash",
        "local modifications",
    ),
    Case(
        "docs",
        "Why should I not put a SQLite database on NFS?",
        "File locking is broken in many NFS implementations, which can corrupt the database.",
        "",
        "NFS",
    ),
)


class Outcome(Struct, frozen=True):
    """What became of a reply."""

    is_asked: bool
    has_evidence: bool
    is_kept: bool
    tokens: int
    text: str
    prompt: str = ""


async def try_case(case: Case, base_url: str) -> Outcome:
    """Ask the question; the scripted model cites the page by the number in its prompt."""
    prompts: list[str] = []

    def reply(messages: Sequence[Message]) -> Reply:
        prompts.append(messages[-1].content)
        numbers = [number for number, title in _SOURCE.findall(prompts[0]) if case.title.casefold() in title.casefold()]
        return Reply(f"{case.reply[:-1]} [{numbers[0] if numbers else 1}].")

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        config = Config(
            model="qwen2.5-1.5b-instruct",
            base_url="http://127.0.0.1:9/v1",  # nothing is sent there: the model is scripted
            searxng_url=base_url,
            allow_private=(base_url.removeprefix("http://"),),
            home=Path(home),
            page_cache=False,
            knowledge=False,
        )
        async with Nexi(config, llms={"answer": ScriptedLLM(reply)}) as nexi:
            text = (await nexi.answer(case.question)).answer.text
    prompt = prompts[0] if prompts else ""
    has_evidence = case.words in prompt.replace("*", "").replace("`", "")
    return Outcome(bool(prompts), has_evidence, case.reply[:-1] in text, len(prompt) // 4, text, prompt)


async def measure(data: Path) -> list[Outcome]:
    outcomes = []
    for web in dict.fromkeys(case.web for case in CASES):
        source = find_source(data, web)
        if source is None:
            sys.exit(f"evals: the mini-web {web} is not in {data}; give its folder with --data")
        with miniweb.serve(source) as base_url:
            outcomes += [await try_case(case, base_url) for case in CASES if case.web == web]
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the mini-webs")
    parser.add_argument("--show", action="store_true", help="print prompts and answers")
    parser.add_argument("--save", action="store_true", help="write evals/small_models.md")
    args = parser.parse_args()
    outcomes = asyncio.run(measure(args.data))
    if args.show:
        for case, outcome in zip(CASES, outcomes, strict=True):
            print(case.question, outcome.prompt[:2500], outcome.text, sep="\n", end="\n---\n")
    say = {True: "yes", False: "no"}
    rows = [
        (case.web, case.question, say[o.is_asked], say[o.has_evidence], say[o.is_kept], o.tokens)
        for case, o in zip(CASES, outcomes, strict=True)
    ]
    table = render_table(("web", "question", "asked", "answer before it", "stands", "tokens"), rows)
    kept = sum(outcome.is_kept for outcome in outcomes)
    summary = (
        f"{kept} of {len(CASES)} right replies stand, {sum(o.has_evidence for o in outcomes)} with the answer before them."
    )
    print(table, summary, sep="\n")
    if args.save:
        heading = "# Right replies of a small model\n\nMade by `python -m evals.small_models --save`.\n\n"
        TABLE.write_text(f"{heading}{table}\n{summary}\n", encoding="utf-8")
    return 0 if kept == len(CASES) else 1


if __name__ == "__main__":
    sys.exit(main())
