"""Research that is killed, stopped or interrupted, as processes: a sample of what `make test-faults` plays whole."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from nexi.events import LimitReached, RunFinished
from nexi.types import StopReason
from tests.faults.processes import PATIENCE_S, check_taken_up, home, kill

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", ["page_fetched", "round_evaluated"])
def test_killed_at_a_fact_it_goes_on_to_its_report(tmp_path: Path, kind: str) -> None:
    with home(tmp_path, latency_ms=20) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: kind in kinds)
        kill(child)
        check_taken_up(at, run_id)


def test_ctrl_c_once_writes_the_report_from_what_there_is_and_resume_goes_on(tmp_path: Path) -> None:
    with home(tmp_path, latency_ms=150) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: "source_numbered" in kinds)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE_S)
        assert (child.returncode, "Sources:" in out) == (130, True), err
        assert "the research was stopped; the report uses what was found until then" in err
        facts = at.facts(run_id)
        end = facts[-1]
        assert isinstance(end, RunFinished)
        assert end.stop is StopReason.CANCELLED
        asked = at.asked
        code, out, err = at.resume(run_id)
        assert (code, "Sources:" in out) == (0, True), err
        new = at.facts(at.logs[-1].parent.name)[-1]
        assert isinstance(new, RunFinished)
        assert new.stop is StopReason.FINAL_ANSWER
        assert at.asked > asked
        assert at.rig.script.asked.most_common(1)[0][1] <= 2  # only what was broken off is asked for again


def test_nexi_stop_writes_the_report_from_what_there_is(tmp_path: Path) -> None:
    with home(tmp_path, latency_ms=150) as at:
        child = at.research()
        run_id = at.wait_for(child, lambda kinds: "source_numbered" in kinds)
        stop = at.start("stop", run_id)
        _, said = stop.communicate(timeout=PATIENCE_S)
        assert (stop.returncode, "Warning" in said) == (0, False), said
        out, err = child.communicate(timeout=PATIENCE_S)
        # 6 where what was read until then does not answer the question yet
        assert (child.returncode in {0, 6}, "Sources:" in out) == (True, True), err
        assert LimitReached(StopReason.CANCELLED) in at.facts(run_id)
