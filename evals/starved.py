"""With two services dead: how many questions of a mini-web still find their page, and are still answered.

    python -m evals.starved [--sample N] [--answers N] [--save]

Every open service that can stand for a corpus answers in its own form from the same search (`rig/services.py`). Each question
is asked with all of them, and with the first two of its own route dead, which is the worst pair for it. A question counts
where a right page is among the ten hits. `--answers` also asks this many questions of each web through the whole loop, without
a model, over services and pages on loopback, and counts right answers with their support; DuckDuckGo, whose library has no
other address, is left out of it. Ends with exit code 1 below the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from evals import answers
from nexi.app import QuietEmit
from nexi.app.factory import rate_meaning
from nexi.searcher import Searcher
from nexi.testing import FakeClock
from nexi.types import Query
from rig import miniweb
from rig.services import StandIns, search_corpus, serve_services

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "miniweb"
TABLE = Path(__file__).with_name("starved.md")
WEBS = ("dev", "docs", "multi")
FLOOR = 98.0  # per cent of the questions that find their page with all services
SEED = 36
NOBODY = "http://127.0.0.1:9"  # where nothing listens


async def finds_page(stand_ins: StandIns, row: dict[str, Any]) -> bool:
    federation = stand_ins.federation(rate_meaning)
    outcome = await Searcher(lambda: [federation], emit=QuietEmit(), clock=FakeClock()).search(Query(row["question"]))
    return bool({hit.url for hit in outcome.hits} & {*row["gold_urls"], *row.get("also_urls", ())})


async def measure(web: str, sample: int) -> tuple[int, int, int]:
    """Questions, those that find a right page with all services, and of these those that do with two dead."""
    source = DATA / f"{web}.tar.gz"
    corpus, rows = miniweb.load(source), miniweb.read_jsonl(source, "questions.jsonl")
    rows = random.Random(SEED).sample(rows, sample) if 0 < sample < len(rows) else rows
    find_pages = search_corpus(corpus)
    fed = [row for row in rows if await finds_page(StandIns(find_pages), row)]
    survivors = 0
    for row in fed:
        stand_ins = StandIns(find_pages)
        route = stand_ins.federation(rate_meaning).route(Query(row["question"]))
        stand_ins.dead = {choice.service for choice in route.first[:2]}
        survivors += await finds_page(stand_ins, row)
    return len(rows), len(fed), survivors


async def count_answers(web: str, sample: int) -> tuple[float, float]:
    """The share of supported answers with all services, and with the first two of each question's route dead."""
    source = DATA / f"{web}.tar.gz"
    corpus = miniweb.load(source)
    rows = random.Random(SEED).sample(miniweb.read_jsonl(source, "questions.jsonl"), sample)
    with tempfile.TemporaryDirectory() as home, miniweb.serve(source) as base:
        find_pages = search_corpus(corpus, lambda url: f"{base}/{url.removeprefix('http://')}")
        with serve_services(find_pages) as urls:
            config = answers.bare_config(
                base,
                Path(home),
                model="extractive",
                search_backend=("services",),
                services=("-duckduckgo",),
                service_urls=urls,
            )
            fed, starved = {}, {}
            for row in rows:
                route = StandIns(find_pages).federation(rate_meaning).route(Query(row["question"]))
                dead = [choice.service for choice in (*route.first, *route.reserve) if choice.service in urls][:2]
                fewer = config.override(service_urls={**urls, **dict.fromkeys(dead, NOBODY)})
                fed[row["id"]] = await answers.ask(config, row)
                starved[row["id"]] = await answers.ask(fewer, row)
    figures = [answers.summary(web, False, rows, replies).figures["supported"] for replies in (fed, starved)]
    return figures[0], figures[1]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sample", type=int, default=0, help="ask only this many questions of each web")
    options.add_argument("--answers", type=int, default=0, help="answer this many questions of each web, too")
    options.add_argument("--save", action="store_true", help="write the table")
    given = options.parse_args()
    lines = ["| web | questions | find their page | of these with two services dead |", "|---|---|---|---|"]
    total = alive = 0
    for web in WEBS:
        count, fed, survivors = asyncio.run(measure(web, given.sample))
        total, alive = total + fed, alive + survivors
        lines.append(f"| {web} | {count} | {fed} | {survivors} ({100 * survivors / max(1, fed):.1f} %) |")
    lines.append(f"| all | | {total} | {alive} ({100 * alive / max(1, total):.1f} %) |")
    if given.answers:
        lines += ["", f"Right answers with their support, {given.answers} questions of each web, in per cent:", ""]
        lines += ["| web | all services | two dead |", "|---|---|---|"]
        for web in WEBS:
            lines.append("| {} | {:.1f} | {:.1f} |".format(web, *asyncio.run(count_answers(web, given.answers))))
    print("\n".join(lines))
    if given.save:
        head = "# Starved\n\nQuestions that find their page with the first two services of their route dead.\n\n"
        TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return int(100 * alive / max(1, total) < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
