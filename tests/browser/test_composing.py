"""Choosing, giving files, going on and asking again, as a person does it."""

from __future__ import annotations

import json
from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import QUESTION, Watched

Look = Callable[..., Watched]
NEXT = "Which moons does Mars have?"


def test_what_is_chosen_is_what_is_asked_for(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.wait_for_selector("#model option >> nth=1", state="attached")
    page.select_option("#effort", "l")
    page.select_option("#focus", "papers")
    page.select_option("#model", "extractive")
    page.click("#more")
    page.fill("#sites", "http://moon.test/, -mars.test")
    page.select_option("#time", "y")
    page.fill("#question", QUESTION)
    with page.expect_request("**/v1/runs") as asked:
        page.click("#go")
    assert json.loads(asked.value.post_data or "") == {
        "question": QUESTION,
        "mode": "search",
        "options": {
            "effort": "l",
            "focus": "papers",
            "model": "extractive",
            "sites": ["moon.test"],
            "excluded_sites": ["mars.test"],
            "time_range": "y",
        },
    }
    person.finished()
    assert person.trouble == []


def test_files_become_known_and_what_cannot_be_read_says_why(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    tides = {
        "name": "tides.md",
        "mimeType": "text/markdown",
        "buffer": b"# Tides\n\nThe gauge of Port Alder is 4.2 m high.",
    }
    junk = {"name": "junk.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\x01" * 50}
    page.set_input_files("#picker", [tides, junk])
    page.wait_for_selector("#files .done")
    page.wait_for_selector("#files .failed")
    told = [line.replace("\n", " ") for line in page.locator("#files li").all_inner_texts()]
    assert told[0].endswith("indexed: 1 passage")
    assert "not taken: not a format nexi reads" in told[1]
    assert [error for error in person.trouble if "422" not in error] == []


def test_files_are_taken_where_they_are_dropped(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    drop = """() => {
      const files = new DataTransfer();
      files.items.add(new File(["# Quay\\n\\nThe quay is 90 m long."], "quay.md"));
      for (const kind of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop)
    page.wait_for_selector("#files .done")
    assert not page.evaluate("document.body.classList.contains('dropping')")
    assert person.trouble == []


def test_a_suggestion_goes_on_from_the_answer_and_the_next_one_says_from_which(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.route("**/suggestions", lambda route: route.fulfill(json={"suggestions": [NEXT]}))
    person.ask()
    person.finished()
    before = page.url.rpartition("/")[2]
    assert page.is_visible("#continuing")
    with page.expect_request("**/v1/runs") as asked:
        page.click("#next-list button")
    assert json.loads(asked.value.post_data or "")["continues"] == before
    person.finished()
    assert page.inner_text("#asked") == NEXT
    assert page.locator("#thread > li").count() == 1
    assert page.get_attribute("#thread > li", "data-id") == before


def test_the_same_question_is_asked_again_of_another_model_and_can_be_edited(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    page.select_option("#other", "extractive")
    with page.expect_request("**/v1/runs") as asked:
        page.click("#retry")
    order = json.loads(asked.value.post_data or "")
    assert (order["question"], order["options"]["model"], "continues" in order) == (QUESTION, "extractive", False)
    person.sees("without a model", "#status")
    page.click("#again")
    assert (page.input_value("#question"), page.is_visible("#continuing")) == (QUESTION, False)
    assert person.trouble == []
