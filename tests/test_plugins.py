"""The seeds' plug-ins work behind the ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nexi.app import Nexi
from nexi.config import Config
from nexi.errors import BackendError, FetchError
from nexi.plugins import FetchPlugin, SearchPlugin
from nexi.testing import ScriptedLLM, answering, reading, searching
from nexi.tools import ContentFetcher, SearchBackend
from nexi.types import FetchLimits, Hit, Page, Query
from tests.raising import has_code

URL = "https://a.example/x"


class Search:
    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
        results = [{"title": "A", "url": URL, "description": "about", "published_time": "2024-01-01"}]
        return {"searches": [{"query": queries[0], "results": results}]}


class Fetch:
    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
        return {"pages": [{"url": urls[0], "content": f"text for {api_key}"}]}


class Broken:
    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
        raise RuntimeError("boom")

    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
        return {"pages": [{"url": urls[0], "content": "", "error": "403"}]}


def test_the_seeds_protocols_recognise_their_plugins() -> None:
    assert isinstance(Search(), SearchBackend)
    assert isinstance(Fetch(), ContentFetcher)


async def test_a_search_plugin_becomes_a_backend() -> None:
    assert await SearchPlugin(Search(), name="mine").search(Query("q")) == [Hit(URL, "A", "about", "2024-01-01", "mine")]


async def test_a_fetch_plugin_becomes_a_fetcher() -> None:
    page = await FetchPlugin(Fetch(), name="mine", api_key="k").fetch(URL, FetchLimits())
    assert page == Page(URL, "text for k", fetcher="mine")


async def test_what_a_plugin_raises_is_that_backends_failure() -> None:
    with pytest.raises(BackendError, check=has_code("backend", "boom")):
        await SearchPlugin(Broken()).search(Query("q"))
    with pytest.raises(FetchError, check=has_code("error", "403")):
        await FetchPlugin(Broken()).fetch(URL, FetchLimits())


@pytest.mark.parametrize("answer", [None, [], {}, {"searches": []}, {"searches": [None]}, {"searches": [{"results": [1]}]}])
async def test_a_malformed_plugin_answer_is_empty(answer: Any) -> None:
    class Odd:
        async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> Any:
            return answer

    assert await SearchPlugin(Odd()).search(Query("q")) == []


async def test_plugins_given_to_nexi_are_wrapped(make_config: Callable[..., Config]) -> None:
    llm = ScriptedLLM(searching("a"), reading(URL), answering("It is so [1]."))
    async with Nexi(make_config(), llms={"answer": llm, "extract": llm}, backends=[Search()], fetchers=[Fetch()]) as nexi:
        result = await nexi.answer("a?")
    assert [s.url for s in result.answer.sources] == [URL]
