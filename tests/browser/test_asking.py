"""Asking, watching, stopping, leaving and coming back, as a person does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rig.served import Stage, stage
from tests import namesakes
from tests.browser.scene import DEEP, FAR, PAGES, QUESTION, Telling, Watched

Look = Callable[..., Watched]
FIRST = "The Moon is 384,400 km from Earth on average"
SECOND = "It orbits Earth in 27.3 days"
MINE, ADDED = "How wide are Phobos and Deimos?", "Who found the moons of Mars?"

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


def test_an_effort_chosen_before_the_form_is_filled_stays(served: Stage, look: Look) -> None:
    person = look(served)
    held: list[Any] = []
    person.page.route("**/page/form", lambda route: held.append(route))
    with person.page.expect_request("**/page/form"):
        page = person.open()
    page.select_option("#effort", "deep")
    with page.expect_response("**/page/models"):
        held[0].continue_()
    assert (page.input_value("#effort"), person.trouble) == ("deep", [])


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
    own.server.start()
    own.model.wait_for("middle", 2)  # the resumed run has told its first sentence again
    person.sees(FIRST)
    own.model.release()
    person.finished()
    seen = page.evaluate("window.seen")
    assert (seen["first"], seen["second"]) == (1, 1)
    assert SECOND in page.inner_text("#answer")
    assert len(own.model.requests) - asked <= 3  # only what was not recorded is asked for again, and what to ask next
    lost = ("ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "ERR_SOCKET_NOT_CONNECTED")  # as a browser names a killed server
    refused = [e for e in person.trouble if not any(name in e for name in lost)]
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


def test_a_run_has_an_address_that_shows_it_again_and_is_found_in_the_history(served: Stage, look: Look) -> None:
    person, other = look(served), look(served)
    page = person.open()
    person.ask()
    person.finished()
    again = other.open(page.url.removeprefix(served.base))
    other.finished()
    assert again.inner_text("#asked") == QUESTION
    assert again.locator("#answer .cite").count() == 2
    again.click("#show-runs")
    again.fill("#runs-filter", "how long is its orbit")
    other.sees(QUESTION, "#runs-list li")
    assert other.trouble == []


def test_a_plan_is_changed_before_anything_is_spent_on_it(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    searches = served.model.reached["search"]
    page.select_option("#effort", "deep")
    page.click("#more")
    page.check("#planned")
    person.ask(DEEP)
    page.wait_for_selector("#plan-tasks li")
    planned = page.locator("#plan-tasks textarea").evaluate_all("(all) => all.map((one) => one.value)")
    assert len(planned) == 3
    page.reload()  # a plan waits for whoever comes back
    page.wait_for_selector("#plan-tasks li")
    page.fill("#plan-tasks li:nth-child(1) textarea", MINE)
    page.click("#plan-tasks li:nth-child(3) button:last-child")
    page.click("#plan-tasks li:nth-child(2) button:last-child")
    page.click("#plan-add")
    page.keyboard.type(ADDED)
    assert served.model.reached["search"] == searches
    page.click("#plan-go")
    person.finished()
    page.click("#work > summary")
    page.locator("#researchers li", has_text=ADDED).wait_for()
    told = "\n".join(page.locator("#researchers li").all_inner_texts())
    assert MINE in told
    assert planned[2] not in told
    assert page.is_hidden("#plan")
    assert person.trouble == []


def test_research_that_may_mean_several_things_is_asked_back_once_before_it_begins(look: Look, tmp_path: Path) -> None:
    with stage(tmp_path, namesakes.PAGES, None) as there:
        person = look(there)
        page = person.open()
        page.select_option("#effort", "deep")
        page.fill("#question", namesakes.QUESTION)
        page.press("#question", "Enter")
        page.wait_for_selector("#readings-list button")
        assert page.inner_text("#readings-head") == "Which one do you mean?"
        assert sorted(page.locator("#readings-list button").all_inner_texts()) == ["All of them", *namesakes.READINGS]
        assert "/runs/" not in page.url
        page.click(f"#readings-list button:has-text('{namesakes.READINGS[1]}')")
        page.wait_for_url("**/runs/*")
        person.finished()
        shown = page.inner_text("#answer")
        assert ("Arsenal" in shown, "Bulls" in shown, page.is_hidden("#readings")) == (True, False, True)
        assert person.trouble == []


def test_a_first_visit_without_a_model_works_and_says_how_to_add_one(look: Look, tmp_path: Path) -> None:
    with stage(tmp_path, PAGES, None) as there:
        person = look(there)
        page = person.open()
        person.sees("Set up a model", "#welcome")
        person.ask()
        person.finished()
        assert "384,400 km" in page.inner_text("#answer")
        assert page.inner_text("#hint") == "Without a model: passages from the pages. Add one in Setup."
        assert person.trouble == []


def test_a_server_that_wants_a_token_is_used_with_it_and_not_without(look: Look, tmp_path: Path) -> None:
    with stage(tmp_path, PAGES, Telling(), NEXI_TOKEN="a-long-secret-of-the-test") as there:
        person = look(there)
        page = person.open()
        page.wait_for_selector("#token", state="visible")
        page.fill("#token-text", "a-long-secret-of-the-test")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token", state="hidden")
        person.ask()
        person.finished()
        assert SECOND in page.inner_text("#answer")
        page.click("#answer .cite >> nth=0")
        page.wait_for_selector("#evidence mark")
        assert "a-long-secret" not in page.url + page.content()


def test_a_question_in_the_address_is_asked_where_the_browser_brought_it(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.page
    page.goto(f"{served.base}/?{urlencode({'q': QUESTION})}")
    page.wait_for_url("**/runs/*")
    person.finished()
    assert page.inner_text("#asked") == QUESTION
    page.goto(f"{served.base}/?{urlencode({'draft': QUESTION})}")
    page.wait_for_function("(text) => document.getElementById('question').value === text", arg=QUESTION)
    assert (page.url, page.locator("#run").is_hidden()) == (f"{served.base}/", True)
    assert person.trouble == []


def test_a_sum_is_answered_while_it_is_typed_and_says_what_it_is(served: Stage, look: Look) -> None:
    person = look(served, viewport={"width": 390, "height": 844})
    page = person.open()
    page.fill("#question", "12 * (3 + 4)")
    person.sees("Calculated in your browser: 12 * (3 + 4) = 84", "#instant")
    page.fill("#question", "12 men")
    page.wait_for_selector("#instant", state="hidden")
    assert person.trouble == []
