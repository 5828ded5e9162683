"""Ways to an answer when the model does not simply give one: from the pages that were read; with none, an error says why.

What is no answer is told here too: the call of a tool that a model wrote out as text, and text that repeats itself.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from nexi.agent._search_failures import describe_idleness, explain_no_evidence, list_outcomes
from nexi.agent.checking import AnswerChecker
from nexi.agent.context import RunContext
from nexi.checking.answer import AnswerCheck
from nexi.compaction import archive_results
from nexi.errors import ContextOverflowError, LLMError, NexiError, StoppedError
from nexi.notices import Notice, join_sentences
from nexi.ports import LLM
from nexi.prompts import render
from nexi.tools.specs import FINAL_ANSWER, parse_arguments
from nexi.tools.toolbox import Toolbox
from nexi.types import Answer, Message, StopReason, ToolCall, ToolResult

NO_ANSWER = Notice("answer.none", "there is no answer")
STOPPED_UNREAD = Notice("run.stopped_unread", "Stopped before any page was read")
MAX_QUERY_CHARS = 300
MAX_PAGE_BYTES = 1_500_000
MAX_STEPS = 12  # searches and reads of the built-in model
MAX_SENTENCES_TOKENS = 160  # for an answer of one or two sentences
MAX_SENTENCES_CHARS = 2_000
MIN_BABBLE_BYTES = 400
MAX_BABBLE_SHARE = 0.1  # that compression leaves of a text; prose and tables keep a quarter and more
_WRAPPING = re.compile(r"^(?:```|~~~)\w*\s|\s*(?:```|~~~)$")
_CALL_TAG = re.compile(r"<(?:tool_call|tools?|tool_response|function_call)\b", re.IGNORECASE)
_CALL_KEYS = frozenset(("tool", "tool_name", "function", "arguments", "parameters", "queries", "urls"))
_LEADING_CITATION = re.compile(r"^\[(\d{1,3})\][:.]? +([^\[\n]+?)([.!?]?)$", re.M)
LIMIT_DESCRIPTIONS = {
    StopReason.TIME_TARGET: Notice("limit.time", "the time target was reached"),
    StopReason.MAX_ITERATIONS: Notice("limit.iterations", "the iteration limit was reached"),
    StopReason.CONTEXT_LIMIT: Notice("limit.window", "the context window is full"),
    StopReason.BUDGET_SPENT: Notice("limit.budget", "the budget is spent"),
    StopReason.API_ERROR: Notice("limit.model", "the model failed"),
    StopReason.CANCELLED: Notice("limit.stopped", "the search was stopped"),
    StopReason.REPEATED: Notice("limit.repeated", "the model made the same calls again and again"),
}
MODEL_LIMITS = (StopReason.MAX_ITERATIONS, StopReason.REPEATED)  # reached by a model that goes on and on
LIMIT_FIXES = {
    StopReason.TIME_TARGET: Notice("fix.time_target", "raise it with --time-target"),
    StopReason.MAX_ITERATIONS: Notice("fix.iterations", "raise it with --max-iter or -e l"),
    StopReason.CONTEXT_LIMIT: Notice("fix.window", "raise max_context if the model allows it, or ask a narrower question"),
    StopReason.REPEATED: Notice("fix.repeated", "try another model with -m, or ask in other words"),
}


class Fallbacks:
    """Answers of one run that do not come from an ordinary turn. `fallback_llm` makes the built-in extractive model."""

    def __init__(self, context: RunContext, checker: AnswerChecker, toolbox: Toolbox, fallback_llm: Callable[[], LLM]) -> None:
        self._context, self._checker, self._toolbox, self._fallback_llm = context, checker, toolbox, fallback_llm

    async def finish_streamed_answer(self, reason: StopReason, check: AnswerCheck | None) -> Answer:
        """End the answer that was partly shown (`check`); with nothing shown, answer from what was read."""
        if check is None:
            return await self.answer_after_limit(reason)
        limit = LIMIT_DESCRIPTIONS[reason]
        await self._context.warn(reason.value, Notice("answer.cut", "{reason}; the answer breaks off here", reason=limit))
        return await self._checker.finish_check(check, reason)

    async def answer_after_limit(self, reason: StopReason, *, by_model: bool = True) -> Answer:
        """Answer from what was read when a limit is reached. Raises NoEvidenceError or StoppedError when nothing was read."""
        by_model = by_model and reason not in (StopReason.CANCELLED, StopReason.API_ERROR)
        if not by_model:
            await self._toolbox.number_read_pages()
        fix, meter = self._advise_limit(reason), self._context.meter
        limit = meter.describe_spent() if reason is StopReason.BUDGET_SPENT else LIMIT_DESCRIPTIONS[reason]
        if not self._context.session.has_evidence and reason in MODEL_LIMITS:
            return await self._answer_as_built_in(reason, limit)
        if not self._context.session.has_evidence:
            raise self._explain_limit(reason, limit)
        partial = Notice("answer.partial", "{reason}; this answer uses what was read until then", reason=limit)
        await self._context.warn(reason.value, join_sentences(partial, fix))
        final = LIMIT_DESCRIPTIONS[reason]
        text = await self._context.run_unless_cancelled(self._request_final_answer(final)) if by_model else ""
        if isinstance(text, StopReason) or is_no_answer(text):
            return await self._checker.check_answer(await self.extractive_answer(), reason, by_model=False)
        return await self._checker.check_answer(text, reason)

    async def _answer_as_built_in(self, reason: StopReason, cause: str) -> Answer:
        """Search, read and answer without a model that loops or hangs. Raises NoEvidenceError when nothing can be read."""
        quotation = await self._read_as_built_in()
        if not self._context.session.has_evidence:
            raise self._explain_limit(reason, cause)
        notice = Notice(
            "answer.built_in", "{cause} before any page was read, so the built-in model read and answered", cause=cause
        )
        await self._context.warn(reason.value, notice)
        return await self._checker.check_answer(quotation, reason, by_model=False)

    def _advise_limit(self, reason: StopReason) -> str:
        return self._context.meter.advise_spent() if reason is StopReason.BUDGET_SPENT else LIMIT_FIXES.get(reason, "")

    async def answer_after_model_failure(self, error: LLMError) -> Answer:
        """Answer from what was read when the model fails. Raises the error when nothing was read."""
        has_evidence = self._context.session.has_evidence
        if error.code == "budget_spent":
            return await self.answer_after_limit(StopReason.BUDGET_SPENT)
        if isinstance(error, ContextOverflowError) and has_evidence:
            return await self.answer_after_limit(StopReason.CONTEXT_LIMIT)
        if error.code == "timeout":
            limit = StopReason.TIME_TARGET if self._context.current_limit() is StopReason.TIME_TARGET else None
            if await self._context.apply_limit("failure", limit):
                return await self.answer_after_limit(StopReason.TIME_TARGET, by_model=False)
        if not has_evidence and error.code == "timeout":
            return await self._answer_as_built_in(StopReason.API_ERROR, str(error))
        if not has_evidence:
            raise error
        await self._context.warn("model_failed", join_sentences(str(error), error.fix))
        return await self.answer_after_limit(StopReason.API_ERROR)

    async def answer_after_babble(self) -> Answer:
        """Answer from what was read when the model writes the same words over and over."""
        model = self._context.llm.name
        notice = Notice(
            "answer.babble", "{model} wrote the same words over and over, so the built-in model answered", model=model
        )
        await self._context.warn("babble", notice)
        return await self._checker.check_answer(await self.extractive_answer(), StopReason.PLAIN_ANSWER, by_model=False)

    async def answer_without_tools(self) -> Answer:
        """For a model that does not use its tools: read as the built-in model does, and ask for a sentence or two."""
        name = self._context.llm.name
        if name == self._fallback_llm().name:  # it has searched, and found nothing that could be read
            raise explain_no_evidence(self._context.session.messages, message=NO_ANSWER)
        if idleness := describe_idleness(self._context.session.messages, name):
            notice = Notice("model.guided", "{idleness}, so the question itself was searched for", idleness=idleness)
            await self._context.warn("guided", notice)
        return await self.answer_from_passages()

    async def answer_from_passages(self) -> Answer:
        """Search and read as the built-in model does; the model writes one or two sentences, whose check may fail."""
        quotation = await self._read_as_built_in()
        messages = self._context.session.messages
        if not self._context.session.has_evidence:
            raise explain_no_evidence(messages, message=NO_ANSWER)
        context, part_of, sentences = self._context, self._toolbox.part_of, ""
        choose = context.choose_passages
        if passages := await asyncio.to_thread(choose, context.question, context.read_pages()) if choose else "":
            question = f"{context.question} (part of: {part_of})" if part_of else context.question
            prompt = render("small_model", folder=context.settings.prompts_folder, passages=passages, question=question)
            text = await self._request_text([Message("user", prompt)], MAX_SENTENCES_TOKENS, 0.0)
            text = text.strip()[:MAX_SENTENCES_CHARS]  # not every server keeps to a number of tokens
            sentences = "" if is_no_answer(text) else _LEADING_CITATION.sub(r"\2 [\1]\3", text)
        messages[:] = archive_results(messages)  # whole pages, which fill any window
        return await self._checker.check_sentences(sentences, quotation, StopReason.PLAIN_ANSWER)

    async def extractive_answer(self) -> str:
        """Assemble an answer from cited passages of the pages that were read, without a model, with a warning."""
        context, call = self._context, ToolCall("read", "web_get", "{}")
        last_question = next((m.content for m in reversed(context.session.messages) if m.role == "user"), "")
        pages = Message("tool", "", tool_call_id=call.id, result=ToolResult(tuple(context.read_pages()), ""))
        messages = [Message("user", context.question or last_question), Message("assistant", "", (call,)), pages]
        notice = Notice("answer.assembled", "the answer was assembled from passages without a model")
        await context.warn("extractive", notice)
        return (await self._fallback_llm().complete(messages, max_tokens=context.settings.max_output_tokens)).text

    async def _request_final_answer(self, reason: str) -> str:
        """Ask the model a last time, without tools; "" when it fails."""
        context = self._context
        prompt = render("force_answer", folder=context.settings.prompts_folder, reason=reason)
        window = context.llm.max_context - context.reply_tokens
        messages = [*flatten_tool_messages(context.session.messages), Message("user", prompt)]
        # the longest messages are cut until the conversation fits; the first and the last stay whole
        while not context.counter.at_most(messages, window) and len(messages) > 2:
            at = max(range(1, len(messages) - 1), key=lambda i: len(messages[i].content))
            content = messages[at].content
            if len(content) < 200:
                del messages[at]
            else:
                messages[at] = Message(messages[at].role, content[: len(content) // 2])
        return await self._request_text(messages, context.settings.max_output_tokens)

    async def _request_text(self, messages: Sequence[Message], max_tokens: int, temperature: float | None = None) -> str:
        """What the model writes before the last deadline; "" when it fails, with a warning."""
        context, deadline = self._context, self._context.final_deadline()
        try:
            reply = await context.llm.complete(messages, max_tokens=max_tokens, temperature=temperature, deadline=deadline)
        except LLMError as error:
            notice = Notice("answer.not_written", "the model could not write the answer ({error})", error=str(error))
            await context.warn("model_failed", notice)
            return ""
        return reply.text

    def _explain_limit(self, reason: StopReason, limit: str) -> NexiError:
        if reason is StopReason.CANCELLED:
            return StoppedError(STOPPED_UNREAD)
        cause = Notice("answer.unread", "{reason} before any page was read", reason=limit)
        messages = self._context.session.messages
        return explain_no_evidence(messages, message=NO_ANSWER, cause=cause, fix=self._advise_limit(reason))

    async def _read_as_built_in(self) -> str:
        """Search and read as the built-in model does, over pages that no window cuts; return its answer."""
        context, built_in = self._context, self._fallback_llm()
        toolbox = replace(self._toolbox, extractor=built_in, extract_bytes=MAX_PAGE_BYTES, free_bytes=lambda: MAX_PAGE_BYTES)
        # A reminder is a message of the user, and no question.
        reminder = render(self._toolbox.reminder_prompt(), folder=context.settings.prompts_folder)
        # What the model searched for before is not looked at, unless no service answered: the question is searched for.
        earlier = {m.tool_call_id for m in context.session.messages if any(outcome.backend for outcome in list_outcomes([m]))}
        for _ in range(MAX_STEPS):
            turns = [m for m in context.session.messages if m.content != reminder]
            messages = [m for m in turns if earlier.isdisjoint((m.tool_call_id, *(c.id for c in m.tool_calls)))]
            reply = await built_in.complete(messages, toolbox.specs, max_tokens=MAX_SENTENCES_TOKENS)
            final = next((call for call in reply.tool_calls if call.name == FINAL_ANSWER.name), None)
            if final or not reply.tool_calls:
                return str(parse_arguments(final, FINAL_ANSWER)[0].get("answer", "")) if final else reply.text
            calls = tuple(map(self._add_whole_question, reply.tool_calls))
            results = [await toolbox.run(call) for call in calls]
            context.remember_calls(replace(reply, tool_calls=calls), results)
        return await self.extractive_answer()

    def _add_whole_question(self, call: ToolCall) -> ToolCall:
        """A search for a task of a research question, with that question beside it."""
        arguments, part_of = json.loads(call.arguments), self._toolbox.part_of
        if not part_of or "queries" not in arguments:
            return call
        queries = list(dict.fromkeys((*arguments["queries"], part_of[:MAX_QUERY_CHARS])))
        return replace(call, arguments=json.dumps({**arguments, "queries": queries}))


def flatten_tool_messages(messages: Sequence[Message]) -> list[Message]:
    """Turn tool calls and results into plain messages, for a request that offers no tools."""
    results = (Message("user", f"Tool result:\n{m.content}") if m.role == "tool" else m for m in messages)
    return [Message(m.role, m.content) for m in results if m.content]


def is_no_answer(text: str) -> bool:
    """Whether a reply cannot be an answer: it is empty, a tool call, or the same words over and over."""
    return not text.strip() or _is_tool_call(text) or is_babble(text)


def is_babble(text: str) -> bool:
    """Whether a text goes on and on with the same words."""
    body = text.encode("utf-8", "replace")
    return len(body) >= MIN_BABBLE_BYTES and len(zlib.compress(body)) < MAX_BABBLE_SHARE * len(body)


def _is_tool_call(text: str) -> bool:
    """Whether a text is the call of a tool that a model wrote out instead of making it: no answer, whatever it says."""
    if _CALL_TAG.match(text.strip()):
        return True
    try:
        value = json.loads(_WRAPPING.sub("", text.strip()).strip())
    except ValueError:
        return False
    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(isinstance(call, dict) and bool(_CALL_KEYS & call.keys()) for call in calls)
