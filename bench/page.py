"""How fast the page is in a real browser: first paint, a run of 10,000 events, the heap at its end, and its bytes.

    .venv-browser/bin/python -m bench.page [--events N] [--rate N] [--save]

The server is a process of its own on loopback, with a real run whose engine tells prepared events at a given rate; they go
through the log, the feed and the network as those of any run do. The browser is headless Chromium without throttling. Tasks
and frames are from the browser's own tracing: a task is a stretch of work of the page's main thread, and a frame is over when
the next one begins, while the page asks for one at every chance; who follows is watched from the question on, who comes late
from the empty tab on. The heap is what is in use, before and after a collection.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "page.md"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CATEGORIES = [
    "toplevel",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
]
LOADS = 15
SCREEN = {"width": 1280, "height": 800}
FRAMES = "(() => { const again = () => requestAnimationFrame(again); again(); })()"
SIGN = """() => document.addEventListener("keydown", (event) => {
  const began = event.timeStamp, wait = document.getElementById("work-wait");
  const look = () => requestAnimationFrame(() => {
    if (wait.checkVisibility()) window.signMs = performance.now() - began; else look();
  });
  if (event.key === "Enter") look();
}, true)"""
PAINT_MS, FRAME_MS, HEAP_MB, PAGE_KB, SIGN_MS = 300, 100, 60, 180, 300


# the server


def child(home: str, count: int, rate: float) -> None:
    """Serve on a free port, and say which."""
    from nexi.app import Nexi, assembly
    from nexi.config import Config
    from nexi.testing import FakeWeb
    from nexi.types import Answer
    from nexi.web import create_app
    from nexi.web.guard import GuardRules
    from rig.served import serve_here

    class LongEngine(assembly.SearchEngine):
        """An engine that tells so many events, at that rate."""

        def __init__(self, environment: Any) -> None:
            super().__init__(environment)
            self.emit, self.stopping = environment.emit, environment.stop

        async def answer(self, tasks: asyncio.TaskGroup) -> Answer:
            from nexi.events import is_fact

            clock = asyncio.get_running_loop().time
            began = clock()
            for told, event in enumerate(long_run(count), 1):
                if is_fact(event):
                    await self.emit(event)
                else:
                    self.emit.delta(event)
                if self.stopping.is_set():
                    break
                if rate and (ahead := told / rate - (clock() - began)) > 0.02:
                    await asyncio.sleep(ahead)
            await self.stopping.wait()
            return Answer(TEXT * 20)

    assembly.SearchEngine = LongEngine  # type: ignore[misc]  # where a run looks for its engine
    web = FakeWeb({"https://moon.example/": "# Moon\n\nThe Moon is 384,400 km from Earth on average."})
    config = Config(home=Path(home), model="extractive")
    app = create_app(config, nexi=Nexi(config, backends=(web,), fetchers=(web,)), rules=GuardRules(per_minute=1e9, burst=1e9))
    serve_here(app, config)


TOKEN = "the-token-of-this-bench"
OWNER = {"authorization": f"Bearer {TOKEN}"}
BEGIN = "the question is asked"
QUESTION, LAST = "A long question", "This is the last sentence of the long run."
TEXT = "The Moon is 384,400 km from Earth on average, and **nobody** knows why a bench repeats it so often. "


def long_run(count: int) -> Iterator[Any]:
    """Events in the proportions of a long piece of research: researchers at work, and a report that is written at the end."""
    from nexi import events as e
    from nexi.types import Hit, Source, ToolCall, Usage

    people = [f"{turn}.{n}" for turn in (1, 2, 3) for n in range(1, 6)]
    yield e.AgendaSet(tuple(f"What is known of part {n} of the question?" for n in range(1, 6)), 3)
    for who in people:
        yield e.ResearcherStarted(who, int(who[0]), f"What is known of part {who[2]} of the question?")
    writing = count // 20  # some 50,000 characters: more than models write at once
    for n in range((count - writing - len(people) * 2 - 2) // 10):
        who, call = people[n * len(people) * 10 // count % len(people)], n + 1
        url = f"https://site{n % 97}.example/page/{n}"
        hits = tuple(Hit(f"{url}/{i}", f"Title {i} of search {n}", "A snippet of a page. " * 8) for i in range(10))
        yield e.ModelAsked(call, "answer", "scripted", 4000, agent=who)
        yield e.ModelReplied(call, "", (ToolCall(f"c{n}", "search", "{}"),), Usage(4000, 60), "tool_calls", 0.8, agent=who)
        yield e.ToolStarted(f"c{n}", "search", '{"queries": ["what is known"]}', agent=who)
        yield e.SearchFinished(f"what is known of part {n}", "searxng", hits, (), 0.3, agent=who)
        for i in range(2):
            yield e.PageFetched(f"{url}/{i}", f"{url}/{i}", f"Title {i}", "0" * 64, 9000, 40000, 0.4, agent=who)
            yield e.SourceNumbered(Source(n * 2 + i + 1, f"{url}/{i}", f"Title {i}"), agent=who)
        yield e.ToolFinished(f"c{n}", "search", True, "A result. " * 50, 1.2, agent=who)
        yield e.StatusDelta(f"Research: {min(99, 100 * n * 10 // count)}%")
    for who in people:
        yield e.ResearcherReported(who, "A report. " * 40)
    for n in range(writing):
        yield e.TextDelta((f"\n\n## Part {n // 24}\n\n" if n % 24 == 0 else "\n\n" if n % 6 == 0 else "") + TEXT)
    yield e.TextDelta(LAST)


class Process:
    def __init__(self, home: str, count: int, rate: float) -> None:
        (Path(home) / "state").mkdir(mode=0o700, exist_ok=True)
        (Path(home) / "state" / "token").write_text(TOKEN)
        command = [sys.executable, "-m", "bench.page", "--child", home, "--events", str(count), "--rate", str(rate)]
        self._running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._running.stdout
        self.base = f"http://127.0.0.1:{int(self._running.stdout.readline())}"
        urllib.request.urlopen(f"{self.base}/healthz", timeout=30).close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.terminate()
        self._running.wait()


# measuring


def known_profile(browser: Any, base: str, **context: Any) -> Any:
    """A profile in which the owner has opened the link."""
    profile = browser.new_context(**context)
    profile.request.get(f"{base}/?token={TOKEN}")
    return profile


def paint(browser: Any, base: str) -> tuple[list[float], list[float], dict[str, int]]:
    """Milliseconds to the first paint, of the page and of one line of text in turn; and the bytes of the page's files."""
    times: dict[str, list[float]] = {"/": [], "/healthz": []}
    sizes: dict[str, int] = {}
    for _ in range(LOADS):
        for path, found in times.items():
            profile = known_profile(browser, base)
            page = profile.new_page()
            if path == "/":
                page.on("response", lambda response: sizes.update({response.url: len(response.body())}))
            page.goto(base + path, wait_until="networkidle")
            found.append(page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            profile.close()
    files = {url.removeprefix(base): size for url, size in sizes.items() if url == f"{base}/" or "/static/" in url}
    return times["/"], times["/healthz"], files


def first_signs(browser: Any, base: str) -> list[float]:
    """Milliseconds from Enter to the frame in which question, status and skeleton stand; no model has said anything then."""
    times: list[float] = []
    for _ in range(LOADS):
        profile = known_profile(browser, base, viewport=SCREEN)
        page = profile.new_page()
        page.goto(base, wait_until="networkidle")
        page.evaluate(SIGN)
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        page.wait_for_function("() => window.signMs")
        times.append(page.evaluate("() => window.signMs"))
        page.wait_for_url("**/runs/*")
        stop_run(page)  # the server carries few runs at once, and the next measure wants it idle
        profile.close()
    return times


def stop_run(page: Any) -> None:
    """Stop the run on the page, and wait until its answer stands."""
    page.keyboard.press("Escape")
    page.wait_for_selector("#tools", state="visible")


def idle_frames(browser: Any) -> dict[str, float]:
    """What this machine makes of a page on which nothing happens."""
    page = browser.new_context(viewport=SCREEN).new_page()
    page.add_init_script(FRAMES)
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.goto("data:text/html,<p>nothing")
    page.evaluate("() => new Promise((done) => setTimeout(done, 15000))")
    found = longest(json.loads(browser.stop_tracing())["traceEvents"])
    page.context.close()
    return found


def traced(browser: Any, base: str, *, late: bool) -> dict[str, float]:
    """Follow a long run until all of it was taken in, then let it answer. Who comes late gets all of it at once."""
    profile = known_profile(browser, base, viewport=SCREEN)
    page = profile.new_page()
    page.set_default_timeout(60_000)
    page.add_init_script(FRAMES)
    where = told(base) if late else "/"
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.goto(base + where)
    if not late:
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        page.evaluate("(name) => console.timeStamp(name)", BEGIN)
    page.wait_for_function("(last) => document.getElementById('answer').textContent.includes(last)", arg=LAST)
    page.evaluate("() => new Promise((done) => requestIdleCallback(done))")
    session = profile.new_cdp_session(page)
    before = heap(session)
    stop_run(page)
    found = longest(json.loads(browser.stop_tracing())["traceEvents"])
    session.send("HeapProfiler.collectGarbage")
    after = heap(session)
    profile.close()
    return {**found, "heap_mb": before, "heap_collected_mb": after}


def told(base: str) -> str:
    """Start a run, and wait until all its events were told; the page's path of it."""
    body = json.dumps({"question": QUESTION}).encode()
    asked = urllib.request.Request(f"{base}/v1/runs", body, {"content-type": "application/json", **OWNER})
    with urllib.request.urlopen(asked, timeout=60) as reply:
        run_id = json.load(reply)["id"]
    with urllib.request.urlopen(
        urllib.request.Request(f"{base}/v1/runs/{run_id}/events", headers=OWNER), timeout=240
    ) as stream:
        for line in stream:
            if LAST.encode() in line:
                break
    return f"/runs/{run_id}"


def heap(session: Any) -> float:
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def longest(events: list[dict[str, Any]]) -> dict[str, float]:
    """The longest task and frame of the page's main thread, and how many there were; CPU beside the clock's time."""
    threads = {(e["pid"], e["tid"]) for e in events if e.get("args", {}).get("name") == "CrRendererMain"}
    begin = max((e["ts"] for e in events if e["name"] == "TimeStamp" and BEGIN in json.dumps(e.get("args", {}))), default=0)
    mine = [e for e in events if (e["pid"], e["tid"]) in threads and e["ts"] >= begin]
    frames = sorted(e["ts"] for e in mine if e["name"] == "FireAnimationFrame")
    tasks = [e for e in mine if e["name"] == "RunTask" and e["ph"] == "X"]
    gaps = [(after - before) / 1000 for before, after in pairwise(frames)]
    return {
        "frames": len(frames),
        "longest_frame_ms": max(gaps),
        "frames_over": sum(gap > FRAME_MS for gap in gaps),
        "longest_task_ms": max(e["dur"] for e in tasks) / 1000,
        "longest_task_cpu_ms": max(e.get("tdur", 0) for e in tasks) / 1000,
        "seconds": (frames[-1] - frames[0]) / 1e6,
    }


# telling


def report(count: int, rate: float) -> str:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as home, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        with Process(home, count, rate) as live:
            times, floor, files = paint(browser, live.base)
            signs = first_signs(browser, live.base)
            followed = traced(browser, live.base, late=False)
        nothing = idle_frames(browser)
        with Process(home, count, 0) as ended:
            at_once = traced(browser, ended.base, late=True)
        browser.close()
    rows = [
        "| what | measured | the same with nothing to show | at most |",
        "|---|---|---|---|",
        f"| first paint, median of {LOADS} new profiles | {statistics.median(times):.0f} ms (best {min(times):.0f}) "
        f"| {statistics.median(floor):.0f} ms (best {min(floor):.0f}) | {PAINT_MS} ms |",
        f"| Enter to question, status and skeleton, median of {LOADS} "
        f"| {statistics.median(signs):.0f} ms (worst {max(signs):.0f}) | | {SIGN_MS} ms |",
        f"| the page's {len(files)} files | {sum(files.values()) / 1000:.1f} KB | | {PAGE_KB} KB |",
    ]
    for name, found in (("followed", followed), ("taken in at once", at_once)):
        rows += [
            f"| {count:,} events {name}, in {found['seconds']:.0f} s: longest frame "
            f"| {_frames(found)} | {_frames(nothing)} | {FRAME_MS} ms |",
            f"| longest stretch of work | {_tasks(found)} | {_tasks(nothing)} | |",
            f"| JS heap at the end | {found['heap_mb']:.1f} MB ({found['heap_collected_mb']:.1f} collected) | | {HEAP_MB} MB |",
        ]
    return "\n".join(rows) + "\n"


def _frames(found: dict[str, float]) -> str:
    return f"{found['longest_frame_ms']:.0f} ms ({found['frames_over']:.0f} of {found['frames']:.0f} over {FRAME_MS})"


def _tasks(found: dict[str, float]) -> str:
    return f"{found['longest_task_cpu_ms']:.0f} ms of CPU ({found['longest_task_ms']:.0f} by the clock)"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=500, help="events a second")
    parser.add_argument("--save", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--child", metavar="HOME", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child, given.events, given.rate)
    if BROWSER is None:
        return print("no Chromium here: apt-get install chromium")
    text = report(given.events, given.rate)
    print(text)
    if given.save:
        machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} with other work, priority {os.nice(0)}"
        head = (
            f"# How fast the page is\n\n`python -m bench.page --rate {given.rate:g} --save`; headless Chromium, {machine}.\n\n"
        )
        TABLE.write_text(head + text, encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
