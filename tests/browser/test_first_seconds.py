"""The first seconds of a question, while the server and the model say nothing yet: the page is never blank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rig.served import Stage
from tests.browser.scene import DEEP, QUESTION, Watched
from tests.browser.test_looks import PHONE, SCAN, STICKING_OUT, TAGS, axe

__all__ = ["axe"]

Look = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}


@pytest.mark.parametrize(("viewport", "question"), [(PHONE, QUESTION), (WIDE, QUESTION), (WIDE, DEEP)])
def test_question_status_and_skeleton_stand_there_before_anything_answers(
    served: Stage, look: Look, axe: str, viewport: dict[str, int], question: str
) -> None:
    person = look(served, viewport=viewport)
    page = person.open()
    waiting: list[Any] = []
    page.route("**/v1/runs", lambda route: waiting.append(route))
    served.model.hold("search", "plan")
    if question == DEEP:
        page.select_option("#effort", "deep")
    page.fill("#question", question)
    page.press("#question", "Enter")

    def shown() -> list[object]:
        page.evaluate(axe)
        found = [*page.evaluate(SCAN, TAGS), *page.evaluate(STICKING_OUT, viewport["width"])]
        return [
            page.inner_text("#asked"),
            page.is_visible("#work-wait"),
            page.is_visible("#stop"),
            page.inner_text("#work-sum"),
            found,
        ]

    assert shown() == [question, True, True, "Starting", []]  # the server has not been reached
    assert page.inner_text("#status") == "Starting"
    while not waiting:
        page.wait_for_timeout(10)
    waiting[0].continue_()
    page.wait_for_url("**/runs/*")
    served.model.wait_for("plan" if question == DEEP else "search")
    assert shown() == [question, True, True, "Starting", []]  # the model is silent
    assert page.inner_text("#status")
    served.model.release()
    page.wait_for_selector("#work-wait", state="hidden")
    page.keyboard.press("Escape")
    person.finished()
    assert person.trouble == []
