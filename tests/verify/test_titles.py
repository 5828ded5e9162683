"""Headings, labels, lead-ins and heads of tables: which may stand without a source, and which state something."""

from __future__ import annotations

import pytest

from tests.verify.shelf import Desk

TRUE = "The Eiffel Tower is 330 metres tall [1]."


async def release(line: str, *, strict: bool, question: str = "What is known about the tower?") -> str:
    """What is let out of a line between two true sentences."""
    desk = Desk(strict=strict, rewrites=False, question=question)
    await desk.review(f"{TRUE}\n\n{line}\n\nIt was completed in 1889 [1].\n")
    before, _, after = desk.text.partition(TRUE)
    assert (before, after[-30:]) == ("", "\nIt was completed in 1889 [1].")
    return after.removesuffix("It was completed in 1889 [1].").strip()


@pytest.mark.parametrize(
    "line",
    [
        "## Smoking cures asthma",
        "**The mayor resigned over bribes**",
        "## It is unsafe",
        "### THE LIFT FLOODS WEEKLY",
        "The visitors worship purple lizards:",
        "| Smoking cures asthma |\n|---|\n| 330 metres [1] |",
        "Why is it that smoking cures asthma?",
    ],
)
async def test_a_title_that_states_what_no_page_says_is_left_out_of_a_strict_answer(line: str) -> None:
    assert line.splitlines()[0] not in await release(line, strict=True)


@pytest.mark.parametrize("line", ["## Smoking cures asthma", "**The mayor resigned over bribes**", "## It is unsafe"])
async def test_a_title_that_states_what_no_page_says_is_marked(line: str) -> None:
    assert "[unverified]" in await release(line, strict=False)


@pytest.mark.parametrize(
    "line",
    [
        "## Background",
        "## Economic impact",
        "## Legal and regulatory framework",
        "## Lessons learned",
        "## Alternatives that remain",
        "## How it works",
        "**Risks and uncertainties**",
        "## The tower was completed in 1889",
        "There are several reasons for this:",
    ],
)
async def test_a_title_that_only_names_its_subject_stands_unmarked(line: str) -> None:
    assert await release(line, strict=False) == line


@pytest.mark.parametrize(
    "line", ["## Background", "## The completed tower", "**Key points**", "The main points are as follows:"]
)
async def test_a_title_in_the_words_of_the_pages_stands_in_a_strict_answer(line: str) -> None:
    assert await release(line, strict=True) == line


async def test_the_words_of_the_readers_question_are_not_new_in_a_title() -> None:
    question = "Does smoking cure asthma?"
    assert await release("## Smoking and asthma", strict=True, question=question) == "## Smoking and asthma"


async def test_a_clause_of_which_no_word_stands_in_the_page_is_never_carried_by_the_rest() -> None:
    lie = "The Eiffel Tower is 330 metres tall; smoking cures asthma [1]."
    assert await release(lie, strict=True) == ""
    assert await release("The Eiffel Tower, 330 metres tall, was completed in 1889 [1].", strict=True) != ""
