"""The knowledge of a team in Postgres: what a search costs the database, and how many passages a CPU second stores.

    python -m bench.team_knowledge [--people 3] [--chunks 2000] [--save]

The passages, vectors and questions are those of `bench.stores`; each person has so many of them, and one of them asks.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from array import array
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.stores import BATCH, PAGE, Corpus
from bench.team_load import postgres_cpu
from nexi.stores.pgvector.store import PgvectorStore
from nexi.team.postgres.database import Database
from nexi.team.postgres.people import People
from nexi.types import Chunk, IndexedPage, Scope, StoredSource
from rig.postgres import PostgresServer, running_postgres

TABLE = Path(__file__).resolve().parent / "team_knowledge.md"
QUERIES, WARM = 20, 3
MODEL = "bench"


async def fill(store: PgvectorStore, corpus: Corpus, chunks: int) -> None:
    for number in range(chunks // BATCH):
        texts, rows = corpus.batch(number)
        for first in range(0, BATCH, PAGE * 10):
            pages = []
            for start in range(first, first + PAGE * 10, PAGE):
                url = f"https://site{(number * BATCH + start) // PAGE}.example/"
                vectors = tuple(array("f", row.tolist()) for row in rows[start : start + PAGE])
                pages.append(IndexedPage(StoredSource(url), tuple(map(Chunk, texts[start : start + PAGE])), vectors))
            await store.put(pages, embedder=MODEL)


async def measure(server: PostgresServer, people: int, chunks: int) -> list[str]:
    database = await asyncio.to_thread(Database(server.url).open)
    corpus = Corpus(max(chunks, BATCH))
    everybody = People(database)
    stores = [PgvectorStore(database, everybody.add(f"Person {number}")) for number in range(people)]
    began, cpu = postgres_cpu(server), time.process_time()
    for store in stores:
        await fill(store, corpus, chunks)
    inserted = (postgres_cpu(server) - began, time.process_time() - cpu)
    database.fetch("analyze")
    questions = [(text, array("f", vector.tolist())) for text, vector in corpus.questions()][: QUERIES + WARM]
    one = stores[0]
    site = Scope(domains=("site1.example",))

    async def search_both_ways(text: str, vector: Any) -> None:
        """As retrieval does, which fuses the two."""
        await one.lexical(text)
        await one.dense(vector, embedder=MODEL)

    kinds: dict[str, Callable[[str, Any], Awaitable[Any]]] = {
        "vectors": lambda text, vector: one.dense(vector, embedder=MODEL),
        "vectors, one site": lambda text, vector: one.dense(vector, embedder=MODEL, scope=site),
        "words": lambda text, vector: one.lexical(text),
        "both": search_both_ways,
    }
    lines = ["| search | CPU of Postgres ms | wall ms, median |", "|---|---|---|"]
    for name, ask in kinds.items():
        for question in questions[:WARM]:
            await ask(*question)
        took, before = [], postgres_cpu(server)
        for question in questions[WARM:]:
            began = time.perf_counter()
            await ask(*question)
            took.append(time.perf_counter() - began)
        used = 1000 * (postgres_cpu(server) - before) / len(took)
        lines.append(f"| {name} | {used:.1f} | {1000 * statistics.median(took):.0f} |")
    total = people * chunks
    size = database.fetch("select pg_database_size(current_database())")[0][0]
    lines += [
        "",
        f"Stored: {total / inserted[0]:.0f} passages a CPU second of Postgres and {total / inserted[1]:.0f} of nexi; "
        f"{size / total / 1000:.1f} kB of disk each.",
    ]
    database.close()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=2_000)
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    with running_postgres() as server:
        lines = asyncio.run(measure(server, chosen.people, chosen.chunks))
    head = (
        f"`python -m bench.team_knowledge --people {chosen.people} --chunks {chosen.chunks} --save`: {chosen.people} people "
        f"with {chosen.chunks:,} passages each, 256 numbers a vector, one of them asks for 10 passages. On a machine that "
        "other work shares, so compare CPU."
    )
    text = "\n".join(["# Knowledge of a team in Postgres", "", head, "", *lines, ""])
    print(text)
    if chosen.save:
        TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
