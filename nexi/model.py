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
from typing import Any, NoReturn, TypeVarTuple

from nexi.budget import Meter, Reservation
from nexi.errors import ContextOverflowError, LLMError
from nexi.events import LimitApplied, ModelAsked, ModelFailed, ModelReplied
from nexi.ports import LLM, Clock, Emit
from nexi.runs.recording import CANCELLED, Track, error_of
from nexi.token_counter import TokenCounter
from nexi.types import Message, Purpose, Reply, StopReason, ToolCall, ToolSpec, Usage
from nexi.values import frozen

Told = TypeVarTuple("Told")

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
        on_asked: Callable[[], None] | None = None,
    ) -> Reply:
        prompt = prompt_tokens(self.counter, messages, tools, self.max_context)
        room = self._room_beside(prompt)
        digest = _prompt_digest(messages, tools, schema)
        heard = Heard(on_text, on_call, on_arguments)
        if known := await self.track.reply(digest):
            return await self._again(*known, heard)
        await self._refuse_unrecorded(digest)
        max_tokens = min(max_tokens, room)
        reservation = await self._reserve(prompt + max_tokens, digest)
        call, started = self.calls.next(), self.clock.monotonic()
        await self.emit(ModelAsked(call, self.purpose, self.name, prompt, digest))
        if on_asked:
            on_asked()  # from here on there is time until the reply
        usage = Usage(prompt, 0, estimated=True, cost=0.0)
        try:
            reply = await self.llm.complete(
                messages,
                tools,
                max_tokens=max_tokens,
                temperature=temperature,
                deadline=deadline,
                schema=schema,
                on_text=heard.on_text,
                on_call=heard.on_call,
                on_arguments=heard.on_arguments,
            )
            usage = reply.usage
        except LLMError as error:
            usage = error.usage or Usage()
            failed = ModelFailed(call, error.code, str(error), error.fix, self._since(started), usage=usage)
            window = error.window or 0 if isinstance(error, ContextOverflowError) else 0
            await self.emit(replace(failed, text=heard.text, arrived=heard.arrived, window=window))
            raise
        except asyncio.CancelledError:
            failed = ModelFailed(call, CANCELLED, "the call was broken off", "", self._since(started), usage=usage)
            await self.emit(replace(failed, text=heard.text, arrived=heard.arrived))
            raise
        finally:
            self.meter.settle_call(reservation, usage)
        await self.emit(ModelReplied(call, reply.text, reply.tool_calls, reply.usage, reply.finish, self._since(started)))
        return reply

    def _room_beside(self, prompt: int) -> int:
        """Tokens that are left for the reply. Raises ContextOverflowError where that is none to speak of."""
        room = self.max_context - prompt
        if room < LEAST_OUTPUT:
            raise ContextOverflowError(
                "the request was not sent",
                cause=f"it has about {prompt} tokens and the window of {self.name} is {self.max_context}",
                fix="raise max_context if the model allows it, or ask a shorter question",
            )
        return room

    def _since(self, started: float) -> float:
        return round(self.clock.monotonic() - started, 3)

    async def _again(self, asked: ModelAsked, spoken: ModelReplied | ModelFailed, heard: Heard) -> Reply:
        """A recorded reply as if it came now: paid for already, so it costs this meter and none above it."""
        await self.emit(asked)
        await self.emit(spoken)
        self.meter.replay_call(spoken.usage)
        if isinstance(spoken, ModelFailed):
            heard.tell(spoken.text, spoken.arrived)
            raise error_of(spoken)
        heard.tell(spoken.text, spoken.tool_calls)
        return Reply(spoken.text, spoken.tool_calls, spoken.usage, spoken.finish)

    async def _refuse_unrecorded(self, digest: str) -> None:
        if self.track.only:
            if self.track.limit(f"call {digest}"):
                await self._refuse(digest)
            raise LLMError("the model was not asked", cause="the log does not hold its reply", code="not_recorded")

    async def _reserve(self, tokens: int, digest: str) -> Reservation:
        reservation = self.meter.reserve_call(tokens)
        if isinstance(reservation, StopReason):
            await self._refuse(digest)
        return reservation

    async def _refuse(self, digest: str) -> NoReturn:
        await self.emit(LimitApplied(f"call {digest}", StopReason.BUDGET_SPENT))
        raise LLMError("the model was not asked", cause="the budget of this run is spent", code="budget_spent")


class Heard:
    """Passes a reply on as it comes, and keeps what had come for one that breaks off. Who does not listen is not told."""

    def __init__(
        self,
        on_text: Callable[[str], None] | None,
        on_call: Callable[[ToolCall], None] | None,
        on_arguments: Callable[[str, str], None] | None,
    ) -> None:
        self._said: list[str] = []
        self._calls: list[ToolCall] = []
        self._open: list[tuple[str, list[str]]] = []
        self.on_text = _both(self._said.append, on_text)
        self.on_call = _both(self._complete, on_call)
        self.on_arguments = _both(self._piece, on_arguments)

    @property
    def text(self) -> str:
        return "".join(self._said)

    @property
    def arrived(self) -> tuple[ToolCall, ...]:
        """The calls that were told of; one without an id was still coming."""
        return (*self._calls, *(ToolCall("", name, "".join(pieces)) for name, pieces in self._open))

    def tell(self, text: str, calls: Sequence[ToolCall]) -> None:
        """All of a recorded reply, or of what had come of one."""
        if self.on_text and text:
            self.on_text(text)
        for call in calls:
            if self.on_arguments:
                self.on_arguments(call.name, call.arguments)
            if self.on_call and call.id:
                self.on_call(call)

    def _complete(self, call: ToolCall) -> None:
        self._calls.append(call)
        self._open = [opened for opened in self._open if opened[0] != call.name]

    def _piece(self, name: str, piece: str) -> None:
        if not self._open or self._open[-1][0] != name:
            self._open.append((name, []))
        self._open[-1][1].append(piece)


def _both(first: Callable[[*Told], object], then: Callable[[*Told], None] | None) -> Callable[[*Told], None] | None:
    """One listener for two, where there is a second."""
    if then is None:
        return None

    def told(*args: *Told) -> None:
        first(*args)
        then(*args)

    return told


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
