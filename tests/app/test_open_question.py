"""What a person may be asked back about: names of things, and never what a title smuggles in."""

from __future__ import annotations

import pytest

from nexi.app.questions import MAX_NAME_CHARS, MAX_READINGS, _list_namesakes
from nexi.types import Hit

QUESTION = "When was Osgood founded?"


def hits(*titles: str) -> list[Hit]:
    return [Hit(url=f"https://towns.test/{n}", title=title) for n, title in enumerate(titles)]


def test_the_things_of_one_name_are_asked_about_in_the_order_of_the_results() -> None:
    found = _list_namesakes(QUESTION, hits("Osgood, Ohio", "Osgood, Indiana", "Osgood, Ohio"))
    assert found == ("Osgood, Ohio", "Osgood, Indiana")


@pytest.mark.parametrize(
    "title",
    [
        "Osgood (<script>alert(1)</script>)",
        "Osgood (&lt;b&gt;)",
        "Osgood ([press](javascript:alert))",
        "Osgood (https://evil.test)",
        f"Osgood, {'Ohio ' * MAX_NAME_CHARS}",
    ],
)
def test_a_title_that_is_no_name_is_no_reading(title: str) -> None:
    assert _list_namesakes(QUESTION, hits("Osgood, Indiana", title)) == ()
    assert _list_namesakes(QUESTION, hits("Osgood, Indiana", title, "Osgood, Ohio")) == ("Osgood, Indiana", "Osgood, Ohio")


def test_nobody_is_asked_about_more_than_a_handful() -> None:
    states = ("Ohio", "Indiana", "Missouri", "Idaho", "Illinois", "Iowa", "Kansas")
    assert len(_list_namesakes(QUESTION, hits(*(f"Osgood, {state}" for state in states)))) == MAX_READINGS
