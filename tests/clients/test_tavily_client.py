"""The official `tavily-python` client, from an environment of its own, against a real server."""

from __future__ import annotations

from pathlib import Path

from nexi.web.guard import GuardRules
from tests.clients.programs import needs_clients, run
from tests.web.world import MOON, PAGES, QUESTION, serving

TOKEN = "a-token-for-clients"
PROGRAM = """
import asyncio, json, sys
import tavily

base, token, question, page = sys.argv[1:]
client = tavily.TavilyClient(api_key=token, api_base_url=base + "/tavily")
search = client.search(question, max_results=1)
whole = client.search(question, search_depth="advanced", include_answer="advanced", include_raw_content="markdown",
    time_range="year", include_domains=["moon.example"], exclude_domains=["mars.example"], include_images=True,
    include_favicon=True, country="germany", topic="news", days=7, auto_parameters=True)
extract = client.extract([page, page + "/nothing"], extract_depth="advanced", format="text", include_images=True)
errors = {}
for name, call in {
    "query": lambda: client.search(""),
    "max_results": lambda: client.search("x", max_results=100),
    "urls": lambda: client.extract([]),
    "token": lambda: tavily.TavilyClient(api_key="wrong", api_base_url=base + "/tavily").search("x"),
}.items():
    try:
        call()
    except (tavily.BadRequestError, tavily.InvalidAPIKeyError) as error:
        errors[name] = [type(error).__name__, str(error)]
later = asyncio.run(tavily.AsyncTavilyClient(api_key=token, api_base_url=base + "/tavily").search(question))
print(json.dumps({
    "search": search, "whole": whole, "extract": extract, "errors": errors, "later": later["results"],
    "qna": client.qna_search(question),
}))
"""


@needs_clients
async def test_the_official_client_searches_extracts_and_fails_as_with_tavily(tmp_path: Path) -> None:
    async with serving(tmp_path, rules=GuardRules(token=TOKEN)) as served:
        told = await run(PROGRAM, served.base, TOKEN, QUESTION, MOON)
    for answer in (told["search"], told["whole"], told["extract"]):
        assert answer.pop("response_time") < 20
        assert len(answer.pop("request_id")) == 36
    found = {"url": MOON, "title": "Moon facts", "content": PAGES[MOON], "score": 0.898, "raw_content": None}
    nothing = {"follow_up_questions": None, "images": []}
    assert told["search"] == {"query": QUESTION, "answer": None, "results": [found], **nothing}
    assert told["later"][0] == found
    (result,) = told["whole"]["results"]
    assert (result["url"], result["raw_content"]) == (MOON, PAGES[MOON])
    assert "384,400 km" in result["content"]
    assert "384,400 km" in told["whole"]["answer"]
    assert "384,400 km" in told["qna"]
    assert told["extract"] == {
        "results": [{"url": MOON, "raw_content": PAGES[MOON], "images": []}],
        "failed_results": [{"url": f"{MOON}/nothing", "error": "the page does not exist"}],
    }
    fix = ". see /openapi.json for the fields"
    assert {name: told["errors"][name] for name in ("query", "max_results")} == {
        "query": ["BadRequestError", f"query: expected 1 to 2000 characters, got 0{fix}"],
        "max_results": ["BadRequestError", f"max_results: expected 0 to 20, got 100{fix}"],
    }
    assert (told["errors"]["urls"][0], told["errors"]["token"][0]) == ("BadRequestError", "InvalidAPIKeyError")
