"""004: the Search API and its plug-in, where no other test holds a clause."""

from __future__ import annotations

import os
from pathlib import Path

from nexi.fetchers.cache import CachedFetcher, PageCache
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM
from nexi.types import FetchLimits
from tests.apis.search.support import Backend, nexi
from tests.integrations.conftest import Stub, stub  # noqa: F401 - a fixture
from tests.integrations.test_text_generation_webui import TODAY, loaded, said


async def test_a_search_over_the_api_calls_no_model(tmp_path: Path) -> None:
    llm = ScriptedLLM()
    async with nexi(tmp_path, llm=llm) as app:
        for mode in ("simple", "full"):
            pack = await app.search_api().search({"query": "bm25", "constraints": {"search_mode": mode}})
            assert pack["items"]
    assert llm.requests == []


async def test_operators_of_a_marked_message_reach_the_backend(tmp_path: Path, stub: tuple[str, Stub]) -> None:  # noqa: F811
    url, told = stub
    words = 'site:core.telegram.org "Bot API" getUpdates'
    said(loaded(base_url=url), f"??? {words}")
    (body,) = told.bodies("/v1/search")
    backend = Backend()
    async with nexi(tmp_path, backend) as app:
        await app.search_api().search(body)
    assert [query.text for query in backend.asked] == [words]


def test_the_plug_in_tells_the_date_when_it_sums_up(stub: tuple[str, Stub]) -> None:  # noqa: F811
    url, told = stub
    told.replies["/v1/chat/completions"] = lambda _: (200, {"choices": [{"message": {"content": "Short."}}]})
    said(loaded(base_url=url, llm_base_url=f"{url}/v1", pack_summary=True), "??? moon")
    (asked,) = told.bodies("/v1/chat/completions")
    assert TODAY.strip() in asked["messages"][0]["content"]


async def test_the_age_of_a_cached_page_is_the_time_of_its_file(tmp_path: Path) -> None:
    web, clock = FakeWeb({"https://moon.example/": "Far."}), FakeClock()
    cache = CachedFetcher(web, PageCache(tmp_path, clock=clock, ttl_s=60))
    for _ in range(2):
        await cache.fetch("https://moon.example/", FetchLimits())
    (file,) = tmp_path.glob("*.page")
    old = clock.now().timestamp() - 61
    os.utime(file, (old, old))
    await cache.fetch("https://moon.example/", FetchLimits())
    assert len(web.fetched) == 2
