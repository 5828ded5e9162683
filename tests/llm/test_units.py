"""What the built-in model quotes of manuals where a reading model is installed: entries, lists, code, sentences in a row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nexi.llm.extractive._evidence import Compare, SentenceRanking, rank_sentences
from nexi.llm.extractive._quotation import join_quotations
from nexi.llm.extractive._units import describe_units, find_units, pick_apart
from nexi.llm.extractive.composition import compose_answer, rate_pages
from nexi.llm.extractive.passages import read_sentences
from nexi.llm.extractive.questions import read_question
from nexi.types import PageView

MANUAL = """# lamp-reset

The `lamp_reset` command moves the head of a branch.

## Undo a commit and redo

```
$ lamp commit
$ lamp reset --soft
```

## Options

-q

--quiet

Be quiet. Only errors of `lamp_reset` are told.

## Modes

A reset has one of these modes:

- `soft` keeps all files.
- `hard` throws changes away.

The mode is kept in `lamp_mode`. It is read once at the start.
"""
PAGE = PageView("https://lamp.example/reset", 1, "lamp-reset", MANUAL)


def prefers(wanted: str) -> Compare:
    """A reading model that finds a text near to any question where it says this."""

    def compare(asked: str, texts: Sequence[str]) -> list[float]:
        return [0.97 if wanted in text else 0.75 for text in texts]

    return compare


def answer(question: str, wanted: str, *pages: PageView) -> str:
    return join_quotations(compose_answer(read_question(question), pages or (PAGE,), prefers(wanted)).lines)


def test_units_are_entries_lists_code_and_sentences_in_a_row() -> None:
    sentences = read_sentences(MANUAL)
    units = {tuple(s.text for s in sentences[unit.first : unit.last]) for unit in find_units(sentences)}
    assert ("Undo a commit and redo", "$ lamp commit", "$ lamp reset --soft") in units
    assert ("A reset has one of these modes:", "`soft` keeps all files.", "`hard` throws changes away.") in units
    assert ("--quiet", "Be quiet.", "Only errors of `lamp_reset` are told.") in units
    assert ("The mode is kept in `lamp_mode`.", "It is read once at the start.") in units
    assert ("-q",) not in units


def test_units_that_are_compared_do_not_overlap() -> None:
    units, rows = describe_units(SentenceRanking(read_question("lamp reset modes"), [PAGE]))
    chosen = pick_apart(units, [row["score"] for row in rows])
    places = [place for i in chosen for place in range(units[i].place, units[i].last)]
    assert len(places) == len(set(places))


def test_a_how_to_of_a_manual_is_answered_with_the_code_under_its_heading() -> None:
    code = "```\n$ lamp commit\n$ lamp reset --soft\n```"
    assert answer("undo last lamp commit", "--soft").startswith(f"Undo a commit and redo: [1]\n\n{code}")


def test_an_option_is_quoted_under_all_its_names() -> None:
    said = "-q, --quiet: Be quiet. [1] Only errors of `lamp_reset` are told. [1]"
    assert answer("quiet lamp errors", "Be quiet").startswith(said)


def test_a_list_is_quoted_whole_with_the_sentence_before_it() -> None:
    said = "A reset has one of these modes: [1]\n- `soft` keeps all files. [1]\n- `hard` throws changes away. [1]"
    assert answer("lamp reset modes", "A reset has one").startswith(said)


def test_a_table_is_quoted_by_its_rows_without_its_head() -> None:
    table = "Levels of `lamp_log` are:\n\n| Level | Use |\n| --- | --- |\n| `LOW` | detail |\n| `HIGH` | errors |\n"
    said = "Levels of `lamp_log` are: [1]\n- `LOW` – detail [1]\n- `HIGH` – errors [1]"
    assert answer("lamp log levels", "Levels of", PageView("https://lamp.example/log", 1, "lamp-log", table)) == said


def test_without_a_reading_model_or_where_it_fails_words_decide() -> None:
    question = read_question("undo last lamp commit")
    assert compose_answer(question, [PAGE], lambda asked, texts: None) == compose_answer(question, [PAGE])


def test_an_answer_from_a_manual_is_rated_by_how_near_it_is() -> None:
    assert rate_pages("undo last lamp commit", [PAGE], prefers("--soft")) == "yes"
    assert rate_pages("undo last lamp commit", [PAGE], prefers("nothing here")) == "no"


def test_a_manual_of_one_endless_line_is_answered_from() -> None:
    page = PageView("https://lamp.example/long", 1, "lamp", "The `lamp_mode` setting is read once " + "and again " * 20_000)
    assert answer("lamp mode setting", "lamp_mode", page).startswith("The `lamp_mode` setting is read once and again")


@pytest.mark.parametrize(
    "question",
    ["lamp", "undo commit", "wie macht man in lamp einen Commit rückgängig?", "lamp commit and " * 300, "?", "¿¡"],
    ids=["one word", "no verb", "another language", "very long", "a mark", "marks"],
)
def test_odd_questions_about_a_manual_get_an_answer_or_none_without_an_error(question: str) -> None:
    draft = compose_answer(read_question(question), [PAGE], prefers("--soft"))
    assert all(text.strip("`- ") and number == 1 for text, number in draft.lines)


def test_a_question_in_another_language_is_not_compared_by_a_model_that_knows_english_only() -> None:
    def compare(asked: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError(asked)

    question = read_question("Wie macht man in lamp einen Commit rückgängig, ohne die Dateien zu verlieren?")
    assert compose_answer(question, [PAGE], compare) == compose_answer(question, [PAGE])


def test_each_side_of_a_comparison_is_quoted() -> None:
    modes = "# lamp-modes\n\n--soft\n\nKeeps all files of `lamp_tree`.\n\n--hard\n\nThrows all changes of `lamp_tree` away.\n"

    def compare(asked: str, texts: Sequence[str]) -> list[float]:
        return [0.97 if f"--{asked.split()[-1]}" in text else 0.75 for text in texts]

    draft = compose_answer(read_question("lamp soft vs hard"), [PageView("https://lamp.example", 1, "lamp", modes)], compare)
    assert draft.lines == (
        ("- --soft: Keeps all files of `lamp_tree`.", 1),
        ("- --hard: Throws all changes of `lamp_tree` away.", 1),
    )


def test_the_same_pages_are_indexed_once_for_answering_and_rating() -> None:
    first, second = (rank_sentences(read_question("undo last lamp commit"), (PAGE,)) for _ in range(2))
    assert first is second
    assert rank_sentences(read_question("lamp reset modes"), (PAGE,)) is not first
    assert rank_sentences(read_question("undo last lamp commit", "lamp modes"), (PAGE,)) is not first


def test_a_sentence_that_says_what_the_subject_is_stands_against_many_that_only_name_it() -> None:
    calls = "\n\n".join(f"## Call {n}\n\n`tool.call{n}` of tool gives back value {n} as the tool has it." for n in range(80))
    pages = (
        PageView("https://d.example/calls", 1, "Calls of tool", f"# Calls of tool\n\n{calls}"),
        PageView("https://d.example/start", 2, "First steps", "# First steps\n\nTool is a program that sorts letters by age."),
    )
    ranking = SentenceRanking(read_question("what is tool"), pages)
    units, rows = describe_units(ranking)
    assert [unit.sentence.text for unit, row in zip(units, rows, strict=True) if row["defines"] and unit.page == 1]


@pytest.mark.parametrize(
    ("first", "pages"),
    [
        ("`lamp_reset` is a command that moves the head of a branch.", {1}),
        ("Because of `lamp_reset`, it is wise to keep a copy of a branch.", {1, 2}),
    ],
)
def test_what_a_thing_is_comes_from_the_page_that_says_so(first: str, pages: set[int]) -> None:
    def doubts(asked: str, texts: Sequence[str]) -> list[float]:
        return [0.95 if first in text else 0.94 for text in texts]

    one = PageView("https://lamp.example/reset", 1, "lamp-reset", f"# lamp-reset\n\n{first}\n\nIt is read in `lamp_mode`.")
    two = PageView("https://lamp.example/log", 2, "lamp-log", "# lamp-log\n\n`lamp_reset` is in the first line of `lamp_log`.")
    answered = compose_answer(read_question("What is lamp_reset?"), (one, two), doubts)
    assert {number for _, number in answered.lines} == pages


PRESS = """press-store(1) Manual Page

