"""The report is told as it is written, checked like any answer, and is the same however it came."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.errors import LLMError
from nexi.events import ModelFailed, RoundEvaluated, TextDelta
from nexi.notices import list_notices
from nexi.types import Message, Reply, StopReason, ToolSpec
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play, replayed

Make = Callable[..., Config]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Slow(PromptModel):
    """Writes its report in pieces, a while apart, and may break off after some of them."""

    def __init__(self, pieces: int = 10, breaks: Sequence[int] = ()) -> None:
        super().__init__(rounds=1)
        self._pieces, self._breaks = pieces, list(breaks)

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **rest: Any) -> Reply:
        if not messages[0].content.startswith("You lead"):
            return await super().complete(messages, tools, **rest)
        reply = self.reply(messages, [])
        size = -(-len(reply.text) // self._pieces)
        last = self._breaks.pop(0) if self._breaks else self._pieces
        for at in range(last):
            await asyncio.sleep(1.0)
            rest["on_text"](reply.text[at * size : (at + 1) * size])
        if last < self._pieces:
            raise LLMError("the connection was closed", code="stream_closed")
        return reply


def followed(config: Config, model: PromptModel) -> tuple[list[tuple[float, str]], RunResult]:
    """The text as it came, with its times, and the result."""

    async def work() -> tuple[list[tuple[float, str]], RunResult]:
        told: list[tuple[float, str]] = []
        async with nexi_over(config, SlowWeb(PAGES), model) as nexi, nexi.research(QUESTION) as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    told.append((asyncio.get_running_loop().time(), event.text))
            return told, run.result()

    return play(work)


def test_the_report_comes_while_it_is_written_and_is_what_came(make_config: Make) -> None:
    config = make_config()
    told, result = followed(config, Slow())
    assert "".join(text for _, text in told) == result.answer.text
    times = [at for at, _ in told]
    assert times[-1] - times[0] > 3.0
    assert replayed(config, result.id) == result.answer.text


def test_a_report_told_in_pieces_is_the_one_told_at_once(make_config: Make) -> None:
    one, many = (followed(make_config(), Slow(pieces))[1].answer.text for pieces in (1, 40))
    assert one == many


def test_a_report_that_breaks_off_after_it_began_is_what_came_and_can_be_taken_up(make_config: Make) -> None:
    config = make_config()
    told, result = followed(config, Slow(pieces=10, breaks=[6]))
    whole = followed(make_config(), Slow())[1].answer.text
    judged = next(f for f in result.facts if isinstance(f, RoundEvaluated))
    assert (result.answer.stop, judged.by) == (StopReason.API_ERROR, "cut")
    assert "".join(text for _, text in told) == result.answer.text
    assert whole.startswith(result.answer.text[:60])
    assert "report.unfinished" in [entry["code"] for entry in list_notices(result.answer.warnings).values()]
    assert replayed(config, result.id) == result.answer.text

    async def again() -> str:
        nexi = nexi_over(config, SlowWeb({}), Slow())
        async with nexi, nexi.resume(result.id) as run:
            async for _ in run:
                pass
            return run.result().answer.text

    assert play(again) == whole


def test_a_report_that_breaks_off_before_its_first_citation_is_asked_for_again(make_config: Make) -> None:
    config = make_config()
    told, result = followed(config, Slow(pieces=40, breaks=[1]))
    assert [f.text for f in result.facts if isinstance(f, ModelFailed)] == ["# The "]
    assert result.answer.stop is StopReason.FINAL_ANSWER
    assert "".join(text for _, text in told) == result.answer.text
    assert replayed(config, result.id) == result.answer.text
