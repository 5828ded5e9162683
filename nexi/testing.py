"""The fakes we ship: a scripted model, a web in memory, a clock that jumps."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, Unpack

from nexi.errors import FetchError, LLMError
from nexi.events import Event
from nexi.ports import AskOptions
from nexi.types import FetchLimits, Hit, Message, Page, Query, Reply, ToolCall, ToolSpec, Usage

Step: TypeAlias = "Reply | Exception | Callable[[Sequence[Message]], Reply]"


class FakeClock:
    """Time moves only when told to, or by sleeping."""

    def __init__(self, start: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self._monotonic

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


class ScriptedLLM:
    """Replies in order; a step may be a reply, an error, or a function of the messages. Records what it was asked."""

    def __init__(self, *steps: Step, name: str = "scripted") -> None:
        self.name = name
        self.steps = list(steps)
        self.requests: list[tuple[Message, ...]] = []
        self.offered: list[tuple[str, ...]] = []
        self.deadlines: list[float | None] = []

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **options: Unpack[AskOptions]
    ) -> Reply:
        self.requests.append(tuple(messages))
        self.offered.append(tuple(t.name for t in tools))
        self.deadlines.append(options.get("deadline"))
        await asyncio.sleep(0)
        if not self.steps:
            raise LLMError("the script has no more replies", code="script_ended")
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        reply = step if isinstance(step, Reply) else step(messages)
        on_call, on_arguments = options.get("on_call"), options.get("on_arguments")
        if reply.text and (on_text := options.get("on_text")):
            on_text(reply.text)
        for call in reply.tool_calls:
            if on_arguments:
                for start in range(0, len(call.arguments), 7):
                    on_arguments(call.name, call.arguments[start : start + 7])
            if on_call:
                on_call(call)
        return reply


def calling(name: str, /, **arguments: object) -> Reply:
    text = json.dumps(arguments)
    return Reply("", (ToolCall(f"call_{name}_{zlib.crc32(text.encode()):08x}", name, text),), Usage(100, 10), "tool_calls")


def searching(*queries: str) -> Reply:
    return calling("web_search", queries=list(queries))


def reading(*urls: str, **options: object) -> Reply:
    return calling("web_get", urls=list(urls), **{"get_full": True, **options})


def answering(text: str) -> Reply:
    return calling("final_answer", answer=text)


class FakeWeb:
    """A web in memory: pages by URL, a search over their words. It is both a SearchBackend and a ContentFetcher."""

    def __init__(
        self, pages: Mapping[str, str], *, name: str = "http", links: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.name = name
        self.pages = dict(pages)
        self.links = {k: tuple(v) for k, v in (links or {}).items()}
        self.queries: list[str] = []
        self.fetched: list[str] = []

    async def search(self, query: Query) -> list[Hit]:
        self.queries.append(query.text)
        words = set(_words(query.text))
        scores = [(len(words & set(_words(text))), url) for url, text in self.pages.items()]
        urls = [url for score, url in sorted(scores, key=lambda pair: -pair[0]) if score]
        return [Hit(url, _title(self.pages[url]), self.pages[url][:200]) for url in urls[: query.count]]

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        self.fetched.append(url)
        await asyncio.sleep(0)
        if url not in self.pages:
            raise FetchError("the page does not exist", reason="error", status=404)
        text = self.pages[url][: limits.max_chars]
        return Page(
            url,
            text,
            title=_title(text),
            final_url=url,
            links=self.links.get(url, ()),
            downloaded_bytes=len(text),
            truncated=len(text) < len(self.pages[url]),
            fetcher=self.name,
        )


async def collect(events: AsyncIterable[Event]) -> list[Event]:
    return [event async for event in events]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _title(text: str) -> str:
    return text.lstrip("# ").split("\n")[0][:80]
