"""What a person reads, checks and keeps: evidence by the keyboard, conflicts, history, knowledge, set-up and its checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexi.app import Nexi, SystemClock
from nexi.config import Config
from nexi.events import Fact, RunStarted
from nexi.history import add_history_entry, create_entry
from nexi.runs.directory import RunDirectory
from nexi.types import Page
from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched
from tests.browser.test_looks import SCAN, TAGS
from tests.web import samples

Look = Callable[..., Watched]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("kept"), PAGES, Telling()) as there:
        yield there


def apart(work: Callable[[], Any]) -> Any:
    """The browser has the loop of this thread."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(work())).result()


def put(home: Path, facts: Sequence[Fact]) -> str:
    return str(apart(lambda: samples.keep(RunDirectory(home / "runs", home / "pages", clock=SystemClock()), facts)))


def know(home: Path, url: str, title: str, text: str) -> None:
    async def index() -> None:
        async with Nexi(Config(home=home, model="extractive")) as nexi:
            indexer = await nexi.knowledge().indexer(nexi.gate())
            await indexer.index(Page(url, text, title, fetched_at="2031-05-06T12:00:00+00:00"))

    apart(index)


def opened(served: Stage, look: Look, facts: Sequence[Fact], **context: Any) -> Watched:
    person = look(served, **context)
    person.open(f"/runs/{put(served.home, facts)}")
    person.finished()
    person.page.wait_for_selector("#source-list li")
    return person


def rows(page: Any, where: str, count: int) -> None:
    """Wait until the list has so many rows."""
    page.wait_for_function("([where, n]) => document.querySelectorAll(`${where} > li`).length === n", arg=[where, count])


# reading and checking


def test_a_citation_is_followed_to_its_passage_and_back_with_the_keyboard_alone(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets())
    page = person.page
    page.locator("#answer .cite >> nth=2").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#evidence mark")
    assert page.inner_text("#evidence mark") == "Pluto counted as a planet until 2006, when the term was defined."
    assert "✗ contradicted" in page.inner_text("#evidence-body")
    page.click("#evidence .meaning summary")
    assert "another value in the same place. By rules alone it is right for" in page.inner_text("#evidence .meaning")
    assert "The Almanac · 2031-04-05" in page.inner_text("#evidence h3")
    link = page.get_attribute("#evidence >> text=Open the page there", "href")
    assert (
        link
        == "https://pluto.example/#:~:text=Pluto%20counted%20as%20a%20planet%20until%202006%2C%20when%20the%20term%20was%20defined"
    )
    page.keyboard.press("Escape")
    page.wait_for_selector("#evidence", state="hidden")
    assert page.evaluate("document.activeElement === document.querySelectorAll('#answer .cite')[2]")
    assert person.trouble == []


def test_verdicts_are_told_in_words_and_conflicts_stand_side_by_side(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets(), viewport={"width": 1200, "height": 900})
    page = person.page
    assert page.locator("#answer .check").all_inner_texts() == ["✗\u00a0contradicted", "?\u00a0not found"]  # only what is wrong
    assert page.locator("#conflicts .value").all_inner_texts() == ["274", "146"]
    left, right = (side.bounding_box() for side in page.locator("#conflicts .sides > li").all())
    assert left is not None
    assert right is not None
    assert (left["y"], left["x"] < right["x"]) == (right["y"], True)
    second = page.locator("#source-list > li").all_inner_texts()[1].split("\n")
    assert [line for line in second if line] == [
        "P", "[2] Pluto", "pluto.example · The Almanac · Ada Moon · 2031-04-05 · read 2031-05-06",
        "Pluto counted as a planet until 2006, when the term was defined.",
        "✗ 0 of 1 sentence found, 1 contradicted", "Stored text",
    ]  # fmt: skip
    assert "Saturn would sink in water." in page.inner_text("#left-out")


def test_the_stored_text_of_a_source_opens_whole(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets())
    person.page.click("#source-1 >> text=Stored text")
    person.sees("Mercury is the smallest planet", "#evidence .passage")
    person.page.keyboard.press("Escape")
    assert person.page.evaluate("document.activeElement.textContent") == "Stored text"
    assert person.trouble == []


# keeping


