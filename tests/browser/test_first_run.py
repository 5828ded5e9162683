"""The first visit: what works already, the settings in place, and examples; gone once something was asked or set up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig import held_model
from rig.held_model import HeldModel
from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]  # the fixture of the scanner

Look = Callable[..., Watched]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Stage]:
    """A server on which nothing is configured but where pages are found."""
    with stage(tmp_path, PAGES, None, NEXI_MODEL="") as there:
        yield there


def test_a_model_is_set_up_and_used_without_leaving_the_page(fresh: Stage, look: Look) -> None:
    person = look(fresh)
    page = person.open()
    page.wait_for_selector("#welcome", state="visible")
    assert "the built-in one answers with passages" in page.inner_text("#welcome")
    assert page.inner_text("#welcome-search") == "The web is searched with SearXNG."
    assert page.locator("#examples button").count() == 3
    with held_model.serve(HeldModel(Telling())) as root:
        page.click("#welcome-model-set")
        page.wait_for_selector("#settings-base_url:focus")
        page.fill("#settings-base_url", f"{root}/v1")
        page.click("#settings-list")
        person.sees("2 models: choose one in the field", "#settings-message")
        assert page.input_value("#settings-model") == "scripted"
        page.click("#settings-test")
        page.wait_for_selector("#settings-checks li")
        page.click("#settings-save")
        page.wait_for_selector("#welcome", state="hidden")
        assert page.locator("#model option").all_inner_texts()[0] == "scripted"
        person.ask(QUESTION)
        person.finished()
        assert page.inner_text("#status") == "Answered by scripted"
    page.click("#show-setup")
    page.wait_for_selector("#setup-settings #settings-save")
    assert person.trouble == []


def test_a_search_service_is_set_up_in_the_same_form(fresh: Stage, look: Look) -> None:
    person = look(fresh)
    page = person.open()
    page.click("#welcome-search-set")
    page.wait_for_selector("#settings-searxng_url")
    assert page.is_disabled("#settings-searxng_url")  # the environment of this server has it
    assert page.locator("#welcome #settings-test").count() == 1
    page.click("#show-setup")
    page.wait_for_selector("#setup-settings #settings-test")
    assert person.trouble == []


def test_it_is_gone_once_something_was_asked(fresh: Stage, look: Look) -> None:
    person = look(fresh)
    page = person.open()
    page.wait_for_selector("#welcome", state="visible")
    page.click("#examples button >> nth=1")
    page.wait_for_selector("#run", state="visible")
    assert page.is_hidden("#welcome")
    person.ask()
    person.finished()
    person.open()
    person.sees("No model yet", "#hint")
    assert page.is_hidden("#welcome")
    assert page.get_attribute("#hint a", "href") == "/setup"


@pytest.mark.parametrize("locale", ["en-US", "de-DE", "zh-CN"])
def test_the_first_visit_fits_a_phone_and_the_scanner_finds_nothing(fresh: Stage, look: Look, axe: str, locale: str) -> None:
    person = look(fresh, viewport=PHONE, is_mobile=True, has_touch=True, locale=locale)
    page = person.open()
    page.wait_for_selector("#welcome", state="visible")
    page.click("#welcome-model-set")
    page.wait_for_selector("#settings-save")
    page.evaluate(axe)
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found[scheme] = [*page.evaluate(SCAN, TAGS), *page.evaluate(STICKING_OUT, PHONE["width"])]
    assert found == {"light": [], "dark": []}
    assert person.trouble == []
