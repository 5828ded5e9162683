"""What research costs beyond what it waits for: schedule, own work, flushes, and many runs in one process.

    python -m bench.research [--save]

The rig answers model calls after 300 ms, searches and pages after 120 ms, from processes of its own. The critical path is
taken from the facts of the run: the plan, then in every round the researcher whose calls took longest (in a turn its model
call, then the slowest of its tools), then the judgement. A commit is measured against a bare write and fsync of the same
bytes in the same folder, in turns. `--save` writes bench/research.md and bench/research.svg.
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
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.request import urlopen

from nexi.app import Nexi, RunRequest, SystemClock
from nexi.config import Config
from nexi.errors import NexiError
from nexi.events import (
    DURABLE,
    Fact,
    ModelAsked,
    ModelReplied,
    PageFetched,
    ResearcherStarted,
    SearchFinished,
    ToolFinished,
)
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import ReadLog

HERE = Path(__file__).parent
MODEL_MS, WEB_MS = 300, 120
QUESTION = "How far is the Moon, and what does it do to the tides?"
RUNS, COMMITS, PARALLEL = 3, 200, 200
FACTS = {
    "moon": "The Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    "tide": "The tides follow the Moon. A high tide comes about every 12 hours and 25 minutes.",
    "mars": "Mars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
    "sun": "The Sun is 149.6 million km from Earth. Its light takes about 8 minutes and 20 seconds.",
    "venus": "Venus has no moons at all. A day on Venus lasts 243 days of Earth.",
    "earth": "Earth turns once in 23 hours and 56 minutes. The tides slow it by 2 milliseconds a century.",
}
LIMITS = {"schedule": 1.15, "commit": 1.2, "memory": 300.0}
COLOURS = {"model": "#4878a8", "search": "#d08a3c", "page": "#6a9a58"}


@dataclass(frozen=True)
class Bar:
    """One wait of one agent, in seconds after the start."""

    agent: str
    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class Measured:
    wall: float
    path: float
    nominal: float
    cpu: float
    flushes: int
    durable: int
    calls: int
    bars: tuple[Bar, ...]

    @property
    def ratio(self) -> float:
        return self.wall / self.path


# the rig


@contextmanager
def rig(folder: Path, *, model_ms: float = MODEL_MS, web_ms: float = WEB_MS) -> Iterator[tuple[str, str]]:
    """Model and web as processes of their own; gives the URLs of both."""
    body = "<html><head><title>{0}</title></head><body><main><h1>{0}</h1><p>{1}</p></main></body></html>"
    pages = [
        {"url": f"http://{name}.test/facts", "title": name.title(), "html": body.format(name.title(), text)}
        for name, text in FACTS.items()
    ]
    corpus = folder / "pages.jsonl"
    corpus.write_text("\n".join(map(json.dumps, pages)), encoding="utf-8")
    with ExitStack() as stack:
        model, web = _free_port(), _free_port()
        for module, port, rest in (
            ("rig.research_script", model, ["--latency-ms", str(model_ms)]),
            ("rig.miniweb", web, [str(corpus), "--latency-ms", str(web_ms)]),
        ):
            child = subprocess.Popen(
                [sys.executable, "-m", module, "--port", str(port), *rest], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(child.wait)
            stack.callback(child.kill)
        for port in (model, web):
            _wait_for(f"http://127.0.0.1:{port}/stats")
        yield f"http://127.0.0.1:{model}/v1", f"http://127.0.0.1:{web}"


def _free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urlopen(url, timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{url} does not answer")


def _config(home: Path, model: str, web: str) -> Config:
    return Config(
        home=home,
        base_url=model,
        model="scripted",
        search_backend=("searxng",),
        searxng_url=web,
        allow_private=("127.0.0.0/8",),
        respect_robots=False,
        verify_judge=False,  # a scripted model judges nothing
    )


# one run


async def researched(home: Path, model: str, web: str) -> Measured:
    flushes = _counting_flushes()
    async with Nexi(_config(home, model, web)) as nexi:
        started, cpu, before = time.perf_counter(), time.process_time(), flushes()
        async with nexi.research(RunRequest(QUESTION, depth=2)) as run:
            async for _ in run:
                pass
            run.result()
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        log = nexi.runs().open_log(run.id)
        facts = [fact for _, fact in log.facts]
    path, nominal = critical_path(facts)
    durable = sum(isinstance(f, DURABLE) for f in facts)
    calls = sum(isinstance(f, ModelReplied) for f in facts)
    return Measured(wall, path, nominal, cpu, flushes() - before, durable, calls, tuple(bars_of(log)))


def _counting_flushes() -> Callable[[], int]:
    real, count = os.fsync, [0]

    def fsync(fd: int) -> None:
        count[0] += 1
        real(fd)

    os.fsync = fsync  # type: ignore[assignment]
    return lambda: count[0]


def critical_path(facts: Sequence[Fact]) -> tuple[float, float]:
    """Seconds that follow one from the other whatever we do: as recorded, and as the rig was told to wait."""
    rounds = {f.researcher: f.round for f in facts if isinstance(f, ResearcherStarted)}
    turns: dict[str, list[list[float]]] = defaultdict(list)
    lead: list[float] = []
    for fact in facts:
        if isinstance(fact, ModelReplied):
            (turns[fact.agent].append([fact.seconds]) if fact.agent else lead.append(fact.seconds))
        elif isinstance(fact, ToolFinished) and fact.agent and turns[fact.agent]:
            turns[fact.agent][-1].append(fact.seconds)
    recorded, told = sum(lead), len(lead) * MODEL_MS / 1000
    for number in set(rounds.values()):
        members = [turns[name] for name, its in rounds.items() if its == number]
        recorded += max(sum(turn[0] + max(turn[1:], default=0.0) for turn in turns_of) for turns_of in members)
        told += max(sum(_nominal(turn) for turn in turns_of) for turns_of in members)
    return recorded, told


def _nominal(turn: Sequence[float]) -> float:
    waited = any(seconds >= WEB_MS / 1000 * 0.9 for seconds in turn[1:])
    return (MODEL_MS + (WEB_MS if waited else 0)) / 1000


def bars_of(log: ReadLog) -> Iterator[Bar]:
    kinds = {ModelReplied: "model", SearchFinished: "search", PageFetched: "page"}
    for (_, fact), end in zip(log.facts, log.elapsed, strict=True):
        if isinstance(fact, ModelReplied | SearchFinished | PageFetched) and end is not None:
            yield Bar(fact.agent or "lead", kinds[type(fact)], max(0.0, end - fact.seconds), end)


# the disk


def commits(folder: Path) -> tuple[float, float]:
    """Median seconds of a commit and of a bare write and fsync of a line as long, taken in turns."""

    async def work() -> tuple[float, float]:
        log = RunDirectory(folder / "runs", folder / "pages", SystemClock()).create()
        fact = ModelAsked(1, "answer", "scripted", 1000, "0" * 32)
        line, fd = b"x" * 200 + b"\n", os.open(folder / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        ours, bare = [], []
        for _ in range(COMMITS):
            began = time.perf_counter()
            await log.append(fact)
            between = time.perf_counter()
            os.write(fd, line)
            os.fsync(fd)
            ours.append(between - began)
            bare.append(time.perf_counter() - between)
        os.close(fd)
        await log.close()
        return statistics.median(ours), statistics.median(bare)

    return asyncio.run(work())


# many runs


def parallel(folder: Path) -> tuple[float, float, int]:
    """Peak memory in MB, seconds and answers of many quick runs in one process that does nothing else."""
    with rig(folder, model_ms=MODEL_MS, web_ms=WEB_MS) as (model, web):
        done = subprocess.run(
            [sys.executable, "-m", "bench.research", "--child", str(folder / "many"), model, web],
            capture_output=True,
            text=True,
            check=True,
        )
    told = json.loads(done.stdout)
    return told["mb"], told["seconds"], told["answers"]


async def _many(home: Path, model: str, web: str) -> dict[str, float]:
    began, answers = time.perf_counter(), 0
    async with Nexi(_config(home, model, web)) as nexi:

        async def one(number: int) -> bool:
            try:
                return bool((await nexi.answer(f"How far is the Moon in case {number}?")).answer.text)
            except NexiError:
                return False

        answers = sum(await asyncio.gather(*(one(n) for n in range(PARALLEL))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"mb": peak, "seconds": time.perf_counter() - began, "answers": answers}


# what is shown


def picture(run: Measured) -> str:
    """The schedule as an SVG: a line for each agent, a bar for each wait."""
    agents = list(dict.fromkeys(["lead", *sorted({bar.agent for bar in run.bars} - {"lead"})]))
    scale, left, row, top = 900 / max(run.wall, 0.1), 60, 26, 30
    height = top + row * len(agents) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{left}" y="18">{run.wall:.2f} s; critical path {run.path:.2f} s; {run.ratio:.2f} times as long</text>',
    ]
    for second in range(int(run.wall) + 2):
        x = left + second * scale
        parts.append(f'<line x1="{x:.0f}" y1="{top}" x2="{x:.0f}" y2="{top + row * len(agents)}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{top + row * len(agents) + 14}" fill="#666666">{second} s</text>')
    for line, agent in enumerate(agents):
        y = top + line * row
        parts.append(f'<text x="6" y="{y + 17}">{escape(agent)}</text>')
        for bar in (b for b in run.bars if b.agent == agent):
            x, width = left + bar.start * scale, max(1.0, (bar.end - bar.start) * scale)
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="{row - 8}" fill="{COLOURS[bar.kind]}" '
                f'fill-opacity="0.8"><title>{bar.kind} {bar.end - bar.start:.3f} s</title></rect>'
            )
    for number, (kind, colour) in enumerate(COLOURS.items()):
        x, y = left + number * 90, height - 18
        parts.append(
            f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/><text x="{x + 16}" y="{y + 11}">{kind}</text>'
        )
    return "\n".join((*parts, "</svg>", ""))


def table(runs: Sequence[Measured], disk: tuple[float, float], many: tuple[float, float, int]) -> tuple[str, bool]:
    best = min(runs, key=lambda run: run.ratio)
    rows = [
        (
            "schedule: wall time over the critical path of the facts, depth 2, 3 researchers",
            best.ratio,
            LIMITS["schedule"],
            "x",
        ),
        ("commit over a bare write and fsync", disk[0] / disk[1], LIMITS["commit"], "x"),
        (f"peak memory of {PARALLEL} quick runs at once in one process", many[0], LIMITS["memory"], " MB"),
    ]
    lines = ["| what | measured | at most | |", "|---|---|---|---|"]
    lines += [f"| {n} | {v:.2f}{u} | {m:g}{u} | {'ok' if v <= m else 'missed'} |" for n, v, m, u in rows]
    others = [
        f"- the run: {best.wall:.2f} s for {best.calls} model calls; critical path {best.path:.2f} s as recorded, "
        f"{best.nominal:.2f} s by the rig's delays ({best.wall / best.nominal:.2f}x)",
        f"- all {len(runs)} runs: {', '.join(f'{run.ratio:.2f}x' for run in runs)}",
        f"- own CPU per run: {best.cpu:.2f} s",
        f"- flushes of the log per run: {best.flushes}, for {best.durable} facts that must be on the disk",
        f"- commit {disk[0] * 1000:.2f} ms, bare {disk[1] * 1000:.2f} ms (medians of {COMMITS}, in turns)",
        f"- {PARALLEL} quick runs at once: {many[2]} answers in {many[1]:.1f} s",
    ]
    return "\n".join((*lines, "", *others, "")), all(v <= m for _, v, m, _ in rows)


HEAD = """# Research: speed and size

`python -m bench.research --save` on {machine}, {cores} cores, Python {python}, over the rig: model calls of 300 ms, searches
and pages of 120 ms. The schedule of the best run is in [research.svg](research.svg).

"""


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--save", action="store_true")
    ap.add_argument("--child", nargs=3, metavar=("HOME", "MODEL", "WEB"), help=argparse.SUPPRESS)
    args = ap.parse_args()
    if args.child:
        home, model, web = args.child
        print(json.dumps(asyncio.run(_many(Path(home), model, web))))
        return
    with tempfile.TemporaryDirectory(dir=HERE.parent) as name:  # the disk that the project lies on, not one in memory
        folder = Path(name)
        with rig(folder) as (model, web):
            asyncio.run(researched(folder / "warm", model, web))
            runs = [asyncio.run(researched(folder / f"run{n}", model, web)) for n in range(RUNS)]
        shown, good = table(runs, commits(folder), parallel(folder))
    print(shown)
    if args.save:
        head = HEAD.format(machine=platform.machine(), cores=os.cpu_count(), python=platform.python_version())
        (HERE / "research.md").write_text(head + shown, encoding="utf-8")
        (HERE / "research.svg").write_text(picture(min(runs, key=lambda run: run.ratio)), encoding="utf-8")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