NAME

press-store - Put unfinished pages away

SYNOPSIS

```
press store list [<options>]
press store drop [-q]
```

DESCRIPTION

Use `press store` when you want a clean table. The command keeps your pages in `press_stack` and clears the table.

3. Other commands of press store

The pages of `press_stack` can be bound:

- as a book
- as a roll
"""


def test_the_line_that_names_a_command_is_quoted_with_what_its_description_begins_with() -> None:
    page = PageView("https://press.example/store", 1, "press-store(1)", PRESS)
    said = (
        "press-store - Put unfinished pages away [1] Use `press store` when you want a clean table. [1] "
        "The command keeps your pages in `press_stack` and clears the table. [1]"
    )
    assert answer("What does press store do?", "Put unfinished", page) == said


def test_a_numbered_heading_a_line_of_a_synopsis_and_what_only_introduces_a_list_are_no_units() -> None:
    sentences = read_sentences(PRESS)
    texts = {tuple(s.text for s in sentences[unit.first : unit.last]) for unit in find_units(sentences)}
    alone = {text for (text, *rest) in texts if not rest}
    assert alone.isdisjoint(
        ("3. Other commands of press store", "press store drop [-q]", "The pages of `press_stack` can be bound:")
    )
    assert ("The pages of `press_stack` can be bound:", "as a book", "as a roll") in texts


def test_what_sets_two_things_side_by_side_stands_before_what_is_said_of_each() -> None:
    text = (
        "# Tables\n\nA `wet_table` dries pages slowly.\n\nA `dry_table` is made of oak.\n\n"
        "While a `wet_table` is for ink, a `dry_table` is for paper.\n"
    )
    page = PageView("https://press.example/tables", 1, "Tables", text)
    lines = compose_answer(read_question("wet_table vs dry_table"), [page], prefers("While a")).lines
    assert lines[0] == ("While a `wet_table` is for ink, a `dry_table` is for paper.", 1)
