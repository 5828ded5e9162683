"""With two services dead: how many questions of a mini-web still find their page, and are still answered.

    python -m evals.starved [--sample N] [--answers N [--twice]] [--web dev] [--seed N] [--save]

Every open service that can stand for a corpus answers in its own form from the same search (`rig/services.py`). Each question
is asked with all of them, and with those two dead that were the first to find something for it (where one alone did, with it
and the first of the others that were asked). A question counts where a right page is among the ten hits. `--answers` also
asks this many questions of each web through the whole loop, without a model, over services and pages on loopback; DuckDuckGo,
whose library has no other address, is left out of it. It counts by question: of those with a right and supported answer from
all services, how many still have one with the two dead, and how many have one only then. `--twice` asks all services a second
time and counts the same for it, which is what chance alone changes. The lost and the gained questions are printed, and
`.eval/starved.jsonl` keeps all answers to each. Ends with exit code 1 below the floor, which holds for pages and for answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from evals import answers
from evals.tables import render_table
from nexi.app import QuietEmit
from nexi.app.factory import rate_meaning
from nexi.routing.table import SERVICES
from nexi.searcher import Searcher
from nexi.testing import FakeClock
from nexi.types import Query, SearchOutcome
from rig import miniweb, score
from rig.services import StandIns, search_corpus, serve_services

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "miniweb"
TABLE = Path(__file__).with_name("starved.md")
KEPT = Path(__file__).resolve().parents[1] / ".eval" / "starved.jsonl"
WEBS = ("dev", "docs", "multi")
FLOOR = 98.0  # per cent of the questions that find their page, or are answered, with all services
SEED = 36
NOBODY = "http://127.0.0.1:9"  # where nothing listens


async def search(stand_ins: StandIns, row: dict[str, Any], left_out: Collection[str] = ()) -> SearchOutcome:
    federation = stand_ins.federation(rate_meaning, left_out)
    return await Searcher(lambda: [federation], emit=QuietEmit(), clock=FakeClock()).search(Query(row["question"]))


def has_page(outcome: SearchOutcome, row: dict[str, Any]) -> bool:
    return not {hit.url for hit in outcome.hits}.isdisjoint({*row["gold_urls"], *row.get("also_urls", ())})


def choose_dead(outcome: SearchOutcome) -> list[str]:
    """The first two services that found something: without them, a question loses the most."""
    return [answer.service for answer in sorted(outcome.asked, key=lambda answer: not answer.hits)][:2]


async def measure(corpus: miniweb.Corpus, rows: Sequence[dict[str, Any]]) -> tuple[int, int, int]:
    """Questions, those that find a right page with all services, and of these those that do with two dead."""
    find_pages = cache(search_corpus(corpus))
    outcomes = [(row, await search(StandIns(find_pages), row)) for row in rows]
    fed = [(row, outcome) for row, outcome in outcomes if has_page(outcome, row)]
    survivors = [has_page(await search(StandIns(find_pages, choose_dead(outcome)), row), row) for row, outcome in fed]
    return len(rows), len(fed), sum(survivors)


class Answers(NamedTuple):
    """The ids of the questions of a web that have a right and supported answer."""

    web: str
    asked: int
    fed: frozenset[str]
    starved: frozenset[str]
    again: frozenset[str]  # with all services a second time; empty if that was not asked

    def row(self) -> tuple[object, ...]:
        fed, kept = len(self.fed), len(self.fed & self.starved)
        again = format_share(len(self.fed & self.again), fed) if self.again else "-"
        return (self.web, self.asked, fed, format_share(kept, fed), fed - kept, len(self.starved - self.fed), again)


ANSWER_HEADS = (
    "web",
    "questions",
    "answered with all services",
    "of these with two dead",
    "lost",
    "gained",
    "of these, all again",
)


def add_up(webs: Sequence[Answers]) -> Answers:
    """All webs as one; an id is unique within its web only."""

    def join(name: str) -> frozenset[str]:
        return frozenset(f"{each.web}/{number}" for each in webs for number in getattr(each, name))

    return Answers("all", sum(each.asked for each in webs), join("fed"), join("starved"), join("again"))


async def count_answers(web: str, corpus: miniweb.Corpus, rows: Sequence[dict[str, Any]], *, twice: bool) -> Answers:
    """Answer the questions with all services, and with the first two dead that find something for each."""
    right: dict[str, set[str]] = {"fed": set(), "starved": set(), "again": set()}
    with tempfile.TemporaryDirectory() as home, miniweb.serve(corpus) as base:
        find_pages = cache(search_corpus(corpus, lambda url: f"{base}/{url.removeprefix('http://')}"))
        with serve_services(find_pages) as urls:
            config = answers.bare_config(
                base,
                Path(home),
                model="extractive",
                search_backend=("services",),
                services=("-duckduckgo",),
                service_urls=urls,
            )
            for row in rows:
                dead = choose_dead(await search(StandIns(find_pages), row, SERVICES.keys() - urls.keys()))
                fewer = config.override(service_urls={**urls, **dict.fromkeys(dead, NOBODY)})
                configs = {"fed": config, "starved": fewer, **({"again": config} if twice else {})}
                replies = {name: await answers.ask(each, row) for name, each in configs.items()}
                for name, reply in replies.items():
                    if score.score(row, reply)["supported"]:
                        right[name].add(row["id"])
                if len({row["id"] in right[name] for name in configs}) > 1:
                    report_difference(web, row, dead, replies, [name for name in configs if row["id"] in right[name]])
    return Answers(web, len(rows), *(frozenset(right[name]) for name in ("fed", "starved", "again")))


def report_difference(
    web: str, row: dict[str, Any], dead: Sequence[str], replies: dict[str, dict[str, Any]], right: Sequence[str]
) -> None:
    """Print a question that is answered in one configuration only, and keep its answers."""
    print(f"{web} {row['id']}: right with {', '.join(right)} ({' and '.join(dead)} dead): {row['question']}", flush=True)
    kept = {"web": web, "question": row, "dead": dead, "right": right, "replies": replies}
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def choose_questions(web: str, sample: int, seed: int) -> list[dict[str, Any]]:
    rows = miniweb.read_jsonl(DATA / f"{web}.tar.gz", "questions.jsonl")
    return random.Random(seed).sample(rows, sample) if 0 < sample < len(rows) else rows


def format_share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(1, whole):.1f} %)"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sample", type=int, default=0, help="ask only this many questions of each web")
    options.add_argument("--answers", type=int, default=0, help="answer this many questions of each web, too")
    options.add_argument("--twice", action="store_true", help="answer each with all services a second time")
    options.add_argument("--web", choices=WEBS, action="append", help="only this web (repeatable)")
    options.add_argument("--seed", type=int, default=SEED, help="of the samples")
    options.add_argument("--save", action="store_true", help="write the table")
    given = options.parse_args()
    webs = given.web or WEBS
    corpora = {web: miniweb.load(DATA / f"{web}.tar.gz") for web in webs}
    lines = ["| web | questions | find their page | of these with two services dead |", "|---|---|---|---|"]
    total = alive = 0
    for web in webs:
        count, fed, survivors = asyncio.run(measure(corpora[web], choose_questions(web, given.sample, given.seed)))
        total, alive = total + fed, alive + survivors
        lines.append(f"| {web} | {count} | {fed} | {format_share(survivors, fed)} |")
    lines.append(f"| all | | {total} | {format_share(alive, total)} |")
    shares = [alive / max(1, total)]
    if given.answers:
        KEPT.unlink(missing_ok=True)
        counts = [
            asyncio.run(count_answers(web, corpora[web], choose_questions(web, given.answers, given.seed), twice=given.twice))
            for web in webs
        ]
        every = add_up(counts)
        shares.append(len(every.fed & every.starved) / max(1, len(every.fed)))
        lines += ["", "Questions with a right and supported answer (`--answers`), counted one by one:", ""]
        lines += render_table(ANSWER_HEADS, (each.row() for each in (*counts, every))).splitlines()
    print("\n".join(lines))
    if given.save:
        what = "Questions that find their page with those two services dead that first found something for them"
        head = f"# Starved\n\n{what}\n(`python -m evals.starved {' '.join(sys.argv[1:])}`).\n\n"
        TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return int(100 * min(shares) < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
