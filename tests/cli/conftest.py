"""The command over a loopback web, with a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from tests.cli.command import PAGES, Command


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def nexi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command with no search service."""
    monkeypatch.setenv("NEXI_HOME", str(tmp_path / "nexi"))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")  # where reports are saved
    return Command(tmp_path / "nexi", monkeypatch, capsys)


@pytest.fixture
def online(nexi: Command, web: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with the loopback web to search."""
    monkeypatch.setenv("SEARXNG_URL", web)
    monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(web).netloc)
    return nexi
