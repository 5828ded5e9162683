"""Several SearXNG instances take turns, and one that fails is replaced and rests."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.app import Nexi, QuietEmit
from nexi.backends.searxng import SearxngInstances
from nexi.config import Config
from nexi.errors import BackendError
from nexi.net.suspensions import FileBreaker
from nexi.searcher import Searcher
from nexi.testing import FakeClock
from nexi.types import Hit, Query

URLS = ("https://a.example", "https://b.example", "https://c.example")


class Instance:
    name = "searxng"

    def __init__(self, url: str, called: list[str], dead: set[str]) -> None:
        self._url, self._called, self._dead = url, called, dead

    async def search(self, query: Query) -> list[Hit]:
        self._called.append(self._url[8])
        if self._url in self._dead:
            raise BackendError("SearXNG limits how often it may be asked", code="limiter", retryable=True)
        return [Hit(f"{self._url}/hit", "A hit")]


async def test_instances_take_turns_and_a_dead_one_is_replaced_and_rests(tmp_path: Path) -> None:
    called: list[str] = []
    dead = {"https://b.example"}
    clock = FakeClock()
    backend = SearxngInstances(URLS, lambda url: Instance(url, called, dead))
    breaker = FileBreaker(tmp_path / "backends.json", clock=clock)
    searcher = Searcher(lambda: [backend], emit=QuietEmit(), clock=clock, breaker=breaker)
    outcomes = [await searcher.search(Query("tides")) for _ in range(5)]
    assert "".join(called) == "a" + "bc" + "c" + "a" + "c"  # b has its turn twice, and rests the second time
    assert [outcome.backend for outcome in outcomes] == ["searxng"] * 5
    assert [outcome.failures for outcome in outcomes] == [()] * 5
    assert [(answer.service, answer.code) for answer in outcomes[4].asked] == [
        ("searxng at b.example", "suspended"),
        ("searxng at c.example", ""),
    ]


async def test_with_all_instances_dead_each_reason_is_given() -> None:
    backend = SearxngInstances(URLS, lambda url: Instance(url, [], set(URLS)))
    outcome = await Searcher(lambda: [backend], emit=QuietEmit(), clock=FakeClock()).search(Query("tides"))
    assert [failure.provider for failure in outcome.failures] == [f"searxng at {url[8:]}" for url in URLS]
    with pytest.raises(BackendError, match="limits how often"):
        await backend.search(Query("tides"))


async def test_the_settings_name_them(tmp_path: Path) -> None:
    config = Config(home=tmp_path, searxng_url=URLS[0], searxng_instances=URLS)
    assert (config.search_chain(), config.searxng_urls()) == (("searxng",), URLS)
    async with Nexi(config) as nexi:
        assert isinstance(nexi.ports.backends()[0], SearxngInstances)
