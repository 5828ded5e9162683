"""A question for one cell of a table is answered by its row and its column, as the table has them, and passes the check."""

from __future__ import annotations

import pytest

from evals.table_cells import count_answers
from evals.table_documents import PDF_TABLES, SHEET_TABLES
from nexi.checking.pages import prepare
from nexi.checking.rules import check_claim
from nexi.llm.extractive.composition import compose_answer
from nexi.llm.extractive.passages import PassageSentence, read_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView, Verdict

ACCOUNTS = """# Accounts

| | 2017 | 2018 | 2019 |
| --- | --- | --- | --- |
| Other income (expense), net | 346 | (183) | 203 |
| Provision for income taxes | (769) | (1,197) | (2,374) |
| Goodwill |  | 865 | |
"""


def answer(question: str, text: str = ACCOUNTS) -> str:
    lines = compose_answer(read_question(question), [PageView("file:///accounts.md", 1, "accounts.md", text)]).lines
    return lines[0][0] if lines else ""


def test_a_row_keeps_its_empty_cells_and_the_heads_of_its_columns() -> None:
    (row,) = [sentence for sentence in read_sentences(ACCOUNTS) if sentence.text.startswith("Goodwill")]
    heads, cells = ("", "2017", "2018", "2019"), ("Goodwill", "", "865", "")
    assert row == PassageSentence("Goodwill – – 865 –", 5, "Accounts", "row", heads, cells)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What was the provision for income taxes in 2018?", "Provision for income taxes – 2018: (1,197)"),
        ("What was the other income in 2019?", "Other income (expense), net – 2019: 203"),
        ("How high was the goodwill?", "Goodwill – 2018: 865"),
        (
            "How high was the goodwill in 2017?",
            "Goodwill – 2018: 865",
        ),  # which is not a figure of 2017, and does not look like one
    ],
)
def test_the_cell_is_quoted_with_its_row_and_its_column(question: str, quoted: str) -> None:
    assert answer(question) == quoted
    assert check_claim(f"{quoted} [1]", {1: prepare(ACCOUNTS)}, question).verdict is Verdict.FOUND


def test_the_head_of_a_table_is_no_answer() -> None:
    assert answer("What happened in 2017, 2018 and 2019?") != "2017 – 2018 – 2019"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The provision for income taxes was (769) in 2017", Verdict.FOUND),
        ("The provision for income taxes was (769) in 2018", Verdict.CONTRADICTED),
        ("Goodwill was 865 in 2018", Verdict.FOUND),
    ],
)
def test_a_figure_is_checked_against_the_column_that_the_sentence_names(claim: str, verdict: Verdict) -> None:
    assert check_claim(f"{claim} [1].", {1: prepare(ACCOUNTS)}).verdict is verdict


def test_a_bar_inside_a_cell_moves_no_column() -> None:
    page = prepare("| Sign | Name | Use |\n|---|---|---|\n| a\\|b | pipe | joins |\n| c | dash | parts |")
    assert check_claim("Sign: a|b – Use: joins [1]", {1: page}).verdict is Verdict.FOUND


def test_cells_of_tables_in_documents_are_answered() -> None:
    """A floor under `make eval`, which says which were not."""
    tables = [table for table in (*PDF_TABLES, *SHEET_TABLES) if len(table.rows) < 20]
    assert count_answers(tables) >= len(tables) - 2


COMPANY = """# Corvane Instruments

Corvane Instruments is a maker of scientific instruments with its seat in Ellerby. It sells pumps in many countries.

- Type: Public
- Founded: 4 April 1875
- Number of employees: 12,300 (2024)
- Revenue: €1.9 billion (2024)
- Headquarters: Ellerby, Northmoor

The company grew quickly after the war. In 1923 it moved to a new building and hired 300 people.
"""


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ("When was Corvane Instruments founded?", "Founded: 4 April 1875"),
        ("How many employees does Corvane Instruments have?", "Number of employees: 12,300 (2024)"),
        ("What is the revenue of Corvane Instruments?", "Revenue: €1.9 billion (2024)"),
        ("Where is the headquarters of Corvane Instruments?", "Headquarters: Ellerby, Northmoor"),
    ],
)
def test_a_field_of_an_infobox_answers_what_it_names(question: str, field: str) -> None:
    page = PageView("https://wiki.example/corvane", 1, "Corvane Instruments - Wiki", COMPANY)
    assert compose_answer(read_question(question), [page]).lines == ((field, 1),)
    assert check_claim(f"{field} [1]", {1: prepare(COMPANY)}, question).verdict is Verdict.FOUND
