"""The report without a model: what answers first, nothing twice, nothing beside its task."""

from __future__ import annotations

from nexi.events import ResearcherReported, ResearcherStarted, RoundEvaluated
from nexi.research.evaluator import build_digest
from nexi.research.state import fold
from tests.research.test_evaluator import after

QUESTION = "Who was born first, Ada Lovelace or Alan Turing?"


def test_what_answers_the_question_comes_first_and_without_a_second_title() -> None:
    state = after(
        "Ada Lovelace was born in 1815. [1] Alan Turing was born in 1912. [2]",
        "Ada Lovelace wrote notes on an engine. [1]",
        question=QUESTION,
        tasks=(QUESTION, "Ada Lovelace"),
    )
    assert build_digest(state, quoted=True) == (
        f"# {QUESTION}\n\nAda Lovelace was born in 1815. [1] Alan Turing was born in 1912. [2]\n\n"
        "## Ada Lovelace\n\nAda Lovelace wrote notes on an engine. [1]"
    )


def test_sentences_that_stand_there_already_are_left_out_also_when_they_are_shortened() -> None:
    state = after(
        "Ada Lovelace was born in 1815 in London. [1]",
        "Ada Lovelace was born in 1815 … [3] She died in London in 1852. [3]",
        question=QUESTION,
        tasks=(QUESTION, "Ada Lovelace"),
    )
    assert build_digest(state, quoted=True) == (
        f"# {QUESTION}\n\nAda Lovelace was born in 1815 in London. [1]\n\n## Ada Lovelace\n\nShe died in London in 1852. [3]"
    )


def test_pages_that_do_not_bear_on_their_task_are_left_out_and_the_task_is_named() -> None:
    state = after(
        "Ada Lovelace was born in 1815. [1]",
        "A turing machine is a machine. [4] It has a tape. [4]",
        question=QUESTION,
        tasks=(QUESTION, "Alan Turing"),
    )
    assert build_digest(state, quoted=True) == (
        f"# {QUESTION}\n\nAda Lovelace was born in 1815. [1]\n\n## Not found\n\n- Alan Turing"
    )


def test_a_task_that_was_looked_for_again_has_one_section() -> None:
    tasks = ("What causes ocean tides?", "How far is the Moon?")
    state = after("The ocean is deep. [1]", "The Moon is far away. [2]", question="Tides and the Moon", tasks=tasks)
    again = fold(
        [
            RoundEvaluated(1, "delegate", ("causes ocean tides",)),
            ResearcherStarted("2.1", 2, "causes ocean tides"),
            ResearcherReported("2.1", "The Moon causes ocean tides. [3]"),
        ],
        state,
    )
    text = build_digest(again, quoted=True)
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Tides and the Moon",
        "## What causes ocean tides?",
        "## How far is the Moon?",
    ]
    assert "The Moon causes ocean tides. [3]" in text


def test_reports_of_a_model_keep_their_paragraphs_below_the_headings_of_the_tasks() -> None:
    report = "# Summary\n\nThe Moon is far [1].\n\n## Findings\n\n- It is 384,400 km away [1].\n\n## Sources\n\n[1] Moon"
    text = build_digest(after(report, question="Moon?", tasks=("How far is the Moon?",)))
    assert text == (
        "# Moon?\n\n## How far is the Moon?\n\n### Summary\n\nThe Moon is far [1].\n\n"
        "### Findings\n\n- It is 384,400 km away [1]."
    )


def test_a_report_without_a_citation_says_nothing_and_its_task_is_named_as_missing() -> None:
    state = after("Nothing on the pages answers this.", "", question="Who?", tasks=("What causes ocean tides?", "Who was Ada?"))
    assert build_digest(state, quoted=True) == "# Who?\n\n## Not found\n\n- What causes ocean tides?\n- Who was Ada?"


def test_when_nothing_bears_on_its_task_what_was_found_is_told_all_the_same() -> None:
    state = after("Bees make honey. [1]", question="Who was Ada Lovelace?", tasks=("Ada Lovelace",))
    assert "Bees make honey. [1]" in build_digest(state, quoted=True)
