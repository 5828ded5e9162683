"""Copies of one text in which somebody has changed a word or a number: both are read, and the change is shown."""

from __future__ import annotations

import pytest

from nexi.knowledge.retrieval import without_copies
from nexi.types import Passage
from tests.scenarios.test_scope import ask

REST = (
    " It was recorded in a church in Bergen over three long winter nights. The sleeve shows a lighthouse under snow, drawn by"
    " her brother. Critics praised the quiet piano and the plain voice. A tour of twelve small halls followed in the spring."
)
ALBUM = "# Nordlys\n\nNordlys is the title of a {kind} released by the Norwegian singer Ane Falk in {year}." + REST


def passage(name: str, text: str) -> Passage:
    return Passage(id=name, url=f"file:///{name}", number=0, text=text)


@pytest.mark.parametrize("changed", [{"kind": "jazz opera", "year": 2011}, {"kind": "studio album", "year": 2014}])
def test_a_copy_with_another_word_or_number_is_kept_beside_the_text_and_a_mere_copy_is_not(changed: dict[str, object]) -> None:
    text = ALBUM.format(kind="studio album", year=2011)
    passages = [
        passage("a", text),
        passage("b", ALBUM.format(**changed)),
        passage("c", text.rpartition(" A tour")[0]),
        passage("d", text),
    ]
    assert [kept.id for kept in without_copies(passages, 9)] == ["a", "b"]


def test_a_copy_that_names_another_thing_in_one_place_is_shown_as_a_disagreement() -> None:
    files = {f"{n}.md": ALBUM.format(kind=kind, year=2011) for n, kind in enumerate(("studio album", "jazz opera"))}
    answer = ask(files, "What did the Norwegian singer Ane Falk release with the title Nordlys?")
    assert [sorted(r.value for r in conflict.readings) for conflict in answer.conflicts] == [["jazz opera", "studio album"]]
    assert not any(conflict.is_settled for conflict in answer.conflicts)


def test_a_copy_without_the_title_and_with_another_date_is_kept_beside_the_text() -> None:
    life = "{}({} – March 17, 1905) was a judge of the court of Orsa, who read law in Velm and sat for forty years in Lind."
    one, other = life.format("Carl Holt Carl Holt ", "May 22, 1841"), life.format("Carl Holt ", "January 1, 1900")
    assert [kept.id for kept in without_copies([passage("a", one), passage("b", other)], 9)] == ["a", "b"]


def test_the_sixth_file_that_bears_on_a_question_is_read_too() -> None:
    rest = "Visitors reach it by the ferry from Lind, and the keeper of the house shows them the walls and the well."
    files = {f"{n}.txt": f"Orsa Fort stands above the river Orsa. It has {n} towers. {rest} Path {n}." for n in range(5)}
    answer = ask(
        {**files, "5.txt": "masons of the Falk family built Orsa Fort in 1867 of red stone."}, "When was Orsa Fort built?"
    )
    assert "built Orsa Fort in 1867" in answer.text


def test_two_texts_of_different_origin_that_use_another_word_do_not_disagree() -> None:
    files = {
        "a.md": "# Nordlys\n\nNordlys is a quiet record by the Norwegian singer Ane Falk.\n\nIt was made in Bergen.\n",
        "b.md": "# Ane Falk\n\nNordlys is a quiet album by the Norwegian singer Ane Falk.\n\nShe lives in Oslo.\n",
    }
    assert ask(files, "What is Nordlys by Ane Falk?").conflicts == ()


def test_the_day_of_birth_is_taken_from_where_it_stands_and_not_from_another_year_in_the_sentence() -> None:
    files = {
        "a.txt": "Carl Holt Carl Holt (May 22, 1841 – March 17, 1905) was a judge. Born in Hiram, Holt read law in 1866.",
        "b.txt": "Luther Holt Luther Holt (October 25, 1925 – July 26, 2013) was a judge. Holt was born in Oslo.",
    }
    lines = ask(files, "When was Judge Holt born?").text.splitlines()
    assert sorted(line[:-4] for line in lines) == [
        "- Carl Holt: Carl Holt (May 22, 1841 – March 17, 1905) was a judge.",
        "- Luther Holt: Luther Holt (October 25, 1925 – July 26, 2013) was a judge.",
    ]
