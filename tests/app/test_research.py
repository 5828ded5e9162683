"""Researchers are offered what is known, and can read and cite it like the web."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from nexi.app import Nexi, QuietEmit
from nexi.app.kept import KeptPages
from nexi.app.research import Bench
from nexi.budget import Budget, Meter
from nexi.config import Config
from nexi.session import Session
from nexi.testing import FakeWeb, ScriptedLLM
from nexi.types import Page, ToolCall, ToolResult

Make = Callable[..., Config]
NOTE = Page("file:///notes~abc123/shed.md", "# Shed\n\nThe shed key hangs behind the blue door.", "Shed")


async def test_a_researcher_is_offered_the_store_once_something_is_in_it(make_config: Make) -> None:
    config, web, model = make_config(), FakeWeb({}), ScriptedLLM()
    llms = {"answer": model, "extract": model}
    async with Nexi(config, llms=llms, backends=[web], fetchers=[web]) as nexi:
        before = nexi.research("Where is the key?").tools()
        await (await nexi.knowledge().indexer(QuietEmit(), embeds=False)).index(NOTE)
        after = nexi.research("Where is the key?").tools()
    assert (before, after) == ([], ["local_search"])


async def test_a_file_that_local_search_found_is_scraped_and_numbered(make_config: Make) -> None:
    config, web, model = make_config(), FakeWeb({}), ScriptedLLM()
    llms = {"answer": model, "extract": model, "judge": model}
    async with Nexi(config, llms=llms, backends=[web], fetchers=[web]) as nexi:
        await (await nexi.knowledge().indexer(QuietEmit(), embeds=False)).index(NOTE)
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
    run, session = nexi.research("Where is the key?"), Session()
    run.meter, run.emit = Meter(Budget(), started=nexi.clock.monotonic()), QuietEmit()  # type: ignore[assignment]
    bench = Bench(run, tasks, KeptPages(nexi, QuietEmit(), tasks, keeps=False), knows=True)
    meter = run.meter.child(Budget(), started=run.meter.started)
    toolbox = bench.researcher_loop("r1", "the key", session, meter, bench.desk, QuietEmit()).toolbox
    found = await toolbox.run(ToolCall("1", "local_search", '{"query": "shed key"}'))
    await toolbox.run(ToolCall("2", "scrape", json.dumps({"urls": [NOTE.url]})))
    scraped = await toolbox.run(ToolCall("3", "scrape", json.dumps({"urls": [NOTE.url]})))
    return found, scraped, session
