"""LangChain's SearxSearchWrapper, from an environment of its own, against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.web.guard import GuardRules
from tests.clients.programs import needs_clients, run
from tests.web.world import MOON, PAGES, serving

TOKEN = "a-token-for-clients"
PROGRAM = """
import asyncio, json, sys, warnings
warnings.simplefilter("ignore")
from langchain_community.utilities import SearxSearchWrapper

host, token = sys.argv[1:]
searx = SearxSearchWrapper(searx_host=host, k=1, headers={"Authorization": "Bearer " + token})
print(json.dumps({
    "run": searx.run("moon distance"),
    "later": asyncio.run(searx.arun("moon distance")),
    "results": searx.results("moon", num_results=1, engines=["wiki", "nobody"], categories="science", language="en"),
    "nothing": searx.run("zzzzqqqq"),
    "no results": searx.results("zzzzqqqq", num_results=1),
}))
"""


@needs_clients
@pytest.mark.parametrize("path", ["/searxng", "/searxng/", "/searxng/search"])
async def test_the_wrapper_takes_nexi_for_a_searxng(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(PROGRAM, served.base + path, TOKEN)
    snippet = PAGES[MOON][:200]
    result = {"snippet": snippet, "title": "Moon facts", "link": MOON, "engines": ["http"], "category": "general"}
    assert told == {
        "run": snippet,
        "later": snippet,
        "results": [result],
        "nothing": "No good search result found",
        "no results": [{"Result": "No good Search Result was found"}],
    }
