"""What every model promises, whichever it is: one suite over the fake, the built-in model and a real endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest

from nexi.app import SystemClock
from nexi.errors import LLMError
from nexi.llm.extractive.model import Extractive
from nexi.llm.openai.client import OpenAICompatible
from nexi.ports import LLM
from nexi.testing import ScriptedLLM, searching
from nexi.tools.specs import SPECS
from nexi.types import Message, Reply, ToolCall
from rig import scripted_llm

QUESTION = "How far is the Moon from Earth on average?"
MESSAGES = (
    Message("system", "Answer with sources."),
    Message("user", QUESTION),
)
PAGE = Message("user", f"Question: {QUESTION}\n\nThe Moon is 384,400 km from Earth on average. It has almost no air at all.")
Opened: TypeAlias = "AsyncIterator[LLM]"


@dataclass
class Heard:
    """What the callbacks were told."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    arguments: list[tuple[str, str]] = field(default_factory=list)

    @property
    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {
            "on_text": self.texts.append,
            "on_call": self.calls.append,
            "on_arguments": lambda name, piece: self.arguments.append((name, piece)),
        }


@asynccontextmanager
async def scripted() -> Opened:
    def reply(messages: Any) -> Reply:
        return searching(QUESTION) if messages[0].role == "system" else Reply("The Moon is 384,400 km away.")

    yield ScriptedLLM(*[reply] * 4)


@asynccontextmanager
async def built_in() -> Opened:
    yield Extractive()


@asynccontextmanager
async def over_http(**options: Any) -> Opened:
    with scripted_llm.serve() as root:
        llm = OpenAICompatible(f"{root}/v1", "scripted", clock=SystemClock(), **options)
        try:
            yield llm
        finally:
            await llm.aclose()


@asynccontextmanager
async def over_http_at_once() -> Opened:
    async with over_http(stream=False) as llm:
        yield llm


IMPLEMENTATIONS = [scripted, built_in, over_http, over_http_at_once]
every_model = pytest.mark.parametrize("opened", IMPLEMENTATIONS)


@every_model
async def test_a_model_has_a_name(opened: Callable[[], Any]) -> None:
    async with opened() as llm:
        assert isinstance(llm.name, str)
        assert llm.name


@every_model
async def test_every_call_passed_to_on_call_is_in_the_reply_once_and_in_order(opened: Callable[[], Any]) -> None:
    heard = Heard()
    async with opened() as llm:
        reply = await llm.complete(MESSAGES, SPECS, max_tokens=500, **heard.callbacks)
    assert tuple(heard.calls) == reply.tool_calls
    assert [c.name for c in reply.tool_calls] == ["web_search"]
    assert reply.finish == "tool_calls"
    assert len({c.id for c in reply.tool_calls}) == len(reply.tool_calls)


@every_model
async def test_the_pieces_of_the_arguments_joined_are_the_arguments(opened: Callable[[], Any]) -> None:
    heard = Heard()
    async with opened() as llm:
        reply = await llm.complete(MESSAGES, SPECS, max_tokens=500, **heard.callbacks)
    assert {name for name, _ in heard.arguments} == {"web_search"}
    assert "".join(piece for _, piece in heard.arguments) == "".join(c.arguments for c in reply.tool_calls)


@every_model
async def test_the_pieces_of_the_text_joined_are_the_text(opened: Callable[[], Any]) -> None:
    heard = Heard()
    async with opened() as llm:
        reply = await llm.complete([PAGE], max_tokens=500, **heard.callbacks)
    assert "384,400 km" in reply.text
    assert "".join(heard.texts) == reply.text
    assert (reply.tool_calls, heard.calls, reply.finish) == ((), [], "stop")


@every_model
async def test_callbacks_may_be_left_out(opened: Callable[[], Any]) -> None:
    async with opened() as llm:
        heard = await llm.complete(MESSAGES, SPECS, max_tokens=500, **Heard().callbacks)
        unheard = await llm.complete(MESSAGES, SPECS, max_tokens=500)
    assert [(c.name, c.arguments) for c in heard.tool_calls] == [(c.name, c.arguments) for c in unheard.tool_calls]


@every_model
async def test_the_messages_are_left_as_they_were(opened: Callable[[], Any]) -> None:
    messages = list(MESSAGES)
    async with opened() as llm:
        await llm.complete(messages, SPECS, max_tokens=500)
    assert messages == list(MESSAGES)


@every_model
async def test_what_a_reply_used_is_never_negative(opened: Callable[[], Any]) -> None:
    async with opened() as llm:
        usage = (await llm.complete([PAGE], max_tokens=500)).usage
    assert usage.input_tokens >= 0
    assert usage.output_tokens >= 0
    assert usage.cost is None or usage.cost >= 0


async def failing_scripted() -> Reply:
    return await ScriptedLLM(LLMError("no")).complete(MESSAGES, max_tokens=5)


async def ended_script() -> Reply:
    return await ScriptedLLM().complete(MESSAGES, max_tokens=5)


async def failing_built_in() -> Reply:
    return await Extractive().complete(MESSAGES, max_tokens=5, schema={"type": "object", "properties": {"no": {}}})


async def failing_http() -> Reply:
    llm = OpenAICompatible("http://127.0.0.1:9/v1", "m", clock=SystemClock(), max_retries=0)
    try:
        return await llm.complete(MESSAGES, max_tokens=5)
    finally:
        await llm.aclose()


@pytest.mark.parametrize("ask", [failing_scripted, ended_script, failing_built_in, failing_http])
async def test_a_failure_is_an_llm_error_that_says_what_happened(ask: Callable[[], Awaitable[Reply]]) -> None:
    with pytest.raises(LLMError) as caught:
        await ask()
    assert caught.value.message
    assert caught.value.code
