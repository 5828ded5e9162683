"""The loopback web that the servers of these tests search."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig import miniweb
from tests.cli.command import PAGES

pytest.importorskip("mcp", reason="the mcp SDK is not installed")


@pytest.fixture(scope="session")
def web() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base
