"""Reading and checking side by side: cards, passages under the pointer, all places one after the other, marks where needed."""

from __future__ import annotations

from collections.abc import Callable

from rig.served import Stage
from tests.browser.scene import FAR, Watched
from tests.browser.test_keeping import opened
from tests.web import samples

Look = Callable[..., Watched]
VERDICT = "! 1 of 4 sentences supported, 1 more found, 1 contradicted, 1 not found · 2 sources · sources disagree on 1 point"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def test_the_passage_stands_beside_the_text_where_there_is_room_and_over_it_where_there_is_not(
    served: Stage, look: Look
) -> None:
    for size, is_over in ((WIDE, False), (PHONE, True)):
        page = opened(served, look, samples.planets(), viewport=size).page
        page.click("#answer .cite >> nth=0")
        page.wait_for_selector("#evidence mark")
        assert page.evaluate("document.getElementById('evidence').matches(':modal')") is is_over
        if not is_over:
            text, proof = page.locator("#answer").bounding_box(), page.locator("#evidence").bounding_box()
            assert text is not None
            assert proof is not None
            assert proof["x"] >= text["x"] + text["width"]
        page.keyboard.press("Escape")
        page.wait_for_selector("#evidence", state="hidden")


def test_a_citation_under_the_pointer_or_with_the_focus_shows_its_passage(served: Stage, look: Look) -> None:
    person = opened(served, look, samples.planets(), viewport=WIDE)
    page = person.page
    page.hover("#answer .cite >> nth=2")
    page.wait_for_selector("#peek", state="visible")
    assert page.locator("#peek p").all_inner_texts() == ["Pluto", "pluto.example · 2031-04-05"]
    assert page.inner_text("#peek blockquote") == "Pluto counted as a planet until 2006, when the term was defined."
    page.mouse.move(5, 5)
    page.wait_for_selector("#peek", state="hidden")
    page.locator("#answer .cite >> nth=1").focus()
    page.keyboard.press("Tab")
    page.wait_for_selector("#peek", state="visible")
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "peek"
    assert person.trouble == []


def test_every_place_is_walked_one_after_the_other(served: Stage, look: Look) -> None:
    page = opened(served, look, samples.planets(), viewport=WIDE).page
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark")
    count = int(page.inner_text("#evidence-at").split()[-1])
    seen = [page.inner_text("#evidence-at")]
    assert page.is_disabled("#evidence-before")
    while page.is_enabled("#evidence-after"):
        page.click("#evidence-after")
        seen.append(page.inner_text("#evidence-at"))
        assert page.locator("#answer [aria-current]").count() == 1
    assert seen == [f"Place {n} of {count}" for n in range(1, count + 1)]
    assert count > 2


def test_a_sentence_said_in_several_places_shows_them_all(served: Stage, look: Look) -> None:
    page = opened(served, look, samples.parted(), viewport=WIDE).page
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark >> nth=1")
    assert page.locator("#evidence mark").all_inner_texts() == list(samples.PARTS)
    assert "Part 1 of 2" in page.inner_text("#evidence-body")


def test_pages_that_were_only_read_are_listed_below_those_that_are_cited_also_after_a_reload(served: Stage, look: Look) -> None:
    person = look(served, viewport=WIDE)
    page = person.open()
    person.ask()
    person.finished()
    for _ in range(2):
        page.wait_for_selector("#also-read", state="visible")
        assert FAR in page.inner_text("#source-list .snippet")
        assert page.inner_text("#read-sum").startswith("Also read, not cited: ")
        assert page.inner_text("#figures") == "○ 2 of 2 sentences found in the cited pages · 1 source"
        assert page.locator("#answer .check").count() == 0
        assert not page.evaluate("document.getElementById('cost').open")
        page.reload()
        person.finished()
    assert person.trouble == []


def test_the_verdict_stands_above_the_answer_and_opens_its_sentences_each_with_its_evidence(served: Stage, look: Look) -> None:
    for size in (WIDE, PHONE):
        page = opened(served, look, samples.planets(), viewport=size).page
        line, answer = page.locator("#figures"), page.locator("#answer")
        assert line.inner_text() == VERDICT
        assert line.bounding_box()["y"] < answer.bounding_box()["y"]
        assert page.locator("#verdict-list").is_hidden()
        line.click()
        assert "right for" not in page.inner_text("#verdict-list")  # the figures of marks wait behind the question mark
        page.click("#verdict-list .meaning summary")
        assert "right for" in page.inner_text("#verdict-list")
        page.click("#verdict-list li.doubted button >> nth=0")
        page.wait_for_selector("#evidence mark")
        assert "✗ contradicted" in page.inner_text("#evidence-body")
