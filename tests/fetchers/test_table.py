"""Fetchers are found by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from nexi import fetchers
from nexi.errors import ConfigError
from nexi.testing import FakeClock, FakeWeb
from tests.raising import has_code

SETTINGS = fetchers.Settings(clock=FakeClock(), allow_private=("127.0.0.1",))


def third_party(settings: fetchers.Settings) -> FakeWeb:
    return FakeWeb({}, name="theirs")


async def test_the_http_fetcher_is_known() -> None:
    assert fetchers.create_fetcher("http", SETTINGS).name == "http"


def test_an_unknown_name_is_a_configuration_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigError, check=has_code("config", "'htpp'")) as caught:
        fetchers.create_fetcher("htpp", SETTINGS)
    assert "http" in caught.value.cause


def test_other_packages_add_theirs_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("theirs", f"{__name__}:third_party", fetchers.ENTRY_POINTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [entry] if name == "theirs" else [])
    assert fetchers.create_fetcher("theirs", SETTINGS).name == "theirs"
