"""The report without a model: a section for each part, whole passages of pages about the subject, nothing twice."""

from __future__ import annotations

from nexi.llm.extractive.report import TOO_BROAD, write_report
from nexi.types import PageView

TIDES = PageView(
    "https://sea.example/tides",
    3,
    "Ocean tide - The Sea",
    "# Ocean tide\n\nAn ocean tide is the rise and fall of the sea.\n\n"
    "The main cause of the tides is the Moon. Its gravity pulls at the water. The Sun is a weaker cause.\n\n"
    "The effects on harbours are large. Ships wait for high water. A strong current has an effect on the ground too.\n\n"
    "The festival of the sea has music every summer.",
)
SHOP = PageView("https://shop.example/", 4, "Effects for guitars", "The causes and effects of noise are explained in our shop.")
PARTS = ["What are the causes of the ocean tide?", "What are the effects of the ocean tide?"]
QUESTION = "What are the causes and effects of the ocean tide?"


def test_every_part_has_a_section_of_passages_about_the_subject() -> None:
    assert write_report(QUESTION, PARTS, [TIDES, SHOP]) == (
        f"# {QUESTION}\n\n"
        "An ocean tide is the rise and fall of the sea. [3]\n\n"
        f"## {PARTS[0]}\n\n"
        "The main cause of the tides is the Moon. [3] Its gravity pulls at the water. [3] The Sun is a weaker cause. [3]\n\n"
        f"## {PARTS[1]}\n\n"
        "The effects on harbours are large. [3] Ships wait for high water. [3] "
        "A strong current has an effect on the ground too. [3]"
    )


def test_what_the_pages_do_not_say_is_named() -> None:
    text = write_report(QUESTION, [*PARTS, "Who painted the ocean tide?"], [TIDES])
    assert text.endswith("\n\n## Not found\n\n- Who painted the ocean tide?")


def test_the_same_passage_of_two_pages_is_quoted_once() -> None:
    copy = PageView("https://copy.example/", 5, "Ocean tide", TIDES.text)
    text = write_report(QUESTION, PARTS, [TIDES, copy])
    assert text.count("Its gravity pulls at the water.") == 1


def test_a_passage_that_begins_with_it_names_its_subject() -> None:
    page = PageView("https://sea.example/", 1, "Ocean tide", "It is caused by the Moon. The Moon causes it.\n\nBoats sail. [x]")
    assert "Ocean tide is caused by the Moon. [1]" in write_report(QUESTION, PARTS, [page])


def test_commands_and_bracketed_subjects_do_not_stand_in_headings() -> None:
    page = PageView(
        "https://l.example/", 2, "Lisbon", "The climate of Lisbon is mild in summer.\n\nThe city council governs Lisbon."
    )
    parts = ["Describe the climate of Lisbon.", "How is the city governed (Lisbon)?"]
    text = write_report("Describe the climate of Lisbon. How is the city governed?", parts, [page])
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        "## The climate of Lisbon",
        "## How is the city governed?",
    ]


def test_a_question_that_no_page_answers_gets_an_outline_of_its_sources() -> None:
    pages = [TIDES, SHOP]
    assert write_report("What are the ideas and forms of Italian opera?", ["Italian ideas?", "Italian forms?"], pages) == (
        f"# What are the ideas and forms of Italian opera?\n\n{TOO_BROAD}\n\n"
        "- Ocean tide: An ocean tide is the rise and fall of the sea. [3]\n"
        "- Effects for guitars: The causes and effects of noise are explained in our shop. [4]"
    )


def test_without_a_page_or_with_one_fact_asked_for_there_is_no_report() -> None:
    assert write_report(QUESTION, PARTS, []) == ""
    assert write_report("Who painted the ocean tide?", ["Who painted the ocean tide?"], [TIDES]) == ""
