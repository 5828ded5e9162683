"""Stories of the page's set-up: a test that fails can be read on a phone, and one that succeeds is saved and used."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stories.visit import PHONE, SCREEN, Visit, axe, browser, visit
from tests.stories.world import QUESTION, World

__all__ = ["axe", "browser", "visit"]

# How wide each line of a list is drawn, as a share of the list.
SHARES = """(list) => [...document.querySelectorAll(`${list} p`)].map((p) =>
  Math.round(100 * p.getBoundingClientRect().width / document.querySelector(list).getBoundingClientRect().width))"""


@pytest.mark.parametrize("screen", [PHONE, SCREEN], ids=["390", "1440"])
def test_a_test_that_fails_can_be_read(world: World, visit: Visit, axe: str, screen: dict[str, Any]) -> None:
    world.web.trouble = "json off"
    address = world.env.pop("SEARXNG_URL")
    person = visit(**screen)
    page = person.page
    page.click("#show-setup")
    page.fill("#settings-searxng_url", address)
    page.click("#settings-test")
    page.wait_for_selector("#settings-checks li")
    row = page.locator("#settings-checks li", has_text="SearXNG refuses to answer in JSON")
    assert "add `json` to search.formats in its settings.yml and restart it" in row.inner_text()
    assert set(page.evaluate(SHARES, "#settings-checks")) == {100}
    assert person.text("#settings-message") == "Something does not work yet; you can save it anyway."
    assert (person.sticking_out(), person.scan(axe)) == ([], [])


def test_a_search_service_is_tested_saved_and_used(world: World, visit: Visit) -> None:
    address = world.env.pop("SEARXNG_URL")
    world.set(search_backends=["searxng"])
    person = visit()
    page = person.page
    page.click("#show-setup")
    page.fill("#settings-searxng_url", address)
    page.click("#settings-test")
    person.sees("Everything works.", "#settings-message")
    page.click("#settings-save")
    person.sees("Saved. The next question uses it.", "#settings-message")
    person.open()
    person.ask(QUESTION)
    person.finished()
    assert person.text("#answer") == "The Moon is 384,400 km from Earth on average. [1]"
