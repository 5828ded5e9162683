"""The one tool-calling loop: ask the model, run its tools, check limits, compact, repeat. `_ModelTurn` is one request.

It decides when a run ends and why, and knows nothing of networks, files or screens. A stop yields an answer from the pages that
were read; with none read it is an error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from nexi.agent.checking import AnswerChecker, StreamedAnswerCheck
from nexi.agent.context import RunContext
from nexi.agent.fallbacks import MAX_QUERY_CHARS, Fallbacks, is_babble, is_no_answer
from nexi.agent.repeats import REPEATED_CALL_MESSAGE
from nexi.answers.streaming import AnswerArgument
from nexi.checking.answer import AnswerCheck, Verifier
from nexi.compaction import archive_results, compact, should_compact
from nexi.errors import ContextOverflowError, LLMError
from nexi.events import ContextCompacted, ToolFinished, ToolStarted
from nexi.model import count_prompt_tokens
from nexi.notices import Notice, join_sentences
from nexi.ports import LLM
from nexi.prompts import render
from nexi.runs.recording import CANCELLED
from nexi.tasks import start_task
from nexi.tools.specs import FINAL_ANSWER, LOCAL_SEARCH, parse_arguments
from nexi.tools.toolbox import OUT_OF_TIME, Toolbox, error_result
from nexi.types import Answer, Message, Reply, StopReason, ToolCall, ToolResult

Inbox: TypeAlias = Callable[[int], Awaitable[Sequence[Message]]]
MIN_CALLS_TO_READ = 3  # of a model that searches, reads and answers
MAX_REMINDED_CHARS = 20_000  # a longer answer without a page would fill the window with itself
WINDOW_MARGIN = 0.9  # the server's tokenizer may count more tokens than ours
MIN_WINDOW_TOKENS = 1000
KEPT_RESULTS = 2
TOOL_GRACE_S = 1.0  # beyond the deadline, at which tools end by themselves
FIRST_CALL_ID = "firstcall"  # Mistral takes ids of nine letters or digits alone
TurnOutcome: TypeAlias = Answer | StopReason | LLMError | None  # None: the model goes on


class AgentLoop:
    """One agent over one conversation. `fallback_llm` makes the built-in model that answers when the configured one cannot."""

    def __init__(
        self,
        context: RunContext,
        toolbox: Toolbox,
        fallback_llm: Callable[[], LLM],
        verifier: Verifier | None = None,
        *,
        looks_up_first: bool = False,
    ) -> None:
        """`looks_up_first` puts stored passages for the question into the first request."""
        self.context, self.toolbox = context, toolbox
        self.checker = AnswerChecker(context, verifier)
        self.fallbacks = Fallbacks(context, self.checker, toolbox, fallback_llm)
        self._looks_up_first = looks_up_first
        self._turn: _ModelTurn | None = None
        self._answers_without_evidence = 0

    async def run(self, inbox: Inbox | None = None) -> Answer:
        """Ask until there is an answer; `inbox` has what arrived before a turn. Raises NexiError when no page was read."""
        context, fallbacks = self.context, self.fallbacks
        if context.settings.approach == "passages":
            return await self._answer_from_passages(inbox)
        if self._looks_up_first:
            await context.run_unless_cancelled(self._look_up_question())
        while True:
            if reason := await context.apply_limit("before", context.current_limit()):
                return await fallbacks.answer_after_limit(reason)
            context.meter.start_iteration()
            if inbox:
                context.session.messages += await inbox(context.meter.iterations)
            fits = await context.run_unless_cancelled(self._make_room())
            no_room = fits if isinstance(fits, StopReason) else None if fits else StopReason.CONTEXT_LIMIT
            if reason := await context.apply_limit("room", no_room):
                return await fallbacks.answer_after_limit(reason)
            try:
                outcome: TurnOutcome = await context.run_unless_cancelled(self._run_turn())
            except LLMError as error:
                outcome = error
            if reason := await context.apply_limit("turn", outcome if isinstance(outcome, StopReason) else None):
                return await fallbacks.finish_streamed_answer(reason, self._turn.released_check if self._turn else None)
            if isinstance(outcome, LLMError) and not await self._shrink_window(outcome):
                return await fallbacks.answer_after_model_failure(outcome)
            if isinstance(outcome, Answer):
                return outcome

    async def _answer_from_passages(self, inbox: Inbox | None) -> Answer:
        """Answer without offering tools; a stop yields what was read until then."""
        context = self.context
        context.meter.start_iteration()
        if inbox:
            context.session.messages += await inbox(context.meter.iterations)
        outcome = await context.run_unless_cancelled(self.fallbacks.answer_from_passages())
        if not isinstance(outcome, StopReason):
            return outcome
        return await self.fallbacks.answer_after_limit(await context.apply_limit("turn", outcome) or outcome)

    async def _run_turn(self) -> Answer | StopReason | None:
        """Ask the model once and act on its reply; REPEATED when it only repeats calls it made before."""
        context = self.context
        async with asyncio.TaskGroup() as tasks:
            turn = self._turn = _ModelTurn(context, self.toolbox, self.checker, tasks)
            reply = await turn.request_reply()
            answer = await self._accept_answer(reply, turn)
            if answer is not None:
                turn.cancel_calls()
                return answer
            results = await turn.collect_results(reply)
        await self._remember_calls(reply, results)
        return StopReason.REPEATED if context.repeats.count_turn(len(reply.tool_calls), turn.repeated_calls) else None

    async def _look_up_question(self) -> None:
        """Search what is stored before the model is asked, as if it had called the tool itself."""
        arguments = json.dumps({"queries": [self.context.question[:MAX_QUERY_CHARS]]})
        reply = Reply("", (ToolCall(FIRST_CALL_ID, LOCAL_SEARCH.name, arguments),))
        async with asyncio.TaskGroup() as tasks:
            results = await _ModelTurn(self.context, self.toolbox, self.checker, tasks).collect_results(reply)
        await self._remember_calls(reply, results)

    async def _remember_calls(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        await self._make_room([Message("tool", result.text) for result in results])
        self.context.remember_calls(reply, results)

    async def _accept_answer(self, reply: Reply, turn: _ModelTurn) -> Answer | None:
        """Return the answer in a reply, checked; None when it has none, or one that no page supports yet."""
        if check := turn.released_check:
            await self.checker.warn_if_cut_off(reply, is_broken=turn.is_broken, is_unfinished=turn.is_unfinished)
            return await self.checker.finish_check(check, StopReason.API_ERROR if turn.is_broken else StopReason.FINAL_ANSWER)
        text, stop = None if reply.tool_calls else reply.text, StopReason.PLAIN_ANSWER
        if final := next((c for c in reply.tool_calls if c.name == FINAL_ANSWER.name), None):
            arguments, turn.refusal = parse_arguments(final, FINAL_ANSWER)
            text, stop = arguments.get("answer"), StopReason.FINAL_ANSWER
        if text is None:
            return None
        if self.context.session.has_evidence and is_babble(text):
            return await self.fallbacks.answer_after_babble()
        if self.context.session.has_evidence and not is_no_answer(text):
            await self.checker.warn_if_cut_off(reply, is_broken=turn.is_broken, is_unfinished=turn.is_unfinished)
            turn.answer_check = self.checker.open_check()
            return await self.checker.finish_check(turn.answer_check, stop, text)
        self._answers_without_evidence += 1
        has_room = len(text) <= MAX_REMINDED_CHARS and self.context.meter.can_make_calls(MIN_CALLS_TO_READ)
        if self._answers_without_evidence > 1 or not has_room:
            return await self.fallbacks.answer_without_tools()
        # once, the model is told that an answer counts only when pages were read
        reminder = render(self.toolbox.reminder_prompt(), folder=self.context.settings.prompts_folder)
        if not reply.tool_calls:
            self.context.session.messages += [Message("assistant", reply.text), Message("user", reminder)]
        turn.refusal = reminder
        return None

    # the context window: a request that would overflow it is never sent

    async def _make_room(self, coming: Sequence[Message] = ()) -> bool:
        """Compact the conversation if it and the `coming` messages near the window; False when it still does not fit."""
        context = self.context
        before, following = self._count_tokens(context.session.messages), context.reply_tokens
        following += count_prompt_tokens(context.counter, coming, (), context.llm.max_context) if coming else 0
        if not should_compact(before, following, context.settings.compaction):
            return True
        if context.settings.archives_results:
            # all but the newest results are archived first, which costs no call
            archive = archive_results(context.session.messages, KEPT_RESULTS)
            tokens_left = self._count_tokens(archive)
            if tokens_left < before:
                context.session.messages[:] = archive
                context.repeats.forget()
                await context.emit(ContextCompacted(before, tokens_left, True))
                before = tokens_left
                if not should_compact(before, following, context.settings.compaction):
                    return True
        settings, llm, deadline = context.settings.compaction, context.llm.as_role("compact"), context.call_deadline()
        messages = await compact(context.session.messages, settings, llm, deadline=deadline, question=context.question)
        if messages is not None:
            context.session.messages[:] = messages
            context.repeats.forget()
        after = self._count_tokens(context.session.messages)
        await context.emit(ContextCompacted(before, after, messages is not None))
        return after + following <= context.llm.max_context

    async def _shrink_window(self, error: LLMError) -> bool:
        """Adopt the smaller window that a server names when it refuses a request; False when the error names none."""
        context, name = self.context, self.context.llm.name
        reported = error.window or 0 if isinstance(error, ContextOverflowError) else 0
        window = int(reported * WINDOW_MARGIN)
        if not MIN_WINDOW_TOKENS <= window < context.llm.max_context:
            return False
        notice = Notice(
            "model.small_window", "{model} has a window of {n} tokens; set max_context to that", model=name, n=reported
        )
        await context.warn("smaller_window", notice)
        context.llm = replace(context.llm, max_context=window)
        context.settings = replace(context.settings, compaction=replace(context.settings.compaction, max_context=window))
        return True

    def _count_tokens(self, messages: Sequence[Message]) -> int:
        context = self.context
        return count_prompt_tokens(context.counter, messages, self.toolbox.specs, context.llm.max_context)


class _ModelTurn:
    """One request to the model: each call starts once its arguments are whole, and the answer is checked as it is written.

    `tasks` owns the calls; `refusal` says why an answer was not accepted.
    """

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
        limit, result = None, error_result(OUT_OF_TIME)
        try:
            async with asyncio.timeout(seconds_left):
                result = await self._run_unless_repeated(call)
        except TimeoutError:
            limit = StopReason.TIME_TARGET
        return error_result(OUT_OF_TIME) if await context.apply_limit(f"tool {call.id}", limit) else result

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
