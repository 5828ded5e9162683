"""Asking, watching, stopping, leaving and coming back, as a person does it."""

from __future__ import annotations

import re
from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import FAR, QUESTION, Watched

Look = Callable[..., Watched]
FIRST = "The Moon is 384,400 km from Earth on average"
SECOND = "It orbits Earth in 27.3 days"

# Keeps the most often any sentence stood in the answer at one time, and whether text that stood there went away again.
WATCH_TEXT = """([first, second]) => {
  const count = (text, part) => text.split(part).length - 1;
  const seen = window.seen = { first: 0, second: 0, lost: 0, longest: "" };
  const look = () => {
    const text = document.getElementById("answer").innerText;
    seen.first = Math.max(seen.first, count(text, first));
    seen.second = Math.max(seen.second, count(text, second));
    if (seen.longest.includes(first) && !text.includes(first)) seen.lost++;
    if (text.length > seen.longest.length) seen.longest = text;
  };
  const all = { childList: true, subtree: true, characterData: true };
  new MutationObserver(look).observe(document.getElementById("answer"), all);
  look();
}"""


def test_an_answer_is_read_while_it_is_written(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("middle")
    person.ask()
    person.sees(FIRST)
    assert SECOND not in page.inner_text("#answer")
    assert page.is_visible("#stop")
    assert page.inner_text("#asked") == QUESTION
    page.evaluate(WATCH_TEXT, [FIRST, SECOND])
    served.model.release()
    person.finished()
    seen = page.evaluate("window.seen")
    assert {key: seen[key] for key in ("first", "second", "lost")} == {"first": 1, "second": 1, "lost": 0}
    assert page.locator("#answer .cite").count() == 2
    assert "Moon facts" in page.inner_text("#source-list")
    assert person.trouble == []


def test_escape_stops_a_run_and_what_there_is_becomes_the_answer(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("answer")
    person.ask()
    served.model.wait_for("answer", served.model.reached["answer"] + 1)
    page.keyboard.press("Escape")
    person.finished()
    assert FIRST in page.inner_text("#answer")
    assert person.trouble == []


def test_a_reload_in_the_middle_shows_what_was_written_and_goes_on(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("middle")
    person.ask()
    person.sees(FIRST)
    page.reload()
    page.evaluate(WATCH_TEXT, [FIRST, SECOND])
    person.sees(FIRST)
    assert page.inner_text("#asked") == QUESTION
    assert page.is_visible("#stop")
    served.model.release()
    person.finished()
    seen = page.evaluate("window.seen")
    assert {key: seen[key] for key in ("first", "second", "lost")} == {"first": 1, "second": 1, "lost": 0}
    assert person.trouble == []


def test_a_server_that_is_killed_and_started_again_goes_on_with_the_run_and_the_page_with_it(own: Stage, look: Look) -> None:
    person = look(own)
    page = person.open()
    own.model.hold("middle")
    person.ask()
    person.sees(FIRST)
    page.evaluate(WATCH_TEXT, [FIRST, SECOND])
    asked = len(own.model.requests)
    own.server.kill()
    page.wait_for_function("() => document.getElementById('status').innerText.toLowerCase().includes('connect')")
    with page.expect_response("**/page/render"):  # the resumed run tells its sentence again
        own.server.start()
    person.sees(FIRST)
    own.model.wait_for("middle", 2)
    own.model.release()
    person.finished()
    seen = page.evaluate("window.seen")
    assert (seen["first"], seen["second"]) == (1, 1)
    assert SECOND in page.inner_text("#answer")
    assert len(own.model.requests) - asked <= 2  # only what was not recorded is asked for again
    refused = [e for e in person.trouble if "ERR_CONNECTION" not in e and "ERR_INCOMPLETE" not in e and "ERR_EMPTY" not in e]
    assert refused == []


def test_a_citation_leads_to_the_passage_that_carries_it(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark")
    assert page.inner_text("#evidence mark") == FAR
    assert SECOND in page.inner_text("#evidence .passage")
    link = page.get_attribute("#evidence a[href*=':~:text=']", "href")
    assert link is not None
    assert re.fullmatch(re.escape(served.web) + r"/moon\.test/facts#:~:text=The%20Moon.*", link)
    page.keyboard.press("Escape")
    page.wait_for_selector("#evidence", state="hidden")
    assert person.trouble == []


def test_everything_is_reached_with_the_keyboard_alone(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.type(QUESTION)
    page.keyboard.press("Shift+Enter")
    assert page.input_value("#question") == QUESTION + "\n"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    person.finished()
    reached: list[str] = []
    page.evaluate("document.getElementById('question').focus()")
    while "Source 1" not in reached and len(reached) < 40:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText"))
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert "Source 1" in reached
    page.keyboard.press("Enter")
    page.wait_for_selector("#evidence mark")
    assert page.evaluate("document.getElementById('evidence').contains(document.activeElement)")
    page.keyboard.press("Escape")
    page.wait_for_selector("#evidence", state="hidden")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Source 1"
    assert person.trouble == []
