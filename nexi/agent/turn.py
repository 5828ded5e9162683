"""One request to the model: each tool call starts once its arguments are whole, and the answer is checked as it is written."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from nexi.agent.checking import AnswerChecker, StreamedAnswerCheck
from nexi.agent.context import RunContext
from nexi.agent.repeats import REPEATED_CALL_MESSAGE
from nexi.answers.streaming import AnswerArgument
from nexi.checking.answer import AnswerCheck
from nexi.errors import LLMError
from nexi.events import ToolFinished, ToolStarted
from nexi.notices import Notice, join_sentences
from nexi.runs.recording import CANCELLED
from nexi.tasks import start_task
from nexi.tools.results import error_result
from nexi.tools.specs import FINAL_ANSWER
from nexi.tools.toolbox import Toolbox
from nexi.types import Reply, StopReason, ToolCall, ToolResult

TOOL_GRACE_S = 1.0  # beyond the deadline, at which tools end by themselves
OUT_OF_TIME_MESSAGE = "stopped: the time target was reached"


class ModelTurn:
    """One model request and its tool calls. `tasks` owns the calls; `refusal` says why an answer was not accepted."""

    def __init__(self, context: RunContext, toolbox: Toolbox, checker: AnswerChecker, tasks: asyncio.TaskGroup) -> None:
        self.answer_check: AnswerCheck | None = None
        self.refusal, self.repeated_calls, self.is_broken = "", 0, False
        self._context, self._toolbox, self._checker, self._tasks = context, toolbox, checker, tasks
        self._started: dict[str, tuple[ToolCall, asyncio.Task[ToolResult]]] = {}
        self._argument: AnswerArgument | None = None
        self._preparing: asyncio.Task[None] | None = None

    @property
    def released_check(self) -> AnswerCheck | None:
        """The check of an answer of which a part was already shown."""
        return self.answer_check if self.answer_check and self.answer_check.stream.has_released else None

    @property
    def is_unfinished(self) -> bool:
        """Whether the answer began and its end never came."""
        return self._argument is not None and self._argument.is_open

    async def request_reply(self) -> Reply:
        """Ask the model. If the stream breaks, the calls that had arrived are the reply. Raises LLMError."""
        context = self._context
        try:
            reply = await context.llm.complete(
                context.session.messages,
                self._toolbox.specs,
                max_tokens=context.settings.max_output_tokens,
                temperature=context.settings.temperature,
                deadline=context.call_deadline(),
                on_call=self._start_call,
                on_arguments=self._check_arguments,
                on_asked=self._prepare_check,
            )
        except LLMError as error:
            if error.code == CANCELLED or (not self._started and not self.released_check):
                raise
            self.is_broken = True
            notice = Notice("model.broke_off", "{error}; continuing with what had arrived", error=str(error))
            await context.warn("stream_closed", join_sentences(notice, error.fix))
            reply = Reply("", tuple(call for call, _ in self._started.values()), finish="length")
        finally:
            if self._preparing:
                self._preparing.cancel()  # a page that is not ready is prepared when a sentence cites it
        return reply

    async def collect_results(self, reply: Reply) -> list[ToolResult]:
        """Wait for the results of all calls of the reply, in its order."""
        for call in reply.tool_calls:
            self._start_call(call)
        refusal = error_result(self.refusal or "the answer was not accepted")
        return [refusal if call.name == FINAL_ANSWER.name else await self._started[call.id][1] for call in reply.tool_calls]

    def cancel_calls(self) -> None:
        for _, task in self._started.values():
            task.cancel()

    def _prepare_check(self) -> None:
        if self._checker.verifier:
            self._preparing = start_task(self._tasks, self._checker.prepare(), name="prepare the check")

    def _check_arguments(self, tool: str, piece: str) -> None:
        """Check and release the answer while it is being written, once there is evidence to cite."""
        if tool != FINAL_ANSWER.name or not self._context.session.has_evidence:
            return
        if self._argument is None:
            stream = StreamedAnswerCheck(self._checker.open_check(), self._tasks)
            self.answer_check, self._argument = stream.check, AnswerArgument(stream.feed)
        self._argument.take(piece)

    # tool calls

    def _start_call(self, call: ToolCall) -> None:
        if call.id in self._started or call.name == FINAL_ANSWER.name:
            return
        if self._checker.verifier:
            self._checker.verifier.begin_test()
        self._started[call.id] = (call, start_task(self._tasks, self._run_with_timeout(call), name=f"tool {call.name[:40]}"))

    async def _run_with_timeout(self, call: ToolCall) -> ToolResult:
        """Run a tool, which stops at the deadline with what it has; after TOOL_GRACE_S it is cancelled."""
        context, deadline = self._context, self._context.meter.deadline
        seconds_left = None if deadline is None else deadline - context.clock.monotonic() + TOOL_GRACE_S
        limit, result = None, error_result(OUT_OF_TIME_MESSAGE)
        try:
            async with asyncio.timeout(seconds_left):
                result = await self._run_unless_repeated(call)
        except TimeoutError:
            limit = StopReason.TIME_TARGET
        return error_result(OUT_OF_TIME_MESSAGE) if await context.apply_limit(f"tool {call.id}", limit) else result

    async def _run_unless_repeated(self, call: ToolCall) -> ToolResult:
        """Run a call unless it was made before; in a replay the model reads the recorded result."""
        context, result = self._context, None
        if not context.repeats.start_call(call) and not self._toolbox.is_repeatable(call):
            self.repeated_calls += 1
            # a repeated call gets a fixed message, logged like a call that ran
            result = error_result(REPEATED_CALL_MESSAGE)
            await context.emit(ToolStarted(call.id, call.name, call.arguments[:4000]))
            await context.emit(ToolFinished(call.id, call.name, result.ok, result.text, 0.0))
            context.llm.replay.recorded_tool_result(call.id)  # which holds the same message, and is passed over
            return result
        try:
            result = await self._toolbox.run(call)
            if recorded := context.llm.replay.recorded_tool_result(call.id):
                result = replace(result, text=recorded.text, ok=recorded.ok)
        finally:
            context.repeats.end_call(call, result)
        return result
