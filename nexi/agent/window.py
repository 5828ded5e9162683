"""Keeping the conversation inside the model's context window: a request that would overflow it is never sent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nexi.agent.context import RunContext
from nexi.compaction import archive_results, compact, should_compact
from nexi.errors import ContextOverflowError, LLMError
from nexi.events import ContextCompacted
from nexi.model import count_prompt_tokens
from nexi.notices import Notice
from nexi.types import Message, ToolSpec

WINDOW_MARGIN = 0.9  # the server's tokenizer may count more tokens than ours
MIN_WINDOW_TOKENS = 1000
KEPT_RESULTS = 2


async def make_room(context: RunContext, tools: Sequence[ToolSpec], coming: Sequence[Message] = ()) -> bool:
    """Compact the conversation if it and the `coming` messages near the window; False when it still does not fit."""
    before, following = _count_tokens(context, tools), reply_tokens(context)
    following += count_prompt_tokens(context.counter, coming, (), context.llm.max_context) if coming else 0
    if not should_compact(before, following, context.settings.compaction):
        return True
    if context.settings.archives_results:
        # all but the newest results are archived first, which costs no call
        archive = archive_results(context.session.messages, KEPT_RESULTS)
        tokens_left = count_prompt_tokens(context.counter, archive, tools, context.llm.max_context)
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
    after = _count_tokens(context, tools)
    await context.emit(ContextCompacted(before, after, messages is not None))
    return after + following <= context.llm.max_context


async def shrink_context_window(context: RunContext, error: LLMError) -> bool:
    """Adopt the smaller window that a server names when it refuses a request; False when the error names none."""
    reported = error.window or 0 if isinstance(error, ContextOverflowError) else 0
    window = int(reported * WINDOW_MARGIN)
    if not MIN_WINDOW_TOKENS <= window < context.llm.max_context:
        return False
    notice = Notice(
        "model.small_window", "{model} has a window of {n} tokens; set max_context to that", model=context.llm.name, n=reported
    )
    await context.warn("smaller_window", notice)
    context.llm = replace(context.llm, max_context=window)
    context.settings = replace(context.settings, compaction=replace(context.settings.compaction, max_context=window))
    return True


def reply_tokens(context: RunContext) -> int:
    """Tokens of the window that are kept free for the reply."""
    return min(context.settings.max_output_tokens, context.llm.max_context // 4)


def _count_tokens(context: RunContext, tools: Sequence[ToolSpec]) -> int:
    return count_prompt_tokens(context.counter, context.session.messages, tools, context.llm.max_context)
