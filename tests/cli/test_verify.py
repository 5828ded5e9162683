"""`nexi verify` from a user's side: ids, files, stdin, fresh pages, and what cannot be verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import QUESTION, Command


@pytest.fixture
def answered(online: Command) -> str:
    """One answer in the history; its id."""
    return str(json.loads(online("--json", QUESTION).out)["id"])


def test_an_answer_is_verified_offline_by_the_beginning_of_its_id(online: Command, answered: str) -> None:
    done = online("verify", answered[:5])
    assert done.code == 0
    assert "1 of 1 sentence found in the cited pages. No sentence failed." in done.out
    assert "(stored)" in done.out


def test_a_file_is_verified_against_pages_that_were_read(online: Command, answered: str, web: str, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    moon = f"{web}/moon.test/facts"
    file.write_text(
        f"# Moon\n\nThe Moon is [384,400 km from Earth on average]({moon}).\n\nIt has 7 moons [^1].\n\n[^1]: {moon}\n"
    )
    done = online("verify", "--json", str(file))
    found = json.loads(done.out)
    assert (done.code, found["schema"], found["ok"]) == (5, "nexi-verification-1", False)
    assert [(s["line"], s["failed"]) for s in found["proof"]["sentences"] if s["evidence"]] == [(3, False), (5, True)]


def test_a_page_that_was_never_read_is_a_gap(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("The Moon is far away from all of us [1].\n\nSources:\n[1] https://never.example/x\n")
    done = online("verify", str(file))
    assert done.code == 5
    assert "not checked" in done.out
    assert "(missing: no stored text of this page was found)" in done.out


def test_fresh_pages_are_compared_with_the_stored_ones(online: Command, answered: str) -> None:
    done = online("verify", "--refetch", answered)
    assert (done.code, "(same)" in done.out) == (0, True)


def test_a_dead_page_is_reported(online: Command, answered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_ALLOW_PRIVATE", "")
    done = online("verify", "--refetch", answered)
    assert done.code == 5
    assert "(was found)" in done.out
    assert "(dead: " in done.out


def test_a_damaged_snapshot_is_a_gap(online: Command, answered: str) -> None:
    for page in (online.home / "pages").glob("*/*.txt"):
        page.write_text("The Moon is 384,400 km from Earth on average. Or so.")
    for page in online.home.rglob("*.page"):
        page.unlink()
    done = online("verify", answered)
    assert (done.code, "not checked" in done.out) == (5, True)


@pytest.mark.parametrize("target", ["nowhere.md", "zzzzzz"])
def test_a_target_that_does_not_exist_is_said_not_to(online: Command, target: str) -> None:
    done = online("verify", target)
    assert (done.code, done.out) == (1, "")
    assert "Fix:" in done.err


def test_a_file_that_the_system_cannot_look_for_is_not_taken_for_the_id_of_a_run(online: Command) -> None:
    done = online("verify", name := "a" * 300)
    assert (done.code, done.out, done.err.splitlines()[0]) == (1, "", f"Error: cannot read {name}: File name too long")


def test_a_text_that_cites_nothing_cannot_be_verified(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "plain.md"
    file.write_text("The Moon is far away.\n")
    done = online("verify", "--json", str(file))
    assert (done.code, json.loads(done.out)["code"]) == (5, "no_evidence")
