"""User stories: the real command or the real page, against a world that can be broken, up to the last screen a person sees.

They take minutes, so a bare `pytest` does not collect this folder (`norecursedirs` in pyproject.toml); `make test-stories`
does, or `pytest tests/stories`. Stories of the terminal are in test_terminal_*.py, those of the page in test_page_*.py. Each
starts with `world`, which has a web, a search service, a home of its own, and processes that end with the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with make_world(tmp_path) as made:
        yield made
