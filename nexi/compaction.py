"""Makes a conversation shorter without losing what it found.

The loop above asks when a request would come near the window; the model behind the LLM port writes the summary. What is kept
whole are the system message, the questions and the last turns, each call together with its result. No endpoint, no file and no
clock is known here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from nexi.errors import ContextOverflowError, NexiError
from nexi.prompts import render
from nexi.token_counter import TokenCounter
from nexi.types import Message, content_text
from nexi.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from nexi.config import Config
    from nexi.ports import LLM

AnyMessage: TypeAlias = Message | dict[str, Any]
Prompt: TypeAlias = Callable[[str, str, int], str]

TOKENS_PER_WORD = 1.6
MARGIN = 16  # texts joined may have a few tokens more than apart
SHARE_FOR_REPLY = 4  # a summary may take a quarter of the window, and a quarter is left free after it
_SUMMARY = re.compile(
    r"Original query: (?P<query>.*?)\n\n"
    r"Search queries performed:\n(?P<queries>.*?)\n\nLinks navigated:\n(?P<urls>.*?)\n\nFindings:\n",
    re.DOTALL,
)
_NONE = "(none)"


@frozen
class CompactionSettings:
    """The settings that compaction reads, named as in `Config`, which can stand in for them."""

    max_context: int
    auto_compact_thresh: float
    compact_target_words: int
    preserve_last_n_messages: int
    tokenizer_encoding: str
    prompts_dir: Path | None = None


@dataclass
class CompactionMetadata:
    """What a summary must not lose, whoever writes it."""

    search_queries: list[str] = field(default_factory=list)
    urls_fetched: list[str] = field(default_factory=list)
    original_query: str = ""


def should_compact(current_tokens: int, estimated_next: int, config: CompactionSettings | Config) -> bool:
    """Whether what is there and what comes next would pass the threshold."""
    return current_tokens + estimated_next > int(config.max_context * config.auto_compact_thresh)


def extract_metadata(messages: Sequence[AnyMessage]) -> CompactionMetadata:
    """The first question, and every query and URL the model used, also those of an earlier summary."""
    views = [_view(message) for message in messages]
    queries = [q for view in views for q in _used(view, "web_search", "queries")]
    urls = [u for view in views for u in _used(view, "web_get", "urls")]
    return CompactionMetadata(list(dict.fromkeys(queries)), list(dict.fromkeys(urls)), _original_query(views))


async def generate_summary(
    messages: Sequence[AnyMessage],
    metadata: CompactionMetadata,
    config: CompactionSettings | Config,
    llm: LLM,
    *,
    deadline: float | None = None,
    max_context: int | None = None,
    prompt: Prompt | None = None,
) -> str:
    """What the model makes of the findings; the request itself fits the window. Raises LLMError."""
    window = max_context or config.max_context
    reply = max(1, min(int(config.compact_target_words * TOKENS_PER_WORD), window // SHARE_FOR_REPLY))
    words = max(1, min(config.compact_target_words, int(reply / TOKENS_PER_WORD)))
    write = prompt or _default_prompt(config)
    counter = TokenCounter(config.tokenizer_encoding)
    frame = counter.count_messages([Message("user", write(metadata.original_query, "", words))])
    room = window - reply - frame - MARGIN
    if room <= 0:
        raise ContextOverflowError(
            "there is no room for a summary",
            cause=f"the question alone takes {frame} tokens and the window is {window}",
            fix="raise max_context if the model allows it, or ask a shorter question",
        )
    content = _fitted(list(_findings(messages)), room, counter)
    request = Message("user", write(metadata.original_query, content, words))
    return (await llm.complete([request], max_tokens=reply, deadline=deadline)).text.strip()


@overload
def rebuild_context(
    messages: Sequence[Message], metadata: CompactionMetadata, summary: str, preserve_last_n: int, *, question: str = ""
) -> list[Message]: ...


@overload
def rebuild_context(
    messages: Sequence[dict[str, Any]], metadata: CompactionMetadata, summary: str, preserve_last_n: int, *, question: str = ""
) -> list[dict[str, Any]]: ...


def rebuild_context(
    messages: Sequence[AnyMessage], metadata: CompactionMetadata, summary: str, preserve_last_n: int, *, question: str = ""
) -> Any:
    """System message, first question, summary, then the question under way and the last turns in their order.

    The question under way is the last user message, or the last that reads `question`.
    """
    views = [_view(message) for message in messages]
    head = _head(views)
    kept = _last_turns(views, preserve_last_n)
    last = _question_at(views, question)
    if last is not None and last != _question_at(views, "", first=True):
        kept[last] = views[last]
    result = [messages[index] for index in head]
    result.append(_like(messages, Message("assistant", format_summary(metadata, summary))))
    result += [messages[index] if kept[index] is views[index] else _like(messages, kept[index]) for index in sorted(kept)]
    return result


async def compact(
    messages: Sequence[Message],
    config: CompactionSettings | Config,
    llm: LLM,
    *,
    deadline: float | None = None,
    max_context: int | None = None,
    question: str = "",
    prompt: Prompt | None = None,
) -> list[Message] | None:
    """The conversation made shorter, or None when no summary could be had.

    Fewer turns than `preserve_last_n_messages` are kept whole where so many would fill the window again at once.
    """
    metadata = extract_metadata(messages)
    if not any(_findings(messages)):
        return None
    try:
        summary = await generate_summary(
            messages, metadata, config, llm, deadline=deadline, max_context=max_context, prompt=prompt
        )
    except NexiError:
        return None
    return (
        _rebuild_to_fit(messages, metadata, summary, config, max_context or config.max_context, question) if summary else None
    )


def format_summary(metadata: CompactionMetadata, summary: str) -> str:
    """The text of the message that stands for what was dropped."""
    return (
        f"Original query: {metadata.original_query}\n\n"
        f"Search queries performed:\n{_bullets(metadata.search_queries)}\n\n"
        f"Links navigated:\n{_bullets(metadata.urls_fetched)}\n\n"
        f"Findings:\n{summary}"
    )


def _rebuild_to_fit(
    messages: Sequence[Message],
    metadata: CompactionMetadata,
    summary: str,
    config: CompactionSettings | Config,
    window: int,
    question: str,
) -> list[Message]:
    limit = int(window * config.auto_compact_thresh) - window // SHARE_FOR_REPLY
    counter = TokenCounter(config.tokenizer_encoding)
    for count in range(max(0, config.preserve_last_n_messages), 0, -1):
        rebuilt = rebuild_context(messages, metadata, summary, count, question=question)
        if counter.at_most(rebuilt, limit):
            return rebuilt
    return rebuild_context(messages, metadata, summary, 0, question=question)


def _head(views: Sequence[Message]) -> list[int]:
    """System message and first question; a question without a system message lives on in the summary alone."""
    if not views or views[0].role != "system":
        return []
    first = _question_at(views, "", first=True)
    return [0] if first is None else [0, first]


def _question_at(views: Sequence[Message], question: str, *, first: bool = False) -> int | None:
    users = [index for index, view in enumerate(views) if view.role == "user"]
    same = [index for index in users if question and views[index].content == question]
    chosen = same or users
    return (chosen[0] if first else chosen[-1]) if chosen else None


def _last_turns(views: Sequence[Message], count: int) -> dict[int, Message]:
    """The last turns of the model with the results of their calls, by place; a call without a result is taken out."""
    turns = [i for i, view in enumerate(views) if view.role == "assistant" and not _SUMMARY.match(view.content)]
    kept: dict[int, Message] = {}
    for index in turns[-count:] if count > 0 else ():
        results = _results_of(views, index)
        turn = _with_answered_calls(views[index], Counter(views[i].tool_call_id for i in results))
        if turn.content or turn.tool_calls:
            kept |= {index: turn, **{i: views[i] for i in results}}
    return kept


def _results_of(views: Sequence[Message], turn: int) -> list[int]:
    """Places of the results that answer a turn's calls, one each; ids repeat between turns with some servers."""
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


