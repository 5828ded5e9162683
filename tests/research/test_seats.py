"""Where a model serves one at a time, researchers work one after the other, and each begins with what was found before it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.events import ModelAsked, ReportsShared, ResearcherReported
from nexi.llm.local import LocalServer
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


class FixedProbe:
    """A server of this machine that answers so many requests at the same time."""

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel

    async def server_at(self, base_url: str) -> LocalServer | None:
        return LocalServer("llama.cpp", base_url, (), self._parallel)


def researched(config: Config, seats: int) -> RunResult:
    async def work() -> RunResult:
        nexi = nexi_over(config, SlowWeb(PAGES), PromptModel(rounds=1), probe=FixedProbe(seats))
        async with nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def test_with_one_seat_nobody_asks_before_the_one_before_has_reported_and_a_replay_is_the_same(make_config: Make) -> None:
    config = make_config()
    result = researched(config, seats=1)
    order = [f.agent if isinstance(f, ModelAsked) else f"{f.researcher} reported" for f in _talk(result)]
    turns = [name for at, name in enumerate(order) if name and name != order[at - 1]]
    assert turns == ["1.1", "1.1 reported", "1.2", "1.2 reported", "1.3", "1.3 reported"]
    first = [(f.researcher, f.reports) for f in result.facts if isinstance(f, ReportsShared) and not f.turn]
    assert first == [("1.2", ("1.1",)), ("1.3", ("1.1", "1.2"))]

    async def replayed() -> bool:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            return (await nexi.replay(result.id)).is_same

    assert play(replayed)


def _talk(result: RunResult) -> list[ModelAsked | ResearcherReported]:
    return [f for f in result.facts if isinstance(f, ModelAsked | ResearcherReported)]


def test_with_more_seats_than_may_work_at_once_three_do(make_config: Make) -> None:
    order = [f.agent for f in researched(make_config(), seats=9).facts if isinstance(f, ModelAsked)]
    assert order[1:4] == ["1.1", "1.2", "1.3"]
