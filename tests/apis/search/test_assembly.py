"""The service of a real config: which backends a client may ask for, and which fetchers read for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexi.apis.search.assembly import SearcherSettings, choose_backends
from nexi.app import Nexi
from nexi.fetchers.cache import CachedFetcher
from tests.apis.search.support import config

OWN = {"searxng_url": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("values", "settings", "wanted", "names"),
    [
        (OWN, SearcherSettings(), "", ["searxng"]),
        (OWN, SearcherSettings(), "searxng", ["searxng"]),
        (OWN, SearcherSettings(), "duckduckgo", ["duckduckgo", "searxng"]),
        (OWN, SearcherSettings(), "wikipedia", ["searxng"]),
        (OWN, SearcherSettings(), "ripgrep", ["searxng"]),
        (OWN, SearcherSettings(fallback=False), "wikipedia", []),
        (OWN, SearcherSettings(fallback=False), "duckduckgo", ["duckduckgo"]),
        (OWN, SearcherSettings(backends=("wikipedia", "searxng")), "", ["wikipedia", "searxng"]),
        (OWN, SearcherSettings(backends=("searxng",)), "duckduckgo", ["searxng"]),
        ({}, SearcherSettings(), "", ["services"]),
        ({}, SearcherSettings(), "searxng", ["services"]),
        ({}, SearcherSettings(), "wikipedia", ["services"]),
        ({}, SearcherSettings(backends=("searxng", "tavily", "nobody", "wikipedia")), "", ["wikipedia"]),
    ],
)
async def test_a_client_may_ask_for_the_two_of_the_seed_and_for_the_chain(
    tmp_path: Path, values: dict[str, Any], settings: SearcherSettings, wanted: str, names: list[str]
) -> None:
    async with Nexi(config(tmp_path, **values)) as nexi:
        assert [backend.name for backend in choose_backends(nexi.ports, settings, wanted)] == names


@pytest.mark.parametrize(("file", "kinds"), [("", [True]), ("service: {cache: {enabled: false}}", [False])])
async def test_pages_are_read_with_the_guard_whatever_the_cache(tmp_path: Path, file: str, kinds: list[bool]) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(file)
    async with Nexi(config(tmp_path, **OWN)) as nexi:
        service = nexi.search_api(own)
        fetchers = nexi.ports.uncached_fetchers() if "false" in file else nexi.ports.fetchers()
        assert [isinstance(f, CachedFetcher) for f in fetchers] == kinds
        seeds = [{"url": "http://127.0.0.1:1/"}, {"url": "http://169.254.169.254/"}]
        pack = await service.search({"query": "x", "constraints": {"search_mode": "full", "seed_items": seeds}})
    assert [item["fetch"]["status"] for item in pack["items"]] == ["failed", "failed"]
    assert all("is not fetched" in item["fetch"]["message"] for item in pack["items"])


async def test_the_service_is_built_once(tmp_path: Path) -> None:
    async with Nexi(config(tmp_path, **OWN)) as nexi:
        assert nexi.search_api() is nexi.search_api()
