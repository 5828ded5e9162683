"""What every search backend promises: one suite over the fake, a seeds' plug-in, SearXNG over real HTTP, and every other
backend over a sender or library that answers in the service's own form."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from nexi.backends import BACKENDS, Settings, create_backend
from nexi.backends.duckduckgo import DuckDuckGo
from nexi.backends.searxng import Searxng
from nexi.backends.security import KEV, NVD
from nexi.backends.sender import BackendRequest, BackendResponse, HttpBackend, Sender
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


Row: TypeAlias = "dict[str, Any]"
FORMS: dict[str, Callable[[list[Hit]], object]] = {
    "jina": lambda hits: {"data": [{"url": h.url, "title": h.title, "description": h.snippet} for h in hits]},
    "wikipedia": lambda hits: {
        "query": {"pages": [{"fullurl": h.url, "title": h.title, "extract": h.snippet, "index": n} for n, h in enumerate(hits)]}
    },
    "stackexchange": lambda hits: {"items": [{"link": h.url, "title": h.title, "body": h.snippet} for h in hits]},
    "arxiv": lambda hits: (
        "<feed>"
        + "".join(f"<entry><id>{h.url}</id><title>{h.title}</title><summary>{h.snippet}</summary></entry>" for h in hits)
        + "</feed>"
    ),
    "tavily": lambda hits: {"results": [{"url": h.url, "title": h.title, "content": h.snippet} for h in hits]},
    "brave": lambda hits: {"web": {"results": [{"url": h.url, "title": h.title, "description": h.snippet} for h in hits]}},
    "exa": lambda hits: {"results": [{"url": h.url, "title": h.title, "text": h.snippet} for h in hits]},
    "serper": lambda hits: {"organic": [{"link": h.url, "title": h.title, "snippet": h.snippet} for h in hits]},
    "firecrawl": lambda hits: {"data": {"web": [{"url": h.url, "title": h.title, "description": h.snippet} for h in hits]}},
}


class Speaking(Sender):
    """A service in memory that searches the same pages and answers in its own form, more than it was asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(user_agent="nexi")
        self._form = FORMS[name]

    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        asked = " ".join([*(str(v) for _, v in request.params), *(str(v) for v in cast("Row", request.json or {}).values())])
        answer = self._form(await FakeWeb(TEXTS).search(Query(asked.replace("all:", "").replace(" AND ", " "))))
        return BackendResponse(200, {}, answer.encode() if isinstance(answer, str) else json.dumps(answer).encode())


def service(name: str) -> Callable[[], Any]:
    @asynccontextmanager
    async def opened() -> Opened:
        yield create_backend(name, Settings(api_key="key"), Speaking(name))

    return opened


@asynccontextmanager
async def duckduckgo() -> Opened:
    def ask(text: str, **options: Any) -> list[Row]:
        hits = asyncio.run(FakeWeb(TEXTS).search(Query(text, count=options["max_results"])))
        return [{"href": h.url, "title": h.title, "body": h.snippet} for h in hits]

    yield DuckDuckGo(ask=ask)


every_backend = pytest.mark.parametrize(
    "opened",
    [fake, plug_in, searxng, duckduckgo, *map(service, FORMS)],
    ids=["fake", "plug_in", "searxng", "duckduckgo", *FORMS],
)


@every_backend
async def test_a_backend_has_a_name(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        assert isinstance(backend.name, str)
        assert backend.name


@every_backend
async def test_the_best_hit_comes_first(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        hits = await backend.search(Query("moons of Mars Phobos Deimos"))
    assert hits[0].url.partition("://")[2] == ADDRESSES["mars"].partition("://")[2]
    assert hits[0].title == "Mars facts"
    assert hits[0].snippet


@every_backend
async def test_hits_are_a_list_of_web_addresses_each_once(opened: Callable[[], Any]) -> None:
    async with opened() as backend:
        hits = await backend.search(Query("planet facts"))
    assert isinstance(hits, list)
    assert all(isinstance(h, Hit) and is_web_url(h.url) for h in hits)
    assert sorted(h.url.replace("https:", "http:") for h in hits) == sorted(ADDRESSES.values())


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


SECURE_FORMS = {
    NVD: {
        "vulnerabilities": [
            {"cve": {"id": f"CVE-2024-000{n}", "descriptions": [{"lang": "en", "value": "a flaw"}]}} for n in range(1, 4)
        ]
    },
    KEV: {"vulnerabilities": []},
}


class Secure(Sender):
    async def send(self, service: str, request: BackendRequest) -> BackendResponse:
        found = SECURE_FORMS.get(request.url, {}) if "flaw" in str(request.params) or request.url == KEV else {}
        return BackendResponse(200, {}, json.dumps(found).encode())


@asynccontextmanager
async def security(folder: Path) -> Opened:
    yield create_backend("security", Settings(), Secure(user_agent="nexi"))


@asynccontextmanager
async def ripgrep(folder: Path) -> Opened:
    for n in range(3):
        (folder / f"{n}.txt").write_text("a flaw\n")
    yield create_backend("ripgrep", Settings(root=str(folder)), Sender(user_agent="nexi"))


@pytest.mark.parametrize("opened", [security, ripgrep])
async def test_the_backends_over_other_things_than_pages_keep_the_same_promises(
    opened: Callable[[Path], Any], tmp_path: Path
) -> None:
    if opened is ripgrep and not (shutil.which("rg") or shutil.which("grep")):
        pytest.skip("neither rg nor grep is installed")
    async with opened(tmp_path) as backend:
        hits = await backend.search(Query("flaw"))
        assert backend.name == opened.__name__
        assert len({h.url for h in hits}) == len(hits) == 3
        assert all(h.url and h.title and h.snippet and h.backend == backend.name for h in hits)
        assert await backend.search(Query("flaw")) == hits
        assert len(await backend.search(Query("flaw", count=2))) == 2
        assert await backend.search(Query("xyzzy plugh")) == []


def test_no_backend_is_left_out_of_the_contract() -> None:
    assert sorted([*FORMS, "searxng", "duckduckgo", "security", "ripgrep", "kiwix", "services"]) == sorted(BACKENDS)


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
