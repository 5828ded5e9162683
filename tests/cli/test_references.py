"""Sources as references, now and later, and links to the evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import QUESTION, Command

FRAGMENT = "#:~:text=The%20Moon%20is%20384%2C400%20km%20from%20Earth%20on%20average"


def ris(web: str, accessed: str) -> str:
    return (
        "TY  - ELEC\nID  - 1\nTI  - Moon facts\nAU  - Selene\nLA  - en\n"
        f"UR  - {web}/moon.test/facts\nY2  - {accessed}\nER  - \n\n"
    )


def test_only_the_sources_are_printed_as_references(online: Command, web: str) -> None:
    done = online("--format", "ris", QUESTION)
    day = done.out.partition("Y2  - ")[2].partition("\n")[0]
    assert (done.code, done.out) == (0, ris(web, day))


def test_a_past_answer_gives_the_same_references(online: Command) -> None:
    now = online("--format", "bibtex", QUESTION)
    later = online("--prev", "--format", "bibtex")
    known = json.loads(online("history", "--json").out)["entries"][0]["id"]
    assert now.out.startswith("@online{selene,\n  title = {{Moon facts}},\n  author = {{Selene}},\n")
    assert later.out == online("history", "show", known, "--format", "bibtex").out == now.out


def test_references_of_an_answer_whose_run_is_gone_have_its_address_and_day(online: Command, web: str) -> None:
    import shutil

    online(QUESTION)
    shutil.rmtree(online.home / "runs")
    (item,) = json.loads(online("--prev", "--format", "csl").out)
    assert (item["URL"], item["title"], len(item["accessed"]["date-parts"][0])) == (
        f"{web}/moon.test/facts",
        f"{web}/moon.test/facts",
        3,
    )


def test_references_go_to_a_new_file(online: Command, tmp_path: Path) -> None:
    done = online("--format", "csl", "-o", str(tmp_path / "moon.json"), QUESTION)
    assert done.code == 0
    assert json.loads((tmp_path / "moon.json").read_text())[0]["title"] == "Moon facts"


def test_a_markdown_file_links_each_address_to_its_evidence(online: Command, web: str, tmp_path: Path) -> None:
    online("-o", str(tmp_path / "moon.md"), QUESTION)
    url = f"{web}/moon.test/facts"
    assert f"- [1] [Moon facts]({url}{FRAGMENT}) · " in (tmp_path / "moon.md").read_text()


def test_a_text_file_has_the_plain_address(online: Command, web: str, tmp_path: Path) -> None:
    online("-o", str(tmp_path / "moon.txt"), QUESTION)
    assert (tmp_path / "moon.txt").read_text().endswith(f"\nSources:\n[1] Moon facts - {web}/moon.test/facts\n")


@pytest.mark.parametrize("form", ["ris", "bibtex", "csl"])
def test_an_id_that_is_none_is_an_error(online: Command, form: str) -> None:
    assert online("--show", "zzzzzz", "--format", form).code == 1


def test_references_of_chosen_sources_are_a_file_to_import(online: Command, web: str) -> None:
    online(QUESTION)
    run = json.loads(online("history", "--json").out)["entries"][0]["id"]
    done = online("export", run, "--format", "ris", "--sources", "1", "-o", "-")
    day = done.out.partition("Y2  - ")[2].partition("\n")[0]
    assert (done.code, done.out) == (0, ris(web, day))
    missing = online("export", run, "--format", "csl", "--sources", "1,[7]", "-o", "-")
    assert (missing.code, missing.out, "no source [7]" in missing.err) == (1, "", True)
    assert [
        online("export", run, "--format", *rest).code for rest in (["md", "--sources", "1"], ["ris", "--sources", "x"])
    ] == [2, 2]
