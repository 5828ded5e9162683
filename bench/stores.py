"""Knowledge stores side by side: one run, the same chunks, a fresh process for every engine.

    python -m bench.stores [--sizes 10000,100000] [--ours 1000000] [--save]

Peers run in .venv-peers (`pip install chromadb lancedb sqlite-vec apsw qdrant-edge-py numpy`); one that is missing is left
out and named. A chunk is 150 words of a vocabulary with a natural distribution and a vector of 256 numbers around one of
2,000 centres; a page has ten chunks, and one page in ten is in German, which is the filter. CPU is that of the whole process
(threads included), wall time depends on what else the machine does. Nothing is embedded here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "stores.md"
PEERS = ROOT / ".venv-peers" / "bin" / "python"
DIMS, PAGE, WORDS, VOCABULARY, CENTRES = 256, 10, 150, 200_000, 2_000
QUERIES, WARM = 40, 5
BATCH = 1_000
MAX_TEXTS = 20_000
COMMON = 120  # the words so frequent that a question has them as stop words

if __name__ == "__main__" and str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


class Corpus:
    """Chunks by number, the same in every process."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self.size = size
        rng = np.random.default_rng(1)
        weights = 1 / (np.arange(VOCABULARY) + 2.7) ** 1.07
        self.chances = np.cumsum(weights / weights.sum())
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        lengths = rng.integers(4, 11, VOCABULARY)
        flat = rng.choice(letters, int(lengths.sum()))
        ends = np.cumsum(lengths)
        self.words = ["".join(flat[e - n : e]) for n, e in zip(lengths, ends, strict=True)]
        self.centres = rng.standard_normal((CENTRES, DIMS), dtype=np.float32)

    def batch(self, number: int) -> tuple[list[str], Any]:
        """A thousand texts and their vectors."""
        import numpy as np

        rng = np.random.default_rng(1_000 + number)
        picks = np.searchsorted(self.chances, rng.random((BATCH, WORDS)))
        texts = [" ".join([self.words[i] for i in row]) for row in picks.tolist()]
        rows = self.centres[rng.integers(0, CENTRES, BATCH)] + 0.8 * rng.standard_normal((BATCH, DIMS), dtype=np.float32)
        return texts, rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def questions(self) -> Iterator[tuple[str, Any]]:
        """Five words that are no stop words, and a vector near some chunk."""
        import numpy as np

        rng = np.random.default_rng(7)
        for number in range(QUERIES + WARM):
            picks = [i for i in np.searchsorted(self.chances, rng.random(60)).tolist() if i > COMMON][:5]
            row = self.batch(number % (self.size // BATCH))[1][number] + 0.02 * rng.standard_normal(DIMS, dtype=np.float32)
            yield " ".join(self.words[i] for i in picks), row / np.linalg.norm(row)


def language(chunk: int) -> str:
    return "de" if chunk // PAGE % 10 == 3 else "en"


# engines: each gives (insert, finish, {kind of query: function of (text, vector)})

Query = Callable[[str, Any], Any]
Engine = tuple[Callable[[int, list[str], Any], None], Callable[[], None], dict[str, Query]]


def nexi_engine(folder: Path) -> Engine:
    from array import array

    from nexi.stores.sqlite import SqliteStore
    from nexi.types import Chunk, IndexedPage, Scope, StoredSource

    loop = asyncio.new_event_loop()
    store = SqliteStore(folder / "knowledge.db")
    german = Scope(languages=("de",))

    def insert(first: int, texts: list[str], rows: Any) -> None:
        pages = []
        for at in range(0, len(texts), PAGE):
            number = (first + at) // PAGE
            source = StoredSource(
                f"https://d{number % 100}.example/{number}", language=language(first + at), digest=str(number)
            )
            chunks = tuple(Chunk(text) for text in texts[at : at + PAGE])
            pages.append(IndexedPage(source, chunks, tuple(array("f", row.tobytes()) for row in rows[at : at + PAGE])))
        loop.run_until_complete(store.put(pages, embedder="bench" if len(rows) else ""))

    def vector(row: Any) -> Any:
        return array("f", row.astype("<f4").tobytes())

    async def search_both_ways(text: str, row: Any, **scope: Any) -> list[Any]:
        """As retrieval does, which fuses the two."""
        return [*await store.lexical(text, **scope), *await store.dense(vector(row), embedder="bench", **scope)]

    return (
        insert,
        lambda: None,
        {
            "vector": lambda text, row: store.dense(vector(row), embedder="bench"),
            "vector, filtered": lambda text, row: store.dense(vector(row), embedder="bench", scope=german),
            "words": lambda text, row: store.lexical(text),
            "hybrid": lambda text, row: search_both_ways(text, row),
            "hybrid, filtered": lambda text, row: search_both_ways(text, row, scope=german),
        },
    )


def chroma_engine(folder: Path) -> Engine:
    import chromadb

    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("chunks", configuration={"hnsw": {"space": "cosine"}})

    def insert(first: int, texts: list[str], rows: Any) -> None:
        ids = [str(first + i) for i in range(len(texts))]
        about = [{"language": language(first + i)} for i in range(len(texts))]
        collection.add(ids=ids, embeddings=rows, documents=texts, metadatas=about)

    return (
        insert,
        lambda: None,
        {
            "vector": lambda text, row: collection.query(query_embeddings=[row], n_results=10),
            "vector, filtered": lambda text, row: collection.query(
                query_embeddings=[row], n_results=10, where={"language": "de"}
            ),
        },
    )


def lance_engine(folder: Path) -> Engine:
    import lancedb
    import pyarrow as pa

    db = lancedb.connect(str(folder))
    fields = [("id", pa.int64()), ("vector", pa.list_(pa.float32(), DIMS)), ("text", pa.string()), ("language", pa.string())]
    table = db.create_table("chunks", schema=pa.schema(fields))

    def insert(first: int, texts: list[str], rows: Any) -> None:
        table.add(
            pa.table(
                {
                    "id": list(range(first, first + len(texts))),
                    "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), DIMS),
                    "text": texts,
                    "language": [language(first + i) for i in range(len(texts))],
                }
            )
        )

    return (
        insert,
        lambda: None,
        {
            "vector": lambda text, row: table.search(row).metric("cosine").limit(10).to_list(),
            "vector, filtered": lambda text, row: (
                table.search(row).metric("cosine").where("language = 'de'", prefilter=True).limit(10).to_list()
            ),
        },
    )


def sqlite_vec_engine(folder: Path) -> Engine:
    import apsw
    import sqlite_vec

    folder.mkdir(exist_ok=True)
    db = apsw.Connection(str(folder / "vec.db"))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE chunks(id INTEGER PRIMARY KEY, text TEXT)")
    db.execute(f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{DIMS}] distance_metric=cosine, language TEXT)")

    def insert(first: int, texts: list[str], rows: Any) -> None:
        with db:
            db.executemany("INSERT INTO chunks VALUES (?, ?)", [(first + i, text) for i, text in enumerate(texts)])
            db.executemany(
                "INSERT INTO vectors(rowid, vector, language) VALUES (?, ?, ?)",
                [(first + i, row.tobytes(), language(first + i)) for i, row in enumerate(rows)],
            )

    def ask(row: Any, more: str) -> Any:
        near = f"SELECT rowid, distance FROM vectors WHERE vector MATCH ? AND k = 10{more}"
        found = list(db.execute(near, (row.astype("<f4").tobytes(),)))
        return [next(db.execute("SELECT text FROM chunks WHERE id = ?", (i,))) for i, _ in found]

    return (
        insert,
        lambda: None,
        {"vector": lambda text, row: ask(row, ""), "vector, filtered": lambda text, row: ask(row, " AND language = 'de'")},
    )


def qdrant_engine(folder: Path) -> Engine:
    import qdrant_edge as q

    params = {"v": q.EdgeVectorParams(size=DIMS, distance=q.Distance.Cosine)}
    folder.mkdir(exist_ok=True)
    shard = q.EdgeShard.create(str(folder), q.EdgeConfig(vectors=params))
    shard.update(q.UpdateOperation.create_field_index("language", q.PayloadSchemaType.Keyword))
    german = q.Filter(must=[q.FieldCondition(key="language", match=q.MatchValue(value="de"))])

    def insert(first: int, texts: list[str], rows: Any) -> None:
        points = [
            q.Point(first + i, {"v": row.tolist()}, {"text": text, "language": language(first + i)})
            for i, (text, row) in enumerate(zip(texts, rows, strict=True))
        ]
        shard.update(q.UpdateOperation.upsert_points(points))

    def ask(row: Any, within: Any) -> Any:
        near = q.Query.Nearest(row.tolist(), using="v")
        return shard.query(q.QueryRequest(limit=10, query=near, filter=within, with_payload=True))

    def finish() -> None:
        shard.flush()
        shard.optimize()

    return insert, finish, {"vector": lambda text, row: ask(row, None), "vector, filtered": lambda text, row: ask(row, german)}


ENGINES: dict[str, tuple[Callable[[Path], Engine], str]] = {
    "nexi": (nexi_engine, "nexi.stores.sqlite"),
    "qdrant-edge": (qdrant_engine, "qdrant_edge"),
    "sqlite-vec": (sqlite_vec_engine, "sqlite_vec"),
    "chromadb": (chroma_engine, "chromadb"),
    "lancedb": (lance_engine, "lancedb"),
}


# one engine in this process


def measure(name: str, size: int) -> dict[str, Any]:
    import numpy  # noqa: F401  # nexi's import is counted beyond it

    with tempfile.TemporaryDirectory(prefix="nexi-bench-") as folder:
        start = time.process_time()
        make, module = ENGINES[name]
        __import__(module)
        imported = time.process_time() - start
        corpus = Corpus(size)
        before = memory()
        insert, finish, queries = make(Path(folder) / "store")
        spent = _fill(corpus, insert, finish)
        report: dict[str, Any] = {"engine": name, "size": size, "import_s": imported, "insert_per_cpu_s": size / spent}
        if name == "nexi":  # memory of a reader, not of what was used while writing
            store = Path(folder) / "store"
            report |= {**_run_apart("--read", str(store), "--size", str(size)), "disk_mb": disk(Path(folder))}
            report |= _run_apart("--texts", "--size", str(min(size, MAX_TEXTS)))
            return {**report, "upkeep": upkeep(store, size)}
        report["queries"] = _ask(corpus, queries)
        report["memory_mb"] = memory() - before
        report["disk_mb"] = disk(Path(folder))
        return report


def _fill(corpus: Corpus, insert: Any, finish: Any) -> float:
    spent = 0.0
    for number in range(corpus.size // BATCH):
        texts, rows = corpus.batch(number)
        start = time.process_time()
        insert(number * BATCH, texts, rows)
        spent += time.process_time() - start
        if number % 50 == 49:  # a large one takes long: say how far it is
            print(f"{(number + 1) * BATCH:,} chunks, {spent:.0f} s of CPU", file=sys.stderr, flush=True)
    start = time.process_time()
    finish()
    return spent + time.process_time() - start


def _run_apart(*options: str) -> dict[str, Any]:
    """The report of a fresh process."""
    command = [sys.executable, "-m", "bench.stores", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def insert_texts(size: int) -> dict[str, float]:
    """Chunks inserted per CPU second when they have no vectors."""
    corpus = Corpus(size)
    with tempfile.TemporaryDirectory(prefix="nexi-bench-") as folder:
        insert, finish, _ = nexi_engine(Path(folder))
        return {"texts_per_cpu_s": size / _fill(corpus, lambda first, texts, rows: insert(first, texts, rows[:0]), finish)}


def read(folder: Path, size: int) -> dict[str, Any]:
    """Queries in a fresh process, and how near the nearest found are to the true ones."""
    corpus = Corpus(size)
    questions = list(corpus.questions())
    before = memory()
    _, _, queries = nexi_engine(folder)
    found = _ask(corpus, queries, questions)
    held = memory() - before
    return {"queries": found, "memory_mb": held, "recall": _recall(corpus, queries["vector"], questions)}


def upkeep(folder: Path, size: int) -> dict[str, dict[str, float]]:
    """CPU and wall seconds to change some pages, to remove some, to check the file and to repair one whose header is gone."""
    from nexi.stores.sqlite import SqliteStore

    corpus, path = Corpus(size), folder / "knowledge.db"
    insert, _, _ = nexi_engine(folder)
    texts, rows = corpus.batch(0)
    store = SqliteStore(path)

    def overwrite_header() -> None:
        with path.open("r+b") as file:
            file.write(bytes(100))

    found = {
        "change 100 pages": _clock(lambda: insert(0, [f"changed {text}" for text in texts], rows)),
        "remove 100 pages": _clock(
            lambda: asyncio.run(store.remove([f"https://d{n % 100}.example/{n}" for n in range(100, 200)]))
        ),
        "check": _clock(lambda: asyncio.run(store.repair())),
    }
    overwrite_header()
    found["repair a lost header"] = _clock(lambda: asyncio.run(store.repair()))
    left = asyncio.run(store.stats())
    assert left.chunks == size - 1_000, left
    return found


def _clock(work: Callable[[], Any]) -> dict[str, float]:
    begun, started = time.process_time(), time.perf_counter()
    work()
    spent = {"cpu_s": time.process_time() - begun, "wall_s": time.perf_counter() - started}
    print(spent, file=sys.stderr, flush=True)
    return spent


def _recall(corpus: Corpus, ask: Query, questions: Any) -> float:
    """Against every vector, compared one by one."""
    import numpy as np

    asked = np.stack([row for _, row in questions])
    best = np.zeros((len(asked), 0))
    names = np.zeros((len(asked), 0), np.int64)
    for number in range(corpus.size // BATCH):
        best = np.concatenate([best, asked @ corpus.batch(number)[1].T], axis=1)
        names = np.concatenate([names, np.tile(np.arange(number * BATCH, (number + 1) * BATCH), (len(asked), 1))], axis=1)
        keep = np.argsort(-best, axis=1)[:, :10]
        best, names = np.take_along_axis(best, keep, 1), np.take_along_axis(names, keep, 1)
    hits = 0
    for (text, row), truth in zip(questions, names, strict=True):
        found = {(int(p.id) // 65536 - 1) * PAGE + int(p.id) % 65536 for p in asyncio.run(ask(text, row))}
        hits += len(found & set(truth.tolist()))
    return hits / (10 * len(asked))


def _ask(corpus: Corpus, queries: dict[str, Query], questions: Any = None) -> dict[str, dict[str, float]]:
    """An asynchronous engine is awaited in one running loop, as a program would."""
    return asyncio.run(_timed(queries, questions or list(corpus.questions())))


async def _timed(queries: dict[str, Query], questions: Any) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kind, query in queries.items():
        cpu, wall = [], []
        for number, (text, row) in enumerate(questions):
            begun, started = time.process_time(), time.perf_counter()
            answer = query(text, row)
            if asyncio.iscoroutine(answer):
                await answer
            if number >= WARM:
                cpu.append((time.process_time() - begun) * 1e3)
                wall.append((time.perf_counter() - started) * 1e3)
        found[kind] = {
            "cpu": statistics.median(cpu),
            "wall": statistics.median(wall),
            "p90": statistics.quantiles(wall, n=10)[8],
        }
    return found


def memory() -> float:
    """Resident megabytes of this process now."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def disk(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


# all of them


def run(name: str, size: int) -> dict[str, Any] | str:
    python = sys.executable if name == "nexi" else str(PEERS)
    command = [python, str(Path(__file__)), "--engine", name, "--size", str(size)]
    if name == "nexi":
        command[1:2] = ["-m", "bench.stores"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no reason given"])[-1][:120]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def table(reports: list[dict[str, Any]], missing: list[str]) -> str:
    kinds = ["vector", "vector, filtered", "words", "hybrid", "hybrid, filtered"]
    lines = [
        "# Knowledge stores side by side",
        "",
        f"`python -m bench.stores --save`, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}. "
        "Median CPU milliseconds of a query for 10 passages (wall time in brackets), fresh process, warm files. "
        "Memory is what the process grew by; the vectors alone are 1.02 MB for a thousand chunks.",
        "",
        "| chunks | engine | "
        + " | ".join(kinds)
        + " | inserted per CPU s | without vectors | memory MB | disk MB | recall@10 |",
        "|" + "---|" * (len(kinds) + 7),
    ]
    for report in reports:
        cells = [f"{q['cpu']:.2f} ({q['wall']:.2f})" if (q := report["queries"].get(kind)) else "" for kind in kinds]
        recall = f"{report['recall']:.3f}" if "recall" in report else ""
        texts = f"{report['texts_per_cpu_s']:,.0f}" if "texts_per_cpu_s" in report else ""
        lines.append(
            f"| {report['size']:,} | {report['engine']} | {' | '.join(cells)} | {report['insert_per_cpu_s']:,.0f} "
            f"| {texts} | {report['memory_mb']:,.0f} | {report['disk_mb']:,.0f} | {recall} |"
        )
    imports = ", ".join(f"{r['engine']} {r['import_s']:.2f}" for r in reports[: len(ENGINES)])
    lines += ["", f"Import, CPU seconds in a fresh process (numpy is loaded before nexi's is counted): {imports}.", ""]
    lines += [f"Left out: {line}." for line in missing]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="10000,100000")
    options.add_argument("--ours", default="1000000")
    options.add_argument("--save", action="store_true")
    options.add_argument("--engine", choices=list(ENGINES))
    options.add_argument("--size", type=int, default=10_000)
    options.add_argument("--read", type=Path)
    options.add_argument("--texts", action="store_true", help="only insert, without vectors")
    options.add_argument("--table", type=Path, help="make the table of reports, one JSON line each")
    given = options.parse_args()
    if given.texts:
        print(json.dumps(insert_texts(given.size)))
        return
    if given.read:
        print(json.dumps(read(given.read, given.size)))
        return
    if given.engine:
        print(json.dumps(measure(given.engine, given.size)))
        return
    if given.table:
        lines = [json.loads(line) for line in given.table.read_text().splitlines()]
        text = table(lines, [])
        print(text)
        RESULTS.write_text(text, encoding="utf-8")
        return
    plan = [(name, int(size)) for size in given.sizes.split(",") if size for name in ENGINES]
    plan += [("nexi", int(size)) for size in given.ours.split(",") if size]
    reports: list[dict[str, Any]] = []
    missing: list[str] = []
    for name, size in plan:
        found = run(name, size)
        if isinstance(found, str):
            missing.append(f"{name} at {size:,} ({found})")
        else:
            reports.append(found)
        print(name, size, found, file=sys.stderr, flush=True)
    text = table(reports, missing)
    print(text)
    if given.save:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
