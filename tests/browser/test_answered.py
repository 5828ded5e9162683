"""Whether the question is answered: a line under the answer, apart from the marks of its sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rig.served import Stage, stage
from tests.browser.scene import PAGES, Telling, Watched

Look = Callable[..., Watched]
UNKNOWN = "What is the boiling point of hafnium on Earth?"
PARTLY = "How far is the Moon from Earth, and what is the boiling point of hafnium carbide?"
TRUE = "The Moon is 384,400 km from Earth on average [1]."
KNOWN = "When was the far side of the Moon first photographed?"
DATED = "The far side of the Moon was first photographed in 1959 [1]."
NOT_ANSWERED = "Not answered: the pages do not seem to answer the question."
LIKELY = "Likely answer: the pages match only part of the question."


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("answered"), PAGES, Telling({UNKNOWN: TRUE, PARTLY: TRUE, KNOWN: DATED})) as there:
        yield there


@pytest.mark.parametrize(("question", "rating", "line"), [(UNKNOWN, "no", NOT_ANSWERED), (PARTLY, "likely", LIKELY)])
def test_a_line_under_the_answer_says_what_the_pages_lack(
    served: Stage, look: Look, question: str, rating: str, line: str
) -> None:
    person = look(served, viewport={"width": 900, "height": 700})
    page = person.open()
    person.ask(question)
    person.finished()
    note, answer = page.locator("#answered"), page.locator("#answer")
    assert note.is_visible()
    assert note.inner_text() == line
    assert note.get_attribute("role") == "note"
    assert page.inner_text("#status") == f"{'Written' if rating == 'no' else 'Answered'} by scripted"
    assert f"a-{rating}" in note.get_attribute("class").split()
    assert 0 < note.bounding_box()["y"] - answer.bounding_box()["y"] - answer.bounding_box()["height"] < 50
    assert TRUE.partition(" [")[0] in answer.inner_text()
    assert (
        page.inner_text("#figures") == "○ 1 of 1 sentence found in the cited pages · 1 source"
    )  # it stands in its source all the same
    assert person.trouble == []


def test_the_line_stays_when_the_page_is_opened_again_and_goes_with_the_next_question(served: Stage, look: Look) -> None:
    person = look(served)
    page = person.open()
    person.ask(UNKNOWN)
    person.finished()
    page.reload()
    person.sees(NOT_ANSWERED, "#answered")
    person.open()
    person.ask(KNOWN)
    person.finished()
    assert page.locator("#answered").is_hidden()


def test_the_line_of_an_unanswered_question_can_be_read_in_light_and_dark(served: Stage, look: Look) -> None:
    for scheme in ("light", "dark"):
        person = look(served, color_scheme=scheme)
        page = person.open()
        person.ask(UNKNOWN)
        person.finished()
        ratio = page.evaluate(
            """() => {
              const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
              const light = (color) => {
                paint.clearRect(0, 0, 1, 1);
                paint.fillStyle = color;
                paint.fillRect(0, 0, 1, 1);
                const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
                const [r, g, b] = paint.getImageData(0, 0, 1, 1).data;
                return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
              };
              const pair = [light(getComputedStyle(document.getElementById("answered")).color),
                            light(getComputedStyle(document.body).backgroundColor)].sort((a, b) => b - a);
              return (pair[0] + 0.05) / (pair[1] + 0.05);
            }"""
        )
        assert ratio >= 4.5, scheme
