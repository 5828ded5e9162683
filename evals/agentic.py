"""The metrics of the agentic search on the mini-webs, judged by the stand-in, with no model and no key.

    python -m evals.agentic [--web dev] [--sample 100] [--save] [--data DIR]

Each question begins with an empty store, is asked twice, and once more from an empty store with search hints. Pages and
searches come from the mini-web in this process, so seconds are those of the engine without a network. Completeness is the
judge's own figure; the share of questions whose gold pages are among the results stands beside it, because a judge that
counts words can be content too soon. Asked again, a question reads no page unless its first search ended by the limit of
iterations, and so goes on. A figure on the wrong side of its target ends with exit code 1; a sample may be less
complete by two standard errors, so that chance alone seldom fails it.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import math
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evals.retrieval import DATA, Silent
from evals.tables import render_table
from nexi.formats import extract
from nexi.knowledge.agentic import AgenticSearch, KnowledgeSettings, Web
from nexi.knowledge.indexing import Indexer
from nexi.knowledge.judge import AgenticJudge
from nexi.knowledge.retrieval import Retriever
from nexi.stores.sqlite import SqliteStore
from nexi.testing import FakeClock
from nexi.types import Hit, Page, Query, SearchOutcome
from rig import miniweb

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "evals" / "agentic.md"
WEBS = ("dev", "multi", "docs")
SEED = 20
COMPLETE, CRAWLED, SAVED, SECONDS = 90.0, 30.0, 50.0, 60.0  # the seed's targets, in per cent and seconds


@dataclass(frozen=True)
class Outcome:
    """What one question took."""

    completeness: float
    found_gold: bool
    iterations: int
    results: int
    distinct: int
    crawled: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One web in one way: shares in per cent, the rest means for one question."""

    web: str
    way: str
    asked: int
    complete: float
    gold: float
    crawled: float
    saved: float
    pages: float
    iterations: float
    seconds: float
    read_again: int = 0  # pages, after a first search that was content before its last iteration


class MiniWeb:
    """A corpus as the web of an agentic search; counts what was found and read."""

    def __init__(self, corpus: miniweb.Corpus) -> None:
        self._corpus = corpus
        self._pages = {page["url"]: page for page in corpus.pages}
        self.results = 0
        self.found: set[str] = set()
        self.read_urls: list[str] = []

    async def search(self, query: Query) -> SearchOutcome:
        _, ranked = self._corpus.search(query.text, query.count)
        pages = [(self._corpus.pages[i], self._corpus.snippet(i, query.text)) for i, _ in ranked]
        hits = tuple(Hit(page["url"], page["title"], snippet) for page, snippet in pages)
        self.results += len(hits)
        self.found.update(hit.url for hit in hits)
        return SearchOutcome(query.text, hits, "miniweb")

    async def read(self, url: str) -> Page:
        self.read_urls.append(url)
        raw = self._pages[url]
        found = extract(raw["html"], "text/html", url)
        return Page(url, found.text, title=found.title or raw["title"], description=found.description)


async def ask(corpus: miniweb.Corpus, question: Mapping[str, Any], folder: Path, settings: KnowledgeSettings) -> list[Outcome]:
    """The same question twice over one store that was empty before."""
    store = SqliteStore(folder / "knowledge.db")
    outcomes = []
    for _ in range(2):
        web = MiniWeb(corpus)
        started = time.perf_counter()
        response = await AgenticSearch(
            question["question"],
            retriever=Retriever(store, emit=Silent(), clock=FakeClock()),
            indexer=Indexer(store, emit=Silent(), clock=FakeClock()),
            judge=AgenticJudge(None, emit=Silent()),
            web=Web(web.search, web.read),
            emit=Silent(),
            settings=settings,
        ).run()
        seconds = time.perf_counter() - started
        urls = {result["url"] for result in response["results"]}
        outcomes.append(
            Outcome(
                response["completeness"],
                set(question["gold_urls"]) <= urls,
                response["iterations"],
                web.results,
                len(web.found),
                len(web.read_urls),
                seconds,
            )
        )
    await store.aclose()
    return outcomes


def summary(web: str, way: str, outcomes: Sequence[Outcome], threshold: float) -> Row:
    count = max(1, len(outcomes))
    crawled = sum(o.crawled for o in outcomes)
    return Row(
        web,
        way,
        len(outcomes),
        100 * sum(o.completeness >= threshold for o in outcomes) / count,
        100 * sum(o.found_gold for o in outcomes) / count,
        100 * crawled / max(1, sum(o.results for o in outcomes)),
        100 * (1 - crawled / max(1, sum(o.distinct for o in outcomes))),
        crawled / count,
        sum(o.iterations for o in outcomes) / count,
        sum(o.seconds for o in outcomes) / max(1, sum(o.iterations for o in outcomes)),
    )


