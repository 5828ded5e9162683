"""The loop itself: ask, run tools, check limits, compact, repeat.

Above it, `app` builds its parts; below it are the turn, the checking of an answer, the endings, the tools and a metered
model. It decides when a run ends and why; it knows nothing of networks, files or screens. A stop always yields an answer from
what was read; with nothing read it is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from nexi.agent.checking import Checking, Draft
from nexi.agent.endings import Endings
from nexi.agent.turn import Turn
from nexi.budget import Meter
from nexi.compaction import compact, should_compact
from nexi.errors import ContextOverflowError, LLMError, NexiError
from nexi.events import ContextCompacted, LimitApplied, ToolFinished, ToolStarted, Warned
from nexi.model import MeteredLLM, prompt_tokens
from nexi.ports import LLM, Clock, Emit
from nexi.prompts import render
from nexi.repeats import Repeats
from nexi.session import Session
from nexi.tasks import to_the_end
from nexi.token_counter import TokenCounter
from nexi.tools import FINAL_ANSWER, Toolbox, error_result, read_arguments
from nexi.types import Answer, Message, Reply, StopReason, ToolCall, ToolResult
from nexi.values import frozen
from nexi.verify import Verifier

T = TypeVar("T")

GRACE_S = 15.0  # a call in flight at the time target may still finish: what is paid for is not thrown away
OUR_OWN = (StopReason.MAX_ITERATIONS, StopReason.CONTEXT_LIMIT, StopReason.REPEATED)  # neither time nor money decides them
WINDOW_MARGIN = 0.9  # our count is exact for other tokenizers only by chance
LEAST_WINDOW = 1000


@frozen
class LoopSettings:
    max_output_tokens: int
    compaction: Any  # the Config, as compaction reads its own fields
    prompts_folder: Path | None = None
    temperature: float | None = None


@dataclass
class Loop:
    """One run of the loop over a session. `spare` is the built-in model that answers when the real one cannot; `judge` may
    lower what the verifier found. Without a verifier an answer is not checked. `steer` brings what others have to say before a
    turn."""

    llm: MeteredLLM
    spare: Callable[[], LLM]
    toolbox: Toolbox
    session: Session
    meter: Meter
    emit: Emit
    clock: Clock
    counter: TokenCounter
    settings: LoopSettings
    stop: asyncio.Event
    verifier: Verifier | None = None
    judge: MeteredLLM | None = None
    steer: Callable[[int], Awaitable[Sequence[Message]]] | None = None
    warnings: list[str] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    checking: Checking = field(init=False, repr=False)
    endings: Endings = field(init=False, repr=False)
    current: Turn | None = None
    _unread: int = 0

    def __post_init__(self) -> None:
        self.checking, self.endings = Checking(self), Endings(self)

    async def run(self) -> Answer:
        """Ask until there is an answer. Raises NoEvidenceError or the model's own error when nothing was read."""
        while True:
            if reason := await self.decided("before", self.limit()):
                return await self.endings.forced(reason)
            self.meter.start_iteration()
            if self.steer:
                self.session.messages += await self.steer(self.meter.iterations)
            if reason := await self.decided("room", _no_room(await self.until_stopped(self._make_room()))):
                return await self.endings.forced(reason)
            turn: Answer | StopReason | LLMError | None
            try:
                turn = await self.until_stopped(self._turn())
            except LLMError as error:
                turn = error
            if reason := await self.decided("turn", turn if isinstance(turn, StopReason) else None):
                return await self.endings.interrupted(reason)
            if isinstance(turn, LLMError) and not await self._narrowed(turn):
                return await self.endings.after_model_failure(turn)
            if isinstance(turn, Answer):
                return turn

    async def decided(self, where: str, reason: StopReason | None) -> StopReason | None:
        """A limit that decides how a run goes on is a fact: a replay, where no time passes, is told by the record."""
        at = f"{where} {self.meter.iterations}"
        if self.llm.track.only:
            reason = self.llm.track.limit(at) or (reason if reason in OUR_OWN else None)
        if reason:
            await self.emit(LimitApplied(at, reason))
        return reason

    async def quoted(self) -> str:
        """What was read on the question, as passages with their numbers, for a caller to whom an uncited text is no use."""
        return await self.endings.spare_answer()

    def draft(self, tasks: asyncio.TaskGroup) -> Draft:
        """A text that is being written elsewhere, checked and released as it comes."""
        return Draft(self.checking.writing(), tasks)

    async def deliver(self, text: str, stop: StopReason, *, by_model: bool = True) -> Answer:
        """A text that was written elsewhere, checked and released like an answer of this loop."""
        return await self.checking.answer(text, stop, self.checking.writing(by_model=by_model))

    # one turn

    async def _turn(self) -> Answer | StopReason | None:
        """Ask once and act on the reply; None means go on, a reason that the model gets no further."""
        turn = self.current = Turn(self)
        async with asyncio.TaskGroup() as group:
            turn.group = group
            reply = await turn.ask()
            answer = await self._final(reply, turn)
            if answer is not None:
                turn.drop_calls()
                return answer
            results = await turn.finish_calls(reply)
        await self._make_room([Message("tool", r.text) for r in results])
        self.remember(reply, results)
        in_circles = self.repeats.turned(len(reply.tool_calls), turn.refused)
        return StopReason.REPEATED if in_circles else None

    async def _final(self, reply: Reply, turn: Turn) -> Answer | None:
        """The answer in a reply, if it has one that may count."""
        if turn.writing and turn.streaming:
            await self.checking.note_cut(reply, turn)
            return await self.checking.answer(
                "", StopReason.API_ERROR if turn.broken else StopReason.FINAL_ANSWER, turn.writing
            )
        text, stop = None, StopReason.FINAL_ANSWER
        final = next((c for c in reply.tool_calls if c.name == FINAL_ANSWER.name), None)
        if final is not None:
            arguments, turn.refusal = read_arguments(final, FINAL_ANSWER)
            text = arguments.get("answer")
        elif not reply.tool_calls:
            text, stop = reply.text, StopReason.PLAIN_ANSWER
        if text is None:
            return None
        if self.session.has_evidence and text.strip():
            await self.checking.note_cut(reply, turn)
            turn.writing = self.checking.writing()
            return await self.checking.answer(text, stop, turn.writing)
        self._unread += 1
        if self._unread > 1:
            return await self.endings.guided()
        turn.refusal = self._read_first(reply)
        return None

    def _read_first(self, reply: Reply) -> str:
        """An answer counts only when pages were read; the model is told so once."""
        nudge = render("read_first", folder=self.settings.prompts_folder)
        if not reply.tool_calls:
            self.session.messages += [Message("assistant", reply.text), Message("user", nudge)]
        return nudge

    async def refuse(self, call: ToolCall, why: str) -> ToolResult:
        """A call that is not run, as a fact like those that are."""
        result = error_result(why)
        await self.emit(ToolStarted(call.id, call.name, call.arguments[:4000]))
        await self.emit(ToolFinished(call.id, call.name, result.ok, result.text, 0.0))
        return result

    def remember(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        if not reply.tool_calls:
            return
        self.session.messages.append(Message("assistant", reply.text, reply.tool_calls))
        for call, result in zip(reply.tool_calls, results, strict=True):
            self.session.messages.append(Message("tool", result.text, tool_call_id=call.id, result=result))

    # limits and context

    def limit(self) -> StopReason | None:
        """What forbids another turn. Turns that the record of an interrupted run still holds cost neither time nor money."""
        if self.stop.is_set():
            return StopReason.CANCELLED
        reason = self.meter.stop_reason(self.clock.monotonic())
        return None if self.llm.track.is_ahead and reason is not StopReason.MAX_ITERATIONS else reason

    async def _make_room(self, coming: Sequence[Message] = ()) -> bool:
        """Compact when the conversation, with what is about to join it, nears the window; False when it does not fit then."""
        before, following = self._tokens(), self.reply_room()
        following += prompt_tokens(self.counter, coming, (), self.llm.max_context) if coming else 0
        if not should_compact(before, following, self.settings.compaction):
            return True
        compacted = await compact(
            self.session.messages,
            self.settings.compaction,
            self.llm.as_role("compact"),
            deadline=self.call_deadline(),
            question=self.toolbox.question,
        )
        if compacted is not None:
            self.session.messages[:] = compacted
            self.repeats.forget()
        after = self._tokens()
        await self.emit(ContextCompacted(before, after, compacted is not None))
        return after + following <= self.llm.max_context

    async def _narrowed(self, error: LLMError) -> bool:
        """Learn a smaller window from a server that refused a request for its size; False when there is nothing to learn."""
        told = error.window or 0 if isinstance(error, ContextOverflowError) else 0
        window = int(told * WINDOW_MARGIN)
        if not LEAST_WINDOW <= window < self.llm.max_context:
            return False
        await self.warn("smaller_window", f"{self.llm.name} has a window of {told} tokens; set max_context to that")
        self.llm = replace(self.llm, max_context=window)
        self.settings = replace(self.settings, compaction=replace(self.settings.compaction, max_context=window))
        return True

    def _tokens(self) -> int:
        return prompt_tokens(self.counter, self.session.messages, self.toolbox.specs, self.llm.max_context)

    def reply_room(self) -> int:
        return min(self.settings.max_output_tokens, self.llm.max_context // 4)

    def call_deadline(self) -> float | None:
        deadline = self.meter.deadline
        return None if deadline is None else deadline + self.meter.grace(GRACE_S)

    def last_deadline(self) -> float:
        """Until when the last answer may be written."""
        patience, deadline = self.clock.monotonic() + GRACE_S * 2, self.meter.deadline
        return patience if deadline is None else min(patience, deadline + self.meter.grace(GRACE_S * 2, part=1.0))

    async def until_stopped(self, work: Coroutine[Any, Any, T]) -> T | StopReason:
        """The work's result, or CANCELLED as soon as somebody asks the run to stop."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return _unwrapped(task)
            return StopReason.CANCELLED
        finally:
            stopping.cancel()
            task.cancel()
            await to_the_end(task)

    async def warn(self, code: str, message: str) -> None:
        self.warnings.append(message)
        await self.emit(Warned(code, message))


def _no_room(fits: bool | StopReason) -> StopReason | None:
    if fits is True:
        return None
    return StopReason.CANCELLED if fits else StopReason.CONTEXT_LIMIT


def _unwrapped(task: asyncio.Task[T] | asyncio.Future[T]) -> T:
    """A task's result; the one error inside a task group's bundle is raised as itself."""
    try:
        return task.result()
    except BaseExceptionGroup as bundle:
        errors = [e for e in bundle.exceptions if isinstance(e, NexiError)]
        if len(errors) == 1 and len(bundle.exceptions) == 1:
            raise errors[0] from None
        raise
