"""Logs that cannot be trusted: refused aloud, with what can still be read, and never mended in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.errors import StoreError
from nexi.runs import log_format
from nexi.runs.directory import RunDirectory
from nexi.runs.log_format import DamagedLogError
from tests.faults.processes import home
from tests.raising import has_code
from tests.research.world import PAGES, QUESTION, LoopClock, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]


def researched(config: Config) -> RunResult:
    async def work() -> RunResult:
        async with nexi_over(config, SlowWeb(PAGES), PromptModel()) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def resume(config: Config, run_id: str) -> None:
    async def work() -> None:
        async with nexi_over(config, SlowWeb(PAGES), PromptModel()) as nexi, nexi.resume(run_id):
            pass

    play(work)


def spoilt(line: bytes) -> bytes:
    return line.replace(b'"kind"', b'"kond"')


def test_damage_in_the_middle_is_refused_with_what_comes_before_it_and_the_log_stays_as_it_was(make_config: Make) -> None:
    config = make_config()
    run = researched(config)
    path = config.runs_dir / run.id / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    path.write_bytes(b"".join([*lines[:middle], spoilt(lines[middle]), *lines[middle + 1 :]]))
    before = path.read_bytes()
    with pytest.raises(DamagedLogError, check=has_code("damaged_log", f"line {middle + 1}")) as caught:
        resume(config, run.id)
    assert caught.value.readable is not None
    assert [fact for _, fact in caught.value.readable.facts] == list(run.facts[: middle - 1])
    assert path.read_bytes() == before


def test_a_log_of_a_newer_nexi_is_refused_with_its_version(make_config: Make) -> None:
    config = make_config()
    run = researched(config)
    path = config.runs_dir / run.id / "log.jsonl"
    header, *rest = path.read_bytes().splitlines(keepends=True)
    told = {name: value for name, value in json.loads(header).items() if name != "sum"}
    path.write_bytes(b"".join([log_format.seal_record({**told, "schema": log_format.SCHEMA + 1, "nexi": "9.9"}), *rest]))
    with pytest.raises(StoreError, check=has_code("newer_log", "9.9")):
        resume(config, run.id)
    (listed,) = RunDirectory(config.runs_dir, config.pages_dir, LoopClock()).list_runs()
    assert (listed.id, listed.query) == (run.id, QUESTION)


def test_the_command_says_what_is_wrong_with_a_log_and_ends_with_1(tmp_path: Path) -> None:
    with home(tmp_path) as at:
        child = at.research()
        assert child.wait(300) == 0
        path = at.logs[-1]
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:9], spoilt(lines[9]), *lines[10:]]))
        code, out, err = at.resume(path.parent.name)
        assert (code, out) == (1, "")
        assert "is damaged at line 10" in err
        assert "8 facts before it can still be read" in err
