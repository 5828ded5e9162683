"""Failures that help: a card with one cause, one fix and buttons that act; what the person stopped is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rig.served import Stage, stage
from tests.browser.scene import PAGES, QUESTION, Telling, Watched
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]  # the fixture of the scanner

Look = Callable[..., Watched]
NOWHERE = "http://127.0.0.1:9"


def test_a_model_out_of_reach_has_a_card_that_leads_to_the_setup_and_can_be_retried(
    look: Look, tmp_path: Path, axe: str
) -> None:
    with stage(tmp_path, PAGES, Telling(), OPENAI_BASE_URL=f"{NOWHERE}/v1") as there:
        person = look(there, viewport=PHONE, is_mobile=True, has_touch=True)
        page = person.open()
        person.ask(QUESTION)
        page.wait_for_selector(".problem")
        assert page.inner_text(".problem h2") == "127.0.0.1:9/v1 cannot be reached"
        assert "Start the model server, or correct its address in Setup." in page.inner_text(".problem")
        assert page.locator(".problem button").all_inner_texts() == ["Retry", "Check setup"]
        assert [page.is_visible(f"#{name}") for name in ("copy", "share", "follow", "again", "retry")] == [
            False,
            False,
            False,
            True,
            True,
        ]
        assert not page.evaluate("getComputedStyle(document.querySelector('#exports'), '::before').content").startswith('"')
        page.evaluate(axe)
        assert [*page.evaluate(SCAN, TAGS), *page.evaluate(STICKING_OUT, PHONE["width"])] == []
        assert page.is_hidden("#work")
        failed = page.url
        page.click(".problem button >> text=Check setup")
        page.wait_for_selector("#settings-base_url")
        page.go_back()
        page.wait_for_selector(".problem")
        page.click(".problem button >> text=Retry")
        page.wait_for_url(lambda url: "/runs/" in url and url != failed)
        page.wait_for_selector(".problem")
        page.reload()
        page.wait_for_selector(".problem")
        assert page.inner_text("#status") == "No answer"
        assert person.trouble == []


def test_with_no_search_in_reach_the_knowledge_store_answers(look: Look, tmp_path: Path) -> None:
    with stage(tmp_path, PAGES, None, SEARXNG_URL=NOWHERE) as there:
        person = look(there)
        page = person.open()
        text = b"The Moon is 384,400 km from Earth on average. It orbits Earth in 27.3 days."
        page.set_input_files("#picker", {"name": "moon.txt", "mimeType": "text/plain", "buffer": text})
        person.sees("indexed", "#files")
        person.ask(QUESTION)
        person.finished()
        person.sees("384,400 km")
        assert page.locator(".problem").count() == 0


def test_a_search_out_of_reach_answers_from_the_knowledge_store_where_something_is_in_it(look: Look, tmp_path: Path) -> None:
    with stage(tmp_path, PAGES, None, SEARXNG_URL=NOWHERE) as there:
        person = look(there)
        page = person.open()
        person.ask(QUESTION)
        page.wait_for_selector(".problem button:nth-child(2)")
        assert page.locator(".problem button").all_inner_texts() == ["Retry", "Check setup"]
        page = person.open()
        text = b"The Moon is 384,400 km from Earth on average."
        page.set_input_files("#picker", {"name": "moon.txt", "mimeType": "text/plain", "buffer": text})
        page.wait_for_selector("#files .done")
        page = person.open()  # the file is stored, and not attached to the question
        person.ask(QUESTION)
        person.sees("384,400 km")
        assert page.locator(".problem").count() == 0


def test_what_the_person_stopped_is_no_failure(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("search")
    person.ask("What is there to read about nothing at all?")
    served.model.wait_for("search")
    page.keyboard.press("Escape")
    person.finished()
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Stopped')")
    assert page.locator("#notes .problem, #notes .error").count() == 0
    page.reload()
    person.finished()
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Stopped')")
    assert page.locator("#notes .problem, #notes .error").count() == 0


def test_a_run_is_stopped_that_the_server_has_not_confirmed_yet(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("search")
    held: list[Any] = []
    page.route("**/v1/runs", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    with page.expect_request("**/v1/runs"):
        page.fill("#question", "What is there to read about nothing at all?")
        page.press("#question", "Enter")
    page.keyboard.press("Escape")
    assert page.inner_text("#status").startswith("Stopping")
    held[0].continue_()
    person.finished()
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Stopped')")


def test_a_server_that_is_gone_is_said_in_a_card(own: Stage, look: Look) -> None:
    person = look(own)
    page = person.open()
    page.wait_for_function("() => document.querySelectorAll('#model option').length > 1")
    own.server.kill()
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    page.wait_for_selector(".problem")
    assert page.inner_text(".problem h2") == "The server cannot be reached. Is it running?"
    own.server.start()
    page.click(".problem button >> text=Retry")
    page.wait_for_url("**/runs/*")
    person.finished()
    assert page.locator(".problem").count() == 0
