"""The passages from which a section of a report is written: from each of its pages, and for what was found in them."""

from __future__ import annotations

import pytest

from nexi.research.evaluator import Section
from nexi.research.sections import choose_evidence
from nexi.types import PageView

FILLER = "\n\n".join(f"Paragraph {n} tells of the weather, and of nothing else that anybody asked about." for n in range(60))
SQLITE = PageView(
    "https://sqlite.example", 1, "SQLite", f"# Writers\n\nSQLite admits one writer at a time to a database file.\n\n{FILLER}"
)
POSTGRES = PageView(
    "https://postgres.example",
    2,
    "PostgreSQL",
    f"{FILLER}\n\n# MVCC\n\nIn PostgreSQL reading never blocks writing, nor writing reading.",
)
GIT = PageView("https://git.example", 3, "Git", "# Git\n\nGit stores a snapshot of every file.")
PAGES = [SQLITE, POSTGRES, GIT]


def texts(passages: list[PageView]) -> str:
    return "\n".join(page.text for page in passages)


def test_every_page_of_a_section_speaks_also_where_the_heading_has_none_of_its_words() -> None:
    section = Section("Concurrency", "Who waits for whom.", (1, 2))
    findings = ["SQLite lets a single writer in [1].", "In PostgreSQL, readers and writers never block each other [2]."]
    (found,) = choose_evidence([section], [findings], PAGES)
    assert {page.number for page in found} == {1, 2}
    assert "SQLite admits one writer at a time" in texts(found)
    assert "In PostgreSQL reading never blocks writing" in texts(found)


def test_two_sections_may_rest_on_the_same_passage() -> None:
    sections = [Section("The writer of SQLite", "", (1,)), Section("One writer at a time", "", (1,))]
    found = choose_evidence(sections, [[], []], PAGES)
    assert ["admits one writer" in texts(passages) for passages in found] == [True, True]


def test_a_section_without_a_page_of_its_own_has_all_pages_on_its_subject() -> None:
    (found,) = choose_evidence([Section("How Git stores a snapshot", "", (9,))], [[]], PAGES)
    assert (found[0].number, found[0].title) == (3, "Git")


def test_pages_that_share_no_word_with_their_section_open_it() -> None:
    (found,) = choose_evidence([Section("Zebras", "", (3,))], [[]], PAGES)
    assert [(page.number, page.text) for page in found] == [(3, GIT.text)]


def test_without_a_page_that_can_be_read_a_section_has_no_evidence() -> None:
    broken = PageView("https://gone.example", 1, "Gone", "", error="404")
    assert choose_evidence([Section("Writers", "", (1,))], [[]], [broken]) == [[]]


ENGINE = (
    "The first true engine was built by Thomas Newcomen in 1712. It had a boiler. It stood in a mine. Its zebra pumped water."
)


def test_a_passage_begins_with_its_paragraph() -> None:
    page = PageView("https://engines.example", 1, "Engines", f"{FILLER}\n\n{ENGINE}\n\n{FILLER}")
    (found,) = choose_evidence([Section("Zebra", "", (1,))], [[]], [page])
    assert found[0].text.startswith(ENGINE)


@pytest.mark.parametrize("tail", ["## See also", f"```\nrun\n\n{FILLER}\n```"])
def test_a_passage_ends_before_a_heading_and_before_code_that_it_would_cut(tail: str) -> None:
    page = PageView("https://engines.example", 1, "Engines", f"{FILLER}\n\n{ENGINE}\n\n{tail}\n\n{FILLER}")
    (found,) = choose_evidence([Section("Zebra", "", (1,))], [[]], [page])
    assert [passage.text for passage in found] == [ENGINE]