def _with_answered_calls(turn: Message, answered: Counter[str]) -> Message:
    calls = []
    for call in turn.tool_calls:
        if answered[call.id] > 0:
            answered[call.id] -= 1
            calls.append(call)
    return turn if len(calls) == len(turn.tool_calls) else replace(turn, tool_calls=tuple(calls))


def _findings(messages: Sequence[AnyMessage]) -> Iterator[str]:
    """What is worth summarising: results, what the model wrote, and later questions."""
    asked = False
    for view in map(_view, messages):
        if not view.content.strip():
            continue
        if view.role in ("tool", "assistant"):
            yield view.content
        elif view.role == "user":
            if asked:
                yield f"The user then asked: {view.content}"
            asked = True


def _fitted(texts: list[str], room: int, counter: TokenCounter) -> str:
    """The texts together, the longest of them cut until they have at most `room` tokens."""
    joined = "\n\n".join(texts)
    if len(joined.encode("utf-8", "surrogatepass")) <= room or counter.count(joined) <= room:
        return joined
    counts = [counter.count(text) for text in texts]
    cap = _level(counts, room - 2 * len(texts))
    while cap > 0:
        joined = "\n\n".join(
            text[: len(text) * cap // count] if count > cap else text for text, count in zip(texts, counts, strict=True)
        )
        if counter.count(joined) <= room:
            return joined
        cap = cap * 9 // 10
    return ""


def _level(counts: Sequence[int], room: int) -> int:
    """The height at which cutting every count leaves no more than `room` in all."""
    left = room
    for place, count in enumerate(sorted(counts)):
        share = left // (len(counts) - place)
        if count > share:
            return share
        left -= count
    return max(counts, default=0)


def _original_query(views: Sequence[Message]) -> str:
    for view in views:
        earlier = _SUMMARY.match(view.content) if view.role == "assistant" else None
        if earlier:
            return earlier["query"]
    return next((view.content for view in views if view.role == "user"), "")


def _used(view: Message, tool: str, argument: str) -> Iterator[str]:
    """The texts a turn passed to a tool under that argument, or that an earlier summary lists."""
    for call in view.tool_calls:
        if call.name == tool:
            yield from _strings(call.arguments, argument)
    earlier = _SUMMARY.match(view.content) if view.role == "assistant" else None
    if earlier:
        lines = earlier[argument].split("\n")
        yield from (line.removeprefix("- ") for line in lines if line.startswith("- "))


def _strings(arguments: str, name: str) -> Iterator[str]:
    try:
        data = json.loads(arguments)
    except (ValueError, RecursionError):
        return
    value = data.get(name) if isinstance(data, dict) else None
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items) or _NONE


def _view(message: AnyMessage) -> Message:
    """A message to look at, whatever form it has."""
    if isinstance(message, Message):
        return message
    try:
        return Message.from_dict(message)
    except (KeyError, TypeError, AttributeError):
        return Message(message.get("role", "user"), content_text(message.get("content")))


def _like(messages: Sequence[AnyMessage], message: Message) -> AnyMessage:
    """The message in the form the conversation has; an empty conversation is one of dictionaries."""
    return message if messages and isinstance(messages[0], Message) else message.to_dict()


def _default_prompt(config: CompactionSettings | Config) -> Prompt:
    return lambda query, content, words: render(
        "compaction", folder=config.prompts_dir, original_query=query, content=content, target_words=words
    )
