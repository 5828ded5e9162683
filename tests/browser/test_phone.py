"""The page as an installed app: it opens without a network, with the last answers of its owner, and takes what others share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.served import Stage
from tests.browser.scene import QUESTION, Watched
from tests.browser.test_looks import PHONE, STICKING_OUT

Look = Callable[..., Watched]
NARROW = {"width": 390, "height": 844}
KEPT = "async () => (await (await caches.open('nexi-answers')).keys()).length"
SHELL = "async () => Boolean(await caches.match('/')) && Boolean(await caches.match('/static/app.js'))"


def test_the_shell_and_the_last_answer_open_without_a_network_and_go_with_the_right_to_read(served: Stage, look: Look) -> None:
    person = look(served, viewport=PHONE, is_mobile=True, has_touch=True, service_workers="allow")
    page = person.open()
    page.wait_for_function(SHELL)
    person.ask()
    person.finished()
    person.open(page.url.removeprefix(person.base))  # once through the worker
    person.finished()
    page.wait_for_function(f"async () => (await ({KEPT})()) > 0")
    page.context.set_offline(True)
    page.reload()
    person.sees("384,400 km")
    assert page.inner_text("#asked") == QUESTION
    page.context.set_offline(False)
    page.context.clear_cookies()
    page.evaluate("() => fetch('/page/history')")
    page.wait_for_function(f"async () => (await ({KEPT})()) === 0")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?title=Moon&draft=Is+this+true%3F&link=https%3A%2F%2Fmoon.test%2F", "Is this true? https://moon.test/"),
        ("?title=Moon", "Moon"),
    ],
)
def test_what_another_app_shares_is_filled_in_and_not_asked(served: Stage, look: Look, query: str, expected: str) -> None:
    person = look(served)
    page = person.open(f"/{query}")
    page.wait_for_function("() => document.getElementById('question').value")
    assert (page.input_value("#question"), page.evaluate("location.search")) == (expected, "")
    assert page.is_hidden("#run")


@pytest.mark.parametrize("locale", ["en-US", "de-DE", "es-ES", "fr-FR", "ar-EG"])
def test_the_header_is_one_line_on_a_phone(served: Stage, look: Look, locale: str) -> None:
    person = look(served, viewport=NARROW, is_mobile=True, has_touch=True, locale=locale)
    page = person.open()
    assert page.evaluate("document.querySelector('header').getBoundingClientRect().height") < 70
    assert (
        page.evaluate(
            "(() => { const nav = document.querySelector('header nav'); return nav.scrollWidth - nav.clientWidth; })()"
        )
        <= 0
    )
    assert page.evaluate(STICKING_OUT, NARROW["width"]) == []
