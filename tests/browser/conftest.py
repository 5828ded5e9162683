"""A real browser, a real server, and pages that are watched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rig.served import Stage, stage
from tests.browser.scene import PAGES, Telling, Watched

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for a module: a test of another kind has its event loop for itself."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
    if BROWSER is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("served"), PAGES, Telling()) as there:
        yield there


@pytest.fixture
def served(shared: Stage) -> Iterator[Stage]:
    """A server that the tests of a module share; who holds its model lets it go at the end."""
    yield shared
    shared.model.release()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stage]:
    """A server that a test may kill."""
    with stage(tmp_path, PAGES, Telling()) as there:
        yield there


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Watched]]:
    """A page in a profile of its own, in which the owner has opened nexi, with what is told about her and her screen."""
    with ExitStack() as open_now:

        def looking(there: Stage | str, **context: Any) -> Watched:
            profile = browser.new_context(**{"service_workers": "block", **context})  # what one keeps is invisible to `route`
            open_now.callback(profile.close)
            if isinstance(there, Stage):
                profile.add_cookies(there.server.cookies)
            return Watched(profile.new_page(), there if isinstance(there, str) else there.base)

        yield looking
