"""Passing as Tavily: a site read or listed from one page on, and research with its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.world import MARS, MOON, PAGES, QUESTION, GatedWeb, serving


def linked_web(*, is_open: bool = True) -> GatedWeb:
    web = GatedWeb(is_open=is_open)
    web.links = {MOON: (MARS,)}
    return web


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer.pop("response_time") >= 0
    assert len(answer.pop("request_id")) == 36
    return answer


async def test_a_crawl_reads_the_page_and_those_it_links_to(tmp_path: Path) -> None:
    async with serving(tmp_path, web=linked_web()) as served:
        told = (await served.client.post("/tavily/crawl", json={"url": MOON.removeprefix("https://")})).json()
        alone = (await served.client.post("/tavily/crawl", json={"url": MOON, "allow_external": False})).json()
        asked = {"url": MOON, "limit": 1, "instructions": "orbit in days", "chunks_per_source": 1}
        chosen = (await served.client.post("/tavily/crawl", json=asked)).json()
    assert without_times(told) == {
        "base_url": MOON,
        "results": [{"url": url, "raw_content": PAGES[url], "images": []} for url in (MOON, MARS)],
    }
    assert [page["url"] for page in alone["results"]] == [MOON]
    assert "27.3 days" in chosen["results"][0]["raw_content"]
    assert "# Moon facts" not in chosen["results"][0]["raw_content"]


async def test_a_map_lists_urls(tmp_path: Path) -> None:
    async with serving(tmp_path, web=linked_web()) as served:
        told = (await served.client.post("/tavily/map", json={"url": MOON})).json()
        assert served.web.fetched == [MOON]
    assert without_times(told) == {"base_url": MOON, "results": [MOON, MARS]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("crawl", {}),
        ("crawl", {"url": ""}),
        ("crawl", {"url": "https://nothing.example/"}),
        ("crawl", {"url": "1,000.00"}),
        ("map", {"url": "<script>alert(1)</script>"}),
        ("crawl", {"url": "http://169.254.169.254/"}),
        ("map", {"url": "https://nothing.example/"}),
        ("map", {"url": MOON, "max_depth": 9}),
        ("map", {"url": MOON, "select_paths": ["(a+)+$"]}),
        ("map", {"url": MOON, "exclude_domains": ["("]}),
        ("research", {}),
        ("research", {"input": "why", "model": "huge"}),
        ("research", {"input": "why", "output_schema": {"properties": {}, "type": "object"}}),
    ],
)
async def test_what_cannot_be_asked_is_refused_in_tavilys_shape(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    async with serving(tmp_path) as served:
        reply = await served.client.post(f"/tavily/{path}", json=body)
        assert (reply.status_code, set(reply.json()), set(reply.json()["detail"])) == (400, {"detail"}, {"error"})


async def test_research_is_a_run_that_ends_with_a_report_and_its_sources(tmp_path: Path) -> None:
    async with serving(tmp_path, web=linked_web(is_open=False)) as served:
        begun = (await served.client.post("/tavily/research", json={"input": QUESTION, "model": "mini"})).json()
        assert {name: begun[name] for name in ("status", "input", "model")} == {
            "status": "pending",
            "input": QUESTION,
            "model": "mini",
        }
        path = f"/tavily/research/{begun['request_id']}"
        early = await served.client.get(path)
        assert (early.status_code, early.json()["status"]) == (202, "in_progress")
        served.web.gate.set()
        assert (await served.end_of(begun["request_id"]))["mode"] == "research"
        told = (await served.client.get(path)).json()
        assert (told["status"], told["created_at"][:10]) == ("completed", begun["created_at"][:10])
        assert "384,400 km" in told["content"]
        assert told["sources"][0] == {"title": "Moon facts", "url": MOON, "favicon": None, "citation": "[1]"}
        missing = await served.client.get("/tavily/research/ffffff")
        assert (missing.status_code, set(missing.json()["detail"])) == (404, {"error"})


async def test_research_that_found_nothing_says_that_it_failed(tmp_path: Path) -> None:
    web = GatedWeb()
    web.pages = {}
    async with serving(tmp_path, web=web) as served:
        begun = (await served.client.post("/tavily/research", json={"input": QUESTION})).json()
        await served.end_of(begun["request_id"])
        told = (await served.client.get(f"/tavily/research/{begun['request_id']}")).json()
        assert (told["status"], bool(told["error"])) == ("failed", True)


async def test_streamed_research_sends_the_report_and_then_its_sources(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        body = {"input": QUESTION, "stream": True}
        async with served.client.stream("POST", "/tavily/research", json=body) as stream:
            lines = [line async for line in stream.aiter_lines()]
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in lines if line.startswith("data: ")]
    assert "384,400 km" in "".join(delta.get("content", "") for delta in deltas)
    assert MOON in [source["url"] for source in deltas[-1]["sources"]]
    assert [line for line in lines if line][-1] == "event: done"
