"""Research that was cut off goes on: nothing that was paid for is asked again, and the report is the same."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.events import ModelAsked, ModelReplied, RunFinished
from nexi.types import Usage
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]


def research(config: Config, model: PromptModel) -> RunResult:
    async def work() -> RunResult:
        async with nexi_over(config, SlowWeb(PAGES), model) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def resumed(config: Config, run_id: str, model: PromptModel) -> RunResult:
    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), model)
        async with nexi, nexi.resume(run_id, pace=asyncio.sleep) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def cut_after(config: Config, run_id: str, facts: int, home: Path) -> Config:
    """Another home with the run as a kill after this many facts would have left it."""
    there = config.override(home=home)
    shutil.copytree(config.pages_dir, there.pages_dir)
    lines = (config.runs_dir / run_id / "log.jsonl").read_bytes().splitlines(keepends=True)
    folder = there.runs_dir / run_id
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_bytes(b"".join(lines[: facts + 1]) + lines[facts + 1][:20])
    return there


def counts_cut_calls(lines: Sequence[str], usage: Usage, whole: Usage) -> bool:
    """Whether a resumed run has used the same as a whole one, and more where a call was cut off: it was sent, and paid."""
    sent = sum('"kind":"model_asked"' in line for line in lines)
    ended = sum('"kind":"model_replied"' in line or '"kind":"model_failed"' in line for line in lines)
    return usage.input_tokens > whole.input_tokens if sent > ended else usage == whole


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_a_run_cut_off_after_any_fact_ends_with_the_same_report_and_repeats_no_call(
    make_config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the cut is made by hand, and the disk is slow
    config = make_config()
    model = PromptModel()
    whole = research(config, model)
    lines = (config.runs_dir / whole.id / "log.jsonl").read_text().splitlines()
    differences = {}
    for facts in range(1, len(lines) - 1, step):
        there = cut_after(config, whole.id, facts, tmp_path / str(facts))
        again = PromptModel()
        result = resumed(there, whole.id, again)
        answered = sum('"kind":"model_replied"' in line for line in lines[: facts + 1])
        repeated = len(again.asked) - (len(model.asked) - answered)
        same = (result.answer.text, result.answer.sources) == (whole.answer.text, whole.answer.sources)
        is_counted = counts_cut_calls(lines[: facts + 1], result.finished.usage, whole.finished.usage)
        if not same or repeated or not is_counted:
            differences[facts] = (json.loads(lines[facts])["fact"]["kind"], same, repeated, result.finished.usage)
    assert differences == {}


def test_the_ledger_equals_what_the_provider_was_asked(make_config: Make) -> None:
    model = PromptModel()
    result = research(make_config(), model)
    asked = [f for f in result.facts if isinstance(f, ModelAsked)]
    replied = [f for f in result.facts if isinstance(f, ModelReplied)]
    end = result.facts[-1]
    assert isinstance(end, RunFinished)
    assert (len(asked), len(replied), end.model_calls) == (len(model.asked),) * 3
    assert end.usage.total == sum(f.usage.total for f in replied)


def test_a_finished_run_is_replayed_byte_for_byte_without_a_network(make_config: Make) -> None:
    config, model = make_config(), PromptModel()
    whole = research(config, model)

    async def work() -> tuple[bool, str]:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            replay = await nexi.replay(whole.id)
            return replay.is_same, replay.result.answer.text

    same, text = play(work)
    assert text == whole.answer.text
    assert same


def test_the_report_of_the_scripted_world_reads_as_expected(make_config: Make) -> None:
    result = research(make_config(), PromptModel())
    assert result.answer.text.splitlines()[0] == "# The Moon and the tides"
    assert {s.url for s in result.answer.sources} <= set(PAGES)
    assert result.answer.review is not None
    assert result.answer.review.marked == ()
