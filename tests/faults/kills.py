"""kill -9 at every kind of fact, at random moments, and at writes and flushes; `make test-faults` names this file."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults.processes import check_taken_up, home, kill, kinds_in

KINDS = (
    "run_started",
    "model_asked",
    "model_replied",
    "agenda_set",
    "researcher_started",
    "tool_started",
    "search_finished",
    "tool_finished",
    "page_fetched",
    "source_numbered",
    "reports_shared",
    "researcher_reported",
    "round_evaluated",
    "answer_checked",
)
LATENCY_MS = 40
FACTS = 110  # about as many as the run has


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_this_kind_of_fact_it_goes_on_to_its_report(tmp_path: Path, kind: str) -> None:
    with home(tmp_path, latency_ms=LATENCY_MS) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: kind in kinds)
        kill(child)
        check_taken_up(at, run_id)


@pytest.mark.parametrize("seed", range(6))
def test_killed_at_any_moment_and_once_more_it_goes_on_to_its_report(tmp_path: Path, seed: int) -> None:
    first, second = sorted(random.Random(seed).sample(range(1, FACTS), 2))  # noqa: S311 - a seed that can be named
    with home(tmp_path, latency_ms=LATENCY_MS) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: len(kinds) >= first)
        kill(child)
        again = at.start("resume", "--plain", "-o", "-", run_id)
        at.wait_for(again, lambda kinds: len(kinds) >= second)
        kill(again)
        check_taken_up(at, run_id)


def strace_works() -> bool:
    """Installed, and allowed to trace."""
    if not shutil.which("strace"):
        return False
    done = subprocess.run(["strace", "-f", "-e", "trace=fsync", "true"], capture_output=True, check=False, timeout=300)
    return done.returncode == 0


needs_strace = pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not trace here")


def injecting(call: str, what: str) -> list[str]:
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{what}"]


@needs_strace
@pytest.mark.parametrize("when", [1, 2, 3, 4, 5, 6, 7])
def test_killed_inside_a_flush_it_goes_on_to_its_report(tmp_path: Path, when: int) -> None:
    """strace counts for each thread, so the first thread to come so far is the one."""
    with home(tmp_path) as at:
        child = at.research(under=injecting("fsync", f"signal=KILL:when={when}"))
        child.communicate(timeout=300)
        assert kinds_in(at.logs[-1])[-1] != "run_finished"
        check_taken_up(at, at.logs[-1].parent.name)


@needs_strace
@pytest.mark.parametrize("when", [14, 25, 40, 60, 90])
def test_killed_inside_a_write_it_goes_on_to_its_report_or_was_no_run_yet(tmp_path: Path, when: int) -> None:
    with home(tmp_path) as at:
        child = at.research(under=injecting("write", f"signal=KILL:when={when}"))
        child.communicate(timeout=300)
        logs = [log for log in at.logs if "run_started" in kinds_in(log)]
        if logs:
            check_taken_up(at, logs[-1].parent.name)


@needs_strace
@pytest.mark.parametrize("what", ["error=EIO:when=4+", "error=ENOSPC:when=9+", "error=EIO:when=1"])
def test_a_disk_that_does_not_flush_costs_the_log_but_not_the_report(tmp_path: Path, what: str) -> None:
    with home(tmp_path) as at:
        child = at.research(under=injecting("fsync", what))
        out, err = child.communicate(timeout=300)
        assert (child.returncode, "Sources:" in out) == (0, True), err
        assert "this run is not kept" in err
        for log in at.logs:
            kinds_in(log)
