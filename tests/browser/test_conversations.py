"""Conversations: threads, drafts, a question that waits for its turn, and a history to name, pin and clear."""

from __future__ import annotations

from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import ORBIT, QUESTION, Watched
from tests.browser.test_keeping import know, put, rows
from tests.browser.test_looks import SCAN, STICKING_OUT, TAGS, axe
from tests.web import samples

__all__ = ["axe"]

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
        assert page.inner_text("#thread > li > details > summary") == QUESTION
        assert page.inner_text("#asked") == NEXT
        assert page.inner_text(".turn-verdict") == "○ 2 of 2 sentences found in the cited pages · 1 source"
        page.click(".turn-answer .cite >> nth=1")
        page.wait_for_selector("#evidence mark")
        assert page.inner_text("#evidence mark") == ORBIT
        assert page.locator("#thread [aria-current]").count() == 1
        page.keyboard.press("Escape")
        page.click(".turn-sources > summary")
        assert "Moon facts" in page.inner_text(".turn-sources li")
        with page.expect_download() as saved:
            page.click(".turn-exports >> text=Markdown")
        assert saved.value.suggested_filename == f"nexi-{first.rpartition('/')[2]}.md"
        page.reload()
        person.finished()
    page.click("#show-runs")
    person.sees(NEXT, "#runs-list .later li")
    assert QUESTION in page.locator("#runs-list > .day > ul > li", has=page.locator(".later")).first.inner_text()
    page.click("#show-runs")
    page.click("#fresh")
    person.ask(QUESTION)  # a new conversation
    page.wait_for_function("() => !document.getElementById('thread').childElementCount")
    person.finished()
    assert person.trouble == []


def test_an_earlier_turn_is_edited_and_asked_again_as_a_branch_of_the_conversation(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    urls = []
    for question in (QUESTION, NEXT, QUESTION):
        page.fill("#question", question)
        page.press("#question", "Enter")
        page.wait_for_function("(urls) => location.pathname.startsWith('/runs/') && !urls.includes(location.href)", arg=urls)
        person.finished()
        urls.append(page.url)
    page.click("#thread > li:nth-child(2) >> text=Edit and ask again")
    assert page.input_value("#question") == NEXT
    page.press("#question", "Enter")
    page.wait_for_function("(urls) => !urls.includes(location.href)", arg=urls)
    person.finished()
    person.sees(QUESTION, "#thread")
    assert page.locator("#thread > li").count() == 1  # what was asked before it, and nothing of the branch that was left
    page.click("#thread > li:nth-child(1) >> text=Ask from here")
    page.fill("#question", NEXT)
    page.press("#question", "Enter")
    person.finished()
    assert page.locator("#thread > li").count() == 1
    assert person.trouble == []


def test_somebody_who_comes_back_finds_the_latest_conversations_and_questions_about_indexed_files(
    own: Stage, look: Look, axe: str
) -> None:
    know(own.home, "file:///notes/shed.md", "shed.md", "The key of the shed hangs behind the door of the kitchen.")
    person = look(own, viewport={"width": 390, "height": 844})
    page = person.open()
    assert page.locator("#recent").is_hidden()
    person.ask()
    person.finished()
    page.click(".name")
    page.wait_for_selector("#recent-list a")
    assert page.inner_text("#recent-list a") == QUESTION
    assert page.inner_text("#examples button") == "What does “shed.md” say?"
    page.evaluate(axe)
    assert (page.evaluate(SCAN, TAGS), page.evaluate(STICKING_OUT, 390)) == ([], [])
    page.click("#recent-list a")
    person.finished()
    assert page.inner_text("#asked") == QUESTION
    assert page.locator("#recent").is_hidden()
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


def test_the_history_is_by_day_and_a_question_asked_again_is_one_row_that_opens(own: Stage, look: Look) -> None:
    for facts in (samples.planets(), samples.parted(), samples.planets()):
        put(own.home, facts)
    person = look(own)
    page = person.open("/history")
    rows(page, "#runs-list > .day > ul", 2)
    assert page.locator("#runs-list h2").count() == 1
    assert page.inner_text("#runs-list summary") == "Asked 2 times"
    assert page.locator("#runs-list .q:visible").count() == 2
    page.click("#runs-list summary")
    assert page.locator("#runs-list .q:visible").count() == 3
    page.select_option("#runs-kind", "state=failed")
    person.sees("Nothing of that was asked.", "#runs-message")
    page.select_option("#runs-kind", "state=finished")
    rows(page, "#runs-list > .day > ul", 2)
    page.click("#runs-list summary")
    page.click("#runs-list details li >> text=Delete")
    page.click("#confirm-yes")
    page.wait_for_selector("#runs-list details", state="detached")
    rows(page, "#runs-list > .day > ul", 2)
    assert person.trouble == []


def test_a_run_is_named_and_pinned_and_several_are_deleted_at_once(own: Stage, look: Look) -> None:
    for facts in (samples.planets(), samples.parted(), samples.right_to_left()):
        put(own.home, facts)
    person = look(own)
    page = person.open("/history")
    rows(page, "#runs-list ul", 3)
    page.click("#runs-list .rows > li >> nth=2 >> text=Rename")
    page.keyboard.press("Control+a")
    page.keyboard.type("All of <b>them</b>")
    page.keyboard.press("Enter")
    person.sees("All of <b>them</b>", "#runs-list .q")
    page.click("#runs-list .rows > li >> nth=2 >> text=Pin")
    person.sees("★", "#runs-list .state")
    page.reload()
    rows(page, "#runs-list ul", 3)
    assert page.locator("#runs-list .q").first.inner_text() == "All of <b>them</b>"
    told = page.locator("#runs-list .state").first.inner_text()
    assert "words" in told
    assert "12 s" in told
    assert "$0.01" in told
    for place in (1, 2):
        page.locator("#runs-list input").nth(place).check()
    assert page.inner_text("#runs-delete") == "Delete 2 runs"
    page.click("#runs-delete")
    page.click("#confirm-yes")
    rows(page, "#runs-list ul", 1)
    assert page.is_hidden("#runs-delete")
    assert len(list((own.home / "runs").iterdir())) == 1
    assert person.trouble == []
