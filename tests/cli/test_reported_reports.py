"""Reports without a model that reviewers would not have kept, as they were found; `tests/research/defects.md` lists them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from tests.cli.command import Command

ISOLATION = "Compare transaction isolation in Postgres and SQLite."
COMPOSER = "Describe the life and the music of Fryderyk Chopin."
PAGES = {
    "http://pg.test/iso": (
        "13.2. Transaction Isolation - Postgres",
        "Postgres offers three distinct levels of transaction isolation, and read committed is the default level.",
    ),
    "http://lite.test/iso": (
        "Isolation in SQLite",
        "Transaction isolation in SQLite is serializable, because only one transaction can write at a time.",
    ),
    "http://music.test/chopin": (
        "Fryderyk Chopin",
        "Fryderyk Chopin was born in Poland and spent most of his life in Paris.",
        "The music of Chopin is almost all for the piano: nocturnes, mazurkas and preludes.",
    ),
}
PROMPT = (
    "Write a brief on Zorb Motors. Cover the revenue of the first quarter. Cover the number of cars that were delivered. "
    "Name the launch date of the Z-4."
)
FILES = {
    "q1.md": "# Zorb Motors, first quarter\n\nZorb Motors had a revenue of $46.9 million in the first quarter of 2026.\n",
    "cars.md": "# Deliveries of Zorb Motors\n\nThe number of cars that Zorb Motors delivered by March was 3,120.\n",
    "z4.md": "# Z-4\n\nThe launch date of the Z-4 by Zorb Motors is 9 June 2026.\n",
}


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    pages = [
        {
            "url": url,
            "title": title,
            "html": f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>"
            + "".join(f"<p>{text}</p>" for text in texts)
            + "</main></body></html>",
        }
        for url, (title, *texts) in PAGES.items()
    ]
    with miniweb.serve(miniweb.Corpus(pages)) as address:
        yield address


@pytest.fixture
def online(nexi: Command, base: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("SEARXNG_URL", base)
    monkeypatch.setenv("NEXI_ALLOW_PRIVATE", urlsplit(base).netloc)
    return nexi


def test_pages_of_earlier_research_are_in_no_later_report(online: Command) -> None:
    first = json.loads(online("research", "--json", ISOLATION).out)
    second = json.loads(online("research", "--json", COMPOSER).out)
    titles = [[source["title"] for source in run["sources"]] for run in (first, second)]
    assert titles == [["13.2. Transaction Isolation - Postgres", "Isolation in SQLite"], ["Fryderyk Chopin"]]


def test_a_part_whose_page_is_named_by_a_numbered_title_is_found(online: Command) -> None:
    report = online("research", "--plain", ISOLATION).out
    assert ("three distinct levels" in report, "is serializable" in report, "Not found" in report) == (True, True, False)


def test_a_report_that_answers_nothing_says_so_and_has_the_exit_code_of_no_answer(online: Command) -> None:
    done = online("research", "--plain", "How do glaciers move in Poland, and what is permafrost?")
    assert (done.code, "None of the pages that were read answers this question" in done.out) == (6, True)


def test_a_prompt_of_four_sentences_has_a_title_and_an_answer_to_each(nexi: Command, tmp_path: Path) -> None:
    folder = tmp_path / "zorb"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert nexi("index", str(folder)).code == 0
    done = nexi("research", "--local", "--plain", PROMPT)
    title = done.out.splitlines()[0]
    assert (title, "[unverified]" in done.out) == ("# Zorb Motors", False)
    assert [value in done.out for value in ("$46.9 million", "3,120", "9 June 2026")] == [True, True, True]
