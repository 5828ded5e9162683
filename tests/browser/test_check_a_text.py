"""Checking a text on the page: what a person pastes, the marks in it, the passages below it, and an audit of its links."""

from __future__ import annotations

from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import Watched
from tests.browser.test_looks import SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]

Look = Callable[..., Watched]
FACT, LIE, OTHER = (
    "The Moon is 384,400 km from Earth on average.",
    "The Moon is 12 km from Earth on average.",
    "Cats own it all.",
)


def check(person: Watched, text: str, pages: str = "") -> None:
    page = person.page
    page.click("#show-check")
    page.wait_for_selector("#check-text")
    page.fill("#check-text", text)
    page.fill("#check-pages", pages)
    page.click("#check-go")
    page.wait_for_selector("#check-claims > li")


def test_a_text_is_checked_against_a_page_with_marks_and_passages(served: Stage, look: Look, axe: str) -> None:
    person = look(served, viewport={"width": 390, "height": 844})
    page = person.open()
    check(person, f"{FACT} {LIE} {OTHER}", f"{served.web}/moon.test/facts")
    assert page.evaluate("location.pathname") == "/check"
    assert page.inner_text("#check-figures").split("\n")[0] == "○ 1 found ✗ 1 contradicted · 1 not confirmed"
    assert page.locator("#check-shown .check").count() == 2
    page.click("#check-shown .v-contradicted")
    assert page.evaluate("document.activeElement.id") == "check-claim-1"
    assert FACT in page.inner_text("#check-claim-1 .passage")
    assert page.inner_text("#check-result .message").startswith("No judge read this text")
    page.evaluate(axe)
    assert (page.evaluate(SCAN, TAGS), page.evaluate(STICKING_OUT, 390), person.trouble) == ([], [], [])


def test_the_links_of_a_report_are_audited(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open("/check")
    page.wait_for_selector("#check-text")
    page.check("#check-audit")
    page.fill("#check-text", f"{FACT[:-1]} [1]({served.web}/moon.test/facts). {OTHER[:-1]} [2]({served.web}/gone.test/).")
    page.click("#check-go")
    page.wait_for_selector("#check-claims > li")
    assert "Precision 50 % Recall 50 %" in page.inner_text("#check-figures")
    assert "not read: HTTP 404" in page.inner_text("#check-source-2")


def test_what_cannot_be_checked_is_said_in_the_language_of_the_reader(served: Stage, look: Look) -> None:
    person = look(served, locale="de-DE")
    page = person.open("/check")
    page.wait_for_selector("#check-text")
    assert page.inner_text("#check-head") == "Einen Text prüfen"
    page.fill("#check-text", FACT)
    page.fill("#check-pages", "nirgendwo")
    page.click("#check-go")
    person.sees("nirgendwo ist keine Adresse einer Webseite.", "#check-message")
    check_again = f"{served.web}/moon.test/facts"
    page.fill("#check-pages", check_again)
    page.click("#check-go")
    page.wait_for_selector("#check-claims > li")
    assert "gefunden" in page.inner_text("#check-claims")
    assert person.trouble == []
