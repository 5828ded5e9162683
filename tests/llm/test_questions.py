"""How a question is read: what people say around it asks for nothing."""

from __future__ import annotations

import pytest

from nexi.llm.extractive.questions import read_question


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Can you provide more details of E. E. Cummings?", "E. E. Cummings?"),
        ("Do you know when the song was released?", "when the song was released?"),
        ("BTW how do cemeteries earn money?", "how do cemeteries earn money?"),
        ("Thanks! Could you please explain how tides work?", "how tides work?"),
        ("Please give me some information on the wool tax.", "the wool tax."),
        ("I'd like to know if wells freeze", "wells freeze"),
        ("So, what is a prime?", "what is a prime?"),
    ],
)
def test_what_is_said_around_a_question_is_left_out(text: str, question: str) -> None:
    assert read_question(text).text == question


@pytest.mark.parametrize(
    "text",
    [
        "Tell me more.",
        "Thanks!",
        "Well water quality in Ohio",
        "Great Britain population",
        "Hello world in Python",
        "Interesting facts about Mars",
        "Will you be there?",
        "How do you know that a melon is ripe?",
        "Können Sie mir sagen, wo er lebte?",
    ],
)
def test_words_that_belong_to_the_question_stay(text: str) -> None:
    assert read_question(text).text == text