def measure(web: str, source: Path, sample: int) -> list[Row]:
    corpus = miniweb.load(source)
    questions = miniweb.read_jsonl(source, "questions.jsonl")
    if 0 < sample < len(questions):
        questions = random.Random(SEED).sample(questions, sample)
    plain = KnowledgeSettings()
    rows: list[Row] = []
    for hints in (False, True):
        settings = replace(plain, use_search_hints=hints)
        asked = asyncio.run(ask_all(corpus, questions, settings))
        label = "with hints" if hints else "first time"
        rows.append(summary(web, label, [first for first, _ in asked], plain.completeness_threshold))
        if not hints:
            row = summary(web, "second time", [second for _, second in asked], plain.completeness_threshold)
            content = [second for first, second in asked if first.iterations < plain.max_iterations]
            rows.append(dataclasses.replace(row, read_again=sum(second.crawled for second in content)))
    return rows


async def ask_all(
    corpus: miniweb.Corpus, questions: Sequence[Mapping[str, Any]], settings: KnowledgeSettings
) -> list[list[Outcome]]:
    outcomes = []
    for question in questions:
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(await ask(corpus, question, Path(folder), settings))
    return outcomes


def table(rows: Sequence[Row]) -> str:
    heads = ("web", "way", "asked", "complete %", "gold pages %", "crawled %", "saved %", "pages", "iterations", "s/iteration")
    return render_table(heads, map(_cells_of, rows))


def _cells_of(row: Row) -> tuple[object, ...]:
    shares = (row.complete, row.gold, row.crawled, row.saved)
    return (row.web, row.way, row.asked, *shares, f"{row.pages:.2f}", f"{row.iterations:.2f}", f"{row.seconds:.3f}")


def missed(row: Row, sampled: bool = False) -> list[str]:
    """The targets a row misses, in words."""
    if row.way == "second time":
        return [f"{row.web}: asked again, {row.read_again} pages were read"] if row.read_again else []
    wanted = COMPLETE - (2 * math.sqrt(COMPLETE * (100 - COMPLETE) / max(1, row.asked)) if sampled else 0)
    checks = (
        (row.complete >= wanted, f"complete in {row.complete:.1f} % of questions, wanted {wanted:.0f}"),
        (row.crawled < CRAWLED, f"{row.crawled:.1f} % of results crawled, wanted under {CRAWLED:.0f}"),
        (row.saved >= SAVED, f"{row.saved:.1f} % of pages saved, wanted {SAVED:.0f} or more"),
        (row.seconds < SECONDS, f"{row.seconds:.1f} s an iteration, wanted under {SECONDS:.0f}"),
    )
    return [f"{row.web}, {row.way}: {problem}" for held, problem in checks if not held]


def save(rows: Sequence[Row], sample: int) -> None:
    asked = f" --sample {sample}" if sample else ""
    RESULTS.write_text(
        "# The agentic search on the mini-webs\n\n"
        f"Made by `python -m evals.agentic{asked} --save`: judged by the stand-in, an empty store for each question.\n"
        "Complete: judged 0.8 or more. Gold pages: all are among the results. Crawled: share of search results read. Saved:\n"
        "share of distinct results not read. Seconds are the engine's, without a network.\n\n" + table(rows) + "\n",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="The metrics of the agentic search on the mini-webs.")
    parser.add_argument("--web", choices=WEBS, action="append", help="only this web (repeatable)")
    parser.add_argument("--sample", type=int, default=0, help="ask only this many questions of each web, always the same ones")
    parser.add_argument("--data", type=Path, default=DATA / "miniweb", help="folder with the webs as folders or .tar.gz files")
    parser.add_argument("--save", action="store_true", help="write evals/agentic.md")
    args = parser.parse_args()
    rows: list[Row] = []
    for web in args.web or WEBS:
        source = next((p for p in (args.data / web, args.data / f"{web}.tar.gz") if p.exists()), None)
        if source is None:
            print(f"evals: the mini-web {web} is not in {args.data}; give its folder with --data")
            continue
        rows += measure(web, source, args.sample)
        print(table(rows) if len(rows) == 3 else "\n".join(table(rows[-3:]).splitlines()[2:]), flush=True)
    if args.save and rows:
        save(rows, args.sample)
    problems = [problem for row in rows for problem in missed(row, bool(args.sample))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