def test_history_is_searched_and_a_run_deleted_only_when_it_is_meant(own: Stage, look: Look) -> None:
    add_history_entry(
        create_entry("An old question", "An old answer.", [], "m", 1, 1.0, 9, id="abc123"), own.home / "history.jsonl"
    )
    run_id = put(own.home, samples.planets())
    person = look(own)
    page = person.open()
    page.click("#show-runs")
    page.wait_for_selector("#runs-list li")
    assert page.locator("#runs-list .q").all_inner_texts() == ["How large are the planets?", "An old question"]
    page.fill("#runs-filter", "old answer")
    rows(page, "#runs-list ul", 1)
    assert "An old answer." in page.inner_text("#runs-list .excerpt")
    page.fill("#runs-filter", "")
    rows(page, "#runs-list ul", 2)
    page.click("#runs-list li >> nth=0 >> text=Delete")
    page.wait_for_selector("#confirm[open]")
    assert page.evaluate("document.activeElement.id") == "confirm-no"
    page.keyboard.press("Enter")
    page.wait_for_selector("#confirm", state="hidden")
    assert (own.home / "runs" / run_id).is_dir()
    page.click("#runs-list li >> nth=0 >> text=Delete")
    page.click("#confirm-yes")
    rows(page, "#runs-list ul", 1)
    assert not (own.home / "runs" / run_id).exists()
    page.click("#runs-list .q")
    person.sees("An old answer.")
    assert "no longer kept" in page.inner_text("#status")
    assert [error for error in person.errors if "404" not in error] == []  # its run is looked for first


def test_an_unfinished_run_goes_on_from_the_history(own: Stage, look: Look) -> None:
    run_id = put(own.home, [RunStarted(QUESTION, "m", "scripted", max_iterations=6)])
    own.model.release()
    person = look(own)
    page = person.open()
    page.click("#show-runs")
    page.click("#runs-list li >> text=Resume")
    page.wait_for_url(f"**/runs/{run_id}")
    person.sees("384,400 km")
    person.finished()
    assert person.trouble == []


def test_knowledge_is_listed_searched_and_forgotten(own: Stage, look: Look) -> None:
    know(own.home, "https://atoll.example/guide", "<b>Atolls</b>", "An atoll is a ring of coral around a lagoon.")
    know(own.home, "file:///notes~abc123/moon.md", "Moon notes", "The Moon is far away.")
    person = look(own)
    page = person.open()
    page.click("#show-knowledge")
    page.wait_for_selector("#knowledge-list li")
    assert page.locator("#knowledge-list a").all_inner_texts() == ["<b>Atolls</b>"]  # a file is no link
    page.fill("#knowledge-filter", "coral")
    person.sees("ring of coral", "#knowledge-hits")
    page.fill("#knowledge-filter", "atoll")
    rows(page, "#knowledge-list", 1)
    page.click("#knowledge-list >> text=Forget")
    page.click("#confirm-yes")
    person.sees("Forgotten.", "#knowledge-message")
    page.fill("#knowledge-filter", "")
    rows(page, "#knowledge-list", 1)
    assert "Moon notes" in page.inner_text("#knowledge-list")
    assert person.trouble == []


def test_settings_are_tested_and_saved_and_the_theme_stays(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.click("#show-setup")
    page.wait_for_selector("#settings-save")
    assert page.input_value("#settings-api_key") == ""
    page.click("#settings-list")
    person.sees("choose one in the field", "#settings-message")
    page.fill("#settings-max_cost", "0.5")
    page.click("#settings-test")
    page.wait_for_selector("#settings-checks li")
    page.click("#settings-save")
    person.sees("Saved. The next question uses it.", "#settings-message")
    assert page.input_value("#settings-max_cost") == "0.5"
    page.select_option("#settings-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert person.trouble == []


def test_the_setup_tells_its_parts_and_the_checks_what_to_do(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.click("#show-setup")
    person.sees("scripted at 127.0.0.1", "#setup-list")
    page.click("#doctor-go")
    page.wait_for_selector("#doctor-list li")
    told = page.locator("#doctor-list li").all_inner_texts()
    assert any(line.startswith("✓ ok model scripted at 127.0.0.1") for line in told)
    assert page.inner_text("#setup-message").startswith("A search can work")
    assert page.is_enabled("#doctor-go")
    page.click("#show-setup")
    assert page.is_visible("#question")
    assert person.trouble == []


def test_the_scanner_finds_nothing_serious_in_what_is_kept_and_exported(own: Stage, look: Look, tmp_path: Path) -> None:
    found = pytest.importorskip("axe_playwright_python", reason="needs axe: make test-browser")
    axe = (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    know(own.home, "https://atoll.example/guide", "Atolls", "An atoll is a ring of coral around a lagoon.")
    person = opened(own, look, samples.planets())
    page = person.page

    def scanned() -> list[str]:
        page.evaluate(axe)
        told: list[str] = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            told += page.evaluate(SCAN, TAGS)
        return told

    assert scanned() == []
    with page.expect_download() as download:
        page.click("#exports >> text='HTML'")
    download.value.save_as(tmp_path / "run.html")
    page.click("#show-knowledge")
    page.wait_for_selector("#knowledge-list li")
    assert scanned() == []
    page.click("#knowledge-list >> text=Forget")
    page.wait_for_selector("#confirm[open]")
    assert scanned() == []
    page.goto((tmp_path / "run.html").as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert scanned() == []
