"""Long trials: kills, write points, bad input, load, budgets and a soak, each counted over as many calls as it takes.

    python -m tests.faults.endurance kills|writes|inputs|load|site|hour|budgets|soak|company [--seconds S] [--save]

Every trial goes on where its last saved piece ended (its seed is its number), so that full size can be reached in pieces.
`--save` adds the counts to `endurance.json` and writes `endurance.md` beside this file. A violation ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from nexi.app.owner_token import OwnerToken
from nexi.events import ModelFailed, ModelReplied, PageFailed, PageFetched
from rig.fault_proxy import Fault
from tests.faults.company import keep_company
from tests.faults.processes import Home, check_taken_up, home, kill, kinds_in
from tests.faults.world import make_page

SAVED = Path(__file__).with_name("endurance.json")
TABLE = SAVED.with_suffix(".md")
LATENCY_MS = 30
MAX_FACTS = {"research": 110, "search": 14}
INDEX_FILES = 60
MAX_TOKENS = 15_000
PAGES_PER_SECOND, FIRST_PAGES = 4.0, 8  # of one host, and how many at once at first; the defaults of the fetcher
FIRST_MOON, MOONS = 1000, 2000
MAX_GROWTH = 1.05  # of the memory of a server after its warm-up
GOALS = {
    "kills": "R1: 1,000 kill -9 over research, quick search, index and serve",
    "writes": "R2: 300 points of write and fsync",
    "inputs": "R6: 100,000 inputs over CLI, HTTP and MCP",
    "load": "R8: ten minutes of 200 searchers, 20 research runs and 50 readers",
    "site": "ten minutes of 20 research runs at a time over one site: each with its pages, at the allowed pace",
    "hour": "an hour of mixed load on one server: memory",
    "budgets": "R11: token limits through kills, resumes and clock jumps",
    "soak": "20 minutes of mixed load with kills and faults",
    "company": "ten minutes of a server, terminals and `nexi index` on one knowledge base, each killed at random",
}

CROWDS = {
    "load": (200, 20, 50),
    "site": (0, 20, 0),
    "hour": (4, 2, 4),
    "soak": (20, 4, 8),
}  # searchers, researchers and readers


@dataclass
class Tally:
    """What a trial has counted so far, over all its pieces."""

    cases: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    figures: dict[str, float] = field(default_factory=dict)  # of the last piece
    violations: list[str] = field(default_factory=list)


# kill -9


def kill_once(seed: int, tally: Tally) -> None:
    """One process killed at a place that the seed chooses, and resumed."""
    kind = ("research", "search", "index", "serve")[seed % 4]
    tally.counts[f"cases of {kind}"] += 1
    draw = random.Random(seed)  # noqa: S311 - a seed that can be named
    with tempfile.TemporaryDirectory() as folder, home(Path(folder), latency_ms=LATENCY_MS) as at:
        {"research": kill_run, "search": kill_run, "index": kill_index, "serve": kill_serve}[kind](at, kind, draw, tally)


def kill_run(at: Home, kind: str, draw: random.Random, tally: Tally) -> None:
    first = draw.randrange(1, MAX_FACTS[kind])
    child = at.research() if kind == "research" else at.start("--plain", "How far is the Moon?")
    run_id = at.wait_for(child, lambda kinds: len(kinds) >= first)
    kill(child)
    tally.counts["kills"] += 1
    for _ in range(draw.randrange(5) if kind == "research" else draw.randrange(3)):
        until = len(kinds_in(at.logs[-1])) + draw.randrange(1, 25)
        again = at.start("resume", "--plain", "-o", "-", run_id)
        at.wait_for(again, lambda kinds, until=until: len(kinds) >= until)  # type: ignore[misc]
        kill(again)
        tally.counts["kills"] += 1
    check_taken_up(at, run_id)


def kill_index(at: Home, _: str, draw: random.Random, tally: Tally) -> None:
    notes = at.path.parent / "notes"
    notes.mkdir()
    for number in range(INDEX_FILES):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nThe pump number {number} runs at {number * 7} bar.\n")
    for _round in range(draw.randrange(2, 8)):
        child = at.start("index", str(notes))
        with contextlib.suppress(Exception):
            child.wait(draw.uniform(0.2, 3.0))
        kill(child)
        tally.counts["kills"] += 1
    done = at.start("index", str(notes))
    _, err = done.communicate(timeout=300)
    assert done.returncode == 0, err
    listed, err = at.start("sources", "-n", "1000").communicate(timeout=300)
    names = set(re.findall(r"(\d+)\.md", listed))
    assert len(names) == INDEX_FILES, f"{len(names)} of {INDEX_FILES} files are known. {err}"


def kill_serve(at: Home, _: str, draw: random.Random, tally: Tally) -> None:
    ids: list[str] = []
    for _round in range(draw.randrange(1, 5)):
        with serving_process(at) as base, httpx2.Client(base_url=base, headers=owner_of(at), timeout=120) as client:
            mode = ("search", "research")[len(ids) % 2]
            ids.append(client.post("/v1/runs", json={"question": "How far is the Moon?", "mode": mode}).json()["id"])
            at.wait_for(at.children[-1], lambda kinds: len(kinds) >= draw.randrange(1, 30))
            kill(at.children[-1])
            tally.counts["kills"] += 1
    with serving_process(at) as base, httpx2.Client(base_url=base, headers=owner_of(at), timeout=300) as client:
        for run_id in ids:
            text = client.get(f"/v1/runs/{run_id}/events").text
            marks = re.findall(r"^id: (\d+)$", text, re.MULTILINE)
            state = client.get(f"/v1/runs/{run_id}").json()["state"]
            assert state == "finished", f"{run_id} is {state}"
            assert [int(mark) for mark in marks] == list(range(1, len(marks) + 1)), f"{run_id} has gaps"


def owner_of(at: Home) -> dict[str, str]:
    """What a program of the owner sends to the server of this home."""
    return {"authorization": f"Bearer {OwnerToken(at.path / 'state').ensure()}"}


@contextlib.contextmanager
def serving_process(at: Home, *flags: str, **environment: str) -> Iterator[str]:
    """`nexi serve` over this home; its address."""
    before, at.more = at.more, {**at.more, **environment}
    child = at.start("serve", "--port", "0", "--rate", "1000000", "--log-level", "error", *flags)
    at.more = before
    assert child.stderr
    line = child.stderr.readline()
    while not (found := re.search(r"http://127[^/\s]+", line)):
        line = child.stderr.readline()
        assert line, "the server did not start"
    try:
        yield found[0]
    finally:
        child.kill()
        child.communicate()


# writes and flushes


def kill_at_write(seed: int, tally: Tally) -> None:
    """Killed inside a write or a flush, counted from the first."""
    call, when = ("write", seed // 2 + 1) if seed % 2 else ("fsync", seed // 2 % 40 + 1)
    under = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={when}"]
    with tempfile.TemporaryDirectory() as folder, home(Path(folder)) as at:
        at.research(under=under).communicate(timeout=300)
        tally.counts[f"{call} points"] += 1
        logs = [log for log in at.logs if "run_started" in kinds_in(log)]
        if not logs:
            tally.counts["before there was a run"] += 1
        elif "run_finished" in kinds_in(logs[-1]):
            tally.counts["after the run"] += 1
        else:
            check_taken_up(at, logs[-1].parent.name)
            tally.counts["resumed to the report"] += 1


# budgets


def keep_budget(seed: int, tally: Tally) -> None:
    """A token limit through kills and resumes, half of them after the clock jumped."""
    draw = random.Random(seed)  # noqa: S311 - a seed that can be named
    with tempfile.TemporaryDirectory() as folder, home(Path(folder), latency_ms=LATENCY_MS) as at:
        run_id = ""
        for life in range(draw.randrange(1, 4)):
            days = draw.choice((0, 0, 400, -400))
            tally.counts["clock jumps"] += bool(days)
            flags = ("research", "--plain", "-o", "-", "--max-tokens", str(MAX_TOKENS), "How far is the Moon?")
            child = at.start(*(flags if not life else ("resume", "--plain", "-o", "-", run_id)), days=days)
            until = draw.randrange(3, 60) + (len(kinds_in(at.logs[-1])) if life else 0)
            run_id = at.wait_for(child, lambda kinds, until=until: len(kinds) >= until)  # type: ignore[misc]
            kill(child)
            tally.counts["kills"] += 1
        at.resume(run_id)
        calls = [fact.usage.total for fact in at.facts(run_id) if isinstance(fact, ModelReplied | ModelFailed)]
        over = sum(calls) - MAX_TOKENS
        assert over <= max(calls, default=0), f"{sum(calls)} tokens of {MAX_TOKENS} were spent"
        tally.counts["runs"] += 1
        tally.counts["runs over their limit, by less than a call"] += over > 0


# bad input


async def send_inputs(tally: Tally, until: float) -> None:
    """Random strings and mutated JSON at every route, every MCP tool and the command line."""
    from evals.doors import MCP, POSTS, SPEAKS_MCP, Doors, Judge
    from tests.web.world import serving

    judge, turn = Judge(), asyncio.Semaphore(4)
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder), most_runs=1000) as served:
            doors = Doors(served.app)

            async def send(number: int) -> None:
                draw = random.Random(number)  # noqa: S311 - a seed that can be named
                text = strange_text(draw)
                async with turn:
                    if draw.random() < 0.3:
                        method, path = draw.choice(doors.paths)
                        quoted = quote(text, safe="", errors="replace")
                        await judge.send(served, method, re.sub(r"{[^}]*}", lambda _: quoted, path))
                        tally.counts["HTTP inputs"] += 1
                        return
                    path = MCP if draw.random() < 0.15 else draw.choice(doors.posts)
                    body = POSTS.get(path, lambda s: {"query": s, "text": s, "url": s})(text)
                    sent = mutate(json.dumps(body).encode(), draw) if draw.random() < 0.5 else json.dumps(body).encode()
                    await judge.send(served, "POST", path, content=sent, headers=SPEAKS_MCP if path == MCP else {})
                    tally.counts["MCP inputs" if path == MCP else "HTTP inputs"] += 1

            while time.monotonic() < until:
                await asyncio.gather(*(send(tally.cases + step) for step in range(100)))
                tally.cases += 100
                tally.counts["CLI inputs"] += await asyncio.to_thread(try_command_line, tally)
            while served.app.state.host.active:
                await asyncio.sleep(0.05)
    slow = [told for told in judge.violations if ": took " in told]  # a busy machine; what hangs is a broken connection
    tally.counts["inputs that took over 10 s"] += len(slow)
    tally.violations += [told for told in judge.violations if told not in slow]
    for status, count in judge.statuses.items():
        tally.counts[f"status {status}"] += count


def strange_text(draw: random.Random) -> str:
    """Characters of every kind, a piece of a path or of JSON, or something very long."""
    pieces = (
        "../",
        "%00",
        "\x00",
        "{",
        "[",
        '"',
        "\\u0000",
        "\ud800",
        "\u202e",
        "<script>",
        "' OR 1=1 --",
        "a" * 5_000,
        "0",
        "-1",
        "1e999",
        "NaN",
    )
    made = "".join(draw.choice((draw.choice(pieces), chr(draw.randrange(0x110000)))) for _ in range(draw.randrange(1, 12)))
    return made.encode("utf-8", "replace").decode()


def mutate(data: bytes, draw: random.Random) -> bytes:
    """The bytes with a part cut out, doubled or changed."""
    at = draw.randrange(len(data))
    change = draw.choice((b"", data[at : at + 9] * 2, bytes(draw.randrange(256) for _ in range(3)), b"[" * 50))
    return data[:at] + change + data[at + draw.randrange(4) :]


COMMANDS = (
    ("--show",),
    ("runs",),
    ("replay",),
    ("resume",),
    ("config", "get"),
    ("fetch",),
    ("export",),
    ("forget",),
    ("history",),
    ("verify",),
)


def try_command_line(tally: Tally, count: int = 10) -> int:
    """Some commands of the command line with strange arguments, in this process: each ends with a code and a message."""
    from click.testing import CliRunner

    from nexi.cli import main

    draw = random.Random(tally.cases)  # noqa: S311 - a seed that can be named
    for _ in range(count):
        arguments = [*draw.choice(COMMANDS), *(strange_text(draw) for _ in range(draw.randrange(1, 3)))]
        with tempfile.TemporaryDirectory() as folder:
            done = CliRunner().invoke(main, arguments, env={"NEXI_HOME": folder, "NEXI_MODEL": "extractive"}, input="")
        if done.exception and not isinstance(done.exception, SystemExit):
            tally.violations.append(f"nexi {arguments!r:.200}: {done.exception!r}")
        if "Traceback" in done.output:
            tally.violations.append(f"nexi {arguments!r:.200} prints a traceback")
    return count


# load


@dataclass
class Crowd:
    """Clients of one server, which may be killed and started again under them."""

    at: Home
    tally: Tally
    until: float
    base: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    is_one_site: bool = False
    moons: int = FIRST_MOON
    started: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    async def search(self, client: httpx2.AsyncClient) -> None:
        began = time.monotonic()
        reply = await client.post(f"{self.base}/v1/search", json={"query": "how far is the moon"})
        self.tally.counts[f"searches: {reply.status_code}"] += 1
        self.latencies.append(time.monotonic() - began)

    async def research(self, client: httpx2.AsyncClient) -> None:
        asked = "How far is the Moon, and what are tides?"
        if self.is_one_site:  # each of its own, so that no page is shared
            asked, self.moons = (
                f"How far is Moon {self.moons} from its planet, and who found Moon {self.moons}?",
                self.moons + 1,
            )
        question = {"question": asked, "mode": "research", "options": {"depth": 1}}
        reply = await client.post(f"{self.base}/v1/runs", json=question)
        if reply.status_code != 202:
            self.tally.counts[f"research refused: {reply.status_code}"] += 1
            await asyncio.sleep(1)
            return
        run_id = reply.json()["id"]
        self.started.append(run_id)
        await client.get(f"{self.base}/v1/runs/{run_id}/events")
        self.tally.counts["research followed"] += 1

    async def read(self, client: httpx2.AsyncClient) -> None:
        if not self.started:
            await asyncio.sleep(0.5)
            return
        reply = await client.get(f"{self.base}/v1/runs/{random.choice(self.started)}/events")  # noqa: S311
        self.tally.counts[f"streams read: {reply.status_code}"] += 1

    async def repeat(self, act: Callable[[httpx2.AsyncClient], Any]) -> None:
        async with httpx2.AsyncClient(headers=self.headers, timeout=600) as client:
            while time.monotonic() < self.until:
                try:
                    await act(client)
                except (httpx2.HTTPError, ValueError) as error:
                    self.tally.counts[f"broken connections ({type(error).__name__})"] += 1
                    await asyncio.sleep(0.5)

    async def watch(self) -> None:
        """Resident memory and open files of the server, from warm-up to the end."""
        seen: list[tuple[float, int]] = []
        while time.monotonic() < self.until:
            with contextlib.suppress(OSError, IndexError):
                process = Path(f"/proc/{self.at.children[-1].pid}")
                pages = int((process / "statm").read_text().split()[1])
                seen.append((pages * resource.getpagesize() / 1e6, len(list((process / "fd").iterdir()))))
            await asyncio.sleep(2)
        third = seen[len(seen) // 3 :]
        if len(third) < 10:
            return  # too short a piece to tell
        self.tally.figures |= {
            "MB after warm-up": round(third[0][0], 1),
            "MB at the end": round(third[-1][0], 1),
            "most open files": max(files for _, files in third),
        }


def put_under_load(tally: Tally, seconds: float, *, searchers: int, researchers: int, readers: int, faults: bool) -> None:
    """A real server under mixed load; with `faults` it is killed every minute and what it talks to fails now and then."""
    is_one_site = bool(researchers and not searchers)
    settings = {"pages": _make_site()} if is_one_site else {}
    with tempfile.TemporaryDirectory() as folder, home(Path(folder), **settings) as at:
        began = time.monotonic()
        crowd, flags = Crowd(at, tally, began + seconds), ("--max-runs", str(max(40, researchers + 8)))
        crowd.is_one_site, at.more = is_one_site, {"NEXI_MODEL": "extractive"}
        while (left := crowd.until - time.monotonic()) > 5:
            end = crowd.until
            with serving_process(at, *flags) as base:
                crowd.base, crowd.headers = base, owner_of(at)
                crowd.until = time.monotonic() + min(left, 60.0) if faults else end
                asyncio.run(_crowd(crowd, searchers, researchers, readers, faults=faults))
                if faults:
                    kill(at.children[-1])
                    tally.counts["kills"] += 1
            crowd.until = end
        took = time.monotonic() - began  # the last runs end after the time is over
        for proxy in at.rig.at.values():
            proxy.fault = Fault("")
        with serving_process(at, *flags) as base, httpx2.Client(base_url=base, headers=crowd.headers, timeout=600) as client:
            for run_id in dict.fromkeys(crowd.started):
                client.get(f"/v1/runs/{run_id}/events")
                state = client.get(f"/v1/runs/{run_id}").json()["state"]
                tally.counts[f"research {state}"] += 1
                if state not in ("finished", "failed") or (state == "failed" and not faults):
                    tally.violations.append(f"{run_id} is {state}")
                if is_one_site:
                    _count_pages(at, run_id, tally)
    if is_one_site:
        pace = at.rig.at["pages"].received / took
        tally.figures["requests to the site per second"] = round(pace, 2)
        if pace > PAGES_PER_SECOND + FIRST_PAGES / took:
            tally.violations.append(f"{pace:.2f} requests to the site a second")
    before, after = (tally.figures.get(name, 0.0) for name in ("MB after warm-up", "MB at the end"))
    if not (faults or is_one_site) and after > before * MAX_GROWTH:
        tally.violations.append(f"memory grew from {before} to {after} MB")
    if slowest := sorted(crowd.latencies):
        tally.figures |= {
            "searches per second": round(len(slowest) / seconds, 1),
            "p50 of a search, s": round(statistics.median(slowest), 2),
            "p99 of a search, s": round(slowest[int(len(slowest) * 0.99)], 2),
        }


def _make_site() -> list[dict[str, str]]:
    """Pages about many moons, all on one host, since a mini-web has one."""
    texts = {
        "distance": "Moon {0} is {0}400 km from its planet. It orbits its planet in 27 days.",
        "discovery": "Moon {0} was found by Asaph Hall in 1877. He named Moon {0} after a number.",
        "surface": "The surface of Moon {0} is dark. Moon {0} has {0} craters.",
    }
    moons = range(FIRST_MOON, FIRST_MOON + MOONS)
    return [make_page(f"{name}-{n}", f"Moon {n}: {name}", text.format(n)) for n in moons for name, text in texts.items()]


def _count_pages(at: Home, run_id: str, tally: Tally) -> None:
    facts = at.facts(run_id)
    fetched, failed = (sum(isinstance(fact, kind) for fact in facts) for kind in (PageFetched, PageFailed))
    tally.counts["pages read"] += fetched
    tally.counts["pages failed"] += failed
    if failed or not fetched:
        tally.violations.append(f"{run_id} has {fetched} pages, and {failed} failed")


async def _crowd(crowd: Crowd, searchers: int, researchers: int, readers: int, *, faults: bool) -> None:
    acts = [crowd.search] * searchers + [crowd.research] * researchers + [crowd.read] * readers
    spoil = [_spoil(crowd)] if faults else []
    await asyncio.gather(crowd.watch(), *spoil, *(crowd.repeat(act) for act in acts))


async def _spoil(crowd: Crowd) -> None:
    while time.monotonic() < crowd.until:
        place, kind = random.choice(("search", "pages")), random.choice(("reset", "503", "429", "truncated", "html", ""))  # noqa: S311
        crowd.at.rig.at[place].fault = Fault(kind, 0, 3, "", {"search": "/search", "pages": "/facts"}[place])
        crowd.tally.counts["faults"] += bool(kind)
        await asyncio.sleep(3)


# company


def keep_tally_of_company(tally: Tally, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        company = keep_company(Path(folder), seconds, seed=tally.cases)
    tally.cases += 1
    tally.counts += company.counts
    tally.violations += company.violations


# pieces


def run_trial(name: str, tally: Tally, seconds: float) -> None:
    until = time.monotonic() + seconds
    each = {"kills": kill_once, "writes": kill_at_write, "budgets": keep_budget}
    if name in each:
        while time.monotonic() < until:
            try:
                each[name](tally.cases, tally)
            except Exception as error:  # noqa: BLE001 - whatever went wrong is what is counted
                tally.violations.append(f"{name} {tally.cases}: {error!r:.300}")
            tally.cases += 1
    elif name == "inputs":
        asyncio.run(send_inputs(tally, until))
    elif name == "company":
        keep_tally_of_company(tally, seconds)
    else:
        searchers, researchers, readers = CROWDS[name]
        put_under_load(tally, seconds, searchers=searchers, researchers=researchers, readers=readers, faults=name == "soak")
        tally.cases += 1


def load_tallies() -> dict[str, Tally]:
    saved = json.loads(SAVED.read_text()) if SAVED.exists() else {}
    return {name: Tally(**{**given, "counts": Counter(given["counts"])}) for name, given in saved.items()}


def save_tallies(tallies: dict[str, Tally]) -> None:
    SAVED.write_text(json.dumps({name: vars(tally) for name, tally in sorted(tallies.items())}, indent=1) + "\n")
    rows = [f"| {GOALS[name]} | {describe(tally)} | {len(tally.violations)} |" for name, tally in sorted(tallies.items())]
    TABLE.write_text("\n".join((HEAD, *rows)) + "\n")


def describe(tally: Tally) -> str:
    counted = [f"{count:,} {name}" for name, count in sorted(tally.counts.items()) if count]
    measured = [f"{name} {figure:g}" for name, figure in tally.figures.items()]
    return f"{tally.cases:,} cases in {tally.seconds / 60:.0f} min: " + ", ".join(counted + measured)


HEAD = """# Long trials, as far as they were run

Written by `python -m tests.faults.endurance NAME --seconds S --save`, piece by piece; a row names its goal and counts what was
really done. Figures are of the last piece, on a machine with two shared cores.

| goal | done | violations |
|---|---|---|"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("name", choices=GOALS)
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    tally, began = load_tallies().get(given.name, Tally()), time.monotonic()
    known = len(tally.violations)
    run_trial(given.name, tally, given.seconds)
    tally.seconds += round(time.monotonic() - began)
    print(f"{given.name}: {describe(tally)}")
    for violation in tally.violations[known:]:
        print(f"  {violation}", file=sys.stderr)
    if given.save:
        save_tallies({**load_tallies(), given.name: tally})
    return 1 if tally.violations[known:] else 0


if __name__ == "__main__":
    raise SystemExit(main())
