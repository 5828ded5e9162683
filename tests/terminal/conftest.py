"""A loopback web and an endpoint for the command in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from tests.faults.command import PAGES


@pytest.fixture(scope="package")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def env(web: str, tmp_path: Path) -> dict[str, str]:
    return {"NEXI_HOME": str(tmp_path / "nexi"), "SEARXNG_URL": web, "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc}
