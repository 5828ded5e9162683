"""Speed and size of one search, as ratios in one run.

    python -m bench [--save]
    python -m bench --against CHECKOUT

Servers run in processes of their own: the scripted model with 300 ms a call, the mini-web with 120 ms a page and a search.
The corpus is nexi's own handbook. `--against` measures only how commands start, here and in another checkout, such as one of
an earlier commit, in turns. Numbers are printed beside the reference they are a ratio of; nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexi.app import Nexi

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results.md"
MODEL_MS, PAGE_MS = 300, 120
QUESTION = "Which addresses does nexi refuse to fetch?"
ROUNDS = 7
STARTS = {"nexi --version": ["--version"], "nexi --help": ["--help"], "nexi --last 3": ["--last", "3"]}
ASK = [sys.executable, "-m", "nexi", "--plain", QUESTION]
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=2)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def user_cpu(command: Sequence[str], env: dict[str, str] | None = None, checkout: Path = ROOT) -> float:
    """User CPU of one run of a command, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, env=env, cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


class FirstByte:
    """A listener that notes the CPU its client had used when the first byte of a request arrived."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def cpu_of(self, command: Sequence[str], env: dict[str, str], checkout: Path = ROOT) -> float:
        process = subprocess.Popen(command, env=env, cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket.settimeout(20)
        connection, _ = self._socket.accept()
        connection.recv(1)
        ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11])
        process.kill()
        process.wait()
        connection.close()
        return ticks / os.sysconf("SC_CLK_TCK")


def first_byte() -> tuple[float, float]:
    """(user CPU until the first byte of the first request, user CPU of importing httpx2), means of the same run."""
    listener = FirstByte()
    with tempfile.TemporaryDirectory() as home:
        env = model_environment(home, listener)
        ours, reference = [], []
        for _ in range(2 * ROUNDS):  # side by side, so that a busy moment of the machine counts for both
            reference.append(user_cpu([sys.executable, "-c", "import httpx2"]))
            ours.append(listener.cpu_of(ASK, env))
    return statistics.mean(ours), statistics.mean(reference)


def model_environment(home: str, listener: FirstByte) -> dict[str, str]:
    """The environment of a question whose model is the listener.

    With a window of its own choice nexi does not ask the server for one: the first request is the model's.
    """
    Path(f"{home}/nexi").mkdir(exist_ok=True)
    Path(f"{home}/nexi/config.json").write_text('{"max_context": 100000}', encoding="utf-8")
    url = f"http://127.0.0.1:{listener.port}/v1"
    return bare(home, OPENAI_BASE_URL=url, NEXI_MODEL="m", SEARXNG_URL="http://127.0.0.1:9")


def compare_starts(other: Path) -> list[tuple[str, str, str, str]]:
    """(what, there, here, ratio) of the user CPU of starting, the two checkouts in turns; medians."""
    listener = FirstByte()
    measured: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory() as home:
        fill_history(Path(home) / "nexi")
        env = model_environment(home, listener)
        for _ in range(3 * ROUNDS):
            for name, arguments in STARTS.items():
                command = [sys.executable, "-m", "nexi", *arguments]
                for place, checkout in enumerate((other, ROOT)):
                    spent = user_cpu(command, {**bare(home), "PYTHONPATH": str(checkout)}, checkout)
                    measured.setdefault(f"user CPU of `{name}`", ([], []))[place].append(spent)
            for place, checkout in enumerate((other, ROOT)):
                spent = listener.cpu_of(ASK, {**env, "PYTHONPATH": str(checkout)}, checkout)
                measured.setdefault("user CPU to the first byte of the first request", ([], []))[place].append(spent)
    rows = [(name, *map(statistics.median, both)) for name, both in measured.items()]
    return [(name, f"{there * 1000:.0f} ms", f"{here * 1000:.0f} ms", f"{here / there:.2f}x") for name, there, here in rows]


def starts() -> list[tuple[str, float, float]]:
    """(command, its user CPU, user CPU of importing click) for the commands that start at once, means of the same run."""
    rows = []
    with tempfile.TemporaryDirectory() as home:
        fill_history(Path(home) / "nexi")
        for name, arguments in STARTS.items():
            ours, reference = [], []
            for _ in range(2 * ROUNDS):
                reference.append(user_cpu([sys.executable, "-c", "import click"]))
                ours.append(user_cpu([sys.executable, "-m", "nexi", *arguments], bare(home)))
            rows.append((name, statistics.mean(ours), statistics.mean(reference)))
    return rows


def fill_history(folder: Path) -> None:
    from nexi.history import create_entry

    folder.mkdir()
    lines = [
        json.dumps(create_entry(QUESTION, "a" * 500, ["https://a.test/"], "m", 3, 2.0, 900).to_dict()) for _ in range(1000)
    ]
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def bare(home: str, **values: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": home, "NEXI_HOME": f"{home}/nexi", "PYTHONPATH": str(ROOT), **values}


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """(mini-web, model) base URLs, each served by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "pages.jsonl"
        corpus.write_text("".join(json.dumps(page) + "\n" for page in handbook_pages()), encoding="utf-8")
        web_port, llm_port = free_port(), free_port()
        web = [sys.executable, "-m", "rig.miniweb", folder, "--port", str(web_port), "--latency-ms", str(PAGE_MS)]
        llm = [sys.executable, "-m", "rig.scripted_llm", "--port", str(llm_port), "--latency-ms", str(MODEL_MS)]
        processes = [subprocess.Popen(c, cwd=ROOT, stderr=subprocess.DEVNULL) for c in (web, llm)]
        try:
            for port, path in ((web_port, "/healthz"), (llm_port, "/stats")):
                wait_for(f"http://127.0.0.1:{port}{path}")
            yield f"http://127.0.0.1:{web_port}", f"http://127.0.0.1:{llm_port}"
        finally:
            for process in processes:
                process.terminate()
                process.wait()


