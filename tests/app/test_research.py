"""Researchers are offered what is known, and can read and cite it like the web."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from nexi.app import Nexi, QuietEmit, RunRequest
from nexi.app.environment import RecordedRun, RunEnvironment
from nexi.app.research import ResearchEngine, _ResearchAssembly
from nexi.app.resolve import ResolvedRun
from nexi.budget import Budget, Meter
from nexi.config import Config
from nexi.events import RunStarted
from nexi.runs.session import Session
from nexi.testing import FakeWeb, ScriptedLLM
from nexi.types import Page, ToolCall, ToolResult

Make = Callable[..., Config]
NOTE = Page("file:///notes~abc123/shed.md", "# Shed\n\nThe shed key hangs behind the blue door.", "Shed")


async def tools_of(nexi: Nexi, request: RunRequest) -> list[str]:
    """The extra tools that research with this request offers, from the first fact of its run."""
    async with nexi.research(request) as run:
        async for event in run:
            if isinstance(event, RunStarted):
                return list(event.settings["tools"])
    raise AssertionError("the run never started")


async def test_a_researcher_is_offered_the_store_once_something_is_in_it(make_config: Make) -> None:
    config, web, model = make_config(), FakeWeb({}), ScriptedLLM()
    llms = {"answer": model, "extract": model}
    async with Nexi(config, llms=llms, backends=[web], fetchers=[web]) as nexi:
        before = await tools_of(nexi, RunRequest("Where is the key?"))
        await (await nexi.knowledge().indexer(nexi.gate(), embeds=False)).index(NOTE)
        after = await tools_of(nexi, RunRequest("Where is the key?"))
    assert (before, after) == ([], ["local_search"])


async def test_a_file_that_local_search_found_is_scraped_and_numbered(make_config: Make) -> None:
    config, web, model = make_config(), FakeWeb({}), ScriptedLLM()
    llms = {"answer": model, "extract": model, "judge": model}
    async with Nexi(config, llms=llms, backends=[web], fetchers=[web]) as nexi:
        await (await nexi.knowledge().indexer(nexi.gate(), embeds=False)).index(NOTE)
        async with asyncio.TaskGroup() as tasks:
            found, scraped, session = await _research(nexi, tasks)
    assert json.loads(found.text)["searches"][0]["results"][0]["url"] == NOTE.url
    (page,) = json.loads(scraped.text)["pages"]
    assert page["content"] == f"[1] {NOTE.url}\n---\n{NOTE.text}"
    assert [(s.number, s.url, s.digest) for s in session.book.sources] == [(1, NOTE.url, NOTE.digest)]
    assert web.fetched == []
    assert await nexi.pages().get(NOTE.digest) == NOTE.text


async def _research(nexi: Nexi, tasks: asyncio.TaskGroup) -> tuple[ToolResult, ToolResult, Session]:
    """What one researcher's tools give: a look into the store, the handshake, a page."""
    session, meter = Session(), Meter(Budget(), started=nexi.clock.monotonic())
    resolved = ResolvedRun(RunRequest("Where is the key?", mode="research", keeps_log=False), nexi.config, Budget())
    environment = RunEnvironment(
        nexi.ports, resolved, Session(), meter, QuietEmit(), asyncio.Event(), RecordedRun(), None, may_have_knowledge=True
    )
    assembly = _ResearchAssembly(ResearchEngine(environment), tasks, has_knowledge=True)
    child = meter.child(Budget(), started=meter.started)
    toolbox = assembly.build_researcher("r1", "the key", session, child, assembly.shared, QuietEmit()).toolbox
    found = await toolbox.run(ToolCall("1", "local_search", '{"queries": ["shed key"]}'))
    await toolbox.run(ToolCall("2", "scrape", json.dumps({"urls": [NOTE.url]})))
    scraped = await toolbox.run(ToolCall("3", "scrape", json.dumps({"urls": [NOTE.url]})))
    return found, scraped, session


async def test_research_with_a_file_reads_it_and_the_web(make_config: Make, tmp_path: Path) -> None:
    (tmp_path / "boat.md").write_text("# Boat\n\nThe boat lies in the harbour of Stralsund.")
    web = FakeWeb({"https://a.example/boat": "A boat that lies in a harbour needs two lines at its bow."})
    question = "Where does the boat lie in the harbour?"
    async with (
        Nexi(make_config(model="extractive"), backends=[web], fetchers=[web]) as nexi,
        nexi.research(RunRequest(question, depth=1, attachments=(str(tmp_path / "boat.md"),))) as run,
    ):
        async for _ in run:
            pass
        answer = run.result().answer
    assert (answer.sources[0].title, answer.sources[0].url.startswith("file:///")) == ("Boat", True)
    assert "The boat lies in the harbour of Stralsund." in answer.text
    assert web.fetched == ["https://a.example/boat"]


async def test_research_in_what_is_known_is_offered_no_tool_that_asks_others(make_config: Make) -> None:
    async with Nexi(make_config(model="extractive", grep_root="/srv/moon")) as nexi:
        await (await nexi.knowledge().indexer(nexi.gate(), embeds=False)).index(NOTE)
        local = await tools_of(nexi, RunRequest("Where is the key?", scope="local"))
        every = await tools_of(nexi, RunRequest("Where is the key?"))
    assert (local, every) == (["grep"], ["security_search", "stackexchange", "grep", "local_search"])
