"""Every model call of a run goes through here: counted before it is sent, reserved, logged, settled.

It refuses to send a request that would not fit the context window, and never sends one when the budget is spent. A reply that
the log of the run already holds is replayed instead of being paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.budget import Meter
from nexi.errors import ContextOverflowError, LLMError
from nexi.events import LimitApplied, ModelAsked, ModelFailed, ModelReplied
from nexi.notices import Notice
from nexi.ports import LLM, AskOptions, Clock, Emit
from nexi.runs.recording import CANCELLED, AgentReplay, rebuild_error
from nexi.token_counter import TokenCounter
from nexi.types import Message, Purpose, Reply, StopReason, ToolCall, ToolSpec, Usage

NOT_ASKED = Notice("model.not_asked", "the model was not asked")
MIN_OUTPUT_TOKENS = 256
MIN_AFFORDABLE_TOKENS = 1_024  # a shorter reply would break off in the middle
STALL_S = 1.0  # past the time target, a call may not be silent for longer
MIN_CHARS_PER_S = 8  # less is a drip, not a reply
MIN_BILLED_RATIO, MAX_BILLED_RATIO = 1.1, 2.0  # tokens billed for one that was counted: tokenizers and templates differ
SLOW_START_FACTOR = 2.0  # a model that was slow to begin before may be as slow again, and a bit more


@dataclass
class CallCounter:
    """Numbers the model calls of one run, whichever role makes them, and keeps what they taught."""

    made: int = 0
    slowest_start_s: float = 0.0  # until one began to reply
    billed_ratio: float = MIN_BILLED_RATIO  # tokens that the server bills for one that was counted

    def next(self) -> int:
        self.made += 1
        return self.made

    def learn_ratio(self, prompt: int, usage: Usage) -> None:
        """Reserve more for later prompts where a server bills more tokens than were counted."""
        if prompt and not usage.estimated:
            self.billed_ratio = min(MAX_BILLED_RATIO, max(self.billed_ratio, usage.input_tokens / prompt))


class MeteredLLM(Struct, frozen=True):
    llm: LLM
    purpose: Purpose
    meter: Meter
    emit: Emit
    clock: Clock
    counter: TokenCounter
    max_context: int
    calls: CallCounter = msgspec.field(default_factory=CallCounter)
    replay: AgentReplay = msgspec.field(default_factory=AgentReplay)
    stall_s: float = STALL_S
    min_chars_per_s: float = MIN_CHARS_PER_S

    @property
    def name(self) -> str:
        return self.llm.name

    @property
    def dialect(self) -> Any:
        """What is known of the server by now; None for a model that is no server."""
        return getattr(self.llm, "dialect", None)

    def as_role(self, purpose: Purpose) -> MeteredLLM:
        return replace(self, purpose=purpose)

    def has_recorded(self, messages: Sequence[Message]) -> bool:
        """Whether the log holds the outcome of this request, so that a resumed or replayed run makes it again."""
        return self.replay.has_outcome(_digest_request(messages, (), None))

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        on_asked: Callable[[], None] | None = None,
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Ask, and where the reply cannot be read, ask once more for a corrected one: two calls, each counted and logged."""
        reply, on_text = await self._ask(messages, tools, on_asked, options), options.get("on_text")
        first_text, usage = "", reply.usage
        if reply.defect and options.get("retries", True):
            form = "a tool call" if tools else "the JSON object that was asked for"
            problems = "\n".join(f"- {problem}" for problem in reply.defect.problems)
            wish = f"Your reply could not be read as {form}:\n{problems}\n"
            wish += "Write it again, complete and corrected, and nothing else."
            conversation = (*messages, Message("assistant", reply.text), Message("user", wish))
            try:
                repair = await self._ask(conversation, tools, None, options)
            except LLMError:
                pass  # the first reply stands as text
            else:
                first_text, usage, reply = reply.defect.shown, usage + repair.usage, repair
        if reply.defect and on_text and reply.text.startswith(reply.defect.shown):
            on_text(reply.text[len(reply.defect.shown) :])
        text = f"{first_text.rstrip()}\n\n{reply.text}" if first_text.strip() else reply.text
        return replace(reply, text=text, usage=usage, defect=None)

    async def _ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        on_asked: Callable[[], None] | None,
        options: AskOptions,
    ) -> Reply:
        stream = _StreamRecorder(options, self.clock)
        room = self.meter.reply_room
        limit = self.max_context if room is None else min(self.max_context, max(0, room))
        prompt = count_prompt_tokens(self.counter, messages, tools, limit)
        max_reply = self._reply_tokens(prompt)
        digest = _digest_request(messages, tools, options.get("schema"))
        if record := await self.replay.next_reply(digest):
            return await self._replay_reply(*record, stream)
        if self.replay.is_replay_only:
            if self.replay.next_limit(f"call {digest}"):
                await self._refuse(digest)
            raise LLMError(NOT_ASKED, cause="the log does not hold its reply", code="not_recorded")
        billed_prompt = math.ceil(prompt * self.calls.billed_ratio)
        max_tokens = min(options["max_tokens"], max_reply)
        if (room := self.meter.reply_room) is not None:  # a shorter reply, so that a small budget is used and not called spent
            max_tokens = min(max_tokens, max(MIN_AFFORDABLE_TOKENS, room - billed_prompt))
        reservation = self.meter.reserve_call(billed_prompt + max_tokens)
        if isinstance(reservation, StopReason):
            await self._refuse(digest)
        call, start = self.calls.next(), self.clock.monotonic()
        await self.emit(ModelAsked(call, self.purpose, self.name, prompt, digest))
        if on_asked:
            on_asked()  # the caller may use the time until the reply
        usage = Usage(prompt, 0, estimated=True, cost=0.0)
        try:
            with self._raise_if_stalled(stream, usage) as timer:
                async with timer:
                    retries = options.get("retries", True) and self.meter.can_make_calls(1)
                    own: AskOptions = {**options, "max_tokens": max_tokens, "on_text": stream.on_text, "retries": retries}
                    own |= {"on_call": stream.on_call, "on_arguments": stream.on_arguments}
                    reply = await self.llm.complete(messages, tools, **own)
            self.calls.slowest_start_s = max(self.calls.slowest_start_s, (stream.began_at or self.clock.monotonic()) - start)
            usage = reply.usage
            self.calls.learn_ratio(prompt, usage)
        except (LLMError, asyncio.CancelledError) as error:
            usage = error.usage or Usage() if isinstance(error, LLMError) else usage
            await self.emit(_describe_failure(call, error, self._seconds_since(start), usage, stream))
            raise
        finally:
            self.meter.settle_call(reservation, usage)
        reply_fact = ModelReplied(call, reply.text, reply.tool_calls, reply.usage, reply.finish, self._seconds_since(start))
        await self.emit(replace(reply_fact, defect=reply.defect))
        return reply

    @contextmanager
    def _raise_if_stalled(self, stream: _StreamRecorder, usage: Usage) -> Iterator[asyncio.Timeout]:
        """A timer that ends a call which hangs or drips past the time target. Raises LLMError."""
        timer, deadline, loop = asyncio.timeout(None), self.meter.deadline, asyncio.get_running_loop()
        if deadline is None:
            yield timer
            return
        checking: asyncio.TimerHandle

        def check(size_before: float) -> None:
            nonlocal checking
            if stream.size < size_before + self.min_chars_per_s * self.stall_s:
                timer.reschedule(loop.time())
            else:
                checking = loop.call_later(self.stall_s, check, stream.size)

        wait_s = max(0.0, deadline - self.clock.monotonic(), SLOW_START_FACTOR * self.calls.slowest_start_s - self.stall_s)
        checking = loop.call_later(wait_s, check, -math.inf)  # the first check only takes the size
        try:
            yield timer
        except TimeoutError:
            late = Notice("model.timeout", "{where} did not answer in time", where=self.name)
            error = LLMError(late, cause=Notice("limit.time", "the time target was reached"), code="timeout")
            error.usage, error.partial = replace(usage, output_tokens=stream.size // 4), stream.text
            raise error from None
        finally:
            checking.cancel()

    def _reply_tokens(self, prompt: int) -> int:
        """Return the tokens that are left for the reply. Raises ContextOverflowError when they are too few."""
        free = self.max_context - prompt
        if free < MIN_OUTPUT_TOKENS:
            cause = f"it has about {prompt} tokens and the window of {self.name} is {self.max_context}"
            fix = "raise max_context if the model allows it, or ask a shorter question"
            raise ContextOverflowError("the request was not sent", cause=cause, fix=fix)
        return free

    def _seconds_since(self, start: float) -> float:
        return round(self.clock.monotonic() - start, 3)

    async def _replay_reply(self, request: ModelAsked, outcome: ModelReplied | ModelFailed, stream: _StreamRecorder) -> Reply:
        """Replay a recorded reply as if it came now; it is paid for already, so it counts only in this meter."""
        await self.emit(request)
        await self.emit(outcome)
        self.meter.replay_call(outcome.usage)
        if isinstance(outcome, ModelFailed):
            stream.replay(outcome.text, outcome.arrived)
            raise rebuild_error(outcome)
        stream.replay(outcome.defect.shown if outcome.defect else outcome.text, outcome.tool_calls)
        return Reply(outcome.text, outcome.tool_calls, outcome.usage, outcome.finish, outcome.defect)

    async def _refuse(self, digest: str) -> NoReturn:
        await self.emit(LimitApplied(f"call {digest}", StopReason.BUDGET_SPENT))
        cause, fix = self.meter.describe_spent(), self.meter.advise_spent()
        raise LLMError(NOT_ASKED, cause=cause, fix=fix, code="budget_spent")


class _StreamRecorder:
    """Passes a reply on as it arrives, and records what arrived of one that breaks off. Callbacks may be None."""

    def __init__(self, options: AskOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self.size, self.began_at = 0, 0.0  # characters that arrived, and the time of the first
        self._text_pieces: list[str] = []
        self._calls: list[ToolCall] = []
        self._open_calls: list[tuple[str, list[str]]] = []
        self.on_text = self._add_text if options.get("on_text") else None
        self.on_call = self._end_call if options.get("on_call") else None
        self.on_arguments = self._add_arguments if options.get("on_arguments") else None

    @property
    def text(self) -> str:
        return "".join(self._text_pieces)

    @property
    def arrived_calls(self) -> tuple[ToolCall, ...]:
        """The calls that have arrived; one without an id is incomplete."""
        return (*self._calls, *(ToolCall("", name, "".join(pieces)) for name, pieces in self._open_calls))

    def replay(self, text: str, calls: Sequence[ToolCall]) -> None:
        """Pass on a recorded reply, or what had arrived of one."""
        if self.on_text and text:
            self.on_text(text)
        for call in calls:
            if self.on_arguments:
                self.on_arguments(call.name, call.arguments)
            if self.on_call and call.id:
                self.on_call(call)

    def _add_text(self, piece: str) -> None:
        self._text_pieces.append(piece)
        self._count(piece)
        if on_text := self._options.get("on_text"):
            on_text(piece)

    def _count(self, piece: str) -> None:
        self.began_at = self.began_at or self._clock.monotonic()
        self.size += len(piece)

    def _end_call(self, call: ToolCall) -> None:
        self._calls.append(call)
        self._open_calls = [entry for entry in self._open_calls if entry[0] != call.name]
        if on_call := self._options.get("on_call"):
            on_call(call)

    def _add_arguments(self, name: str, piece: str) -> None:
        if not self._open_calls or self._open_calls[-1][0] != name:
            self._open_calls.append((name, []))
        self._open_calls[-1][1].append(piece)
        self._count(piece)
        if on_arguments := self._options.get("on_arguments"):
            on_arguments(name, piece)


def _describe_failure(
    call: int, error: LLMError | asyncio.CancelledError, seconds: float, usage: Usage, stream: _StreamRecorder
) -> ModelFailed:
    code, message, fix, window = CANCELLED, "the call was broken off", "", 0
    if isinstance(error, LLMError):
        code, message, fix = error.code, str(error), error.fix
        window = error.window or 0 if isinstance(error, ContextOverflowError) else 0
    return ModelFailed(
        call, code, message, fix, seconds, usage=usage, text=stream.text, arrived=stream.arrived_calls, window=window
    )


def count_prompt_tokens(counter: TokenCounter, messages: Sequence[Message], tools: Sequence[ToolSpec], limit: int) -> int:
    """Count the tokens of a request: a cheap estimate while far from the limit, exact when near it."""
    specs = [json.dumps({"name": t.name, "description": t.description, "parameters": t.parameters}) for t in tools]
    bytes_bound = counter.upper_bound(messages) + sum(len(spec.encode()) for spec in specs)
    if bytes_bound * 2 < limit:
        return bytes_bound // 3
    return counter.count_messages(messages) + sum(counter.count(spec) + 3 for spec in specs)


def _digest_request(messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, Any] | None) -> str:
    """Identify a request by its content, so that a resumed run finds the recorded reply to it."""
    body = json.dumps([[m.to_dict() for m in messages], [t.name for t in tools], schema], sort_keys=True)
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:32]
