"""Research with a window of 8,000 tokens: a model that searches much and repeats itself still ends in a report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence

import pytest

from nexi.app import RunResult
from nexi.config import Config
from nexi.events import ResearcherReported, ToolFinished
from nexi.types import Hit, Message, Query, Reply, StopReason
from tests.research.world import PAGES, QUESTION, PromptModel, SlowWeb, _called, _report, nexi_over, play, replayed

Make = Callable[..., Config]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


class WordyWeb(SlowWeb):
    """Every search finds all pages, each with a long description."""

    async def search(self, query: Query) -> list[Hit]:
        return [Hit(url, url, "The Moon, the tides, Mars and the Sun. " * 40) for url in PAGES]


class EagerModel(PromptModel):
    """Makes all four gathering calls, then scrapes with one list of URLs until it is refused."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        if "scrape" not in tools:
            return super().reply(messages, tools)
        calls = [c.name for m in messages for c in m.tool_calls]
        if calls.count("search") < 4:
            return _called("search", len(messages), queries=[f"query {len(calls)}"])
        if calls.count("scrape") < 4:
            return _called("scrape", len(messages), urls=list(PAGES))
        return _called("final_answer", len(messages), answer=_report(messages))


class HastyModel(PromptModel):
    """Reports after its search, before it has read anything, and then works as it should."""

    def reply(self, messages: Sequence[Message], tools: Sequence[str]) -> Reply:
        if "scrape" in tools and [c.name for m in messages for c in m.tool_calls] == ["search"]:
            return _called("final_answer", len(messages), answer="The Moon is far.")
        return super().reply(messages, tools)


def researched(config: Config, model: PromptModel, web: SlowWeb) -> RunResult:
    async def work() -> RunResult:
        async with nexi_over(config, web, model) as nexi, nexi.research(QUESTION) as run:
            async for _ in run:
                pass
            return run.result()

    return play(work)


def test_four_searches_and_one_list_of_urls_end_in_a_cited_report_and_replay(make_config: Make) -> None:
    config = make_config(max_context=8000)
    result = researched(config, EagerModel(rounds=1), WordyWeb(PAGES))
    assert (result.answer.stop, {s.url for s in result.answer.sources} <= set(PAGES)) == (StopReason.FINAL_ANSWER, True)
    assert re.search(r"\[\d\]", result.answer.text)
    batches = [
        json.loads(f.text) for f in result.facts if isinstance(f, ToolFinished) and f.name == "scrape" and f.agent == "1.1"
    ]
    read = [[page["url"] for page in batch.get("pages", ())] for batch in batches]
    assert sorted(url for batch in read for url in batch) == sorted(PAGES)  # each page once
    ended = [f.stop for f in result.facts if isinstance(f, ResearcherReported)]
    assert ended == [StopReason.FINAL_ANSWER] * 3
    assert replayed(config, result.id) == result.answer.text


def test_a_researcher_that_reports_too_early_is_told_the_tools_it_has(make_config: Make) -> None:
    model = HastyModel(rounds=1)
    researched(make_config(), model, SlowWeb(PAGES))
    reminded = [asked for asked in model.asked if "You reported before reading a page" in asked]
    assert reminded
    assert not any("web_search" in asked or "web_get" in asked for asked in model.asked)
