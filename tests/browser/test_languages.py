"""The page in other languages: that of the browser at first, that of the settings afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.served import Stage
from tests.browser.scene import DEEP, QUESTION, Watched
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe, running

__all__ = ["axe"]  # the fixture of the scanner

Look = Callable[..., Watched]
FOLDER = Path(__file__).resolve().parent.parent.parent / "nexi" / "web" / "page" / "texts"


def texts_of(language: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return read


def test_a_german_reads_german_from_the_question_to_the_evidence(served: Stage, look: Look) -> None:
    person = look(served, locale="de-DE")
    page = person.open()
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.inner_text("#hello h1") == "Was möchten Sie wissen?"
    served.model.hold("middle")
    person.ask()
    person.sees("384,400 km")
    person.sees("Schreibt die Antwort", "#status")
    served.model.release()
    person.finished()
    assert page.inner_text("#status") == "Beantwortet von scripted"
    assert page.inner_text("#figures") == "○ 2 von 2 Sätzen in den zitierten Seiten gefunden · 1 Quelle"
    assert page.get_attribute("#answer .cite", "aria-label") == "Quelle 1"
    page.click("#answer .cite >> nth=0")
    page.wait_for_selector("#evidence mark")
    assert page.inner_text("#evidence-head") == "Beleg"
    assert page.inner_text("#evidence-at") == "Stelle 1 von 2"
    assert person.trouble == []


def test_the_language_is_chosen_in_the_settings_and_stays(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open("/setup")
    page.wait_for_selector("#settings-language")
    assert page.input_value("#settings-language") == ""
    with page.expect_navigation():
        page.select_option("#settings-language", "zh")
    page.wait_for_selector("#settings-language")
    assert page.inner_text("#setup-head") == "设置"
    person.open()
    assert page.inner_text("#hello h1") == "你想知道什么？"
    assert page.get_attribute("#question", "placeholder") == "随便问"
    person.open("/setup")
    page.wait_for_selector("#settings-language")
    assert page.input_value("#settings-language") == "zh"
    with page.expect_navigation():
        page.select_option("#settings-language", "")
    page.wait_for_selector("#settings-language")
    assert page.inner_text("#setup-head") == "Setup"
    assert person.trouble == []


def test_an_arabic_page_runs_from_right_to_left_and_code_and_charts_do_not(served: Stage, look: Look) -> None:
    person = look(served, viewport=PHONE, is_mobile=True, has_touch=True, locale="ar-EG")
    page = person.open()
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == ["ar", "rtl"]
    person.ask()
    person.finished()
    left = "(id) => document.getElementById(id).getBoundingClientRect().left"
    assert page.evaluate(left, "go") < page.evaluate(left, "question") + PHONE["width"] / 2  # the button stands at the end
    assert page.evaluate("getComputedStyle(document.getElementById('answer')).direction") == "ltr"  # the answer is English
    assert page.evaluate("document.querySelector('header nav').getBoundingClientRect().left") < PHONE["width"] / 4
    assert person.trouble == []


@pytest.mark.parametrize(
    ("language", "locale"), [("de", "de-DE"), ("es", "es-ES"), ("fr", "fr-FR"), ("zh", "zh-CN"), ("ar", "ar-EG")]
)
def test_a_language_fits_a_phone_and_the_scanner_finds_nothing(
    served: Stage, look: Look, axe: str, language: str, locale: str
) -> None:
    person = look(served, viewport=PHONE, is_mobile=True, has_touch=True, locale=locale)
    page, found = person.open(), {}
    names = texts_of(language)["page"]

    def scan(state: str) -> None:
        page.evaluate(axe)
        found[state] = [*page.evaluate(SCAN, TAGS), *page.evaluate(STICKING_OUT, PHONE["width"])]

    scan("start")
    person.ask(QUESTION)
    person.finished()
    scan("finished")
    page.click("#show-runs")
    person.sees(QUESTION, "#runs-list li")
    scan("history")
    person.open("/setup")
    page.wait_for_selector("#settings-save")
    scan("setup")
    assert page.inner_text("#doctor-go") == names["doctor"]
    person.open()
    for _ in running(person, served):
        scan("running")
        assert DEEP in page.inner_text("#asked")
    page.keyboard.press("Escape")
    person.finished()
    assert found == {"start": [], "finished": [], "history": [], "setup": [], "running": []}
    assert person.trouble == []
