"""How-to questions over manuals: `nexi index` of each, then a local question, answered without a model.

    python -m evals.howto [--site git.test] [--save] [--show] [--data DIR]

Takes the manuals of the docs mini-web (Python, Git, PostgreSQL, SQLite, Debian) as folders of HTML files, each indexed into a
knowledge base of its own, and asks the questions of howto_questions.jsonl. An answer is good when it says what the gold pattern
says and cites a page, partial when it does not but cites a page with such a passage. A share of good answers below the floor
ends with exit code 1. Files and knowledge bases stay in `.eval/howto`; remove that folder to index anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evals.answers import DATA, ROOT, find_source
from nexi.app import Nexi
from nexi.app.intake import DocumentIndexing
from nexi.app.request import RunRequest
from nexi.config import Config
from nexi.errors import NexiError
from rig import miniweb

QUESTIONS = ROOT / "evals" / "howto_questions.jsonl"
RESULTS = ROOT / "evals" / "howto.md"
FOLDER = ROOT / ".eval" / "howto"
MIN_GOOD = 0.7


def write_manual(source: Path, site: str) -> Path:
    """The pages of one site as files, as the package installs them."""
    folder = FOLDER / "pages" / site
    if not folder.exists():
        for page in miniweb.read_jsonl(source, "pages.jsonl"):
            parts = urlsplit(page["url"])
            if parts.netloc == site:
                path = folder / parts.path.strip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_suffix(".html").write_text(page["html"], encoding="utf-8")
    return folder


def config_for(site: str) -> Config:
    return Config(home=FOLDER / "home" / site, model="extractive", verify_judge=False)


async def index_manual(source: Path, site: str) -> None:
    folder, config = write_manual(source, site), config_for(site)
    done = config.root / "indexed"
    if not done.exists():
        async with Nexi(config) as nexi:
            await DocumentIndexing(nexi, nexi.knowledge()).take(str(folder))
        done.write_text("", encoding="utf-8")


async def ask(nexi: Nexi, question: dict[str, Any]) -> dict[str, Any]:
    started = time.process_time()
    try:
        result = await nexi.answer(RunRequest(question["question"], scope="local", keeps_log=False, keeps_history=False))
    except NexiError as error:
        return {**question, "verdict": "bad", "answer": f"{error.code}: {error}", "seconds": 0.0}
    cited = {s.number: s.url for s in result.answer.sources if f"[{s.number}]" in result.answer.text}
    pages = [page.text for url in cited.values() if (page := await nexi.knowledge().page(url))]
    gold = re.compile(question["gold"])
    if cited and gold.search(result.answer.text):
        verdict = "good"
    else:
        verdict = "partial" if any(gold.search(text) for text in pages) else "bad"
    unverified = result.answer.text.count("[unverified]")
    seconds = time.process_time() - started
    return {
        **question,
        "verdict": verdict,
        "answer": result.answer.text,
        "cited": list(cited.values()),
        "unverified": unverified,
        "seconds": seconds,
    }


async def ask_all(source: Path, sites: list[str], questions: list[dict[str, Any]], *, show: bool) -> list[dict[str, Any]]:
    replies = []
    for site in sites:
        await index_manual(source, site)
        async with Nexi(config_for(site)) as nexi:
            for question in [q for q in questions if q["site"] == site]:
                reply = await ask(nexi, question)
                replies.append(reply)
                if show:
                    print(f"{reply['verdict']:8}{reply['question']}", reply["answer"][:600], sep="\n        ", flush=True)
    return replies


def render_table(sites: list[str], replies: list[dict[str, Any]]) -> str:
    lines = ["| manual | asked | good | partial | bad | unverified | CPU seconds |", "|---|---|---|---|---|---|---|"]
    for site in (*sites, "all"):
        own = [r for r in replies if site in (r["site"], "all")]
        counts = Counter(r["verdict"] for r in own)
        seconds = sum(r["seconds"] for r in own) / max(1, len(own))
        marked = sum(r.get("unverified", 0) for r in own)
        verdicts = f"{counts['good']} | {counts['partial']} | {counts['bad']}"
        lines.append(f"| {site} | {len(own)} | {verdicts} | {marked} | {seconds:.1f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="How-to questions over manuals, without a model.")
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    sites = list(dict.fromkeys(q["site"] for q in questions))
    parser.add_argument("--site", choices=sites, action="append", help="only this manual (repeatable)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the docs mini-web")
    parser.add_argument("--show", action="store_true", help="print every answer")
    parser.add_argument("--save", action="store_true", help="write evals/howto.md")
    args = parser.parse_args()
    source, sites = find_source(args.data, "docs"), args.site or sites
    if source is None:
        print(f"evals: the docs mini-web is not in {args.data}; give its folder with --data")
        return 0
    replies = asyncio.run(ask_all(source, sites, questions, show=args.show))
    print(render_table(sites, replies))
    if args.save:
        RESULTS.write_text(
            "# How-to questions over manuals, without a model\n\n"
            "Made by `python -m evals.howto --save` over the manuals of the docs mini-web, each indexed as a folder of HTML\n"
            "files. The 60 questions and their gold patterns were written before the answers were looked at; the answers were\n"
            "read while the choice of sentences was worked on, so another set is the test of how far this carries.\n\n"
            + render_table(sites, replies)
            + "\n",
            encoding="utf-8",
        )
    good = sum(r["verdict"] == "good" for r in replies)
    if good < MIN_GOOD * len(replies):
        print(f"howto: {good} of {len(replies)} answers are good, and {MIN_GOOD:.0%} should be", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
