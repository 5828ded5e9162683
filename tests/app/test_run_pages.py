"""The pages of an answer are those that were read, not those that were fetched ahead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nexi.app import Nexi
from nexi.config import Config
from nexi.events import PageFetched
from nexi.output.status import RunTally
from nexi.testing import FakeWeb, ScriptedLLM
from nexi.types import Reply, ToolCall

PAGES = {f"http://moon.test/{n}": f"# Moon {n}\n\nThe Moon is 38{n},000 km away." for n in range(3)}


def reply_with(tool: str, **arguments: Any) -> Reply:
    return Reply("", (ToolCall(f"call-{tool}", tool, json.dumps(arguments)),))


async def test_pages_fetched_ahead_are_not_counted_as_read(make_config: Callable[..., Config]) -> None:
    llm = ScriptedLLM(
        reply_with("web_search", queries=["Moon away"]),
        reply_with("web_get", urls=["http://moon.test/1"], get_full=True),
        reply_with("final_answer", answer="The Moon is 381,000 km away [1]."),
        reply_with("final_answer", answer="Yes, the Moon is 381,000 km away [1]."),
    )
    web, tally = FakeWeb(PAGES), RunTally()
    llms = dict.fromkeys(("answer", "extract", "judge"), llm)
    async with Nexi(make_config(), llms=llms, backends=[web], fetchers=[web]) as nexi:
        async with nexi.search("How far away is the Moon?") as run:
            async for event in run:
                tally.count_event(event)
            first = run.result()
        second = await nexi.answer("Are you sure?", session=first.session)
    assert sum(isinstance(fact, PageFetched) for fact in first.facts) == 3
    assert (first.finished.pages, tally.pages, second.finished.pages) == (1, 1, 0)
    assert (first.read_urls, second.read_urls) == (["http://moon.test/1"], [])
