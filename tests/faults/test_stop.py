"""A run that is asked to stop does so at once, wherever its model hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nexi.config import Config
from nexi.errors import StoppedError
from nexi.events import Event, LimitApplied, ModelAsked, ToolFinished, ToolStarted
from nexi.testing import FakeWeb, ScriptedLLM, calling, reading, searching
from nexi.types import Message, Reply, StopReason
from tests.scenarios.world import MOON, PAGES, World

Make = Callable[..., Config]
HANGING_S = 300.0  # only a run that does not stop takes so long


class Hanging(ScriptedLLM):
    """Hangs where its script ends."""

    async def complete(self, messages: Sequence[Message], tools: Any = (), **options: Any) -> Reply:
        if not self.steps:
            await asyncio.Event().wait()
        return await super().complete(messages, tools, **options)


def stopping_at(purpose: str, call: int) -> Callable[[Any, Event], None]:
    def stop(run: Any, event: Event) -> None:
        if isinstance(event, ModelAsked) and (event.purpose, event.call) == (purpose, call):
            run.stop()

    return stop


async def ask(world: World, question: str, on_event: Callable[[Any, Event], None], **options: Any) -> Any:
    async with asyncio.timeout(HANGING_S):
        return await world.ask(question, on_event=on_event, **options)


async def test_in_the_last_answer(make_config: Make) -> None:
    world = World(make_config(), answer=Hanging(searching("moon"), reading(MOON)))
    result = await ask(world, "How far is the Moon?", stopping_at("answer", 3), max_iterations=2)
    assert result.answer.stop is StopReason.MAX_ITERATIONS
    assert "384,400 km" in result.answer.text
    assert "[1]" in result.answer.text


async def test_in_compaction(make_config: Make) -> None:
    long = PAGES[MOON] + " It is far away, people say." * 600
    config = make_config(max_context=6000, max_output_tokens=1000)
    world = World(config, answer=Hanging(reading(MOON), reading(MOON, instructions="how far")), web=FakeWeb({MOON: long}))
    asked: list[str] = []

    def stop(run: Any, event: Event) -> None:
        if isinstance(event, ModelAsked):
            asked.append(event.purpose)
            if event.purpose == "compact":
                run.stop()

    result = await ask(world, f"How far is the Moon, says {MOON}?", stop)
    assert asked[-1] == "compact"
    assert result.answer.stop is StopReason.CANCELLED
    assert "384,400 km" in result.answer.text


async def test_in_a_summary_of_the_first_page(make_config: Make) -> None:
    world = World(make_config(), calling("web_get", urls=[MOON]), extract=Hanging())
    result = await ask(world, f"How far is the Moon, says {MOON}?", stopping_at("extract", 2))
    assert result.answer.stop is StopReason.CANCELLED
    assert "384,400 km" in result.answer.text
    assert [s.url for s in result.answer.sources] == [MOON]
    started = [f.call_id for f in world.facts if isinstance(f, ToolStarted)]
    assert [f.call_id for f in world.facts if isinstance(f, ToolFinished)] == started


async def test_before_anything_was_read(make_config: Make) -> None:
    world = World(make_config(), answer=Hanging(searching("moon")))
    with pytest.raises(StoppedError):
        await ask(world, "How far is the Moon?", stopping_at("answer", 2))
    assert [f.stop for f in world.facts if isinstance(f, LimitApplied)] == [StopReason.CANCELLED]
