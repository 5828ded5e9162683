"""Research in a space: every model of the run is given the instructions of the user after its own rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from nexi.app import RunRequest
from nexi.config import Config
from nexi.research.evaluator import EvaluationLimits
from nexi.types import Message, Reply, Space
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, nexi_over, play

INSTRUCTIONS = "Give every distance in miles, too."
SECTIONS = [
    {"heading": "Distance", "covers": "How far the Moon is.", "sources": [1, 2, 3, 4]},
    {"heading": "Tides", "covers": "What the tides do.", "sources": [1, 2, 3, 4]},
]


class SectionModel(PromptModel):
    """Plans the report as an outline, and writes its sections; notes the rules of each request by their first words."""

    def __init__(self) -> None:
        super().__init__(rounds=1)
        self.rules: dict[str, set[bool]] = {}

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        rules = messages[0].content
        self.rules.setdefault(" ".join(rules.split()[:4]), set()).add(rules.endswith(INSTRUCTIONS))
        if rules.startswith("You lead"):
            return Reply(json.dumps({"action": "outline", "sections": SECTIONS}), (), finish="stop")
        if rules.startswith("You write"):
            return Reply("The Moon is 384,400 km from Earth on average [1].", (), finish="stop")
        return super().reply(messages, tools)


def test_planner_researchers_and_writer_are_given_the_instructions_of_the_space(make_config: Callable[..., Config]) -> None:
    model = SectionModel()

    async def work() -> None:
        async with nexi_over(make_config(), SlowWeb(PAGES), model) as nexi:
            nexi.spaces().add(Space("moon", instructions=INSTRUCTIONS))
            async with nexi.research(RunRequest(QUESTION, space="moon")) as run:
                async for _ in run:
                    pass
            run.result()

    play(work)
    assert model.rules == {
        "You coordinate a piece": {True},
        "You are one of": {True},
        "You lead a piece": {True},
        "You write a report": {True},
        "You write the introduction": {True},
    }


def test_long_instructions_leave_less_of_the_window_to_the_reports() -> None:
    short = EvaluationLimits(window=8000, max_tokens=1000)
    long = EvaluationLimits(window=8000, max_tokens=1000, instructions="x" * 3000)
    assert (short.prompt_tokens, long.prompt_tokens) == (900, 1900)
