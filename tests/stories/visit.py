"""A person at the page: a real Chromium that opens the link `nexi serve` printed, and what is seen in it.

`visit(world.serve())` is a page in a profile of its own. What is seen is compared as text, with ids, times and ports made
equal by the world; `sticking_out` names what a phone cannot show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rig.served import Server
from tests.browser.conftest import browser
from tests.browser.scene import Watched
from tests.browser.test_looks import SCAN, STICKING_OUT, TAGS, axe
from tests.stories.world import World

__all__ = ["PHONE", "SCREEN", "Visit", "Visitor", "axe", "browser", "printed_link", "visit"]

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SCREEN = {"viewport": {"width": 1440, "height": 900}}
_LINK = re.compile(r"http://127\.0\.0\.1:\d+\S*")


class Visitor(Watched):
    """A person who has opened the link that the server printed."""

    def __init__(self, page: Any, link: str, world: World) -> None:
        place = urlsplit(link)
        super().__init__(page, f"{place.scheme}://{place.netloc}")
        self.world = world
        page.goto(link)

    def text(self, where: str) -> str:
        """What is seen there, one line for each line of the screen."""
        lines = (line.strip() for line in self.page.inner_text(where).split("\n"))
        return self.world.normalise("\n".join(line for line in lines if line))

    def wait_for_problem(self) -> str:
        self.page.wait_for_selector(".problem")
        self.page.wait_for_load_state("networkidle")
        return self.text(".problem")

    def sticking_out(self) -> list[str]:
        """What reaches over the right edge, and the whole page where it can be moved sideways."""
        width = self.page.viewport_size["width"]
        wide = self.page.evaluate("() => document.documentElement.scrollWidth")
        return [*self.page.evaluate(STICKING_OUT, width), *([f"the page is {wide} wide"] if wide > width else [])]

    def scan(self, axe: str) -> list[str]:
        self.page.evaluate(axe)
        return list(self.page.evaluate(SCAN, TAGS))

    def open_history(self) -> None:
        self.page.click("#show-runs")
        self.page.wait_for_selector("#runs-list li")


Visit = Callable[..., Visitor]


def printed_link(world: World) -> str:
    """The link of the server that was started last, as the terminal shows it."""
    links = _LINK.findall(Path(world.folder / "serve.log").read_text())
    return str(links[-1])


@pytest.fixture
def visit(browser: Any, world: World) -> Iterator[Visit]:
    """Open the page of a server in a profile of its own, on a phone where that is said."""
    with ExitStack() as stack:

        def open_page(server: Server | None = None, **context: Any) -> Visitor:
            if server is None:
                world.serve()
            profile = browser.new_context(**(context or SCREEN))
            stack.callback(profile.close)
            return Visitor(profile.new_page(), printed_link(world), world)

        yield open_page
