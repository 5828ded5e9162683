"""Damaged runs: every verifiable line is saved, page texts are compared, and each loss has its true name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app.stored_runs import find_damaged_runs, list_indexed_pages, repair_logs, write_bundle
from nexi.config import Config
from nexi.errors import StoreError
from nexi.events import ModelAsked, PageFetched, RunFinished, RunResumed, RunStarted, SourceNumbered, Warned
from nexi.runs.directory import LOST_FACT, LogRepair, RunDirectory
from nexi.testing import FakeClock
from nexi.types import Source
from tests.raising import has_code
from tests.research.test_resume import research, resumed
from tests.research.world import PromptModel, replayed
from tests.test_runlog import ASKED, FINISHED, STARTED, WARNED, write

Make = Callable[..., Config]


@pytest.fixture
def runs(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "runs", tmp_path / "pages", FakeClock(), new_id=lambda: "aaaaaa")


def log_of(runs: RunDirectory, run_id: str) -> Path:
    return runs.runs_dir / run_id / "log.jsonl"


def flip(path: Path, line: int) -> bytes:
    """Change one byte in a line of a file; line 1 is the header of a log."""
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1][:20] + bytes([lines[line - 1][20] ^ 1]) + lines[line - 1][21:]
    path.write_bytes(b"\n".join(lines))
    return path.read_bytes()


async def test_a_flipped_byte_costs_one_fact_and_no_other_moves(runs: RunDirectory) -> None:
    await write(runs, STARTED, WARNED, ASKED, FINISHED)
    whole = runs.open_log("aaaaaa")
    damaged = flip(log_of(runs, "aaaaaa"), 3)
    aside = log_of(runs, "aaaaaa").with_name("log.damaged-1.jsonl")
    assert runs.check_lines(runs.list_runs()[0]).state == "damaged"
    assert runs.repair_log("aaaaaa") == LogRepair("aaaaaa", 3, (2,), str(aside))
    lost = (2, Warned(LOST_FACT, "fact 2 of this log was damaged and is lost"))
    assert runs.open_log("aaaaaa").facts == [whole.facts[0], lost, *whole.facts[2:]]
    assert aside.read_bytes() == damaged
    assert runs.check_lines(runs.list_runs()[0]).state == "finished"
    assert runs.repair_log("aaaaaa") is None


async def test_several_lost_lines_keep_their_numbers_and_lost_lines_at_the_end_are_dropped(runs: RunDirectory) -> None:
    await write(runs, STARTED, WARNED, WARNED, ASKED, FINISHED)
    for line in (3, 4, 6):
        flip(log_of(runs, "aaaaaa"), line)
    repair = runs.repair_log("aaaaaa")
    assert repair
    assert (repair.facts, repair.lost) == (2, (2, 3))
    facts = runs.open_log("aaaaaa").facts
    assert [number for number, _ in facts] == [1, 2, 3, 4]
    assert [type(fact) for _, fact in facts] == [RunStarted, Warned, Warned, ModelAsked]


async def test_a_lost_header_is_made_again_from_the_first_fact(runs: RunDirectory) -> None:
    await write(runs, STARTED, FINISHED)
    whole = runs.open_log("aaaaaa")
    flip(log_of(runs, "aaaaaa"), 1)
    repair = runs.repair_log("aaaaaa")
    assert repair
    assert (repair.facts, repair.lost) == (2, ())
    assert runs.open_log("aaaaaa") == whole


async def test_a_line_that_does_not_belong_is_left_out(runs: RunDirectory) -> None:
    await write(runs, STARTED, FINISHED)
    path, whole = log_of(runs, "aaaaaa"), runs.open_log("aaaaaa")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1], b"7", lines[1], *lines[2:]]))
    repair = runs.repair_log("aaaaaa")
    assert repair
    assert (repair.facts, repair.lost) == (2, ())
    assert runs.open_log("aaaaaa") == whole


async def test_a_log_in_use_and_one_of_a_newer_nexi_are_not_touched(runs: RunDirectory) -> None:
    log = runs.create()
    await log.append(STARTED)
    await log.append(WARNED)
    damaged = flip(log.path, 2)
    assert {run: error.code for run, error in repair_logs(runs)[1].items()} == {"aaaaaa": "run_locked"}
    assert log.path.read_bytes() == damaged
    await log.close()
    assert [repair.lost for repair in repair_logs(runs)[0]] == [(1,)]


def test_a_run_with_a_lost_warning_is_resumed_and_replayed_after_the_repair(make_config: Make) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    runs = RunDirectory(config.runs_dir, config.pages_dir, FakeClock())
    path = log_of(runs, whole.id)
    end = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(end[: len(end) // 2]) + b"\n")  # the run was cut off in the middle
    flip(path, len(end) // 2 - 1)
    with pytest.raises(StoreError, check=has_code("damaged_log")):
        resumed(config, whole.id, PromptModel())
    assert [repair.run for repair in repair_logs(runs)[0]] == [whole.id]
    again = resumed(config, whole.id, PromptModel())
    assert (again.id, bool(again.answer.text)) == (whole.id, True)


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_lost_page_texts_are_named_by_replay_bundle_and_doctor(make_config: Make, tmp_path: Path, harm: str) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    runs = RunDirectory(config.runs_dir, config.pages_dir, FakeClock())
    facts = [fact for _, fact in runs.open_log(whole.id).facts]
    for digest in {fact.digest for fact in facts if isinstance(fact, PageFetched)}:
        path = runs.pages.path_of(digest)
        path.unlink() if harm == "missing" else path.write_bytes(b"")
    named = {d for f in facts if isinstance(f, PageFetched) for d in (f.digest, f.links) if d}
    lost = {f.digest for f in facts if isinstance(f, PageFetched)}
    cause = f"of the {len(named)} page texts it read, {len(lost)} {harm}: "
    with pytest.raises(StoreError, check=has_code("damaged_evidence", cause)):
        replayed(config, whole.id)
    bundle = tmp_path / "run.tar.gz"
    with pytest.raises(StoreError, check=has_code("damaged_evidence", cause)):
        write_bundle(runs, whole.id, bundle, [])
    assert not bundle.exists()
    damaged_logs, losses = find_damaged_runs(runs, runs.run_ids())
    assert (damaged_logs, list(losses)) == ([], [whole.id])


def test_a_replay_that_lost_a_reply_says_so(make_config: Make) -> None:
    config = make_config()
    whole = research(config, PromptModel())
    runs = RunDirectory(config.runs_dir, config.pages_dir, FakeClock())
    path = log_of(runs, whole.id)
    replies = [number for number, line in enumerate(path.read_bytes().split(b"\n"), 1) if b'"model_replied"' in line]
    flip(path, replies[1])
    assert find_damaged_runs(runs, runs.run_ids()) == ([whole.id], {})
    assert len(repair_logs(runs)[0]) == 1
    with pytest.raises(StoreError, check=has_code("damaged_evidence", "1 of its facts")):
        replayed(config, whole.id)
    assert isinstance(runs.open_log(whole.id).facts[-1][1], RunFinished)


async def test_the_pages_of_stored_runs_are_those_of_logs_that_leave_no_doubt(tmp_path: Path) -> None:
    ids = iter("abcdef0")
    runs = RunDirectory(tmp_path / "runs", tmp_path / "pages", FakeClock(), new_id=lambda: next(ids) * 6)

    def page(name: str) -> SourceNumbered:
        return SourceNumbered(Source(1, f"https://a.example/{name}"))

    await write(runs, STARTED, page("first"), SourceNumbered(Source(2, "file:///notes~1/a.md")), FINISHED)
    await write(runs, STARTED, WARNED, page("second"), FINISHED)
    await write(runs, STARTED, page("unfinished"))
    await write(runs, STARTED, page("not stored"), Warned("not_indexed", "1 of the pages"), FINISHED)
    await write(runs, STARTED, page("no store"), Warned("store", "it is full"), FINISHED)
    await write(runs, STARTED, page("resumed"), RunResumed(1, 2.0), FINISHED)
    flip(log_of(runs, await write(runs, STARTED, page("damaged"), FINISHED)), 3)
    assert sorted(list_indexed_pages(runs)) == ["https://a.example/first", "https://a.example/second"]
