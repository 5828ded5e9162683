"""Stopping a search that is under way: Ctrl-C once and twice, SIGTERM, and a file from another process.

These are real processes, since signals are theirs. The model answers twice, so that a page is read, and then hangs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexi.app import SystemClock
from nexi.events import RunFailed, RunFinished
from nexi.runs.directory import RunDirectory
from nexi.types import StopReason
from rig import scripted_llm
from tests.children import CHILD_PATH
from tests.faults.command import QUESTION, Outcome, check_nothing_is_left_behind, check_nothing_is_lost

PROMPTLY_S = 60.0  # far below what hangs here
COMMAND = "from nexi.__main__ import main; main()"
STUCK = (
    """
import asyncio, nexi.app.components

class Stuck:
    name = "stuck"

    async def complete(self, *_, **__):
        await asyncio.sleep(600)

nexi.app.components.built_in_llm = Stuck
"""
    + COMMAND
)  # the built-in model hangs as well, so that there is time for a second Ctrl-C

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="signals of another system")]


class HangingScript(scripted_llm.Script):
    """Answers until call number `at`, which never gets a reply."""

    def __init__(self, at: int) -> None:
        super().__init__(read=3)
        self.at = at
        self.calls = 0
        self.reached = threading.Event()
        self.over = threading.Event()

    def reply(self, req: dict[str, Any]) -> Any:
        self.calls += 1
        if self.calls >= self.at:
            self.reached.set()
            self.over.wait(600)
        return super().reply(req)


class Search:
    """A `nexi` process whose model hangs."""

    def __init__(self, process: subprocess.Popen[str], script: HangingScript, home: Path) -> None:
        self.process = process
        self.script = script
        self.home = home
        self.seen = ""

    def wait_for(self, words: str) -> None:
        """Read stderr up to a line with these words."""
        assert self.process.stderr
        while words not in self.seen:
            line = self.process.stderr.readline()
            assert line, self.seen
            self.seen += line

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def outcome(self) -> Outcome:
        out, err = self.process.communicate(timeout=PROMPTLY_S)
        return Outcome(self.process.returncode, out, self.seen + err, self.home)


Start = Callable[..., Search]


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Start a search and wait until its model hangs at the given call."""
    ends: list[Callable[[], object]] = []

    def run(*flags: str, hangs_at: int = 3, program: str = COMMAND) -> Search:
        script = HangingScript(hangs_at)
        serving = scripted_llm.serve(script)
        base = serving.__enter__()
        process = subprocess.Popen(
            [sys.executable, "-c", program, *(flags or ("--plain",)), QUESTION],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": CHILD_PATH,
                "PYTHONWARNINGS": "error",
                "OPENAI_BASE_URL": f"{base}/v1",
                "NEXI_MODEL": "scripted",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        ends.extend([lambda: serving.__exit__(None, None, None), script.over.set, process.wait, process.kill])
        assert script.reached.wait(120), process.communicate(timeout=1)
        return Search(process, script, Path(environment["NEXI_HOME"]))

    yield run
    for end in reversed(ends):
        end()


def test_one_ctrl_c_prints_and_saves_what_was_read_and_exits_130(start: Start, web: str) -> None:
    search = start()
    search.signal(signal.SIGINT)
    done = search.outcome()
    assert done.code == 130
    assert "384,400 km" in done.out
    assert done.out.endswith(f"\n\nSources:\n[1] Moon facts - {web}/moon.test/facts\n")
    assert "the search was stopped; this answer uses what was read until then" in done.err
    last = done.facts[-1]
    assert isinstance(last, RunFinished)
    assert last.stop is StopReason.CANCELLED
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_one_ctrl_c_under_json_prints_the_object_and_exits_130(start: Start) -> None:
    search = start("--json")
    search.signal(signal.SIGINT)
    done = search.outcome()
    answer = json.loads(done.out)
    assert (done.code, answer["stop"], len(answer["sources"])) == (130, "cancelled", 1)


def test_one_ctrl_c_before_anything_was_read_says_so_and_exits_130(start: Start) -> None:
    search = start(hangs_at=1)
    search.signal(signal.SIGINT)
    done = search.outcome()
    assert (done.code, done.out) == (130, "")
    assert f"Stopped before any page was read. Continue it with: nexi resume {done.run_id}\n" in done.err
    assert "Error" not in done.err
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_a_second_ctrl_c_ends_it_although_the_answer_is_not_made_yet(start: Start) -> None:
    search = start(program=STUCK)
    search.signal(signal.SIGINT)
    search.wait_for("assembled from passages")
    search.signal(signal.SIGINT)
    done = search.outcome()
    assert (done.code, done.out) == (130, "")
    assert f"nexi resume {done.run_id}" in done.err
    last = done.facts[-1]
    assert isinstance(last, RunFailed)
    assert (last.code, last.stop) == ("cancelled", StopReason.CANCELLED)
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_two_ctrl_c_at_once_leave_a_log_that_has_ended(start: Start) -> None:
    search = start()
    search.signal(signal.SIGINT)
    search.signal(signal.SIGINT)
    done = search.outcome()
    assert done.code == 130
    assert isinstance(done.facts[-1], RunFinished | RunFailed)
    check_nothing_is_left_behind(done)


def test_sigterm_ends_it_with_143_and_the_log_says_so(start: Start) -> None:
    search = start()
    search.signal(signal.SIGTERM)
    done = search.outcome()
    assert (done.code, done.out) == (143, "")
    assert f"nexi resume {done.run_id}" in done.err
    last = done.facts[-1]
    assert isinstance(last, RunFailed)
    assert (last.code, last.stop) == ("cancelled", StopReason.CANCELLED)
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


def test_a_stop_file_of_another_process_gives_the_answer_and_exit_0(start: Start) -> None:
    search = start()
    runs = RunDirectory(search.home / "runs", search.home / "pages", SystemClock())
    (run,) = runs.list_runs()
    assert (run.state, run.query) == ("running", QUESTION)
    assert runs.request_stop(run.id)
    done = search.outcome()
    assert done.code == 0
    assert "384,400 km" in done.out
    assert "the search was stopped" in done.err
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)
