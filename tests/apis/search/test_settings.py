"""searcher.yaml: what it may say, and the cache it describes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nexi.apis.search.assembly import CacheSettings, SearcherSettings, read_settings
from nexi.errors import ConfigError
from nexi.fetchers.cache import cache_key
from nexi.testing import FakeClock
from tests.apis.search.support import HITS, Fetcher, nexi

FULL: dict[str, Any] = {"query": "bm25", "constraints": {"search_mode": "full"}, "budget": {"max_fetch_pages": 1}}


def test_every_setting_of_the_seed_is_read() -> None:
    text = """
        service:
          cache:
            enabled: false
            dir: /var/cache/searcher  # a folder
            ttl_s: 60
            sweep_interval_s: 5.5
          backends: [SearXNG, duckduckgo]
          fallback: no
    """
    cache = CacheSettings(False, "/var/cache/searcher", 60, 5.5)
    assert read_settings(text) == SearcherSettings(cache, ("searxng", "duckduckgo"), False)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "service:", "service: {cache: {}}", "service: {cache: null, backends: null}"]
)
def test_what_is_not_said_stays_as_it_is(text: str) -> None:
    assert read_settings(text) == SearcherSettings()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("service: {cash: {}}", "service.cash: unknown field; the fields are cache, backends, fallback"),
        ("service: {cache: {ttl_s: soon}}", "service.cache.ttl_s: expected a number or null, got a string"),
        ("service: {cache: {ttl_s: 0}}", "service.cache.ttl_s: expected 1 to 1000000000, got 0"),
        ("service: {cache: {ttl_s: .inf}}", "service.cache.ttl_s: expected a finite number"),
        ("service: {cache: {enabled: 1}}", "service.cache.enabled: expected a boolean or null, got an integer"),
        ("[1, 2]", "expected an object, got an array"),
        ("a: [", "while parsing a flow node expected the node content, but found '<stream end>'"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor for the tag"),
        ("\x00", "unacceptable character #x0000: special characters are not allowed"),
        ("[" * 100_000, "it is nested too deeply"),
        ("# " + "x" * 100_000, "it has more than 100,000 characters"),
    ],
)
def test_what_cannot_be_used_is_a_configuration_error_that_names_the_place(text: str, cause: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_settings(text, "my.yaml")
    assert refused.value.message.startswith("my.yaml ")
    assert refused.value.cause.startswith(cause)


async def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    async with nexi(tmp_path) as app:
        with pytest.raises(ConfigError) as refused:
            app.search_api(tmp_path / "other.yaml")
    assert str(tmp_path / "other.yaml") in refused.value.message


async def test_page_texts_are_kept_under_the_key_of_the_seed_and_can_be_cleared(tmp_path: Path) -> None:
    folder, own = tmp_path / "kept", tmp_path / "own.yaml"
    own.write_text(f"service: {{cache: {{enabled: true, dir: '{folder}'}}}}\n")
    fetcher = Fetcher()
    async with nexi(tmp_path, fetcher=fetcher) as app:
        service = app.search_api(own)
        first = await service.search(FULL)
        again = await service.search(FULL)
        assert [path.name for path in folder.iterdir()] == [f"{cache_key('http', HITS[0].url)}.page"]
        assert (first, len(fetcher.asked)) == (again, 1)
        assert (await service.clear_cache(), list(folder.iterdir())) == (1, [])
        await service.search(FULL)
        assert len(fetcher.asked) == 2


async def test_a_kept_page_ends_with_its_time(tmp_path: Path) -> None:
    folder, own, clock, fetcher = tmp_path / "kept", tmp_path / "own.yaml", FakeClock(), Fetcher()
    own.write_text(f"service: {{cache: {{dir: '{folder}', ttl_s: 60}}}}\n")
    async with nexi(tmp_path, fetcher=fetcher, clock=clock) as app:
        service = app.search_api(own)
        await service.search(FULL)
        clock.advance(59)
        await service.search(FULL)
        assert len(fetcher.asked) == 1
        clock.advance(2)
        await service.search(FULL)
        assert len(fetcher.asked) == 2


async def test_the_cache_is_swept_without_a_request(tmp_path: Path) -> None:
    folder, own, clock = tmp_path / "kept", tmp_path / "own.yaml", FakeClock()
    own.write_text(f"service: {{cache: {{dir: '{folder}', ttl_s: 60, sweep_interval_s: 1}}}}\n")
    async with nexi(tmp_path, fetcher=Fetcher(), clock=clock) as app:
        service = app.search_api(own)
        await service.search(FULL)
        clock.advance(61)
        async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
            sweeping = tasks.create_task(service.sweep_cache_regularly())
            while list(folder.iterdir()):
                await asyncio.sleep(0.01)
            sweeping.cancel()


async def test_a_page_beyond_the_budget_of_a_request_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    own, fetcher = tmp_path / "own.yaml", Fetcher()
    own.write_text(f"service: {{cache: {{dir: '{tmp_path / 'kept'}'}}}}\n")
    async with nexi(tmp_path, fetcher=fetcher) as app:
        service = app.search_api(own)
        await service.search(FULL)
        await service.search({**FULL, "budget": {**FULL["budget"], "max_download_bytes_per_page": 5}})
    assert [limits.max_bytes for _, limits in fetcher.asked] == [2_000_000, 5]


async def test_a_failed_or_empty_page_is_not_kept(tmp_path: Path) -> None:
    folder, own = tmp_path / "kept", tmp_path / "own.yaml"
    own.write_text(f"service: {{cache: {{dir: '{folder}'}}}}\n")
    async with nexi(tmp_path, fetcher=Fetcher({HITS[0].url: " \n"})) as app:
        await app.search_api(own).search({**FULL, "budget": {"max_fetch_pages": 2}})
    assert not folder.exists()


async def test_a_cache_that_is_off_keeps_nothing(tmp_path: Path) -> None:
    own, fetcher = tmp_path / "own.yaml", Fetcher()
    own.write_text("service: {cache: {enabled: false}}\n")
    async with nexi(tmp_path, fetcher=fetcher) as app:
        service = app.search_api(own)
        await service.search(FULL)
        await service.search(FULL)
        assert (len(fetcher.asked), await service.clear_cache()) == (2, 0)
