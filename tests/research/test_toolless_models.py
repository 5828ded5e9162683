"""Small models often write instead of calling a tool: their tasks are then searched for, beside the question they belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.events import SearchFinished
from nexi.types import Message, Reply
from tests.research.world import AGENDA, PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play

Make = Callable[..., Config]


class Talker(PromptModel):
    """Plans and judges as asked, but as a researcher never calls a tool."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        return Reply("I would have to look that up.") if "scrape" in tools else super().reply(messages, tools)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def test_the_task_and_the_whole_question_are_searched_for_and_the_model_is_told_both(make_config: Make) -> None:
    model = Talker(rounds=1)

    async def work() -> RunResult:
        async with nexi_over(make_config(), SlowWeb(PAGES), model) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    result = play(work)
    searched = [(f.agent, f.query) for f in result.facts if isinstance(f, SearchFinished)]
    assert set(searched) == {(f"1.{n}", query) for n, task in enumerate(AGENDA, 1) for query in (task, QUESTION)}
    answering = [asked for asked in model.asked if "one short full sentence" in asked]
    assert len(answering) == 2  # the other task is answered from two pages, which the built-in model quotes
    assert all(f"(part of: {QUESTION})" in asked for asked in answering)
