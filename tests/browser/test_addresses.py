"""Addresses, Back, runs that are not there, shortcuts, copies of a part, contents, and the page as an app."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched
from tests.browser.test_keeping import opened
from tests.web import samples

Look = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}
LONG_QUESTION = "How far is the Moon from Earth, in four parts?"
PARTS = [f"## Part {n}\n\nThe Moon is 384,400 km from Earth on average [1]." for n in range(1, 5)]
LONG = "\n\n".join([f"# {LONG_QUESTION}", *PARTS, "```\nx = 1\n```"])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("addresses"), PAGES, Telling({LONG_QUESTION: LONG})) as there:
        yield there


def path_of(page: Any) -> str:
    return str(page.evaluate("location.pathname"))


def test_every_panel_has_an_address_and_back_goes_to_what_was_shown_before(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    run = path_of(page)
    for name, address in (("runs", "/history"), ("knowledge", "/knowledge"), ("setup", "/setup")):
        page.click(f"#show-{name}")
        assert (path_of(page), page.is_visible(f"#{name}"), page.is_visible("#run")) == (address, True, False)
    page.go_back()
    page.wait_for_selector("#knowledge", state="visible")
    page.go_back()
    page.wait_for_selector("#runs", state="visible")
    page.go_back()
    page.wait_for_selector("#run", state="visible")
    assert (path_of(page), page.inner_text("#asked")) == (run, QUESTION)  # the run was not left for it
    page.click("#show-runs")
    page.click("#show-runs")
    assert (path_of(page), page.is_visible("#run")) == (run, True)
    page.goto(served.base + "/knowledge")
    page.wait_for_selector("#knowledge", state="visible")
    assert person.trouble == []


def test_back_from_a_run_shows_the_start_and_forward_the_run(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    page.go_back()
    page.wait_for_selector("#hello", state="visible")
    assert (path_of(page), page.is_visible("#run"), page.title()) == ("/", False, "nexi")
    page.go_forward()
    person.finished()
    person.sees("384,400 km")
    assert person.trouble == []


@pytest.mark.parametrize("run_id", ["zzzzzz", "abcdef", "%3Cb%3E"])
def test_a_run_that_is_not_there_is_said_to_be_so(served: Stage, look: Look, run_id: str) -> None:
    person = look(served)
    page = person.open(f"/runs/{run_id}")
    page.wait_for_selector("#missing", state="visible")
    assert page.inner_text("#missing-id") == run_id.replace("%3Cb%3E", "<b>")
    assert (page.is_visible("#run"), page.is_visible("#question")) == (False, True)
    page.click("#missing >> text=look through the history")
    page.wait_for_selector("#runs", state="visible")
    assert [error for error in person.trouble if "404" not in error] == []


def test_a_source_has_an_address_that_leads_to_its_card(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets(), viewport=WIDE)
    page = person.page
    page.goto(f"{page.url}#source-2")
    page.reload()
    page.wait_for_function("() => document.activeElement.id === 'source-2'")
    assert person.trouble == []


def test_keys_ask_find_walk_and_explain_themselves_but_not_while_one_types(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets(), viewport=WIDE)
    page, active = person.page, "document.activeElement.id"
    page.keyboard.press("/")
    assert page.evaluate(active) == "question"
    page.keyboard.type("j/k?")
    assert page.input_value("#question") == "j/k?"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate(active) == "source-2"
    page.keyboard.press("k")
    assert page.evaluate(active) == "source-1"
    page.keyboard.press("?")
    page.wait_for_selector("#keys", state="visible")
    assert "Find in the history" in page.inner_text("#keys-list")
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys", state="hidden")
    page.keyboard.press("Control+k")
    assert (page.evaluate(active), path_of(page)) == ("runs-filter", "/history")
    assert person.trouble == []


def test_a_long_report_has_contents_and_its_parts_can_be_copied(served: Stage, look: Look) -> None:
    person = look(served, viewport=WIDE, permissions=["clipboard-read", "clipboard-write"])
    page = person.open()
    person.ask(LONG_QUESTION)
    person.finished()
    assert page.is_hidden("#answer h1")  # it is the question, which stands above it
    page.click("#toc summary")
    assert page.locator("#toc a").all_inner_texts() == ["Part 1", "Part 2", "Part 3", "Part 4"]
    page.click("#toc a >> nth=2")
    assert page.evaluate("location.hash") == "#" + str(page.locator("#answer h2").nth(2).get_attribute("id"))
    page.click("#answer h2 >> nth=0 >> .copy", force=True)
    page.wait_for_function("() => document.querySelector('#answer h2 .copy').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "Part 1\n\nThe Moon is 384,400 km from Earth on average [1]."
    page.click("#answer .framed .copy", force=True)
    page.wait_for_function("() => document.querySelector('#answer .framed .copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == "x = 1\n"
    assert person.trouble == []


def test_it_has_an_icon_and_can_be_installed(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    manifest = json.loads(page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((r) => r.text())"))
    assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
    kinds = [
        page.evaluate("(src) => fetch(src).then((r) => r.headers.get('content-type'))", i["src"]) for i in manifest["icons"]
    ]
    assert kinds == ["image/svg+xml"]
    assert page.get_attribute("link[rel=icon]", "href") == manifest["icons"][0]["src"]
    assert person.trouble == []


def test_a_run_is_shared_by_a_link_only_where_the_owner_allows_it(served: Stage, look: Look, tmp_path: Path) -> None:
    person = opened(served, look, samples.planets(), viewport=WIDE)
    assert person.page.is_hidden("#publish")
    (tmp_path / "nexi").mkdir()
    (tmp_path / "nexi" / "config.json").write_text('{"share": true, "verify_judge": false}', encoding="utf-8")
    with stage(tmp_path, PAGES, Telling(), NEXI_TOKEN="a-long-secret-of-the-test") as there:
        person = look(there, permissions=["clipboard-read", "clipboard-write"])
        page = person.open()
        page.fill("#token-text", "a-long-secret-of-the-test")
        page.keyboard.press("Enter")
        person.ask()
        person.finished()
        page.click("#publish")
        person.sees("who has this link", "#status")
        link = page.evaluate("navigator.clipboard.readText()")
        stranger = look(there)
        stranger.page.goto(link)
        assert "384,400 km" in stranger.page.inner_text("article")
        assert stranger.trouble == []
        page.click("#publish")
        person.sees("no longer works", "#status")
        assert stranger.page.goto(link).status == 404
