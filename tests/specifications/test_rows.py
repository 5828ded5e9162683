"""Every requirement of the five specifications has a row, and every row a test, a decision or a saved figure.

A row of `000.txt` to `004.txt` is its id and the requirement. Below it stand the tests that would fail without it; behind `=`
a decision that differs from it, with a phrase of that decision; behind `@` a document with what no test can hold.
000 is the architecture, 001 the product, 002 the agentic search, 003 the research, 004 the Search API by its clauses.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

from tests.test_safety_claims import find_functions

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
COUNTS = {"000": 102, "001": 41, "002": 58, "003": 54}
CLAUSES = (
    *("1", "2.1", "2.2", "2.3", "3", "4.1", "4.2", "4.3", "4.4", "4.5", "5.1", "5.2", "6", "7.1", "8.1", "8.2", "8.3", "9"),
    *("10.1", "10.2", "11", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6", "11.7", "12", "13", "14", "15", "16.1", "16.2"),
)
SPECIFICATIONS = (*COUNTS, "004")


class Row(Struct, frozen=True):
    """One requirement, and what shows it."""

    id: str
    requirement: str
    tests: tuple[str, ...]
    decisions: tuple[str, ...]
    documents: tuple[str, ...]


@cache
def read_rows(specification: str) -> tuple[Row, ...]:
    blocks = re.split(r"^(?=\d)", (FOLDER / f"{specification}.txt").read_text("utf-8"), flags=re.MULTILINE)
    return tuple(parse_row(block) for block in blocks if block.strip())


def parse_row(block: str) -> Row:
    head, *lines = block.splitlines()
    row_id, _, requirement = head.partition(" ")
    shown = [line.strip() for line in lines if line.strip()]
    decisions, documents = ([line[2:] for line in shown if line.startswith(mark)] for mark in ("= ", "@ "))
    tests = [line for line in shown if not line.startswith(("= ", "@ "))]
    return Row(row_id, requirement, tuple(tests), tuple(decisions), tuple(documents))


def all_rows() -> list[Row]:
    return [row for specification in SPECIFICATIONS for row in read_rows(specification)]


@pytest.mark.parametrize("specification", COUNTS)
def test_the_numbers_of_a_specification_have_no_gap(specification: str) -> None:
    numbers = [f"{specification}.{n}" for n in range(1, COUNTS[specification] + 1)]
    assert [row.id for row in read_rows(specification)] == numbers


def test_every_clause_of_the_search_api_has_rows_that_are_numbered_from_one() -> None:
    rows = [row.id.removeprefix("004.") for row in read_rows("004")]
    clauses = Counter(row.rpartition(".")[0] for row in rows)
    assert list(clauses) == list(CLAUSES)
    assert rows == [f"{clause}.{n}" for clause in CLAUSES for n in range(1, clauses[clause] + 1)]


def test_every_row_says_something_and_something_shows_it() -> None:
    assert [row.id for row in all_rows() if not row.requirement or not (row.tests or row.decisions or row.documents)] == []


def test_every_test_of_a_row_is_one_that_pytest_collects() -> None:
    names = {name for row in all_rows() for name in row.tests}
    paths = {name.partition("::")[0] for name in names}
    assert [path for path in sorted(paths) if not re.fullmatch(r"tests/(\w+/)*test_\w+\.py", path)] == []
    assert sorted(name for name in names if name not in find_functions(name.partition("::")[0])) == []
    assert [name for name in names if not name.rpartition("::")[2].startswith("test_")] == []


@pytest.mark.parametrize("kind", ["decisions", "documents"])
def test_every_phrase_stands_in_the_document_that_is_named(kind: str) -> None:
    named = [(row.id, *phrase.split(" | ", 1)) for row in all_rows() for phrase in getattr(row, kind)]
    assert named
    assert [row_id for row_id, path, phrase in named if phrase not in (ROOT / path).read_text("utf-8")] == []


def test_every_decision_of_a_row_is_a_decision() -> None:
    assert [row.id for row in all_rows() if any(not d.startswith("docs/decisions/") for d in row.decisions)] == []


def test_every_test_of_these_files_belongs_to_a_row() -> None:
    named = {name for row in all_rows() for name in row.tests}
    written = {f"tests/specifications/{path.name}" for path in FOLDER.glob("test_*.py") if path.name != Path(__file__).name}
    tests = {name for path in written for name in find_functions(path) if name.rpartition("::")[2].startswith("test_")}
    assert sorted(tests - named) == []


def test_the_handbook_counts_the_rows() -> None:
    counted = []
    for specification in SPECIFICATIONS:
        rows = read_rows(specification)
        differences = sum(bool(row.decisions) for row in rows)
        documents = sum(bool(row.documents) and not row.tests and not row.decisions for row in rows)
        tested = len(rows) - differences - documents
        counted.append([specification, len(rows), tested, differences, documents])
    table = re.findall(
        r"^\| (\d{3}) [^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$",
        (ROOT / "docs/specifications.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert [[row[0], *map(int, row[1:])] for row in table] == counted
