"""One sentence that asks several things is answered part by part, and says which parts no page answers."""

from __future__ import annotations

import pytest

from evals.own_documents import ask_documents
from nexi.llm.extractive.questions import list_queries, read_question, split_question
from nexi.types import Answer

FERRY = {
    "prices.md": "# Orsa Ferry prices\n\nA season ticket costs 210 crowns.\n",
    "rules.md": "# Orsa Ferry rules\n\nDogs are allowed on a lead.\n",
    "ferry.md": "# Orsa Ferry\n\nThe Orsa Ferry was founded in 1912 by Karl Berg. It runs from April to October.\n",
}


def ask(question: str) -> Answer:
    answer = ask_documents(FERRY, question)
    assert isinstance(answer, Answer), answer
    return answer


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "What does git rebase do, when should I use it, and what are its risks?",
            ["What does git rebase do?", "when should I use git rebase?", "what are git rebase's risks?"],
        ),
        ("Who wrote Emma? When was it published?", ["Who wrote Emma?", "When was Emma published?"]),
        ("What is WAL mode and how do I turn it on?", ["What is WAL mode?", "how do I turn on WAL mode?"]),
        ("Can you tell me who wrote Emma and when it was published?", ["who wrote Emma?", "when Emma was published?"]),
        (
            "When was the Orsa Bridge opened, who designed it, how long is it, which river does it cross and what did it cost?",
            [
                "When was the Orsa Bridge opened?",
                "who designed the Orsa Bridge?",
                "how long is the Orsa Bridge?",
                "which river does the Orsa Bridge cross?",
                "what did the Orsa Bridge cost?",
            ],
        ),
        (
            "Who is Ida Lund, who designed the bridge, and when was she born?",
            ["Who is Ida Lund, who designed the bridge?", "when was Ida Lund born?"],
        ),
        ("How do I know when and where to vote?", []),
        ("What is the difference between what WAL does and what a journal does?", []),
        ("The composer is married to an artist and what kind of activist?", []),
        ("What studio produced the film, which starred Ann Lee and Jon Hart?", []),
        ("What time does it open and close?", []),
        ("Wer hat das Buch geschrieben und wann ist es erschienen?", []),
    ],
)
def test_a_sentence_is_split_where_it_plainly_asks_several_things(question: str, parts: list[str]) -> None:
    assert [part.text for part in split_question(read_question(question))] == parts


def test_each_part_is_searched_with_the_names_of_the_first() -> None:
    assert list_queries(read_question("Who wrote Emma, when was it published and what is the plot?")) == [
        "Who wrote Emma, when was it published and what is the plot?",
        "Who wrote Emma?",
        "when was Emma published?",
        "what is the plot (Emma)?",
    ]


def test_each_part_has_a_paragraph_and_what_answers_two_of_them_stands_once() -> None:
    answer = ask("Who founded the Orsa Ferry, when was it founded and what does a season ticket cost?")
    assert answer.text == "The Orsa Ferry was founded in 1912 by Karl Berg. [1]\n\nA season ticket costs 210 crowns. [2]"
    assert answer.answered == "yes"


def test_the_parts_that_no_page_answers_are_named() -> None:
    answer = ask("What does a season ticket cost and what is the dress code?")
    assert answer.text == (
        "A season ticket costs 210 crowns. [1]\n\nNone of the pages that were read answers “what is the dress code”."
    )
    assert answer.answered == "likely"
    assert answer.review is not None
    assert [claim.text for claim in answer.review.proof.checked] == ["A season ticket costs 210 crowns. [1]"]


def test_five_questions_in_one_sentence_are_all_answered_or_named() -> None:
    question = (
        "Who founded the Orsa Ferry, when does it run, what does a season ticket cost, what are the rules for dogs "
        "and where can I park?"
    )
    assert ask(question).text == (
        "The Orsa Ferry was founded in 1912 by Karl Berg. [1]\n\nIt runs from April to October. [1]\n\n"
        "A season ticket costs 210 crowns. [2]\n\nDogs are allowed on a lead. [3]\n\n"
        "None of the pages that were read answers “where can I park”."
    )


def test_where_no_part_is_answered_the_question_is_refused_as_a_whole() -> None:
    answer = ask("Why is the sky blue and who invented paper?")
    assert answer.text == "Nothing on the pages that could be read answers this question."
    assert answer.answered == "no"
