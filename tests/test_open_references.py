"""Questions about a thing that nothing has named."""

from __future__ import annotations

import pytest

from nexi.text.references import describe_open_reference, find_open_reference
from nexi.types import Message


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What facilities does this library provide?", "library"),
        ("When was the famous basketball player born?", "player"),
        ("What is the Jewish population in the country?", "country"),
        ("What sporting events are hosted in the country's stadium?", "country"),
        ("Who is the author of Emma?", ""),
        ("Does the Prince of Wales have an income?", ""),
        ("How many books does the Ewell library lend?", ""),
        ("What are tides?", ""),
        ("What made Shen Kuo believe that the mountains were worn down?", ""),
        ("Who was responsible for the new building projects in Jacksonville?", ""),
        ("What is the longest river?", ""),
        ("Who was the first president?", ""),
        ("Who wrote the origin of species?", ""),
        ("what is the largest city in germany", ""),
        ("who directed the movie jaws", ""),
        ("what does this library do", "library"),
        ("How wealthy is this county of California?", "county"),
        ("Does this clinic treat veterans in Minneapolis?", "clinic"),
        ("What are the best practices for using the SDK?", "sdk"),
        ("Who wrote the book that the TV series is based on?", "book"),
        ("Who invented this camera?", "camera"),
        ("Who invented the camera?", ""),
        ("Who sings this song, Yesterday?", ""),
        ("Where is the tower located?", "tower"),
        ("What does this Scottish whisky bar company sell?", "company"),
        ("Which ranks does the fire department's Cadet program have?", "fire department"),
        ("Which ranks does the Ewell fire department have?", ""),
        ("Where can I call the Superior Court?", "superior court"),
        ("Where can I call the Superior Court of Ewell?", ""),
        ("How is the Mayor elected?", "mayor"),
        ("Tell me about a particular village in Wales.", "village"),
        ("How long did that war last?", "war"),
        ("How true is that animals dream?", ""),
        ("Is this a good book for children?", ""),
        ("What are the attacks on teachers causing?", ""),
        ("Which safety rules hold in the holiday season?", ""),
        ("What does this book say?", ""),
        ("Why is the ocean salty?", ""),
        ("What is the bank's interest rate?", "bank"),
        ("What facilities does this library provide? (Ewell library)", ""),
    ],
)
def test_a_thing_that_was_never_named_is_open(question: str, kind: str) -> None:
    assert find_open_reference(question) == kind


def test_a_question_that_brings_a_long_text_is_not_searched_for_what_it_leaves_open() -> None:
    assert find_open_reference("What does the library in Ewell say about the company? " * 20_000) == ""


def converse(*texts: str) -> list[Message]:
    """A conversation of questions and answers in turn."""
    return [Message("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]


def test_what_the_conversation_has_named_is_not_open() -> None:
    assert (
        find_open_reference("When does the library open?", converse("Tell me about libraries in Ewell.", "There are two."))
        == ""
    )
    assert find_open_reference("Who wrote this book?", converse("What is Emma?", "Emma is a novel.")) == ""


def test_half_of_another_word_names_nothing() -> None:
    earlier = converse("What is a price-to-book ratio?", "A figure.")
    assert find_open_reference("Who wrote the book?", earlier) == "book"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did the Bay Watchers season begin?", "season"),
        ("When was the season of Bay Watchers broadcast?", "season"),
        ("Which team won the FIFA World Cup?", "world cup"),
        ("Who hosted the Olympics?", "olympics"),
        ("When does the NFL season begin?", ""),
        ("When did the third season of Bay Watchers begin?", ""),
        ("Who won the 2018 FIFA World Cup?", ""),
        ("Who won the most recent World Cup?", ""),
        ("Which country has won every World Cup final?", ""),
        ("How did the episode where Rachel leaves end?", ""),
    ],
)
def test_what_recurs_under_one_name_is_open_without_a_number(question: str, kind: str) -> None:
    assert find_open_reference(question) == kind


def test_one_of_several_that_were_asked_about_is_open_until_one_is_named() -> None:
    plans = converse("What types of plans does Veltrix offer?", "Basic and Prime.")
    assert find_open_reference("How many seats are in the plan?", plans) == "plan"
    assert find_open_reference("How many seats are in the Basic plan?", plans) == ""
    assert find_open_reference("How many seats are in the plan for schools?", plans) == ""
    prime = converse("What does the Prime plan cost?", "It costs 9 crowns.")
    assert find_open_reference("How many seats are in the plan?", [*plans, *prime]) == ""
    assert find_open_reference("Where does the rover land?", converse("What are rovers?", "Machines.")) == ""


def test_it_after_two_things_were_compared_is_open() -> None:
    earlier = converse("Which is better: the line chart or the bar chart?", "It depends on the purpose.")
    assert find_open_reference("How does it show gaps?", earlier) == "one"
    assert find_open_reference("Is it possible to show gaps?", earlier) == ""
    assert find_open_reference("How does it show gaps?", converse("What is a line chart?", "A chart.")) == ""


def test_it_is_not_several_things() -> None:
    earlier = converse("Why do companies pay dividends?", "To reward owners.")
    assert find_open_reference("How much does it pay?", earlier) == "one"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How old is he?", "one"),
        ("When was it built?", "thing"),
        ("Who wrote it?", "thing"),
        ("What is the price of this gizmo?", "gizmo"),
        ("What time is it?", ""),
        ("How long does it take to fly to Mars?", ""),
        ("When does it rain in Ewell?", ""),
        ("How far is it to Ewell?", ""),
        ("How do they make cheese?", ""),
        ("Where are they?", "one"),
        ("What is it about?", ""),
        ("What happened in this century?", ""),
        ("What comes of this happening?", ""),
    ],
)
def test_a_first_question_that_points_at_something_is_open(question: str, kind: str) -> None:
    assert find_open_reference(question) == kind


def test_a_pronoun_of_a_later_question_stands_for_what_was_talked_about() -> None:
    assert find_open_reference("How old is he?", converse("Who is Ada Lund's brother?", "Ole Lund.")) == ""


@pytest.mark.parametrize(
    "question",
    [
        "How did it change the car industry?",
        "What does the school system cost?",
        "How large is the film business?",
    ],
)
def test_the_first_half_of_a_compound_is_no_thing_that_has_a_name(question: str) -> None:
    assert find_open_reference(question) == ""


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("When does the library open?", "which library is meant"),
        ("How old is he?", "what “he” refers to"),
        ("Where is it?", "what “it” refers to"),
        ("What is the price of this gizmo?", "which gizmo is meant"),
    ],
)
def test_what_a_question_leaves_open_is_said_with_its_own_word(question: str, missing: str) -> None:
    assert describe_open_reference(question, find_open_reference(question)) == missing
