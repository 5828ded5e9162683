"""A search over the backends of a config: rests last across processes, every key is used, local hits are never fetched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.doctor import TEST_QUERY
from nexi.net.suspensions import FileBreaker
from nexi.testing import FakeClock, FakeWeb, ScriptedLLM
from nexi.types import Query, Reply, ToolCall
from tests.fetchers.site import response, serving

ANSWER = response(
    json.dumps({"results": [{"url": "http://a.test/", "title": "T", "content": "C"}]}).encode(), content_type="application/json"
)
LIMITED = response(b"<html>", status=429)


def reply_with(tool: str, **arguments: Any) -> Reply:
    return Reply("", (ToolCall(f"call-{tool}", tool, json.dumps(arguments)),))


def codes(outcome: Any) -> list[str]:
    return [f.code for f in outcome.failures]


async def test_the_only_searxng_is_asked_again_by_the_next_process_although_it_limited_us(
    make_config: Callable[..., Config],
) -> None:
    clock = FakeClock()
    pages = {"/search?q=moon&format=json&pageno=1": LIMITED}
    async with serving(pages) as site:
        config = make_config(searxng_url=site.url())
        found = []
        for _ in range(2):
            async with Nexi(config, clock=clock) as nexi:
                found.append(codes(await nexi.find("moon")))
        assert (found, len(site.paths)) == ([["limiter"], ["limiter"]], 2)
        site.answers["/search?q=moon&format=json&pageno=1"] = ANSWER
        async with Nexi(config, clock=clock) as nexi:
            outcome = await nexi.find("moon")
            assert ([h.url for h in outcome.hits], codes(outcome)) == (["http://a.test/"], [])
    kept = json.loads((config.state_dir / "backends.json").read_bytes())
    assert kept == {"schema": 1, "backends": {}}


async def test_another_address_is_asked_at_once(make_config: Callable[..., Config]) -> None:
    path = "/search?q=moon&format=json&pageno=1"
    async with serving({path: LIMITED}) as limited, serving({path: ANSWER}) as fresh:
        async with Nexi(make_config(searxng_url=limited.url())) as nexi:
            assert codes(await nexi.find("moon")) == ["limiter"]
        async with Nexi(make_config(searxng_url=fresh.url())) as nexi:
            assert len((await nexi.find("moon")).hits) == 1


async def test_what_doctor_hears_from_a_backend_ends_its_rest(make_config: Callable[..., Config]) -> None:
    from nexi.doctor import _check_search

    path = "/search?q={}&format=json&pageno=1"
    pages = {path.format("moon"): LIMITED, path.format(TEST_QUERY.replace(" ", "+")): ANSWER}
    async with serving(pages) as site, Nexi(make_config(searxng_url=site.url())) as nexi:
        await nexi.find("moon")
        breaker = nexi.ports.breaker()
        assert isinstance(breaker, FileBreaker)
        assert list(breaker.suspended_backends()) == ["searxng"]
        assert [check.ok for check in await _check_search(nexi, nexi.ports.backends()[0])] == [True]
        assert breaker.suspended_backends() == {}


async def test_ports_that_were_given_have_no_breaker(make_config: Callable[..., Config]) -> None:
    async with Nexi(make_config(), backends=[FakeWeb({})]) as nexi:
        assert nexi.ports.breaker() is None
        assert codes(await nexi.find("moon")) == ["empty"]


async def test_every_key_of_the_config_reaches_its_backend(make_config: Callable[..., Config]) -> None:
    nexi = Nexi(make_config(search_backend="tavily", api_keys={"tavily": ("one", "two", "three")}))
    settings = nexi.ports._search_chain()["tavily"]
    assert (settings.api_key, settings.spare_keys) == ("one", ("two", "three"))


@pytest.mark.skipif(not (shutil.which("rg") or shutil.which("grep")), reason="neither rg nor grep is installed")
async def test_a_file_that_grep_found_is_read_and_cited_like_a_page(make_config: Callable[..., Config], tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "limits.py").write_text('"""Limits of a request."""\n\nMAX_RETRIES = 7  # a request is retried at most 7 times\n')
    (code / "secret.py").write_text("TOKEN = 1\n")
    llm = ScriptedLLM(
        reply_with("web_search", queries=[r"MAX_\w+ ="]),
        reply_with("web_get", urls=["file:///limits.py#L3", "file:///secret.py"], get_full=True),
        reply_with("final_answer", answer="MAX_RETRIES is 7: a request is retried at most 7 times [1]."),
    )
    config = make_config(search_backend="ripgrep", grep_root=str(code), knowledge=True)
    async with Nexi(config, llms=dict.fromkeys(("answer", "extract", "judge"), llm), fetchers=[FakeWeb({})]) as nexi:
        result = await nexi.answer("How often is a request retried?")
        stored = await nexi.knowledge().first_source()
    assert result.answer.text == "MAX_RETRIES is 7: a request is retried at most 7 times [1]."
    assert [source.url for source in result.answer.sources] == ["file:///limits.py#L3"]
    assert "refused: this URL came from no search result" in llm.requests[2][-1].content
    assert stored is None  # code stays out of the knowledge base


@pytest.mark.skipif(not (shutil.which("rg") or shutil.which("grep")), reason="neither rg nor grep is installed")
async def test_local_hits_are_shown_and_can_be_fetched_by_nobody(make_config: Callable[..., Config], tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("needle = 1\n")
    config = make_config(search_backend="ripgrep", grep_root=str(code))
    web = FakeWeb({})
    async with Nexi(config, fetchers=[web]) as nexi:
        outcome = await nexi.find(Query("needle"))
        call = ToolCall("1", "web_search", json.dumps({"queries": ["needle"]}))
        shown = await nexi.run_tool(call)
        fetched = await nexi.run_tool(ToolCall("2", "web_get", json.dumps({"urls": [outcome.hits[0].url]})))
    assert [(h.url, h.snippet) for h in outcome.hits] == [("file:///main.py#L1", "1: needle = 1")]
    assert "file:///main.py#L1" in shown.text
    assert str(tmp_path) not in shown.text
    assert (fetched.ok, web.fetched) == (False, [])
