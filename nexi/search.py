"""The seeds' face of the search: `run_search` and its result, over `nexi.app`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nexi.app import Nexi, RunLimits, RunRequest, Session
from nexi.compat import _force_answer, _get_tool_schemas
from nexi.config import Config
from nexi.events import Event, ModelAsked
from nexi.output.status import progress_of
from nexi.types import Message, StopReason

__all__ = ["SearchResult", "_force_answer", "_get_tool_schemas", "run_search", "run_search_sync"]

ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SearchResult:
    """What a search gave, in the seeds' fields."""

    answer: str
    urls: list[str] = field(default_factory=list)
    url_citations: dict[str, int] = field(default_factory=dict)
    url_to_title: dict[str, str] = field(default_factory=dict)
    iterations: int = 0
    duration_s: float = 0.0
    tokens: int = 0
    reached_max_iter: bool = False


async def run_search(
    query: str,
    config: Config,
    effort: str = "m",
    max_iter: int | None = None,
    time_target: float | None = None,
    verbose: bool = False,
    progress_callback: ProgressCallback | None = None,
    initial_messages: Sequence[Mapping[str, Any]] | None = None,
) -> SearchResult:
    """Search the web and answer with citations. Raises NexiError when there is no answer."""
    limits = RunLimits(max_iterations=max_iter, time_target=time_target)
    request = RunRequest(query, effort=effort, limits=limits, door="python")
    session = Session(Message.from_dict(m) for m in initial_messages or ())
    async with Nexi(config) as nexi, nexi.run(request, session=session) as run:
        limit, iteration = run.request.limits.max_iterations or 0, 0

        def report(event: Event) -> None:
            nonlocal iteration
            iteration += isinstance(event, ModelAsked) and event.purpose == "answer"
            if progress_callback and (text := progress_of(event)):
                progress_callback(text, iteration, limit)
            if verbose and progress_callback and isinstance(event, ModelAsked):
                call = f"model call {event.call} to {event.model}, about {event.prompt_tokens} tokens"
                progress_callback(call, iteration, limit)

        await run.drive(report)
        result = run.result()
    sources = result.session.book.sources
    return SearchResult(
        answer=result.answer.text,
        urls=[s.url for s in sources],
        url_citations={s.url: s.number for s in sources},
        url_to_title={s.url: s.title for s in sources if s.title},
        iterations=result.finished.iterations,
        duration_s=result.finished.seconds,
        tokens=result.finished.usage.total,
        reached_max_iter=result.answer.stop is StopReason.MAX_ITERATIONS,
    )


def run_search_sync(query: str, config: Config, **options: Any) -> SearchResult:
    """`run_search` for code without an event loop; refuses inside a running one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_search(query, config, **options))
    raise RuntimeError("run_search_sync was called inside a running event loop: await run_search instead")