def handbook_pages() -> Iterator[dict[str, str]]:
    from nexi.cli.demo import _handbook_folder, _markdown_to_html, _title_of

    for path in sorted(_handbook_folder().glob("*.md")):
        text = path.read_text(encoding="utf-8")
        yield {"url": f"http://handbook.test/{path.stem}", "title": _title_of(text), "html": _markdown_to_html(text)}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(url: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(url, timeout=1).read()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{url} did not come up")


async def search_in_session(web: str, llm: str, home: Path, *, prefetch: bool) -> list[dict[str, Any]]:
    """The reference question again and again in one session; the first time is start-up and is not in the list."""
    from nexi.app import Nexi
    from nexi.config import Config

    port = web.rpartition(":")[2]
    config = Config(
        base_url=f"{llm}/v1",
        model="scripted",
        searxng_url=web,
        allow_private=(f"127.0.0.1:{port}",),
        home=home,
        prefetch=prefetch,
        page_cache=False,  # every round reads its pages
        verify_judge=False,  # a scripted model judges nothing
    )
    async with Nexi(config) as nexi:
        return [await one_search(nexi) for _ in range(1 + ROUNDS)][1:]


async def one_search(nexi: Nexi) -> dict[str, Any]:
    """The reference question once: seconds, the first cited sentence, model calls."""
    from nexi.events import TextDelta

    started = time.perf_counter()
    first = None
    async with nexi.search(QUESTION) as run:
        async for event in run:
            if first is None and isinstance(event, TextDelta) and re.search(r"\[\d+\]", event.text):
                first = time.perf_counter() - started
        result = run.result()
    return {
        "seconds": time.perf_counter() - started,
        "first": first or result.finished.seconds,
        "calls": result.finished.model_calls,
        "answer": result.answer.text,
        "citations": len(result.answer.sources),
        "pages": result.finished.pages,
    }


def searches(*, prefetch: bool) -> list[dict[str, Any]]:
    with servers() as (web, llm), tempfile.TemporaryDirectory() as home:
        return asyncio.run(search_in_session(web, llm, Path(home), prefetch=prefetch))


def peak_memory_mb() -> float:
    """Peak resident memory of the whole command, one search."""
    with servers() as (web, llm), tempfile.TemporaryDirectory() as home:
        port = web.rpartition(":")[2]
        env = bare(
            home,
            OPENAI_BASE_URL=f"{llm}/v1",
            NEXI_MODEL="scripted",
            MODEL_CHOICE="extractive",
            SEARXNG_URL=web,
            NEXI_ALLOW_PRIVATE=f"127.0.0.1:{port}",
        )
        command = [sys.executable, "-c", PEAK, sys.executable, "-m", "nexi", "--plain", QUESTION]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def installed_mb() -> float:
    """What `pip install nexi-engine` puts on the disk, by the records of the packages in its closure."""
    from importlib.metadata import distributions

    wanted = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE))
    size = sum(p.stat().st_size for p in (ROOT / "nexi").rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    for package in distributions():
        if package.metadata["Name"].lower().replace("_", "-") in wanted:
            files = (Path(package.locate_file(f)) for f in package.files or ())
            size += sum(f.stat().st_size for f in files if f.exists())
    return size / 1e6


def direct_dependencies() -> int:
    return len(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"])


def table() -> list[tuple[str, str, str, str]]:
    """(what, measured, reference, target) rows."""
    cpu, reference = first_byte()
    ahead, plain = searches(prefetch=True), searches(prefetch=False)
    shortest, whole = 3 * MODEL_MS + PAGE_MS, 3 * MODEL_MS + 2 * PAGE_MS
    median = statistics.median(r["seconds"] for r in ahead) * 1000
    without = statistics.median(r["seconds"] for r in plain) * 1000
    first = statistics.median(r["first"] for r in ahead) * 1000
    calls = sorted({r["calls"] for r in ahead + plain})
    sample = ahead[-1]
    detail = f"{sample['pages']} pages, {sample['citations']} citations, {len(sample['answer'].split())} words"
    to_import = f"{cpu / reference:.2f}x import httpx2 ({reference:.2f} s)"
    at_once = [
        (f"user CPU of `{name}`", f"{cpu * 1000:.0f} ms", f"{cpu / click:.2f}x import click ({click * 1000:.0f} ms)", "2x")
        for name, cpu, click in starts()
    ]
    return [
        *at_once,
        ("user CPU to the first byte of the first request", f"{cpu:.2f} s", to_import, "2x"),
        ("model calls of the reference question", ", ".join(map(str, calls)), detail, "3"),
        ("search, reading ahead", f"{median:.0f} ms", f"{median / shortest:.3f}x its critical path, {shortest} ms", "1.10x"),
        ("search, reading ahead off", f"{without:.0f} ms", f"{without / whole:.3f}x its critical path, {whole} ms", "1.10x"),
        ("first cited sentence, reading ahead", f"{first:.0f} ms", f"{first / shortest:.3f}x that critical path", "-"),
        ("peak memory of one search", f"{peak_memory_mb():.0f} MB", "the whole command", "120 MB"),
        ("installed size", f"{installed_mb():.0f} MB", "nexi and its closure", "250 MB"),
        ("direct runtime dependencies", str(direct_dependencies()), "pyproject.toml", "20"),
    ]


def markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, tuple("---" for _ in head), *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="compare the start of commands with another checkout")
    options = parser.parse_args()
    if options.against:
        print(markdown(("what", "there", "here", "ratio"), compare_starts(options.against.resolve())))
        return
    text = markdown(("what", "measured", "as a ratio or detail", "target"), table())
    print(text)
    if options.save:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        RESULTS.write_text(
            f"# One search: speed and size\n\n`make bench` on {machine}; the scripted model takes {MODEL_MS} ms a call, "
            f"pages and searches {PAGE_MS} ms.\n\n{text}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
