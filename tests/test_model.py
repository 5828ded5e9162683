"""A model call past the time target: one that hangs or drips is ended, one that goes on writing is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from nexi.budget import Budget, Meter
from nexi.errors import LLMError
from nexi.events import Event, ModelAsked, ModelFailed, ModelReplied
from nexi.model import MeteredLLM
from nexi.testing import FakeClock
from nexi.token_counter import TokenCounter
from nexi.types import Message, Reply, Usage

STALL_S = 0.01
PIECE = "a hundred characters or so of text that a model writes in one go and that nobody would call a drip. "


class WritingModel:
    """Writes pieces, each after a pause, until `count` are written."""

    name = "writing"

    def __init__(self, piece: str = "", *, pause_s: float = 0.0, count: int = 1_000_000) -> None:
        self.piece, self.pause_s, self.count = piece, pause_s, count

    async def complete(self, messages: Any, tools: Any = (), *, on_text: Callable[[str], None], **_: Any) -> Reply:
        for _number in range(self.count):
            await asyncio.sleep(self.pause_s)
            if self.piece:
                on_text(self.piece)
        return Reply(self.piece * self.count, usage=Usage(5, 7))


async def call(llm: WritingModel, *, max_seconds: float | None = 1.0, min_chars_per_s: float = 8.0) -> list[Event]:
    facts: list[Event] = []
    clock = FakeClock()

    async def emit(event: Event) -> None:
        facts.append(event)

    meter = Meter(Budget(max_seconds=max_seconds), started=clock.monotonic() - 1.0)
    limits = {"stall_s": STALL_S, "min_chars_per_s": min_chars_per_s}
    metered = MeteredLLM(llm, "answer", meter, emit, clock, TokenCounter(), 10_000, **limits)  # type: ignore[arg-type]
    with contextlib.suppress(LLMError):
        await metered.complete([Message("user", "question")], max_tokens=500, on_text=lambda _: None)
    spent = sum(fact.usage.total for fact in facts if isinstance(fact, ModelReplied | ModelFailed))
    assert (meter.reserved_tokens, meter.usage.total) == (0, spent)
    return facts


async def test_a_model_that_hangs_is_left_and_what_was_sent_is_counted() -> None:
    asked, failed = await call(WritingModel(pause_s=600.0))
    assert isinstance(asked, ModelAsked)
    assert isinstance(failed, ModelFailed)
    assert (failed.code, failed.text, failed.usage.input_tokens) == ("timeout", "", asked.prompt_tokens)


async def test_a_model_that_drips_is_left_with_what_came() -> None:
    failed = (await call(WritingModel("x", pause_s=0.001), min_chars_per_s=100_000.0))[-1]
    assert isinstance(failed, ModelFailed)
    assert (failed.code, set(failed.text) <= {"x"}) == ("timeout", True)


@pytest.mark.parametrize("max_seconds", [1.0, None], ids=["past the target", "without a target"])
async def test_a_model_that_writes_on_is_read_to_its_end(max_seconds: float | None) -> None:
    writing = WritingModel(PIECE, count=2_000)
    replied = (await call(writing, max_seconds=max_seconds))[-1]
    assert isinstance(replied, ModelReplied)
    assert replied.text == PIECE * 2_000
