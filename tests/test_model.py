"""One call of a model: counted before it is sent, ended when it hangs past the time target, repaired at most once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from nexi.budget import Budget, Meter
from nexi.errors import LLMError
from nexi.events import Event, Fact, ModelAsked, ModelFailed, ModelReplied, decode, encode
from nexi.model import MeteredLLM
from nexi.runs.recording import AgentReplay
from nexi.testing import FakeClock
from nexi.token_counter import TokenCounter
from nexi.types import Message, Reply, ReplyDefect, Usage

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


# --- a reply that cannot be read


class DefectiveModel:
    """Writes what cannot be read first, and a corrected object when it is shown that."""

    name = "defective"
    broken = Reply("Well: {", usage=Usage(10, 5, cost=0.01), defect=ReplyDefect(("it holds no JSON object",), "Well: "))

    def __init__(self, *later: Reply) -> None:
        self.replies = [self.broken, *later]
        self.conversations: list[Sequence[Message]] = []

    async def complete(self, messages: Any, tools: Any = (), *, on_text: Callable[[str], None], **_: Any) -> Reply:
        self.conversations.append(messages)
        reply = self.replies.pop(0)
        on_text(reply.defect.shown if reply.defect else reply.text)
        return reply


REPAIRED = Reply("{}", usage=Usage(20, 1, cost=0.02))
QUESTION = Message("user", "question")


async def ask_for_an_object(llm: DefectiveModel, *, budget: Budget = Budget(), log: Sequence[Fact] = ()) -> Outcome:  # noqa: B008
    facts: list[Fact] = []

    async def emit(fact: Fact) -> None:
        facts.append(fact)

    shown: list[str] = []
    meter = Meter(budget)
    metered = MeteredLLM(
        llm,
        "correct",
        meter,
        emit,
        FakeClock(),
        TokenCounter(),
        10_000,
        replay=AgentReplay(log),  # type: ignore[arg-type]
    )
    reply = await metered.complete([QUESTION], max_tokens=500, schema={"type": "object"}, on_text=shown.append)
    return Outcome(reply, "".join(shown), facts, meter)


@dataclass
class Outcome:
    reply: Reply
    shown: str
    facts: list[Fact]
    meter: Meter


async def test_a_repair_is_a_call_of_its_own_in_the_log_and_in_the_meter() -> None:
    llm = DefectiveModel(REPAIRED)
    outcome = await ask_for_an_object(llm)
    assert [(type(f), f.call) for f in outcome.facts if isinstance(f, ModelAsked | ModelReplied)] == [
        (ModelAsked, 1),
        (ModelReplied, 1),
        (ModelAsked, 2),
        (ModelReplied, 2),
    ]
    assert [f.usage for f in outcome.facts if isinstance(f, ModelReplied)] == [llm.broken.usage, REPAIRED.usage]
    assert (outcome.meter.model_calls, outcome.meter.usage) == (2, Usage(30, 6, cost=0.03))
    assert outcome.reply == Reply("Well:\n\n{}", usage=Usage(30, 6, cost=0.03))
    assert [m.content for m in llm.conversations[1]][:2] == ["question", "Well: {"]
    assert "it holds no JSON object" in llm.conversations[1][2].content


@pytest.mark.parametrize("budget", [Budget(max_model_calls=1), Budget(max_cost=0.01), Budget(max_tokens=530)])
async def test_a_budget_without_room_for_a_repair_leaves_the_reply_as_text(budget: Budget) -> None:
    llm = DefectiveModel(REPAIRED)
    outcome = await ask_for_an_object(llm, budget=budget)
    assert (len(llm.conversations), outcome.meter.model_calls) == (1, 1)
    assert (outcome.reply.text, outcome.shown, outcome.reply.defect) == ("Well: {", "Well: {", None)


async def test_a_run_cut_between_a_reply_and_its_repair_asks_only_for_the_repair() -> None:
    first = await ask_for_an_object(DefectiveModel(REPAIRED))
    llm = DefectiveModel()
    llm.replies = [REPAIRED]
    resumed = await ask_for_an_object(llm, log=[decode(encode(fact)) for fact in first.facts[:2]])  # type: ignore[misc]
    assert len(llm.conversations) == 1
    assert len(llm.conversations[0]) == 3
    assert (resumed.reply, resumed.shown) == (first.reply, first.shown)


async def test_a_repaired_reply_is_replayed_without_a_request() -> None:
    first = await ask_for_an_object(DefectiveModel(REPAIRED))
    llm = DefectiveModel()
    llm.replies = []
    again = await ask_for_an_object(llm, log=first.facts)
    assert (again.reply, again.shown, llm.conversations) == (first.reply, first.shown, [])
