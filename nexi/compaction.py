"""Shortens a conversation without losing its findings: system message, questions and last turns stay whole, with results."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import ContextOverflowError, NexiError
from nexi.prompts import render
from nexi.token_counter import TokenCounter
from nexi.types import Message, PageView, content_text

if TYPE_CHECKING:
    from pathlib import Path

    from nexi.config import Config
    from nexi.ports import LLM


_MessageOrDict: TypeAlias = Message | dict[str, Any]
M = TypeVar("M", Message, dict[str, Any])

_TOKENS_PER_WORD = 1.6
_MARGIN_TOKENS = 16  # joined texts may have a few more tokens than separate ones
_REPLY_WINDOW_DIVISOR = 4  # a summary may take a quarter of the window, and leaves a quarter free
_SUMMARY_PATTERN = re.compile(
    r"Original query: (?P<query>.*?)\n\n"
    r"Search queries performed:\n(?P<queries>.*?)\n\nLinks navigated:\n(?P<urls>.*?)\n\nFindings:\n",
    re.DOTALL,
)


class CompactionSettings(Struct, frozen=True):
    """The settings that compaction reads, named as in `Config`, which can stand in for them."""

    max_context: int
    auto_compact_thresh: float
    compact_target_words: int
    preserve_last_n_messages: int
    tokenizer_encoding: str
    prompts_dir: Path | None = None


@dataclass
class CompactionMetadata:
    """What every summary must preserve."""

    search_queries: list[str] = field(default_factory=list)
    urls_fetched: list[str] = field(default_factory=list)
    original_query: str = ""


def should_compact(current_tokens: int, estimated_next: int, config: CompactionSettings | Config) -> bool:
    return current_tokens + estimated_next > int(config.max_context * config.auto_compact_thresh)


def archive_results(messages: Sequence[Message], keep_last: int = 0) -> list[Message]:
    """Return the conversation with a note in place of all but the last tool results; the typed results stay."""
    results = [index for index, message in enumerate(messages) if message.role == "tool" and message.result is not None]
    old = results[: len(results) - keep_last]
    shorter = list(messages)
    for index in old:
        message = messages[index]
        values = message.result.value if message.result else ()
        views = values if isinstance(values, tuple) else ()
        pages = ", ".join(f"[{view.number}] {view.url}" for view in views if isinstance(view, PageView) and view.number)
        note = f"archived: the pages {pages} were read" if pages else "archived: this result was left out to save room"
        content = min(f"[{note}; call the tool again to see it]", message.content, key=len)
        shorter[index] = replace(message, content=content)
    return shorter


def extract_metadata(messages: Sequence[_MessageOrDict]) -> CompactionMetadata:
    """Collect the first question and every query and URL the model used, also those in an earlier summary."""
    views = [_to_message(message) for message in messages]
    queries = [q for view in views for q in _iterate_arguments(view, "web_search", "queries")]
    urls = [u for view in views for u in _iterate_arguments(view, "web_get", "urls")]
    summaries = (_SUMMARY_PATTERN.match(view.content) for view in views if view.role == "assistant")
    first_question = next((view.content for view in views if view.role == "user"), "")
    original_query = next((summary["query"] for summary in summaries if summary), first_question)
    return CompactionMetadata(list(dict.fromkeys(queries)), list(dict.fromkeys(urls)), original_query)


async def generate_summary(
    messages: Sequence[_MessageOrDict],
    metadata: CompactionMetadata,
    config: CompactionSettings | Config,
    llm: LLM,
    *,
    deadline: float | None = None,
) -> str:
    """Ask the model to summarise the findings, cut so that the request fits the window. Raises LLMError."""
    window = config.max_context
    reply = max(1, min(int(config.compact_target_words * _TOKENS_PER_WORD), window // _REPLY_WINDOW_DIVISOR))
    words = max(1, min(config.compact_target_words, int(reply / _TOKENS_PER_WORD)))
    query, folder, counter = metadata.original_query, config.prompts_dir, TokenCounter(config.tokenizer_encoding)
    empty_prompt = render("compaction", folder=folder, original_query=query, content="", target_words=words)
    frame = counter.count_messages([Message("user", empty_prompt)])
    room = window - reply - frame - _MARGIN_TOKENS
    if room <= 0:
        cause = f"the question alone takes {frame} tokens and the window is {window}"
        fix = "raise max_context if the model allows it, or ask a shorter question"
        raise ContextOverflowError("there is no room for a summary", cause=cause, fix=fix)
    content = _fit_texts(list(_iterate_findings(messages)), room, counter)
    request = Message("user", render("compaction", folder=folder, original_query=query, content=content, target_words=words))
    return (await llm.complete([request], max_tokens=reply, deadline=deadline)).text.strip()


def rebuild_context(
    messages: Sequence[M], metadata: CompactionMetadata, summary: str, preserve_last_n: int, *, question: str = ""
) -> list[M]:
    """Join system message, first question, summary, then the current question and the last turns in their order."""
    views = [_to_message(message) for message in messages]
    turns = _select_last_turns(views, preserve_last_n)
    questions: list[int] = [index for index, view in enumerate(views) if view.role == "user"]
    current = [index for index in questions if question and views[index].content == question] or questions
    turns |= {index: views[index] for index in current[-1:] if index != questions[0]}
    # without a system message, the first question is only in the summary
    head = (0, *questions[:1]) if views and views[0].role == "system" else ()
    result = [messages[index] for index in head]
    result.append(_in_form_of(messages, Message("assistant", format_summary(metadata, summary))))
    return result + [
        messages[index] if turns[index] is views[index] else _in_form_of(messages, turns[index]) for index in sorted(turns)
    ]


async def compact(
    messages: Sequence[Message],
    config: CompactionSettings | Config,
    llm: LLM,
    *,
    deadline: float | None = None,
    question: str = "",
) -> list[Message] | None:
    """Return the shortened conversation, or None when no summary could be made."""
    metadata, summary, window = extract_metadata(messages), "", config.max_context
    if any(_iterate_findings(messages)):
        with suppress(NexiError):
            summary = await generate_summary(messages, metadata, config, llm, deadline=deadline)
    if not summary:
        return None
    limit = int(window * config.auto_compact_thresh) - window // _REPLY_WINDOW_DIVISOR
    counter = TokenCounter(config.tokenizer_encoding)
    for count in range(max(0, config.preserve_last_n_messages), 0, -1):
        shorter = rebuild_context(messages, metadata, summary, count, question=question)
        if counter.at_most(shorter, limit):
            return shorter
    return rebuild_context(messages, metadata, summary, 0, question=question)


def format_summary(metadata: CompactionMetadata, summary: str) -> str:
    return (
        f"Original query: {metadata.original_query}\n\n"
        f"Search queries performed:\n{_render_bullets(metadata.search_queries)}\n\n"
        f"Links navigated:\n{_render_bullets(metadata.urls_fetched)}\n\n"
        f"Findings:\n{summary}"
    )


def _select_last_turns(views: Sequence[Message], count: int) -> dict[int, Message]:
    """Select the last turns with the results of their calls, by index; calls without a result are dropped."""
    turns = [i for i, view in enumerate(views) if view.role == "assistant" and not _SUMMARY_PATTERN.match(view.content)]
    selection: dict[int, Message] = {}
    for index in turns[-count:] if count > 0 else ():
        turn, results = views[index], _find_results(views, index)
        result_counts = Counter(views[i].tool_call_id for i in results)
        calls = []
        for call in turn.tool_calls:
            if result_counts[call.id] > 0:
                result_counts[call.id] -= 1
                calls.append(call)
        if len(calls) < len(turn.tool_calls):
            turn = replace(turn, tool_calls=tuple(calls))
        if turn.content or turn.tool_calls:
            selection |= {index: turn, **{i: views[i] for i in results}}
    return selection


def _find_results(views: Sequence[Message], turn: int) -> list[int]:
    open_calls = Counter(call.id for call in views[turn].tool_calls)
    results = []
    for index in range(turn + 1, len(views)):
        view = views[index]
        if view.role == "assistant":
            break
        if view.role == "tool" and open_calls[view.tool_call_id] > 0:
            open_calls[view.tool_call_id] -= 1
            results.append(index)
    return results


def _iterate_findings(messages: Sequence[_MessageOrDict]) -> Iterator[str]:
    has_question = False
    for view in map(_to_message, messages):
        if not view.content.strip():
            continue
        if view.role in ("tool", "assistant"):
            yield view.content
        elif view.role == "user":
            if has_question:
                yield f"The user then asked: {view.content}"
            has_question = True


def _fit_texts(texts: list[str], room: int, counter: TokenCounter) -> str:
    """Join the texts, the longest cut until all together have at most `room` tokens."""
    content = "\n\n".join(texts)
    if len(content.encode("utf-8", "surrogatepass")) <= room or counter.count(content) <= room:
        return content
    counts = [counter.count(text) for text in texts]
    cap, tokens = max(counts, default=0), room - 2 * len(texts)
    for place, count in enumerate(sorted(counts)):  # shorter texts leave what they do not need to the longer ones
        share = tokens // (len(counts) - place)
        if count > share:
            cap = share
            break
        tokens -= count
    while cap > 0:
        content = "\n\n".join(
            text[: len(text) * cap // count] if count > cap else text for text, count in zip(texts, counts, strict=True)
        )
        if counter.count(content) <= room:
            return content
        cap = cap * 9 // 10
    return ""


def _iterate_arguments(view: Message, tool: str, argument: str) -> Iterator[str]:
    """Iterate over the values that a turn passed to a tool argument, or that an earlier summary lists."""
    for call in view.tool_calls:
        if call.name != tool:
            continue
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            continue
        value = arguments.get(argument) if isinstance(arguments, dict) else None
        yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
    earlier = _SUMMARY_PATTERN.match(view.content) if view.role == "assistant" else None
    if earlier:
        lines = earlier[argument].split("\n")
        yield from (line.removeprefix("- ") for line in lines if line.startswith("- "))


def _render_bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items) or "(none)"


def _to_message(message: _MessageOrDict) -> Message:
    """Convert a message dictionary; malformed ones keep their role and text."""
    if isinstance(message, Message):
        return message
    try:
        return Message.from_dict(message)
    except (KeyError, TypeError, AttributeError):
        return Message(message.get("role", "user"), content_text(message.get("content")))


def _in_form_of(messages: Sequence[M], message: Message) -> Any:
    """Return the message in the form of the conversation; an empty conversation consists of dictionaries."""
    return message if messages and isinstance(messages[0], Message) else message.to_dict()
