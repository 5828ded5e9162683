"""One request to the model and the tool calls it starts.

Below `loop`, whose parts it uses. The answer is fed to its checking while it is still being written.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from nexi.answer import AnswerArgument
from nexi.errors import LLMError
from nexi.recording import CANCELLED
from nexi.repeats import WORDS as REPEATED
from nexi.tools import FINAL_ANSWER, error_result
from nexi.types import Reply, StopReason, ToolCall, ToolResult
from nexi.verify import Writing

if TYPE_CHECKING:
    from nexi.agent.loop import Loop

TOOL_GRACE_S = 1.0
OUT_OF_TIME = "stopped: the time target was reached"


class Turn:
    """One request and the tool calls it starts, each as soon as its arguments are complete."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.group: asyncio.TaskGroup | None = None
        self.writing: Writing | None = None
        self._started: dict[str, tuple[ToolCall, asyncio.Task[ToolResult]]] = {}
        self._argument: AnswerArgument | None = None
        self._preparing: asyncio.Task[None] | None = None
        self.refusal = ""
        self.refused = 0
        self.broken = False

    @property
    def streaming(self) -> bool:
        """Whether part of the answer has come."""
        return self.writing is not None and self.writing.released

    @property
    def unfinished(self) -> bool:
        """Whether the answer began and its end never came."""
        return self._argument is not None and self._argument.is_open

    async def ask(self) -> Reply:
        loop = self.loop
        try:
            reply = await loop.llm.complete(
                loop.session.messages,
                loop.toolbox.specs,
                max_tokens=loop.settings.max_output_tokens,
                temperature=loop.settings.temperature,
                deadline=loop.call_deadline(),
                on_call=self._start,
                on_arguments=self._on_arguments,
                on_asked=self._prepare_pages,
            )
        except LLMError as error:
            if error.code == CANCELLED or (not self._started and not self.streaming):
                raise
            self.broken = True
            await loop.warn("stream_closed", f"{error}; going on with what had arrived. {error.fix}".strip())
            reply = Reply("", tuple(call for call, _ in self._started.values()), finish="length")
        finally:
            if self._preparing:
                self._preparing.cancel()  # what is still missing is prepared when a sentence cites it
        return reply

    def _prepare_pages(self) -> None:
        """Make the pages ready to be compared with an answer, while the model thinks about it."""
        if self.loop.verifier and self.group:
            self._preparing = self.group.create_task(self.loop.verifier.snapshots.warm(), name="prepare pages")

    async def finish_calls(self, reply: Reply) -> list[ToolResult]:
        for call in reply.tool_calls:
            self._start(call)
        return [await self._result(call) for call in reply.tool_calls]

    def drop_calls(self) -> None:
        for _, task in self._started.values():
            task.cancel()

    async def _result(self, call: ToolCall) -> ToolResult:
        if call.name == FINAL_ANSWER.name:
            return error_result(self.refusal or "the answer was not accepted")
        return await self._started[call.id][1]

    def _start(self, call: ToolCall) -> None:
        if call.id in self._started or call.name == FINAL_ANSWER.name or self.group is None:
            return
        self._started[call.id] = (call, self.group.create_task(self._bounded(call), name=f"tool {call.name[:40]}"))

    async def _bounded(self, call: ToolCall) -> ToolResult:
        """The tool's result. At the time target a tool ends by itself with what it has; soon after, it is ended."""
        deadline = self.loop.meter.deadline
        left = None if deadline is None else deadline - self.loop.clock.monotonic() + TOOL_GRACE_S
        late, result = None, error_result(OUT_OF_TIME)
        try:
            async with asyncio.timeout(left):
                result = await self._once(call)
        except TimeoutError:
            late = StopReason.TIME_TARGET
        return error_result(OUT_OF_TIME) if await self.loop.decided(f"tool {call.id}", late) else result

    async def _once(self, call: ToolCall) -> ToolResult:
        """Run a call, unless it is the same as one before; in a replay the model reads what it read then."""
        loop, result = self.loop, None
        if not loop.repeats.begin(call):
            self.refused += 1
            result = await loop.refuse(call, REPEATED)
            loop.llm.track.told(call.id)
            return result
        try:
            result = await loop.toolbox.run(call)
            if told := loop.llm.track.told(call.id):
                result = replace(result, text=told.text, ok=told.ok)
        finally:
            loop.repeats.end(call, result)
        return result

    def _on_arguments(self, name: str, piece: str) -> None:
        """Release the answer while it is being written, once there is evidence to cite."""
        if name != FINAL_ANSWER.name or not self.loop.session.has_evidence:
            return
        if self._argument is None and self.group:
            draft = self.loop.draft(self.group)
            self.writing, self._argument = draft.writing, AnswerArgument(draft.feed)
        if self._argument:
            self._argument.take(piece)
