"""The official `tavily-python` client and langchain-tavily: crawl, map and research, against a real server."""

from __future__ import annotations

from pathlib import Path

from nexi.web.guard import GuardRules
from tests.apis.test_tavily_sites import linked_web
from tests.clients.programs import needs_clients, run
from tests.web.world import MARS, MOON, PAGES, QUESTION, serving

TOKEN = "a-token-for-clients"
OFFICIAL = """
import json, sys, time
import tavily

base, token, question, page = sys.argv[1:]
client = tavily.TavilyClient(api_key=token, api_base_url=base + "/tavily")
begun = client.research(question, model="mini")
while (report := client.get_research(begun["request_id"]))["status"] in ("pending", "in_progress"):
    time.sleep(0.05)
streamed = b"".join(client.research(question, stream=True)).decode()
print(json.dumps({
    "crawl": client.crawl(page, max_depth=2, limit=5, select_paths=["/facts"], instructions=None),
    "map": client.map(page), "begun": begun["status"], "report": report, "streamed": streamed,
}))
"""
LANGCHAIN = """
import json, sys, time
from langchain_tavily import TavilyCrawl, TavilyGetResearch, TavilyMap, TavilyResearch

base, token, question, page = sys.argv[1:]
given = {"tavily_api_key": token, "api_base_url": base + "/tavily"}
begun = TavilyResearch(**given).invoke({"input": question})
fetch = TavilyGetResearch(**given)
while (report := fetch.invoke({"request_id": begun["request_id"]}))["status"] in ("pending", "in_progress"):
    time.sleep(0.05)
print(json.dumps({
    "crawl": TavilyCrawl(**given).invoke({"url": page, "allow_external": True}),
    "map": TavilyMap(**given).invoke({"url": page, "allow_external": True}), "report": report,
}))
"""


@needs_clients
async def test_the_official_client_crawls_maps_and_researches(tmp_path: Path) -> None:
    async with serving(tmp_path, web=linked_web(), rules=GuardRules(token=TOKEN)) as served:
        told = await run(OFFICIAL, served.base, TOKEN, QUESTION, MOON)
    assert [(page["url"], page["raw_content"]) for page in told["crawl"]["results"]] == [(u, PAGES[u]) for u in (MOON, MARS)]
    assert told["map"]["results"] == [MOON, MARS]
    assert (told["begun"], told["report"]["status"]) == ("pending", "completed")
    assert "384,400 km" in told["report"]["content"]
    assert "384,400 km" in told["streamed"]


@needs_clients
async def test_langchain_tavily_crawls_maps_and_researches(tmp_path: Path) -> None:
    async with serving(tmp_path, web=linked_web(), rules=GuardRules(token=TOKEN)) as served:
        told = await run(LANGCHAIN, served.base, TOKEN, QUESTION, MOON)
    assert [page["url"] for page in told["crawl"]["results"]] == [MOON, MARS]
    assert told["map"]["results"] == [MOON, MARS]
    assert (told["report"]["status"], "384,400 km" in told["report"]["content"]) == ("completed", True)
