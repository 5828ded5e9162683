"""Whether pages answer a question: rated by the words, names and subjects that question and pages share."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nexi.llm.extractive.composition import rate_pages
from nexi.types import PageView

MOON = PageView(
    "https://moon.example/", 1, "The Moon", "The Moon is 384,400 km from Earth on average.\n\nIt has no air to speak of."
)
BAND = PageView(
    "https://band.example/",
    2,
    "Newsboys",
    "Newsboys are a rock band.\n\nTheir singer left in 2009 and was taken on by another group.\n\nThe band plays in public.",
)


def test_a_page_that_says_it_answers_the_question() -> None:
    assert rate_pages("How far is the Moon from Earth?", [BAND, MOON]) == "yes"


@pytest.mark.parametrize("question", ["how far is the moon from earth", "how far away is the moon"])
def test_a_question_in_small_letters_is_answered_too(question: str) -> None:
    assert rate_pages(question, [MOON]) in ("yes", "likely")


@pytest.mark.parametrize(
    "question",
    ["When was Northern Rock taken into public hands?", "What is the boiling point of hafnium carbide?"],
)
def test_pages_that_share_stray_words_do_not_answer(question: str) -> None:
    assert rate_pages(question, [BAND, MOON]) == "no"


def test_no_page_answers_nothing() -> None:
    assert rate_pages("How far is the Moon?", []) == "no"
    assert (
        rate_pages("How far is the Moon?", [PageView("https://moon.example/", 1, "Moon", "", "it could not be read")]) == "no"
    )


def test_a_question_about_a_given_address_is_never_refused() -> None:
    assert rate_pages("Sum up https://moon.example/ in one line", [BAND]) == "likely"


def test_a_question_without_content_words_is_never_refused() -> None:
    assert rate_pages("and what about that?", [MOON]) == "likely"


def test_what_it_concludes_is_answered_by_a_line_that_says_so() -> None:
    page = PageView("https://barley.example/", 1, "", "The trial concludes that clover raises the yield of barley.")
    assert rate_pages("what does it conclude", [page], lambda asked, texts: [0.3] * len(texts)) == "likely"


def test_a_question_of_two_parts_is_likely_answered_where_one_of_them_is() -> None:
    assert rate_pages("how far is the moon from earth and what makes it glow red in the evening sky?", [MOON]) == "likely"
    assert rate_pages("what makes it glow red in the evening sky?", [MOON]) == "no"


def nearer_together(asked: str, texts: Sequence[str]) -> list[float]:
    """A reading model for which a text is near to a question only with what was asked before it."""
    return [0.9 if "conversation" in asked else 0.7 for _ in texts]


def test_a_question_in_a_conversation_is_rated_with_what_was_asked_before() -> None:
    question = "is it safe to breathe there without a suit and helmet?"
    assert rate_pages(question, [MOON], nearer_together) == "no"
    assert rate_pages(question, [MOON], nearer_together, "a conversation about the Moon") == "likely"
    assert rate_pages(question, [BAND], lambda asked, texts: [0.7] * len(texts), "a conversation about bands") == "no"


def test_a_date_or_a_number_is_not_near_to_a_conversation_because_its_subject_is() -> None:
    earlier = "a conversation about the Moon"
    assert rate_pages("when did Armstrong first breathe without a suit?", [MOON], nearer_together, earlier) == "no"
    assert rate_pages("when did he first breathe without a suit?", [MOON], nearer_together, earlier) == "likely"


def test_a_fact_is_answered_in_a_conversation_where_a_sentence_that_holds_it_is_near_to_the_question_itself() -> None:
    question, earlier = "when did Armstrong first breathe without a suit?", "a conversation about the Moon"
    dated = PageView("https://moon.example/", 1, "The Moon", "The landing was on 20 July 1969, and a suit was worn.")
    undated = PageView("https://moon.example/", 1, "The Moon", "The landing was a success, and a suit was worn.")
    assert rate_pages(question, [dated], lambda asked, texts: [0.89] * len(texts), earlier) == "likely"
    assert rate_pages(question, [dated], lambda asked, texts: [0.86] * len(texts), earlier) == "no"
    assert rate_pages(question, [undated], lambda asked, texts: [0.89] * len(texts), earlier) == "no"


def test_a_thing_that_the_conversation_is_about_need_not_be_explained_in_so_many_words() -> None:
    page = PageView("https://orsa.example/", 1, "Accounts", "On the accounts page you view your enterprise and its members.")
    assert rate_pages("What is an enterprise?", [page], lambda asked, texts: [0.89] * len(texts)) == "no"
    assert (
        rate_pages("What is an enterprise?", [page], lambda asked, texts: [0.89] * len(texts), "Can I move accounts?")
        == "likely"
    )
