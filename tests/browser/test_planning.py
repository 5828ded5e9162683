"""The plan that waits: lines, order, limits and cost, and how a person who looks elsewhere learns of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rig.served import Stage
from tests.browser.scene import DEEP, Watched

Look = Callable[..., Watched]
# Notifications and the tab in the background, as a browser without a screen cannot show them.
LOOKING_ELSEWHERE = """
  window.told = [];
  window.Notification = class { constructor(text, about) { window.told.push([text, about.body]); } };
  Notification.permission = "default";
  Notification.requestPermission = async () => { Notification.permission = "granted"; };
  window.away = false;
  Object.defineProperty(document, "hidden", { get: () => window.away });
"""


def planned(person: Watched) -> Any:
    page = person.open()
    page.select_option("#effort", "deep")
    page.click("#more")
    page.check("#planned")
    person.ask(DEEP)
    page.wait_for_selector("#plan-tasks li")
    return page


def tasks(page: Any) -> list[str]:
    return list(page.locator("#plan-tasks textarea").evaluate_all("(all) => all.map((one) => one.value)"))


def test_enter_adds_a_line_and_only_the_button_starts(served: Stage, look: Look) -> None:
    person = look(served)
    page = planned(person)
    before, searches = tasks(page), served.model.reached["search"]
    page.focus("#plan-tasks li:nth-child(1) textarea")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("A line of mine")
    assert tasks(page) == [before[0], "A line of mine", *before[1:]]
    page.keyboard.press("Alt+ArrowUp")
    assert tasks(page) == ["A line of mine", *before]
    page.click("#plan-tasks li:nth-child(1) >> [aria-label='Move task 1 down']")
    assert tasks(page) == [before[0], "A line of mine", *before[1:]]
    page.click("#plan-add")
    assert (page.is_disabled("#plan-add"), page.inner_text("#plan-limit")[:27]) == (True, "A plan has at most 5 tasks,")
    page.keyboard.press("Enter")
    assert len(tasks(page)) == 5
    page.keyboard.press("Backspace")
    assert (len(tasks(page)), page.inner_text("#plan-limit")) == (4, "")
    assert "model calls" in page.inner_text("#plan-cost")
    assert "No price is set for this model" in page.inner_text("#plan-cost")
    assert served.model.reached["search"] == searches
    page.click("#plan-no")
    person.sees("Cancelled: the research was not started", "#status")
    assert page.locator("#notes .error").count() == 0
    page.reload()
    person.sees("Cancelled: the research was not started", "#status")
    assert person.trouble == []


def test_a_plan_that_waits_is_said_in_the_title_and_in_the_history(served: Stage, look: Look) -> None:
    person = look(served)
    page = planned(person)
    assert page.title() == f"◐ Waiting for you - {DEEP[:60]} - nexi"
    page.click("#show-runs")
    person.sees("◐ waiting for you", "#runs-list > .day > ul > li .state")
    page.go_back()
    page.click("#plan-go")
    page.wait_for_function("() => !document.title.includes('Waiting')")
    person.finished()
    assert page.title() == f"{DEEP[:60]} - nexi"
    assert person.trouble == []


def test_the_end_of_a_run_is_told_to_who_looks_elsewhere_and_wants_it(served: Stage, look: Look) -> None:
    person = look(served)
    person.page.add_init_script(LOOKING_ELSEWHERE)
    page = planned(person)
    page.click("#notify")
    page.wait_for_selector("#notify", state="hidden")
    assert page.evaluate("Notification.permission") == "granted"
    page.evaluate("() => { window.away = true; const now = performance.now(); performance.now = () => now + 60000; }")
    page.click("#plan-go")
    person.finished()
    page.wait_for_function("() => window.told.length")
    assert page.evaluate("window.told") == [["The answer is there", DEEP]]
    assert page.title().startswith("✓ ")
    page.evaluate("() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }")
    assert page.title() == f"{DEEP[:60]} - nexi"
    assert person.trouble == []
