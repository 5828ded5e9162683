"""`nexi verify` from a user's side: ids, files, stdin, fresh pages, and what cannot be verified."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.command import QUESTION, Command


def typed(text: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()))


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


def test_a_page_that_may_no_longer_be_read_is_reported(online: Command, answered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_ALLOW_PRIVATE", "")
    done = online("verify", "--refetch", answered)
    assert done.code == 5
    assert "(was found)" in done.out
    assert "(refused: " in done.out


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


def test_a_text_that_cites_nothing_needs_pages_to_be_checked_against(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "plain.md"
    file.write_text("The Moon is far away.\n")
    done = online("verify", "--json", str(file))
    failure = json.loads(done.out)
    assert (done.code, failure["code"]) == (5, "no_evidence")
    assert "--against" in failure["fix"]


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        ("The Moon is 384,400 km from Earth on average.", 0, "found"),
        ("The Moon is 12 km from Earth on average.", 7, "contradicted"),
        ("The Moon was bought by seven cats in Vienna.", 5, "not_confirmed"),
    ],
)
def test_the_exit_code_tells_a_contradiction_from_what_is_not_found(
    online: Command, web: str, tmp_path: Path, text: str, code: int, verdict: str
) -> None:
    file = tmp_path / "plain.txt"
    file.write_text(text)
    done = online("verify", "--json", str(file), "--against", f"{web}/moon.test/facts")
    found = json.loads(done.out)
    assert (done.code, found["contradicted"], found["basis"]) == (code, code == 7, "given")
    assert [sentence["verdict"] for sentence in found["proof"]["sentences"]] == [verdict]
    assert found["counts"][verdict] == 1


def test_a_text_is_checked_against_files(online: Command, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "loire.txt").write_text("The Loire flows into the Atlantic Ocean.")
    done = online(
        "verify", "-", "--against", str(tmp_path / "notes"), "-v", stdin=typed("The Loire flows into the Atlantic Ocean.")
    )
    assert done.code == 0
    assert done.out.startswith("# Verification of stdin\n\n1 of 1 sentence found in the pages. No sentence failed.")


def test_a_text_is_checked_against_what_a_search_finds(online: Command) -> None:
    done = online("verify", "-", "--web", stdin=typed("The Moon is 384,400 km from Earth on average."))
    assert (done.code, "Checked against pages found on the web." in done.out) == (0, True)


def test_without_a_judge_that_is_said_once_and_neutrally(online: Command, answered: str) -> None:
    done = online("verify", answered)
    assert done.out.count("No judge read this text") == 1
    assert done.err == ""


REPORT = """# Moon

The Moon is 384,400 km from Earth on average ([facts]({web}/moon.test/facts)). It is made of cheese [1]({web}/gone.test/x).

Nobody has cited this sentence about the Moon."""


def test_an_audit_gives_precision_and_recall_and_names_dead_links(online: Command, web: str, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_text(REPORT.format(web=web))
    done = online("verify", "--audit", str(file))
    assert done.code == 5
    assert "Precision 50%: the page supports the sentence for 1 of 2 citations." in done.out
    assert "Recall 33%: its citations fully support the sentence for 1 of 3 sentences." in done.out
    assert "/gone.test/x (dead: HTTP 404)" in done.out
    assert "## Sentences without a citation\n\n- · line 5: Nobody has cited this" in done.out


def test_an_audit_is_one_json_object_and_one_page(online: Command, web: str, tmp_path: Path) -> None:
    file, page = tmp_path / "report.md", tmp_path / "audit.html"
    file.write_text(REPORT.format(web=web))
    found = json.loads(online("verify", "--audit", "--json", str(file)).out)
    assert [found[name] for name in ("schema", "precision", "recall", "unreadable")] == ["nexi-audit-1", 0.5, 0.3333, 1]
    assert [len(sentence["citations"]) for sentence in found["sentences"]] == [1, 1, 0]
    done = online("verify", "--audit", str(file), "-o", str(page))
    assert (done.code, done.out) == (5, "")
    assert '<h1 dir="auto">Audit of' in page.read_text()
    assert "Precision 50%" in page.read_text()


def test_an_audit_follows_links_to_private_addresses_nowhere(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_text("The Moon is made of cheese [1](http://169.254.169.254/latest/meta-data) and honey [2](http://10.0.0.1/).")
    done = online("verify", "--audit", str(file))
    assert done.code == 5
    assert done.out.count("(refused: ") == 2
    assert "Precision 0%" in done.out


def test_an_audit_of_a_text_without_links_says_so(online: Command, tmp_path: Path) -> None:
    file = tmp_path / "plain.md"
    file.write_text("The Moon is far away.")
    done = online("verify", "--audit", str(file))
    assert (done.code, "it cites no page" in done.err) == (5, True)


@pytest.mark.parametrize("flags", [("--audit", "--web"), ("--local", "--web")], ids=" ".join)
def test_flags_that_exclude_each_other_are_refused(online: Command, flags: tuple[str, ...]) -> None:
    assert online("verify", *flags, "x.md").code == 2


def test_a_local_check_fetches_nothing(online: Command, web: str, tmp_path: Path) -> None:
    file = tmp_path / "plain.md"
    file.write_text("The Moon is far away.")
    done = online("verify", "--local", str(file), "--against", f"{web}/moon.test/facts")
    assert (done.code, "the check is local" in done.err) == (5, True)
