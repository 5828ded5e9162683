"""A loopback web and an endpoint for the command in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from tests.children import CHILD_PATH
from tests.faults.command import MOON, PAGES

SAID = (
    "<p>The Moon is 384,400 km away on average. It has <code>Vec&lt;T&gt;</code> craters.</p>"
    "<ul><li>It is near to the Earth.</li><li>far</li></ul>"
    "<p>The Moon is far. It is far.</p><p>שלום 👩‍🚀 is how a letter to the Moon ends.</p>"
    "<p>Red text and a title link gnp.exe bell.</p></main>"
)  # whatever the scripted models of these tests say, so that it passes the check


@pytest.fixture(scope="package")
def web() -> Iterator[str]:
    page = {**PAGES[0], "url": MOON, "html": PAGES[0]["html"].replace("</main>", SAID)}
    with miniweb.serve(miniweb.Corpus([page])) as base:
        yield base


@pytest.fixture
def env(web: str, tmp_path: Path) -> dict[str, str]:
    without_judge = {"MODEL_CHOICE": "extractive"}  # a scripted model has no replies for it
    home = str(tmp_path / "nexi")
    place = {"NEXI_HOME": home, "PYTHONPATH": CHILD_PATH}
    return {**place, "SEARXNG_URL": web, "NEXI_ALLOW_PRIVATE": urlsplit(web).netloc, **without_judge}
