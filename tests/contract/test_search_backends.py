"""What every search backend promises: one suite over the fake, a seeds' plug-in and SearXNG over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from nexi.backends.searxng import Searxng
from nexi.backends.sender import HttpBackend, Sender
from nexi.errors import BackendError
from nexi.plugins import SearchPlugin
from nexi.ports import SearchBackend
from nexi.testing import FakeWeb
from nexi.types import Hit, Query
from nexi.urls import is_web_url
from rig import miniweb
from tests.contract.pages import ADDRESSES, HTML, TEXTS

Opened: TypeAlias = "AsyncIterator[SearchBackend]"


@asynccontextmanager
async def fake() -> Opened:
    yield FakeWeb(TEXTS)


@asynccontextmanager
async def plug_in() -> Opened:
    class Plugin:
        async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
            hits = await FakeWeb(TEXTS).search(Query(queries[0]))
            found = [{"url": h.url, "title": h.title, "description": h.snippet} for h in hits]
            return {"searches": [{"query": queries[0], "results": found}]}

    yield SearchPlugin(Plugin())


@asynccontextmanager
async def searxng() -> Opened:
    sender = Sender(user_agent="nexi")
    with miniweb.serve(miniweb.Corpus(HTML), url_mode="original") as base:
        try:
            yield HttpBackend(Searxng(base), sender)
        finally:
            await sender.aclose()


every_backend = pytest.mark.parametrize("opened", [fake, plug_in, searxng])


@every_backend
async def test_a_backend_has_a_name(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        assert isinstance(backend.name, str)
        assert backend.name


@every_backend
async def test_the_best_hit_comes_first(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        hits = await backend.search(Query("moons of Mars Phobos Deimos"))
    assert hits[0].url == ADDRESSES["mars"]
    assert hits[0].title == "Mars facts"
    assert hits[0].snippet


@every_backend
async def test_hits_are_a_list_of_web_addresses_each_once(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        hits = await backend.search(Query("planet facts"))
    assert isinstance(hits, list)
    assert all(isinstance(h, Hit) and is_web_url(h.url) for h in hits)
    assert sorted(h.url for h in hits) == sorted(ADDRESSES.values())


@every_backend
async def test_no_hit_is_an_empty_list(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        assert await backend.search(Query("xyzzy plugh")) == []


@every_backend
async def test_the_same_query_has_the_same_hits(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        assert await backend.search(Query("moon")) == await backend.search(Query("moon"))


@every_backend
async def test_no_more_hits_come_than_were_asked_for(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        assert len(await backend.search(Query("planet facts", count=2))) == 2


async def searxng_that_is_down() -> list[Hit]:
    sender = Sender(user_agent="nexi")
    try:
        return await HttpBackend(Searxng("http://127.0.0.1:9"), sender).search(Query("moon"))
    finally:
        await sender.aclose()


async def plug_in_that_raises() -> list[Hit]:
    class Plugin:
        async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
            raise ZeroDivisionError

    return await SearchPlugin(Plugin()).search(Query("moon"))


async def plug_in_that_complains() -> list[Hit]:
    class Plugin:
        async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:
            return {"searches": [{"query": "moon", "error": "no key", "results": []}]}

    return await SearchPlugin(Plugin()).search(Query("moon"))


@pytest.mark.parametrize("search", [searxng_that_is_down, plug_in_that_raises, plug_in_that_complains])
async def test_a_failure_is_a_backend_error_and_never_an_empty_list(search: Callable[[], Awaitable[list[Hit]]]) -> None:
    with pytest.raises(BackendError) as caught:
        await search()
    assert caught.value.message
    assert caught.value.cause
