"""Questions for one thing ("what is gold"): only a page about it or a sentence that says what it is explains it."""

from __future__ import annotations

import pytest

from nexi.llm.extractive._evidence import Compare
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.questions import read_question
from nexi.types import Answered, PageView


def rating(question: str, title: str, text: str) -> Answered:
    """How an answer is rated where the reading model finds every sentence very near to the question."""
    near: Compare = lambda asked, texts: [0.95 for _ in texts]  # noqa: E731
    return compose_answer(
        read_question(question), [PageView("https://p.test/", 1, title, f"# {title}\n\n{text}")], near
    ).answered


@pytest.mark.parametrize(
    ("question", "title", "text"),
    [
        ("what is gold", "Elon Gold", "Elon Gold is an American comedian, actor and producer."),
        ("what is islam", "Islamism", "Islamism, also known as political Islam, is an Islamic revival movement."),
        ("what is buddhism", "Victoria", "Buddhism is the state's largest non-Christian religion, with 168,637 members."),
        ("who was napoleon", "Man of Destiny", "It revolves around the early career of Napoleon Bonaparte."),
        ("what is communism", "Torn from the Flag", "Torn from the Flag is a film about the decline of communism."),
    ],
)
def test_a_sentence_that_only_has_the_word_does_not_explain_it(question: str, title: str, text: str) -> None:
    assert rating(question, title, text) == "no"


@pytest.mark.parametrize(
    ("question", "title", "text"),
    [
        ("what is gold", "Gold", "Gold is a chemical element with the symbol Au."),
        ("what is gold", "Metals", "Gold is a soft yellow metal."),
        ("what are primes", "Mathematics", "A prime is a natural number that has no positive divisors but 1 and itself."),
        ("what is the ipcc", "Climate Change Panel", "The Climate Panel (IPCC) is a scientific body of the United Nations."),
        (
            "what is the ipcc",
            "Intergovernmental Panel on Climate Change",
            "The IPCC produces reports that support the climate treaty.",
        ),
        ("who was Ada Lovelace", "Computing", "Ada Lovelace was an English mathematician."),
    ],
)
def test_a_page_about_it_or_a_sentence_that_says_what_it_is_explains_it(question: str, title: str, text: str) -> None:
    assert rating(question, title, text) == "yes"


@pytest.mark.parametrize(
    ("question", "title", "text"),
    [
        ("what is photosynthesis", "Oxygen", "Oxygen is released by photosynthesis, which uses the energy of sunlight."),
        ("who is isaac newton", "Force", "Isaac Newton formulated the laws of motion."),
    ],
)
def test_what_is_said_of_it_in_passing_is_likely_at_most(question: str, title: str, text: str) -> None:
    assert rating(question, title, text) == "likely"


@pytest.mark.parametrize(
    "question",
    ["what is the capital of france", "who is jacksonville named after", "what is it", "when was gold found"],
)
def test_other_questions_name_no_thing_to_explain(question: str) -> None:
    assert read_question(question).thing == ""
