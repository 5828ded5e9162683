"""The page as a person uses it, in a real browser."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.world import QUESTION, serving

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    """A server in a thread of its own: the browser blocks this one."""
    ready, stop, found = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with serving(tmp_path) as served:
            found.append(served.base)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    yield found[0]
    stop.set()
    thread.join(20)


@pytest.fixture
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_a_question_is_asked_with_the_keyboard_and_its_evidence_opened(base: str, browser: Any) -> None:
    page = browser.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
    page.goto(base)
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer .cite")
    assert "384,400 km" in page.inner_text("#answer")
    assert page.url.startswith(f"{base}/runs/")
    page.click("#answer .cite")
    page.wait_for_selector("#evidence mark")
    assert page.inner_text("#evidence mark") == "The Moon is 384,400 km from Earth on average."
    page.keyboard.press("Escape")
    assert trouble == []


def test_a_run_has_an_address_that_shows_it_again(base: str, browser: Any) -> None:
    page = browser.new_page()
    page.goto(base)
    page.fill("#question", QUESTION)
    page.click("#go")
    page.wait_for_selector("#answer .cite")
    again = browser.new_page()
    again.goto(page.url)
    again.wait_for_selector("#answer .cite")
    assert again.inner_text("#asked") == QUESTION
    again.click("#show-runs")
    again.wait_for_selector("#runs-list li")
    assert QUESTION in again.inner_text("#runs-list")


def test_it_fits_a_phone_and_follows_the_dark(base: str, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.goto(base)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
