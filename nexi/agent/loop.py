"""The one tool-calling loop: ask the model, run its tools, check limits, compact, repeat.

It decides when a run ends and why, and knows nothing of networks, files or screens. A stop yields an answer from the pages that
were read; with none read it is an error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from nexi.agent.checking import AnswerChecker
from nexi.agent.context import RunContext
from nexi.agent.fallbacks import MAX_QUERY_CHARS, Fallbacks
from nexi.agent.tool_text import is_babble, is_no_answer
from nexi.agent.turn import ModelTurn
from nexi.agent.window import make_room, shrink_context_window
from nexi.checking.answer import Verifier
from nexi.errors import LLMError
from nexi.ports import LLM
from nexi.prompts import render
from nexi.tools.specs import FINAL_ANSWER, LOCAL_SEARCH, parse_arguments
from nexi.tools.toolbox import Toolbox
from nexi.types import Answer, Message, Reply, StopReason, ToolCall, ToolResult

Inbox: TypeAlias = Callable[[int], Awaitable[Sequence[Message]]]
MIN_CALLS_TO_READ = 3  # of a model that searches, reads and answers
MAX_REMINDED_CHARS = 20_000  # a longer answer without a page would fill the window with itself
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
        self._turn: ModelTurn | None = None
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
            fits = await context.run_unless_cancelled(make_room(context, self.toolbox.specs))
            no_room = fits if isinstance(fits, StopReason) else None if fits else StopReason.CONTEXT_LIMIT
            if reason := await context.apply_limit("room", no_room):
                return await fallbacks.answer_after_limit(reason)
            try:
                outcome: TurnOutcome = await context.run_unless_cancelled(self._run_turn())
            except LLMError as error:
                outcome = error
            if reason := await context.apply_limit("turn", outcome if isinstance(outcome, StopReason) else None):
                return await fallbacks.finish_streamed_answer(reason, self._turn.released_check if self._turn else None)
            if isinstance(outcome, LLMError) and not await shrink_context_window(context, outcome):
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
            turn = self._turn = ModelTurn(context, self.toolbox, self.checker, tasks)
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
            results = await ModelTurn(self.context, self.toolbox, self.checker, tasks).collect_results(reply)
        await self._remember_calls(reply, results)

    async def _remember_calls(self, reply: Reply, results: Sequence[ToolResult]) -> None:
        await make_room(self.context, self.toolbox.specs, [Message("tool", result.text) for result in results])
        self.context.remember_calls(reply, results)

    async def _accept_answer(self, reply: Reply, turn: ModelTurn) -> Answer | None:
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
