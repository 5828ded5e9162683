"""How a run ends when the model does not simply answer.

Below `loop`, whose session, model and tools it uses: a limit, a stop, a model that fails, one that never uses its tools. With
pages read there is an answer from them; with none, an error that says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nexi.errors import ContextOverflowError, LLMError, NoEvidenceError
from nexi.fusion import by_reciprocal_rank
from nexi.prompts import render
from nexi.token_counter import TokenCounter
from nexi.types import Answer, Message, PageView, Reply, StopReason, ToolCall, ToolResult

if TYPE_CHECKING:
    from nexi.agent.loop import Loop

GUIDED_QUERY_CHARS = 300
GUIDED_PAGES = 3
GUIDED_TOKENS = 250  # a small model loses its way in long passages
WORDS = {
    StopReason.TIME_TARGET: "the time target was reached",
    StopReason.MAX_ITERATIONS: "the iteration limit was reached",
    StopReason.CONTEXT_LIMIT: "the context window is full",
    StopReason.BUDGET_SPENT: "the budget is spent",
    StopReason.API_ERROR: "the model failed",
    StopReason.CANCELLED: "the search was stopped",
    StopReason.REPEATED: "the model made the same calls again and again",
}
FIXES = {
    StopReason.TIME_TARGET: "raise it with --time-target",
    StopReason.MAX_ITERATIONS: "raise it with --max-iter or -e l",
    StopReason.CONTEXT_LIMIT: "raise max_context if the model allows it, or ask a narrower question",
    StopReason.BUDGET_SPENT: "raise --max-cost or --max-tokens",
    StopReason.CANCELLED: "ask again to go on",
    StopReason.REPEATED: "try another model with -m, or ask in other words",
}


class Endings:
    """The endings of one loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    async def interrupted(self, reason: StopReason) -> Answer:
        """What was already released stays; otherwise the answer is made from what was read."""
        if self._loop.current is None or not self._loop.current.writing or not self._loop.current.streaming:
            return await self.forced(reason)
        await self._loop.warn(reason.value, f"{WORDS[reason]}; the answer breaks off here")
        return await self._loop.checking.answer("", reason, self._loop.current.writing)

    async def forced(self, reason: StopReason, *, by_model: bool = True) -> Answer:
        """A limit was reached: answer from what was read, or say that nothing was."""
        by_model = by_model and reason not in (StopReason.CANCELLED, StopReason.API_ERROR)
        if not by_model:
            await self._loop.toolbox.number_what_was_read()
        if not self._loop.session.has_evidence:
            raise NoEvidenceError(
                "there is no answer",
                cause=f"{WORDS[reason]} before any page was read" + self._search_trouble(),
                fix=FIXES.get(reason, ""),
            )
        await self._loop.warn(
            reason.value, f"{WORDS[reason]}; this answer uses what was read until then. {FIXES.get(reason, '')}"
        )
        text = await self._loop.until_stopped(self._asked_to_answer(reason)) if by_model else ""
        by_model = not isinstance(text, StopReason) and bool(text.strip())
        writing = self._loop.checking.writing(by_model=by_model)
        return await self._loop.checking.answer(text if by_model else await self.spare_answer(), reason, writing)

    async def _asked_to_answer(self, reason: StopReason) -> str:
        """One last call without tools."""
        prompt = render("force_answer", folder=self._loop.settings.prompts_folder, reason=WORDS[reason])
        window = self._loop.llm.max_context - self._loop.reply_room()
        messages = shrunk([*flattened(self._loop.session.messages), Message("user", prompt)], self._loop.counter, window)
        try:
            reply = await self._loop.llm.complete(
                messages, max_tokens=self._loop.settings.max_output_tokens, deadline=self._loop.last_deadline()
            )
        except LLMError as error:
            await self._loop.warn("model_failed", f"the model could not write the answer ({error})")
            return ""
        return reply.text

    async def spare_answer(self) -> str:
        """Passages from what was read, by the built-in model, marked as such."""
        question = next((m for m in reversed(self._loop.session.messages) if m.role == "user"), Message("user", ""))
        views = tuple(
            PageView(s.url, s.number, s.title, page.text)
            for s in self._loop.session.book.sources
            if (page := self._loop.session.page(s.url))
        )
        call = ToolCall("read", "web_get", "{}")
        messages = [
            Message("user", self._loop.toolbox.question or question.content),
            Message("assistant", "", (call,)),
            Message("tool", "", tool_call_id=call.id, result=ToolResult(views, "")),
        ]
        await self._loop.warn("extractive", "the answer below was assembled from passages without a model")
        reply = await self._loop.spare().complete(messages, max_tokens=self._loop.settings.max_output_tokens)
        return reply.text

    async def after_model_failure(self, error: LLMError) -> Answer:
        if error.code == "budget_spent":
            return await self.forced(StopReason.BUDGET_SPENT)
        if isinstance(error, ContextOverflowError) and self._loop.session.has_evidence:
            return await self.forced(StopReason.CONTEXT_LIMIT)
        if error.code == "timeout" and await self._loop.decided("failure", self._out_of_time()):
            return await self.forced(StopReason.TIME_TARGET, by_model=False)
        if not self._loop.session.has_evidence:
            raise error
        await self._loop.warn("model_failed", f"{error}. {error.fix}".strip())
        return await self.forced(StopReason.API_ERROR)

    def _out_of_time(self) -> StopReason | None:
        return StopReason.TIME_TARGET if self._loop.limit() is StopReason.TIME_TARGET else None

    def _search_trouble(self) -> str:
        """Why the searches of this run found nothing, in the words of their backends."""
        troubles: list[str] = []
        for message in self._loop.session.messages:
            outcomes = message.result.value if message.result else None
            for outcome in outcomes if isinstance(outcomes, tuple) else ():
                troubles += [f"{f.provider}: {f.message}" for f in getattr(outcome, "failures", ()) if not outcome.hits]
                if getattr(outcome, "error", "") and len(troubles) < 4:
                    troubles.append(f"{outcome.url}: {outcome.error}")
        return "; " + "; ".join(dict.fromkeys(troubles)) if troubles else ""

    async def guided(self) -> Answer:
        """For a model that does not use its tools: search with the question, read, and ask for an answer from passages."""
        await self._loop.warn("guided", f"{self._loop.llm.name} did not use its tools, so the question itself was searched for")
        views = await self._guided_reading()
        if not views:
            raise NoEvidenceError(
                "there is no answer with evidence",
                cause=f"{self._loop.llm.name} answered without reading a page" + self._search_trouble(),
                fix="ask in other words, try another model with -m, or check the search service",
            )
        text = await self._from_passages(views)
        writing = self._loop.checking.writing(by_model=bool(text))
        return await self._loop.checking.answer(text or await self.spare_answer(), StopReason.PLAIN_ANSWER, writing)

    async def _guided_reading(self) -> list[PageView]:
        toolbox = replace(self._loop.toolbox, extractor=self._loop.spare(), summary_tokens=GUIDED_TOKENS)
        asked = dict.fromkeys(q[:GUIDED_QUERY_CHARS] for q in (toolbox.question, toolbox.part_of) if q)
        search = ToolCall("guided_search", "web_search", json.dumps({"queries": list(asked)}))
        found = await toolbox.run(search)
        self._loop.remember(Reply("", (search,)), [found])
        rankings = [[h.url for h in outcome.hits] for outcome in found.value] if isinstance(found.value, tuple) else []
        urls = [url for url, _ in by_reciprocal_rank(rankings)]
        if not urls:
            return []
        read = ToolCall("guided_read", "web_get", json.dumps({"urls": urls[:GUIDED_PAGES]}))
        pages = await toolbox.run(read)
        self._loop.remember(Reply("", (read,)), [pages])
        return [view for view in pages.value if not view.error] if isinstance(pages.value, tuple) else []

    async def _from_passages(self, views: Sequence[PageView]) -> str:
        passages = "\n\n".join(f"[{v.number}] {v.title}\n{v.text}" for v in views)
        rules = Message("system", render("passages", folder=self._loop.settings.prompts_folder))
        part_of = self._loop.toolbox.part_of
        behind = f"It is part of this question: {part_of}\n\n" if part_of else ""
        task = Message("user", f"Passages:\n\n{passages}\n\n{behind}Question: {self._loop.toolbox.question}")
        try:
            reply = await self._loop.llm.complete(
                [rules, task],
                max_tokens=self._loop.settings.max_output_tokens,
                temperature=0.0,
                deadline=self._loop.call_deadline(),
            )
        except LLMError as error:
            await self._loop.warn("model_failed", f"the model could not write the answer ({error})")
            return ""
        return reply.text


def flattened(messages: Sequence[Message]) -> list[Message]:
    """The conversation without tool calls, for a request that offers no tools."""
    flat: list[Message] = []
    for message in messages:
        if message.role == "tool":
            flat.append(Message("user", f"Tool result:\n{message.content}"))
        elif message.content:
            flat.append(Message(message.role, message.content))
    return flat


def shrunk(messages: Sequence[Message], counter: TokenCounter, limit: int) -> list[Message]:
    """The conversation with its longest parts cut until it fits; the first and last message stay whole."""
    result = list(messages)
    while not counter.at_most(result, limit) and len(result) > 2:
        at = max(range(1, len(result) - 1), key=lambda i: len(result[i].content))
        content = result[at].content
        if len(content) < 200:
            del result[at]
        else:
            result[at] = Message(result[at].role, content[: len(content) // 2])
    return result
