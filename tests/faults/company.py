"""A knowledge base in company: a server with several clients, terminals and `nexi index` on one home, each killed at random.

    python -m tests.faults.endurance company --seconds 600 [--save]

A page counts as acknowledged once the run that read it has finished without a word of doubt, or `nexi index` has printed it.
Each time a server ends, and at the end, every acknowledged page must be there with all of its passages, and SQLite must find
the file whole.
"""

from __future__ import annotations

import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from nexi.app.stored_runs import list_indexed_urls
from nexi.events import Warned
from nexi.urls import hit_key
from tests.faults.processes import PATIENCE_S, Home, home, kinds_in
from tests.faults.world import make_page

CLIENTS, TERMINALS, INDEXERS = 3, 3, 1
FILES_AT_ONCE = 12
MOONS = 1500
FIRST_MOON = 1000
CHANCE_OF_KILL = 0.4
MIN_LIFE_S, MAX_LIFE_S = 0.5, 6.0  # of a command that is killed
SERVER_LIFE_S = (10.0, 60.0)
IS_DAMAGED = re.compile("damaged|malformed|disk image")


@dataclass
class Company:
    """Those who use one home at once, until a moment; `counts` is shared by their threads under the lock."""

    at: Home
    until: float
    seed: int = 0
    base: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    acknowledged_files: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next_moon: int = FIRST_MOON

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self.until

    def count(self, name: str, more: int = 1) -> None:
        with self._lock:
            self.counts[name] += more

    def ask_moon(self) -> str:
        """A question whose pages no question before had."""
        with self._lock:
            self._next_moon += 1
            return f"How far is Moon {self._next_moon} from its planet, and who found Moon {self._next_moon}?"

    def run_command(self, draw: random.Random, *arguments: str) -> str:
        """What the command printed until it ended or was killed."""
        child = self.at.start(*arguments)
        is_doomed = draw.random() < CHANCE_OF_KILL and self.counts["checks of the whole store"] > 0
        try:
            out, err = child.communicate(timeout=draw.uniform(MIN_LIFE_S, MAX_LIFE_S) if is_doomed else PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            self.count(f"kills of nexi {arguments[0] if arguments[0] == 'index' else 'in a terminal'}")
        if IS_DAMAGED.search(out + err):
            self.violations.append(f"nexi {arguments[0]} says: {(out + err)[-300:]}")
        return out + err

    # the parts

    def serve(self, draw: random.Random) -> None:
        while self.has_time:
            child = self.at.start("serve", "--port", "0", "--rate", "1000000", "--log-level", "error", "--drain", "1")
            assert child.stderr
            address = None
            while not address:
                line = child.stderr.readline()
                assert line, "the server did not start"
                address = re.search(r"http://127[\d.:]+", line)
            self.base = address[0]
            self.wait(child, draw.uniform(*SERVER_LIFE_S))
            is_kill = draw.random() < 0.5
            child.send_signal(signal.SIGKILL if is_kill else signal.SIGINT)
            child.communicate(timeout=PATIENCE_S)
            self.count("kills of the server" if is_kill else "servers stopped")
            self.check_pages()

    def wait(self, child: subprocess.Popen[str], seconds: float) -> None:
        until = min(time.monotonic() + seconds, self.until)
        while time.monotonic() < until and child.poll() is None:
            time.sleep(0.05)

    def ask_server(self, _: random.Random) -> None:
        while self.has_time:
            body = {"model": "nexi-s", "messages": [{"role": "user", "content": self.ask_moon()}]}
            try:
                reply = httpx2.post(f"{self.base}/v1/chat/completions", json=body, timeout=PATIENCE_S)
                self.count(f"questions to the server: {reply.status_code}")
            except (httpx2.HTTPError, ValueError):
                self.count("questions to the server: broken off")
                time.sleep(1.0)

    def ask_terminal(self, draw: random.Random) -> None:
        while self.has_time:
            self.run_command(draw, "--plain", self.ask_moon())
            self.count("questions in a terminal")

    def index_notes(self, draw: random.Random) -> None:
        notes = self.at.path.parent / "notes"
        notes.mkdir()
        count = 0
        while self.has_time:
            for number in range(count + 1, count + 1 + FILES_AT_ONCE):
                (notes / f"{number}.md").write_text(f"# Note {number}\n\nThe pump number {number} runs at {number * 7} bar.\n")
            count += FILES_AT_ONCE
            printed = self.run_command(draw, "index", str(notes))
            self.acknowledged_files |= set(re.findall(r"^(?:stored|unchanged)\s+(\d+\.md)$", printed, re.MULTILINE))
            self.count("nexi index")

    # what must be there

    def acknowledged_pages(self) -> set[str]:
        keys: set[str] = set()
        for log in self.at.logs:
            if len(kinds_in(log)) < 2:
                continue  # killed before it began
            facts = self.at.facts(log.parent.name)
            keys |= set(map(hit_key, list_indexed_urls(facts)))
            self.violations += [
                f"run {log.parent.name}: {fact.message[:300]}"
                for fact in facts
                if isinstance(fact, Warned) and IS_DAMAGED.search(fact.message)
            ]
        return keys

    def check_pages(self) -> None:
        """What was acknowledged before this moment is in the file, as another process sees it."""
        path = self.at.path / "knowledge.db"
        expected_pages, expected_files = self.acknowledged_pages(), set(self.acknowledged_files)
        if not path.exists():
            assert not expected_pages | expected_files, "there is no knowledge base"
            return
        with closing(sqlite3.connect(path, timeout=PATIENCE_S)) as db:
            urls = [str(row[0]) for row in db.execute("SELECT url FROM sources")]
            [soundness] = db.execute("PRAGMA integrity_check(1)").fetchone()
            [torn] = db.execute(TORN_BODIES).fetchone()
        missing = (expected_pages - set(map(hit_key, urls))) | (expected_files - {url.rpartition("/")[2] for url in urls})
        if missing:
            self.violations.append(f"{len(missing)} acknowledged pages are gone, such as {min(missing)}")
        if soundness != "ok" or torn:
            self.violations.append(f"integrity_check: {soundness}; {torn} pages have lost passages")
        self.count("checks of the whole store")
        self.counts["pages acknowledged"] = len(expected_pages) + len(expected_files)


TORN_BODIES = """SELECT count(*) FROM bodies
    WHERE chunks <> (SELECT count(*) FROM chunks WHERE chunks.id BETWEEN bodies.id * 65536 AND bodies.id * 65536 + 65535)"""


def keep_company(folder: Path, seconds: float, seed: int = 0) -> Company:
    """Everything at once for so many seconds, and the last look at what it left."""
    texts = {
        "distance": "Moon {0} is {0}400 km from its planet. It orbits its planet in 27 days.",
        "discovery": "Moon {0} was found by Asaph Hall in 1877. He named Moon {0} after a number.",
    }
    moons = range(FIRST_MOON, FIRST_MOON + MOONS)
    pages = [make_page(f"{name}-{n}", f"Moon {n}: {name}", text.format(n)) for n in moons for name, text in texts.items()]
    with home(folder, pages=pages) as at:
        at.more = {"NEXI_MODEL": "extractive"}
        company = Company(at, time.monotonic() + seconds, seed)
        parts: list[Callable[[random.Random], None]] = [company.serve]
        parts += [company.ask_server] * CLIENTS + [company.ask_terminal] * TERMINALS + [company.index_notes] * INDEXERS
        with ThreadPoolExecutor(len(parts)) as threads:
            draws = [random.Random(f"{seed}-{number}") for number in range(len(parts))]  # noqa: S311 - seeds that can be named
            for ended in [threads.submit(part, draw) for part, draw in zip(parts, draws, strict=True)]:
                ended.result()
        company.check_pages()
    return company
