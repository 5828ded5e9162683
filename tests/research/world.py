"""A small world in virtual time: a web of four pages, and a model whose replies depend only on its prompt.

Time jumps to the next timer when nothing else is ready, and work for threads is done on the spot, so that a run takes the
same course whenever it is played.
"""

from __future__ import annotations

import asyncio
import json
import re
import selectors
import zlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from nexi.app import Nexi
from nexi.app.resolve import ModelProbe
from nexi.config import Config
from nexi.testing import FakeWeb
from nexi.types import FetchLimits, Hit, Message, Page, Query, Reply, ToolCall, ToolSpec, Usage

T = TypeVar("T")

MOON, TIDE, MARS, SUN = (f"https://{name}.example/facts" for name in ("moon", "tide", "mars", "sun"))
PAGES = {
    MOON: "# Moon\n\nThe Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days.",
    TIDE: "# Tides\n\nThe tides follow the Moon. A high tide comes about every 12 hours and 25 minutes.",
    MARS: "# Mars\n\nMars has two moons, Phobos and Deimos. They were found by Asaph Hall in 1877.",
    SUN: "# Sun\n\nThe Sun is 149.6 million km from Earth. Its light takes about 8 minutes and 20 seconds.",
}
QUESTION = "How far is the Moon, and what does it do to the tides?"
AGENDA = ["How far away is the Moon from Earth?", "How do the tides follow the Moon?", "Which moons does Mars have?"]
FINDINGS = {
    "Moon": "The Moon is 384,400 km from Earth on average",
    "Tides": "A high tide comes about every 12 hours and 25 minutes",
    "Mars": "They were found by Asaph Hall in 1877",
    "Sun": "The Sun is 149.6 million km from Earth",
}


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits for it."""

    def __init__(self) -> None:
        self._virtual = 1000.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._virtual

    def jump(self, seconds: float) -> None:
        self._virtual += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the one who waits
            future.set_exception(error)
        return future


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.jump(timeout)
        return super().select(0)


def play(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a scenario in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


class LoopClock:
    """The time of the running loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SlowWeb(FakeWeb):
    """Every search and page takes its own time."""

    async def search(self, query: Query) -> list[Hit]:
        await asyncio.sleep(0.05 + _spread(query.text))
        return await super().search(query)

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        await asyncio.sleep(0.1 + _spread(url))
        return await super().fetch(url, limits)


class PromptModel:
    """Plans, researches and judges by rules that look at nothing but the messages; counts what it was asked."""

    name = "prompted"

    def __init__(self, rounds: int = 2) -> None:
        self.rounds = rounds
        self.asked: list[str] = []

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), **rest: Any) -> Reply:
        self.asked.append(json.dumps([m.to_dict() for m in messages]))
        await asyncio.sleep(0.2 + _spread(self.asked[-1]))
        reply = self.reply(messages, [t.name for t in tools])
        for call in reply.tool_calls:
            if rest.get("on_arguments"):
                rest["on_arguments"](call.name, call.arguments)
            if rest.get("on_call"):
                rest["on_call"](call)
        if reply.text and rest.get("on_text"):
            rest["on_text"](reply.text)
        return reply

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        rules = messages[0].content
        if rules.startswith("You coordinate"):
            return _said(json.dumps({"complexity": 2, "tasks": AGENDA}))
        if rules.startswith("You lead"):
            return self._judged(rules, messages[-1].content)
        if "scrape" in tools:
            return _researched(messages)
        return _said(_report(messages))

    def _judged(self, rules: str, reports: str) -> Reply:
        ended = int(re.findall(r"Round (\d+)", rules)[0])
        if ended < self.rounds and '"delegate"' in rules:
            return _said('{"action": "delegate", "queries": ["How far away is the Sun from Earth?"]}')
        found = dict.fromkeys(re.findall(r"^- (.+? \[\d+\])\.$", reports, re.MULTILINE))
        return _said("# The Moon and the tides\n\n" + "\n".join(f"- {line}." for line in found))


def _researched(messages: Sequence[Message]) -> Reply:
    calls = [c.name for m in messages for c in m.tool_calls]
    task = next(m.content for m in messages if m.role == "user" and not m.content.startswith("Researcher"))
    if "search" not in calls:
        return _called("search", len(messages), queries=[task])
    urls = re.findall(r'"url": "([^"]+)"', next(m.content for m in messages if m.role == "tool"))
    if calls.count("scrape") < 2:
        return _called("scrape", len(messages), urls=urls[:3])
    return _called("final_answer", len(messages), answer=_report(messages))


def _report(messages: Sequence[Message]) -> str:
    """Everything known from the pages in sight, and how many colleagues were heard."""
    told = "\n".join(m.content for m in messages if m.role == "tool")
    numbers = {title: n for n, title in re.findall(r"\[(\d+)\] https://\w+\.example/facts\\n---\\n# (\w+)", told)}
    heard = sum(m.content.count("has finished. Its task") for m in messages)
    lines = [f"- {FINDINGS[title]} [{n}]." for title, n in numbers.items()]
    return "\n".join([f"Summary of {heard} colleagues.", "", *lines])


def _called(name: str, step: int, **arguments: object) -> Reply:
    text = json.dumps(arguments)
    return Reply("", (ToolCall(f"call_{step}", name, text),), Usage(100, 10, cost=0.001), "tool_calls")


def _said(text: str) -> Reply:
    return Reply(text, (), Usage(100, 20, cost=0.001), "stop")


def _spread(text: str) -> float:
    """A time of its own for every text, always the same."""
    return (zlib.crc32(text.encode()) % 97) / 1000


def nexi_over(config: Config, web: FakeWeb, model: PromptModel, probe: ModelProbe | None = None) -> Nexi:
    llms: Mapping[str, Any] = {"answer": model, "extract": model, "judge": model}
    config = config.override(knowledge=False)  # a store has threads of its own, which know nothing of virtual time
    return Nexi(config, clock=LoopClock(), llms=llms, backends=[web], fetchers=[web], probe=probe)


def replayed(config: Config, run_id: str) -> str:
    """The text of a finished run, played again with no web."""

    async def work() -> str:
        async with nexi_over(config, SlowWeb({}), PromptModel()) as nexi:
            return (await nexi.replay(run_id)).result.answer.text

    return play(work)
