"""A small web and a way to run the whole loop over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nexi.app import Nexi, RunLimits, RunRequest
from nexi.config import Config
from nexi.events import Event, Fact, is_fact
from nexi.runs.session import Session
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM, collect

MOON = "https://moon.example/facts"
MARS = "https://mars.example/facts"
VENUS = "https://venus.example/facts"
PAGES = {
    MOON: "Moon facts\n\nThe Moon is 384,400 km from Earth on average. It has no air.",
    MARS: "Mars facts\n\nMars has two moons, Phobos and Deimos. Mars is red.",
    VENUS: "Venus facts\n\nVenus has no moons at all. It is hot.",
}
QUESTION = "How far is the Moon from Earth?"


class World:
    """One search over fakes; what happened stays here for the test to read."""

    def __init__(self, config: Config, *steps: Any, web: FakeWeb | None = None, **roles: ScriptedLLM) -> None:
        self.llm = ScriptedLLM(*steps)
        self.web = web or FakeWeb(PAGES)
        self.clock = FakeClock()
        self.config = config
        self.roles = {"answer": self.llm, "extract": self.llm, **roles}
        self.events: list[Event] = []
        self.session = Session()

    def nexi(self) -> Nexi:
        return Nexi(self.config, clock=self.clock, llms=self.roles, backends=[self.web], fetchers=[self.web])

    async def ask(
        self,
        question: str = QUESTION,
        session: Session | None = None,
        on_event: Callable[[Any, Event], None] | None = None,
        **options: Any,
    ) -> Any:
        limits = RunLimits(**{name: options.pop(name) for name in RunLimits.__struct_fields__ if name in options})
        request = RunRequest(question, limits=limits, **options)
        async with self.nexi() as nexi, nexi.run(request, session=session) as run:
            async for event in run:
                self.events.append(event)
                if on_event:
                    on_event(run, event)
            return run.result()

    @property
    def facts(self) -> list[Fact]:
        return [event for event in self.events if is_fact(event)]

    def kinds(self) -> list[str]:
        return [f.kind for f in self.facts]


__all__ = ["MARS", "MOON", "PAGES", "QUESTION", "VENUS", "World", "collect"]
