"""Research on a question that may mean several things, at a terminal: it is asked back once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig import miniweb
from rig.terminal import CTRL_C, CTRL_D, ENTER, Picture, terminal
from tests.namesakes import PAGES, QUESTION, READINGS

pytestmark = pytest.mark.long

ASKED = "Which one do you mean? Type its number: 1 "


@pytest.fixture(scope="module")
def namesakes() -> Iterator[str]:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        yield base


@pytest.fixture
def env(namesakes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    home = str(tmp_path / "nexi")
    return {"NEXI_HOME": home, "SEARXNG_URL": namesakes, "NEXI_ALLOW_PRIVATE": urlsplit(namesakes).netloc}


def saved_reports(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("nexi-research-*.md"))]


def test_a_reading_is_chosen_before_anything_is_planned_and_the_report_is_about_it_alone(
    env: dict[str, str], tmp_path: Path
) -> None:
    with terminal(["research", "-m", "extractive", QUESTION], env, columns=160) as screen:
        screen.expect(ASKED)
        assert "Research:" not in screen.text
        number = 1 + (screen.text.index(READINGS[1]) > screen.text.index(READINGS[0]))
        screen.type(f"{number}{ENTER}")
        assert screen.ending() == 0
    shown = Picture(screen.raw).text
    assert (shown.count("Which one do you mean?"), "Arsenal" in shown, "Bulls" in shown) == (1, True, False)
    (report,) = saved_reports(tmp_path)
    assert ("Arsenal" in report, "Bulls" in report) == (True, False)


def test_all_of_them_is_a_section_for_each(env: dict[str, str], tmp_path: Path) -> None:
    with terminal(["research", "-m", "extractive", QUESTION], env, columns=160) as screen:
        screen.expect("0 all of them")
        screen.type(f"0{ENTER}")
        assert screen.ending() == 0
    (report,) = saved_reports(tmp_path)
    assert [f"\n## {reading}\n" in report for reading in READINGS] == [True, True]


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 1)], ids=["ctrl-c", "ctrl-d"])
def test_the_question_back_is_left_with_a_key_and_nothing_is_researched(
    env: dict[str, str], tmp_path: Path, key: str, code: int
) -> None:
    with terminal(["research", "-m", "extractive", QUESTION], env, columns=160) as screen:
        screen.expect("0 all of them")
        screen.expect("> ")
        screen.type(key)
        assert screen.ending() == code
    assert (saved_reports(tmp_path), (tmp_path / "nexi" / "runs").exists()) == ([], False)


def test_a_thing_that_was_never_named_is_asked_for_by_its_kind(env: dict[str, str], tmp_path: Path) -> None:
    with terminal(["research", "-m", "extractive", "What is the legacy of this club and of its fans?"], env) as screen:
        screen.expect("Which club do you mean? Type its name")
        screen.type(f"Farnborough{ENTER}")
        screen.ending()
    (report,) = saved_reports(tmp_path)
    assert 'question: "What is the legacy of this club and of its fans? (Farnborough)"' in report


def test_a_kind_is_asked_for_once_at_the_prompt_too(env: dict[str, str], tmp_path: Path) -> None:
    with terminal(["-m", "extractive"], env) as screen:
        screen.expect("nexi>")
        screen.type(f"/deep What is the legacy of this club and of its fans?{ENTER}")
        screen.expect("Which club do you mean? Type its name")
        screen.expect("nexi>")
        screen.type(f"Farnborough{ENTER}")
        screen.expect("Saved the report to")
        screen.expect("nexi>")
        screen.type(CTRL_D)
        assert screen.ending() == 0
    (report,) = saved_reports(tmp_path)
    assert ("of its fans? (Farnborough)" in report, screen.text.count("Which club do you mean?")) == (True, 1)


def test_with_yes_nothing_is_asked_at_a_terminal_either(env: dict[str, str]) -> None:
    with terminal(["research", "--yes", "-m", "extractive", QUESTION], env) as screen:
        assert screen.ending() == 0
    assert "Which one" not in screen.text


def test_research_at_the_prompt_is_asked_back_once_too(env: dict[str, str], tmp_path: Path) -> None:
    with terminal(["-m", "extractive"], env, columns=160) as screen:
        screen.expect("nexi>")
        screen.type(f"/deep {QUESTION}{ENTER}")
        screen.expect("0 all of them")
        screen.expect("nexi>")
        number = 1 + (screen.text.rindex(READINGS[1]) > screen.text.rindex(READINGS[0]))
        screen.type(f"{number}{ENTER}")
        screen.expect("Saved the report to")
        screen.expect("nexi>")
        screen.type(CTRL_D)
        assert screen.ending() == 0
    (report,) = saved_reports(tmp_path)
    assert ("Arsenal" in report, "Bulls" in report, screen.text.count("Which one do you mean?")) == (True, False, 1)
