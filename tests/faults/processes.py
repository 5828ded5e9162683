"""Real processes over the rig: started, watched by their log, killed at a fact, and taken up again by another process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from nexi.events import TERMINAL, Fact, ModelAsked, ModelFailed, ModelReplied, PageFetched, SourceNumbered
from tests.children import CHILD_PATH
from tests.faults.world import QUESTION, Servers, facts_in, servers

PATIENCE_S = 300.0  # far more than any wait takes, also on a busy machine
JUMPED_CLOCK = """
from datetime import timedelta
from nexi.app.clock import SystemClock
now = SystemClock.now
SystemClock.now = lambda clock: now(clock) + timedelta(days={days})
from nexi.__main__ import main
main()
"""


@dataclass
class Home:
    """A home of runs that processes work in, over one rig."""

    rig: Servers
    path: Path
    children: list[subprocess.Popen[str]] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "NEXI_HOME": str(self.path),
            "OPENAI_BASE_URL": f"{self.rig.hosts['model']}/v1",
            "NEXI_MODEL": "scripted",
            "MODEL_CHOICE": "extractive",  # no judge
            "SEARXNG_URL": self.rig.hosts["search"],
            "NEXI_ALLOW_PRIVATE": "127.0.0.0/8",
            "PYTHONPATH": CHILD_PATH,
            **self.more,
        }

    def start(self, *arguments: str, under: Sequence[str] = (), days: int = 0) -> subprocess.Popen[str]:
        """A `nexi` process, whose calendar is so many days ahead."""
        program = ["-c", JUMPED_CLOCK.format(days=days)] if days else ["-m", "nexi"]
        child = subprocess.Popen(
            [*under, sys.executable, *program, *arguments],
            env=self.environment,
            cwd=self.path.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children.append(child)
        return child

    def research(self, *flags: str, under: Sequence[str] = ()) -> subprocess.Popen[str]:
        return self.start("research", "--plain", "-o", "-", *flags, QUESTION, under=under)

    def resume(self, run_id: str, *flags: str) -> tuple[int, str, str]:
        child = self.start("resume", "--plain", "-o", "-", *flags, run_id)
        out, err = child.communicate(timeout=PATIENCE_S)
        return child.returncode, out, err

    @property
    def logs(self) -> list[Path]:
        return sorted((self.path / "runs").glob("*/log.jsonl"), key=lambda p: p.stat().st_mtime)

    @property
    def asked(self) -> int:
        """Requests that reached the model, with those that were on their way when a process died."""
        _pass_queue(self.rig.hosts["model"])
        until = time.monotonic() + PATIENCE_S
        while self.rig.at["model"].open and time.monotonic() < until:
            time.sleep(0.005)
        return self.rig.script.asked.total()

    def facts(self, run_id: str) -> list[Fact]:
        return facts_in(self.path, run_id)

    def wait_for(self, child: subprocess.Popen[str], seen: Callable[[list[str]], bool]) -> str:
        """Until the log of the only run is as wished; the run's id. A child that ends first has ended too early or well."""
        until, size = time.monotonic() + PATIENCE_S, -1
        while time.monotonic() < until:
            has_ended, logs = child.poll() is not None, self.logs
            if logs and logs[-1].stat().st_size != size:  # reading the same log over and over would slow down who writes it
                size = logs[-1].stat().st_size
                if seen(kinds_in(logs[-1])):
                    return logs[-1].parent.name
            if has_ended:
                return logs[-1].parent.name if logs else ""
            time.sleep(0.003)
        raise AssertionError("the log never came so far")


def _pass_queue(url: str) -> None:
    """Wait behind every connection that the server has not seen yet, such as the last one of a killed process."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE_S) as behind:
        behind.shutdown(socket.SHUT_WR)
        behind.recv(1)


@contextmanager
def home(folder: Path, **settings: object) -> Iterator[Home]:
    with servers(**settings) as rig:
        made = Home(rig, folder / "nexi")
        try:
            yield made
        finally:
            for child in made.children:
                child.kill()
                child.communicate()


def kinds_in(log: Path) -> list[str]:
    """The kinds of the facts on the disk, as far as lines are whole."""
    kinds = []
    for line in log.read_bytes().splitlines()[1:]:
        try:
            kinds.append(str(json.loads(line)["fact"]["kind"]))
        except (ValueError, KeyError):
            break
    return kinds


def kill(child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=PATIENCE_S)


@dataclass(frozen=True)
class Ledger:
    """What a log says and what the model was asked, at one moment."""

    facts: tuple[Fact, ...]
    asked: int

    @property
    def requests(self) -> int:
        return sum(isinstance(f, ModelAsked) for f in self.facts)

    @property
    def ended(self) -> int:
        return sum(isinstance(f, ModelReplied | ModelFailed) for f in self.facts)

    @property
    def is_over(self) -> bool:
        return any(isinstance(f, TERMINAL) for f in self.facts)

    @property
    def sources(self) -> list[tuple[int, str]]:
        return [(f.source.number, f.source.url) for f in self.facts if isinstance(f, SourceNumbered)]

    @property
    def pages(self) -> list[str]:
        return [f.url for f in self.facts if isinstance(f, PageFetched)]


def check_taken_up(at: Home, run_id: str) -> str:
    """Resume a killed run to its report: no answered call is repeated, and no source or page is lost. Gives the report."""
    before = Ledger(tuple(at.facts(run_id)), at.asked)
    code, out, err = at.resume(run_id)
    if before.is_over:
        assert "is complete" in err, err
        return ""
    assert (code, "Sources:" in out) == (0, True), err
    after = Ledger(tuple(at.facts(run_id)), at.asked)
    assert after.is_over, "the run did not end"
    asked, ended = after.asked - before.asked, after.ended - before.ended
    assert asked == ended, f"{asked} requests for {ended} replies"
    assert after.sources[: len(before.sources)] == before.sources, f"{before.sources} became {after.sources}"
    counts = len(dict(after.sources)), len(set(after.sources)), len({url for _, url in after.sources})
    assert len(set(counts)) == 1, f"numbers, sources and addresses differ: {counts}"
    assert set(before.pages) <= set(after.pages), f"lost: {set(before.pages) - set(after.pages)}"
    return out
