"""Conversations: threads, drafts, a question that waits for its turn, and a history to name, pin and clear."""

from __future__ import annotations

from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import QUESTION, Watched
from tests.browser.test_keeping import put, rows
from tests.web import samples

Look = Callable[..., Watched]
NEXT = "Which moons does Mars have?"
FIRST = "The Moon is 384,400 km from Earth on average"


def test_a_follow_up_stands_below_what_was_said_before_also_after_a_reload(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask()
    person.finished()
    first = page.url
    page.fill("#question", NEXT)
    page.press("#question", "Enter")
    page.wait_for_function("(first) => location.href !== first", arg=first)
    person.finished()
    for _ in range(2):
        person.sees(FIRST, "#thread .turn-answer")
        assert page.inner_text("#thread summary") == QUESTION
        assert page.inner_text("#asked") == NEXT
        assert page.locator("#thread button").count() == 0
        assert page.get_attribute("#thread a", "href") == first.removeprefix(served.base)
        page.reload()
        person.finished()
    page.click("#show-runs")
    person.sees(NEXT, "#runs-list .later li")
    assert QUESTION in page.locator("#runs-list > li", has=page.locator(".later")).first.inner_text()
    page.click("#show-runs")
    page.click("#fresh")
    person.ask(QUESTION)  # a new conversation
    page.wait_for_function("() => !document.getElementById('thread').childElementCount")
    person.finished()
    assert person.trouble == []


def test_a_draft_is_kept_over_a_reload_until_it_is_asked(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    page.type("#question", "How far is")
    page.reload()
    page.wait_for_function("() => document.getElementById('question').value === 'How far is'")
    person.ask()
    person.finished()
    page.reload()
    person.finished()
    assert page.input_value("#question") == ""
    assert person.trouble == []


def test_a_question_sent_during_a_run_is_asked_when_it_has_ended(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    served.model.hold("middle")
    person.ask()
    person.sees(FIRST)
    page.fill("#question", "Another one")
    page.press("#question", "Enter")
    person.sees("Another one", "#queued")
    page.click("#queued-no")
    assert page.is_hidden("#queued")
    page.fill("#question", NEXT)
    page.press("#question", "Enter")
    assert page.input_value("#question") == ""
    page.reload()
    person.sees(NEXT, "#queued")
    first = page.url
    served.model.release()
    page.wait_for_function("(first) => location.href !== first", arg=first)
    person.sees(NEXT, "#asked")
    person.finished()
    person.sees(FIRST, "#thread .turn-answer")
    assert page.is_hidden("#queued")
    assert person.trouble == []


def test_a_run_is_named_and_pinned_and_several_are_deleted_at_once(own: Stage, look: Look) -> None:
    for facts in (samples.planets(), samples.parted(), samples.right_to_left()):
        put(own.home, facts)
    person = look(own)
    page = person.open("/history")
    rows(page, "#runs-list", 3)
    page.click("#runs-list > li >> nth=2 >> text=Rename")
    page.keyboard.press("Control+a")
    page.keyboard.type("All of <b>them</b>")
    page.keyboard.press("Enter")
    person.sees("All of <b>them</b>", "#runs-list .q")
    page.click("#runs-list > li >> nth=2 >> text=Pin")
    person.sees("★", "#runs-list .state")
    page.reload()
    rows(page, "#runs-list", 3)
    assert page.locator("#runs-list .q").first.inner_text() == "All of <b>them</b>"
    told = page.locator("#runs-list .state").first.inner_text()
    assert "words" in told
    assert "12 s" in told
    assert "$0.01" in told
    page.check("#runs-list > li:nth-child(2) > input")
    page.check("#runs-list > li:nth-child(3) > input")
    assert page.inner_text("#runs-delete") == "Delete 2 runs"
    page.click("#runs-delete")
    page.click("#confirm-yes")
    rows(page, "#runs-list", 1)
    assert page.is_hidden("#runs-delete")
    assert len(list((own.home / "runs").iterdir())) == 1
    assert person.trouble == []
