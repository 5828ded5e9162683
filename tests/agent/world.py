"""One agent over a scripted model and a small web, without a config, a log or a command line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from nexi.agent.context import AgentSettings, RunContext
from nexi.agent.loop import AgentLoop
from nexi.budget import Budget, Meter
from nexi.compaction import CompactionSettings
from nexi.errors import NexiError
from nexi.events import Event
from nexi.model import MeteredLLM
from nexi.reader import Reader
from nexi.runs.directory import MemoryPages
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM
from nexi.token_counter import TokenCounter
from nexi.tools.specs import SPECS
from nexi.tools.toolbox import Toolbox
from nexi.types import Answer, Approach, FetchLimits, Message, Reply

MOON = "https://moon.example/facts"
MARS = "https://mars.example/facts"
PAGES = {
    MOON: "Moon facts\n\nThe Moon is 384,400 km from Earth on average. It has no air.",
    MARS: "Mars facts\n\nMars has two moons, Phobos and Deimos. Mars is red.",
}
QUESTION = "How far is the Moon from Earth?"
ENCODING = "cl100k_base"


class Tools(Toolbox, frozen=True):
    """The real tools, and a clock that moves while they work; a call for `hangs_at` never comes to an end."""

    slow_s: float = 0.0
    hangs_at: str = ""

    async def run(self, call: Any) -> Any:
        if self.hangs_at and self.hangs_at in call.arguments:
            await asyncio.Event().wait()
        self.clock.advance(self.slow_s)  # type: ignore[attr-defined]
        return await super().run(call)


class Recorder:
    """The events of a run, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, event: Event) -> None:
        self.events.append(event)

    def delta(self, event: Event) -> None:
        self.events.append(event)


class Agent:
    """What one loop is made of; what happened stays here for the test to read."""

    def __init__(
        self,
        *steps: Any,
        budget: Budget | None = None,
        window: int = 100_000,
        web: FakeWeb | None = None,
        slow_s: float = 0.0,
        hangs_at: str = "",
        approach: Approach = "tools",
        built_in: ScriptedLLM | None = None,
    ) -> None:
        self.llm = ScriptedLLM(*steps)
        self.built_in = built_in or ScriptedLLM(Reply("The built-in model found nothing."), name="extractive")
        self.web = web or FakeWeb(PAGES)
        self.clock = FakeClock()
        self.meter = Meter(budget or Budget(), started=self.clock.monotonic())
        self.session = Session([Message("system", "Answer with sources.")])
        self.session.add_question(QUESTION)
        self.stop = asyncio.Event()
        self.emit = Recorder()
        self._window = window
        self._slow_s = slow_s
        self._hangs_at = hangs_at
        self._approach = approach

    async def run(self, inbox: Sequence[Message] = (), *, looks_up_first: bool = False) -> Answer:
        counter = TokenCounter(ENCODING)
        metered = MeteredLLM(self.llm, "answer", self.meter, self.emit, self.clock, counter, self._window)
        compaction = CompactionSettings(self._window, 0.8, 200, 2, ENCODING)
        settings = AgentSettings(512, compaction, approach=self._approach)
        context = RunContext(QUESTION, metered, self.session, self.meter, self.emit, self.clock, counter, settings, self.stop)
        async with asyncio.TaskGroup() as tasks:
            reader = Reader(
                lambda: [self.web],
                limits=FetchLimits(),
                session=self.session,
                meter=self.meter,
                store=MemoryPages(),
                emit=self.emit,
                clock=self.clock,
                tasks=tasks,
            )
            searcher = Searcher(lambda: [self.web], emit=self.emit, clock=self.clock)
            toolbox = Tools(
                self.session,
                searcher,
                reader,
                metered,
                self.emit,
                self.clock,
                QUESTION,
                lambda: 50_000,
                deadline=self.meter.deadline,
                specs=SPECS,
                slow_s=self._slow_s,
                hangs_at=self._hangs_at,
            )
            messages = list(inbox)

            async def take_messages(turn: int) -> list[Message]:
                taken = messages[:1]
                del messages[:1]
                return taken

            loop = AgentLoop(context, toolbox, lambda: self.built_in, looks_up_first=looks_up_first)
            try:
                return await loop.run(take_messages if inbox else None)
            except NexiError as error:
                failure = error  # raised below: a task group would wrap it
        raise failure

    def find(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.emit.events if isinstance(event, kind)]

    def contents(self, role: str) -> list[str]:
        return [message.content for message in self.session.messages if message.role == role]
