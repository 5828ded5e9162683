"""Runs that nexi 0.1 wrote: they still open, replay to the same answer, and go on from wherever they were cut off.

`tests/fixtures/home-0.1` was written by that version over pages in memory; nothing in it is made anew.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.events import ModelReplied, RunFinished
from nexi.testing import FakeWeb, ScriptedLLM, answering, reading, searching
from tests.research.world import MOON, PAGES, PromptModel, SlowWeb, nexi_over, play

HOME = Path(__file__).parent.parent / "fixtures" / "home-0.1"
SEARCH, FOLLOW_UP, EXTRACTIVE, AGENTIC, RESEARCH = "9b4a20", "acd7cd", "363ae7", "31737c", "1d57bb"
RUNS = (SEARCH, FOLLOW_UP, EXTRACTIVE, AGENTIC, RESEARCH)
Make = Callable[..., Config]


@pytest.fixture
def config(tmp_path: Path, make_config: Make) -> Config:
    """The config of those runs, over a copy of their home."""
    home = tmp_path / "nexi"
    shutil.copytree(HOME, home)
    return make_config(home=home, knowledge=False)


def cut(config: Config, run_id: str, facts: int) -> int:
    """Leave a run as a kill after so many facts would have; says how many it had."""
    log = config.runs_dir / run_id / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: facts + 1]))
    return len(lines) - 1


async def test_they_are_listed_with_their_states(config: Config) -> None:
    listed = {run.id: run.state for run in Nexi(config).runs().list_runs()}
    assert listed == dict.fromkeys(RUNS, "finished")


@pytest.mark.parametrize("run_id", [SEARCH, FOLLOW_UP, EXTRACTIVE])
async def test_a_search_replays_to_the_same_answer(config: Config, run_id: str) -> None:
    replay = await Nexi(config).replay(run_id)
    assert (replay.is_same, replay.result.answer.text != "") == (True, True)


def test_research_replays_to_the_same_report(config: Config) -> None:
    async def work() -> bool:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            return (await nexi.replay(RESEARCH)).is_same

    assert play(work)


@pytest.mark.parametrize("facts", range(1, 17))
async def test_a_search_goes_on_within_the_limits_it_was_asked_with(config: Config, facts: int) -> None:
    told = Nexi(config).runs().open_log(SEARCH).facts
    end = told[-1][1]
    assert isinstance(end, RunFinished)
    cut(config, SEARCH, facts)
    paid = sum(isinstance(fact, ModelReplied) for _, fact in told[:facts])
    steps = (searching("Moon distance"), reading(MOON), answering("The Moon is 384,400 km from Earth on average. [1]"))
    llm, web = ScriptedLLM(*steps[paid:]), FakeWeb(PAGES)
    async with Nexi(config, llms=dict.fromkeys(("answer", "extract", "judge"), llm), backends=[web], fetchers=[web]) as nexi:
        async with nexi.resume(SEARCH) as run:
            async for _ in run:
                pass
        result = run.result()
    assert (result.answer.text, run.id) == (end.answer, SEARCH)


@pytest.mark.parametrize("facts", range(1, 90, 8))
def test_research_goes_on_to_the_same_report(config: Config, facts: int) -> None:
    end = Nexi(config).runs().open_log(RESEARCH).facts[-1][1]
    assert isinstance(end, RunFinished)
    cut(config, RESEARCH, facts)

    async def work() -> str:
        nexi = nexi_over(config, SlowWeb(PAGES), PromptModel())
        async with nexi, nexi.resume(RESEARCH, pace=asyncio.sleep) as run:
            async for _ in run:
                pass
            return run.result().answer.text

    assert play(work) == end.answer


@pytest.mark.parametrize("facts", range(1, 10))
async def test_an_agentic_search_goes_on_to_the_same_response(config: Config, facts: int) -> None:
    end = Nexi(config).runs().open_log(AGENTIC).facts[-1][1]
    assert isinstance(end, RunFinished)
    cut(config, AGENTIC, facts)
    web = FakeWeb(PAGES)
    async with Nexi(config.override(model="extractive"), backends=[web], fetchers=[web]) as nexi:
        async with nexi.resume(AGENTIC) as run:
            async for _ in run:
                pass
        result = run.result()
    assert (result.answer.text, run.id) == (end.answer, AGENTIC)


async def test_an_agentic_search_replays_to_the_same_response_and_leaves_the_knowledge_base_alone(config: Config) -> None:
    replay = await Nexi(config).replay(AGENTIC)
    assert (replay.is_same, json.loads(replay.answer)["success"], config.knowledge_path.exists()) == (True, True, False)
