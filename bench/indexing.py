"""How many passages a CPU second of `nexi index` stores: files read, pages extracted, texts cut into passages, words written.

    python -m bench.indexing [--pages 200] [--save]
    python -m bench.indexing --profile html

Four folders, each indexed by a process of its own into an empty store: web pages (a seeded sample of the annotated ones),
documentation pages, short texts of about a passage each, and the handbook. CPU is that of the process and of those it
starts, after a first file, so without what Python and nexi take to start. It is user and system time; a busy machine still
makes it up to twice as long. Words only is what makes files findable by `--local`; with vectors is `nexi index` as it comes,
with the embedder of this machine, where there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import platform
import pstats
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from evals.extraction import corpus
from evals.tables import render_table

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "indexing.md"
GOAL = 900
MAX_EMBEDDED_FILES = 40


def write_html(folder: Path, size: int) -> None:
    for number, page in enumerate(corpus.sample(corpus.annotated(corpus.DATA), size)):
        (folder / f"{number}.html").write_text(page.html, encoding="utf-8")


def write_manuals(folder: Path, size: int) -> None:
    pages = list(corpus.web(corpus.DATA, "docs")[1].values())
    for number, html in enumerate(pages[:size]):
        (folder / f"{number}.html").write_text(html, encoding="utf-8")


def write_texts(folder: Path, size: int) -> None:
    with tarfile.open(corpus.DATA / "retrieval" / "cranfield.tar.gz") as archive:
        file = archive.extractfile("cranfield/set.json")
        assert file is not None
        documents = json.load(file)["docs"]
    for name, (_, text) in list(documents.items())[: 5 * size]:
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def write_handbook(folder: Path, size: int) -> None:
    for path in sorted((ROOT / "docs").glob("*.md"))[:size]:
        shutil.copy(path, folder)


FOLDERS: dict[str, Callable[[Path, int], None]] = {
    "html": write_html,
    "manuals": write_manuals,
    "texts": write_texts,
    "handbook": write_handbook,
}


def cpu_seconds() -> float:
    """User and system time of this process and the ended ones that it started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def index_folder(folder: Path, home: Path, *, embeds: bool) -> tuple[int, float]:
    """How many passages a folder makes, and the CPU seconds it takes to store them."""
    from nexi.app import Nexi
    from nexi.app.intake import DocumentIndexing
    from nexi.config import load_config

    async with Nexi(load_config(env={"NEXI_HOME": str(home)})) as nexi:
        knowledge = nexi.knowledge()
        start = cpu_seconds()
        indexing = DocumentIndexing(nexi, knowledge, embeds=embeds)
        await indexing.take(str(folder))
        cpu_s = cpu_seconds() - start
        return (await (await knowledge.open_store()).stats()).chunks, cpu_s


def run_here(kind: str, size: int, *, embeds: bool, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, home, warm = (Path(place) / name for name in ("folder", "home", "warm"))
        for parent, files in ((folder, size), (warm, 1)):
            parent.mkdir()
            FOLDERS[kind](parent, files)
        profiler = cProfile.Profile()
        asyncio.run(index_folder(warm, Path(place) / "other", embeds=embeds))
        if profile:
            profiler.enable()
        chunks, cpu_s = asyncio.run(index_folder(folder, home, embeds=embeds))
        if profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
        files = sum(1 for _ in folder.iterdir())
        print(json.dumps({"files": files, "passages": chunks, "cpu_s": cpu_s}))


def measure(kind: str, size: int, *, embeds: bool) -> dict[str, float]:
    """One folder in a fresh process, so that nothing is warm."""
    command = [sys.executable, "-m", "bench.indexing", "--here", kind, "--pages", str(size), *(["--embeds"] if embeds else [])]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200, help="how many web pages")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--profile", choices=FOLDERS, help="show where the time of one folder goes")
    parser.add_argument("--here", choices=FOLDERS, help=argparse.SUPPRESS)
    parser.add_argument("--embeds", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if kind := options.here or options.profile:
        return run_here(kind, options.pages, embeds=options.embeds, profile=bool(options.profile))
    rows, passages, cpu_s = list[list[object]](), 0.0, 0.0
    for kind in FOLDERS:
        words = measure(kind, options.pages, embeds=False)
        vectors = measure(kind, min(options.pages, MAX_EMBEDDED_FILES), embeds=True)
        passages, cpu_s = passages + words["passages"], cpu_s + words["cpu_s"]
        rate, vector_rate = (f"{run['passages'] / run['cpu_s']:,.0f}" for run in (words, vectors))
        rows.append([kind, int(words["files"]), int(words["passages"]), f"{words['cpu_s']:.2f}", rate, vector_rate])
    rows.append(["all", "", int(passages), f"{cpu_s:.2f}", f"{passages / cpu_s:,.0f}", ""])
    heads = ["folder", "files", "passages", "CPU s", "passages a CPU s, words only", "with vectors"]
    table = render_table(heads, rows)
    print(table)
    if options.save:
        about = f"`python -m bench.indexing --pages {options.pages} --save`, Python {platform.python_version()}; goal {GOAL}."
        TABLE.write_text(f"# Indexing\n\n{about}\n\n{table}\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
