"""Research at a terminal: the panel while it goes, the plan a person may change, and research within a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig import scripted_llm
from rig.terminal import CTRL_C, CTRL_D, ENTER, Picture, Terminal, terminal

pytestmark = pytest.mark.long

QUESTION = "how far is the moon from earth on average"
FOUND = "The Moon is 384,400 km from Earth on average"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the command is started in."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@contextmanager
def researching(env: dict[str, str], *arguments: str, latency_ms: int = 0) -> Iterator[Terminal]:
    with scripted_llm.serve(latency_ms=latency_ms) as root:
        models = {"OPENAI_BASE_URL": f"{root}/v1", "NEXI_MODEL": "scripted", "OPENAI_API_KEY": "sk-secret-1234567890"}
        with terminal(["research", *arguments, QUESTION], {**env, **models}) as screen:
            yield screen


def reports(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("nexi-research-*.md"))]


def test_the_panel_shows_progress_and_researchers_and_leaves_only_the_report(env: dict[str, str], here: Path) -> None:
    with researching(env, latency_ms=150) as screen:
        screen.expect("Research: planning")
        screen.expect("Research: ")
        screen.expect("round 1 of 2")
        screen.expect(" s  1.1 · ")
        assert screen.ending() == 0
    assert re.search(r" · ━+╌+ +\d+ s  1\.1 · gathering", screen.text)
    assert re.search(r"Research: \d+% · round 1 of 2 · [\d,]+ tokens", screen.text)
    assert re.search(r'1\.1 · gathering · [\d,]+ tokens · search "how far', screen.text)
    shown = Picture(screen.raw).text
    assert "round 1 of 2" not in shown
    assert FOUND in shown
    assert "Saved the report to" in shown
    assert len(reports(here)) == 1


def test_ctrl_c_once_writes_the_report_from_what_is_there(env: dict[str, str], here: Path) -> None:
    with researching(env, latency_ms=400) as screen:
        screen.expect("Research: 20%")  # one search, the handshake, and pages
        screen.type(CTRL_C)
        assert screen.ending() in (0, 130)
    assert FOUND in Picture(screen.raw).text
    assert 'stopped_by: "cancelled"' in reports(here)[0]


def test_a_plan_is_shown_and_enter_goes_on(env: dict[str, str], here: Path) -> None:
    with researching(env, "--plan") as screen:
        screen.expect("model calls and")
        screen.expect(f"1. {QUESTION}")
        screen.expect("Continue? [Enter], (e)dit, (q)uit")
        screen.type(ENTER)
        assert screen.ending() == 0
    assert FOUND in Picture(screen.raw).text


def test_a_plan_may_be_edited_before_money_is_spent(env: dict[str, str], here: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "# kept out\\nhow far is the moon\\nwhat air does the moon have\\n" > "$1"\n')
    editor.chmod(0o755)
    with researching({**env, "EDITOR": str(editor)}, "--plan") as screen:
        screen.expect("Continue? [Enter], (e)dit, (q)uit")
        screen.type("e" + ENTER)
        screen.expect("1. how far is the moon")
        screen.expect("2. what air does the moon have")
        screen.expect("Continue?")
        screen.type(ENTER)
        screen.expect("what air does the moon have")
        assert screen.ending() == 0


def test_an_edit_that_leaves_nothing_leaves_the_plan_as_it_was(env: dict[str, str], here: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "# nothing\\n" > "$1"\n')
    editor.chmod(0o755)
    with researching({**env, "EDITOR": str(editor)}, "--plan") as screen:
        screen.expect("Continue?")
        screen.type("e" + ENTER)
        screen.expect("the plan was not changed")
        screen.expect(f"1. {QUESTION}")
        screen.expect("Continue?")
        screen.type("nonsense" + ENTER)
        screen.expect("Continue?")
        screen.type("q" + ENTER)
        assert screen.ending() == 1
    assert "Error: " in screen.text
    assert reports(here) == []


def test_a_plan_may_be_changed_in_place_and_what_is_typed_is_seen(env: dict[str, str], here: Path) -> None:
    with researching(env, "--plan") as screen:
        screen.expect("Continue?")
        screen.type("+ what air does the moon have" + ENTER)
        screen.expect("+ what air does the moon have")
        screen.expect("what air does the moon have\n")
        screen.expect("Continue?")
        screen.type("1 how far is the moon" + ENTER)
        screen.expect("  1. how far is the moon\n")
        screen.expect("Continue?")
        screen.type("- 9" + ENTER)
        screen.expect("'- 9'")
        screen.expect("Continue?")
        screen.type(ENTER)
        assert screen.ending() == 0
    assert FOUND in Picture(screen.raw).text


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D], ids=["ctrl-c", "ctrl-d"])
def test_a_plan_is_left_with_a_key_and_nothing_is_spent(env: dict[str, str], here: Path, key: str) -> None:
    with researching(env, "--plan") as screen:
        screen.expect("Continue?")
        screen.type(key)
        assert screen.ending() == (130 if key == CTRL_C else 1)
    assert "Error: " in screen.text
    assert reports(here) == []


def test_the_report_is_written_once_as_it_comes(env: dict[str, str], here: Path) -> None:
    with researching(env, latency_ms=100) as screen:
        assert screen.ending() == 0
    assert Picture(screen.raw).text.count(FOUND) == 1


def test_with_yes_a_plan_is_not_asked_about(env: dict[str, str], here: Path) -> None:
    with researching(env, "--plan", "--yes") as screen:
        assert screen.ending() == 0
    assert "Continue?" not in screen.text


def test_research_within_a_conversation_is_remembered_by_what_follows(env: dict[str, str], here: Path) -> None:
    with scripted_llm.serve() as root:
        models = {"OPENAI_BASE_URL": f"{root}/v1", "NEXI_MODEL": "scripted"}
        with terminal([], {**env, **models}) as screen:
            screen.expect("nexi>")
            screen.type("/deep" + ENTER)
            screen.expect("missing question")
            screen.expect("nexi>")
            screen.type(f"/deep {QUESTION}" + ENTER)
            screen.expect(FOUND)
            screen.expect("Saved the report to")
            screen.expect("nexi>")
            screen.type("/sources" + ENTER)
            screen.expect("[1] Moon facts")
            screen.expect("nexi>")
            screen.type("/retry" + ENTER)
            screen.expect("Saved the report to")
            screen.expect("nexi>")
            screen.type("what air does the moon have" + ENTER)
            screen.expect("[1] Moon facts")
            screen.expect("nexi>")
            screen.type(CTRL_D)
            assert screen.ending() == 0
    assert len(reports(here)) == 2


def test_a_report_goes_into_the_folder_for_documents_before_the_one_for_notes(env: dict[str, str], here: Path) -> None:
    for name in ("notes", "docs"):
        (here / name).mkdir()
    with researching(env) as screen:
        assert screen.ending() == 0
    (saved,) = (path.relative_to(here) for path in here.rglob("*.md"))
    assert (saved.parent, len(saved.name) <= 50) == (Path("docs"), True)
    assert f"Saved the report to{here / saved}." in Picture(screen.raw).text.replace("\n", "").replace("to ", "to")
