"""Every model call of a run goes through here: counted before it is sent, reserved, logged, settled.

It wears the LLM port itself, so the loop, the extractor and compaction cannot tell it from a bare model. It refuses to
send a request that would not fit the window, and it never asks when the budget is spent. A reply that the log of the run
already holds is given out again instead of being bought twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nexi.budget import Meter, Reservation
from nexi.errors import ContextOverflowError, LLMError
from nexi.events import ModelAsked, ModelFailed, ModelReplied
from nexi.ports import LLM, Clock, Emit
from nexi.recording import CANCELLED, Track
from nexi.token_counter import TokenCounter
from nexi.types import Message, Purpose, Reply, StopReason, ToolCall, ToolSpec, Usage
from nexi.values import frozen

LEAST_OUTPUT = 256


@dataclass
class CallCounter:
    """Numbers the model calls of one run, whichever role makes them."""

    made: int = 0

    def next(self) -> int:
        self.made += 1
        return self.made


@frozen
class MeteredLLM:
    """A model in one role of one run."""

    llm: LLM
    purpose: Purpose
    meter: Meter
    emit: Emit
    clock: Clock
    counter: TokenCounter
    max_context: int
    calls: CallCounter = field(default_factory=CallCounter)
    track: Track = field(default_factory=Track)

    @property
    def name(self) -> str:
        return self.llm.name

    def as_role(self, purpose: Purpose) -> MeteredLLM:
        return replace(self, purpose=purpose)

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        max_tokens: int,
        temperature: float | None = None,
        deadline: float | None = None,
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
        on_call: Callable[[ToolCall], None] | None = None,
        on_arguments: Callable[[str, str], None] | None = None,
    ) -> Reply:
        prompt = prompt_tokens(self.counter, messages, tools, self.max_context)
        room = self.max_context - prompt
        if room < LEAST_OUTPUT:
            raise ContextOverflowError(
                "the request was not sent",
                cause=f"it has about {prompt} tokens and the window of {self.name} is {self.max_context}",
                fix="raise max_context if the model allows it, or ask a shorter question",
            )
        digest = _prompt_digest(messages, tools, schema)
        if known := await self.track.reply(digest):
            return await self._again(*known, on_text, on_call, on_arguments)
        self._refuse_unrecorded()
        max_tokens = min(max_tokens, room)
        reservation = self._reserve(prompt + max_tokens)
        call, started = self.calls.next(), self.clock.monotonic()
        await self.emit(ModelAsked(call, self.purpose, self.name, prompt, digest))
        usage = Usage(prompt, 0, estimated=True, cost=0.0)
        try:
            reply = await self.llm.complete(
                messages,
                tools,
                max_tokens=max_tokens,
                temperature=temperature,
                deadline=deadline,
                schema=schema,
                on_text=on_text,
                on_call=on_call,
                on_arguments=on_arguments,
            )
            usage = reply.usage
        except LLMError as error:
            usage = error.usage or Usage()
            await self.emit(ModelFailed(call, error.code, str(error), error.fix, self._since(started), usage=usage))
            raise
        except asyncio.CancelledError:
            await self.emit(ModelFailed(call, CANCELLED, "the call was broken off", "", self._since(started), usage=usage))
            raise
        finally:
            self.meter.settle_call(reservation, usage)
        await self.emit(ModelReplied(call, reply.text, reply.tool_calls, reply.usage, reply.finish, self._since(started)))
        return reply

    def _since(self, started: float) -> float:
        return round(self.clock.monotonic() - started, 3)

    async def _again(
        self,
        asked: ModelAsked,
        spoken: ModelReplied | ModelFailed,
        on_text: Callable[[str], None] | None,
        on_call: Callable[[ToolCall], None] | None,
        on_arguments: Callable[[str, str], None] | None,
    ) -> Reply:
        """A recorded reply as if it came now: paid for already, so it costs this meter and none above it."""
        await self.emit(asked)
        await self.emit(spoken)
        if isinstance(spoken, ModelFailed):
            self.meter.replay_call(spoken.usage)
            raise LLMError(spoken.message, fix=spoken.fix, code=spoken.code)
        self.meter.replay_call(spoken.usage)
        if on_text and spoken.text:
            on_text(spoken.text)
        for call in spoken.tool_calls:
            if on_arguments:
                on_arguments(call.name, call.arguments)
            if on_call:
                on_call(call)
        return Reply(spoken.text, spoken.tool_calls, spoken.usage, spoken.finish)

    def _refuse_unrecorded(self) -> None:
        if self.track.only:
            raise LLMError("the model was not asked", cause="the log does not hold its reply", code="not_recorded")

    def _reserve(self, tokens: int) -> Reservation:
        reservation = self.meter.reserve_call(tokens)
        if isinstance(reservation, StopReason):
            raise LLMError("the model was not asked", cause="the budget of this run is spent", code="budget_spent")
        return reservation


def prompt_tokens(counter: TokenCounter, messages: Sequence[Message], tools: Sequence[ToolSpec], max_context: int) -> int:
    """Tokens of a request: a cheap estimate while far from the limit, exact when the byte count comes near it."""
    extra = sum(len(spec_text(t).encode()) for t in tools)
    bytes_bound = counter.upper_bound(messages) + extra
    if bytes_bound * 2 < max_context:
        return bytes_bound // 3
    return counter.count_messages(messages) + sum(counter.count(spec_text(t)) + 3 for t in tools)


def spec_text(spec: ToolSpec) -> str:
    return json.dumps({"name": spec.name, "description": spec.description, "parameters": spec.parameters})


def _prompt_digest(messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, Any] | None) -> str:
    """Names a request by its content, so that a resumed run can tell whether it was already answered."""
    body = json.dumps([[m.to_dict() for m in messages], [t.name for t in tools], schema], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:32]
