"""The commands over what nexi knows, as they are typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from rig import miniweb
from tests.children import CHILD_PATH
from tests.cli.command import PAGES, QUESTION, Command
from tests.formats.test_ocr import install, picture

NO_NETWORK = """
import sys
def forbid(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit(f"network used: {event} {args[1:]}")
sys.addaudithook(forbid)
from nexi.__main__ import main
main()
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "garden.md").write_text("# Garden\n\nThe shed key hangs behind the blue door.", encoding="utf-8")
    (folder / "boat.md").write_text("# Boat\n\nThe boat lies in the harbour of Stralsund.", encoding="utf-8")
    return folder


def offline(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The command where any use of a socket ends it at once, with a model and a search service far away configured."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": CHILD_PATH,
        "NEXI_HOME": str(home),
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "OPENAI_API_KEY": "a-key-that-is-never-sent",
        "NEXI_MODEL": "gpt-4o-mini",
        "NEXI_EMBEDDING_BASE_URL": "https://api.openai.com/v1",
        "SEARXNG_URL": "https://searx.example",
    }
    command = [sys.executable, "-c", NO_NETWORK, *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)


def test_indexing_says_what_became_of_every_file(nexi: Command, notes: Path) -> None:
    (notes / "empty.md").touch()
    done = nexi("index", str(notes))
    assert (done.code, done.out) == (0, "2 stored, 1 skipped (1 empty); 2 new passages\n")
    assert [line for line in done.err.splitlines() if ".md" in line] == [
        "skipped: empty  empty.md", "stored  boat.md", "stored  garden.md",
    ]  # fmt: skip


def test_a_file_that_cannot_be_taken_is_a_failure_with_its_reason(nexi: Command, tmp_path: Path) -> None:
    (tmp_path / "blob.bin").write_bytes(b"\0\1" * 500)
    done = nexi("index", str(tmp_path / "blob.bin"))
    reason = "not a format nexi reads; give it as text, HTML, PDF or an Office document"
    assert (done.code, done.out) == (1, f"1 skipped (1 {reason}); 0 new passages\n")


def test_indexing_as_json(nexi: Command, notes: Path) -> None:
    found = json.loads(nexi("index", "--json", "--tag", "home", str(notes)).out)
    assert found == {
        "schema": "nexi-index-1", "stored": 2, "unchanged": 0, "linked": 0, "removed": 0, "chunks": 2, "skipped": {},
        "files": [], "warnings": [],
    }  # fmt: skip


def test_local_questions_use_no_socket_whatever_is_configured(tmp_path: Path, notes: Path, nexi: Command) -> None:
    assert nexi("index", str(notes)).code == 0
    answered = offline(nexi.home, "--local", "Where does the shed key hang?")
    found = offline(nexi.home, "find", "--local", "shed key")
    assert (answered.returncode, "The shed key hangs behind the blue door. [1]" in answered.stdout) == (0, True), (
        answered.stderr
    )
    assert "asks no model on another machine" in answered.stderr
    assert (found.returncode, found.stdout.startswith("[1] Garden\n")) == (0, True), found.stderr
    web = offline(nexi.home, "How far is the Moon from Earth?")
    assert "network used" in web.stderr  # the hook does see what is not local


def test_a_file_for_one_question(tmp_path: Path, notes: Path, nexi: Command) -> None:
    answered = offline(nexi.home, "--local", "-f", str(notes / "boat.md"), "Where does the boat lie?")
    assert (answered.returncode, "The boat lies in the harbour of Stralsund. [1]" in answered.stdout) == (0, True), (
        answered.stderr
    )
    assert str(notes) not in answered.stdout
    assert not (nexi.home / "knowledge.db").exists()


@pytest.mark.parametrize("command", [("research", "-o", "-"), ("--deep", "-o", "-")], ids=lambda given: given[0])
def test_research_in_the_knowledge_base_uses_no_socket(command: tuple[str, ...], notes: Path, nexi: Command) -> None:
    assert nexi("index", str(notes)).code == 0
    done = offline(nexi.home, *command, "--local", "Where does the shed key hang?")
    assert (done.returncode, "The shed key hangs behind the blue door. [1]" in done.stdout) == (0, True), done.stderr
    assert "network used" not in done.stderr


def test_a_resumed_local_run_stays_off_the_network(notes: Path, nexi: Command) -> None:
    assert nexi("index", str(notes)).code == 0
    assert offline(nexi.home, "--local", "Where does the shed key hang?").returncode == 0
    [log] = (nexi.home / "runs").glob("*/log.jsonl")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))  # cut off after its first fact
    done = offline(nexi.home, "resume", log.parent.name)
    assert (done.returncode, "The shed key hangs behind the blue door. [1]" in done.stdout) == (0, True), done.stderr
    assert ("asks no model on another machine" in done.stderr, "network used" in done.stderr) == (True, False)


def test_research_in_a_file_that_came_with_the_question(notes: Path, nexi: Command) -> None:
    done = offline(nexi.home, "research", "-o", "-", "--local", "-f", str(notes / "boat.md"), "Where does the boat lie?")
    assert (done.returncode, "The boat lies in the harbour of Stralsund. [1]" in done.stdout) == (0, True), done.stderr
    assert not (nexi.home / "knowledge.db").exists()


def test_an_empty_knowledge_base_is_no_evidence(nexi: Command) -> None:
    done = nexi("--local", "--json", "Where does the shed key hang?")
    assert done.code == 5
    assert json.loads(done.out)["code"] == "no_evidence"


def test_sources_are_listed_searched_and_forgotten_with_their_real_paths(nexi: Command, notes: Path) -> None:
    nexi("index", "--json", "--tag", "home", str(notes))
    listed = json.loads(nexi("sources", "--json").out)
    assert {s["path"] for s in listed["sources"]} == {str(notes / "boat.md"), str(notes / "garden.md")}
    assert {s["title"]: s["tags"] for s in listed["sources"]} == {"Boat": ["home"], "Garden": ["home"]}
    assert str(notes / "garden.md") in nexi("sources", "search", "GARD").out
    assert nexi("sources", "search", "nowhere").out == "No matching sources.\n"
    assert json.loads(nexi("sources", "rm", "--json", str(notes / "garden.md")).out) == {
        "schema": "nexi-sources-1",
        "removed": 1,
    }
    assert nexi("sources", "rm", str(notes / "garden.md")).code == 1
    assert nexi("sources", "rm", str(notes)).out == "1 removed\n"
    assert nexi("sources").out == "Nothing is indexed yet.\n"


def test_the_folder_of_a_user_that_does_not_exist_is_a_name_like_any_other(nexi: Command, notes: Path) -> None:
    nexi("index", "--json", str(notes))
    done = nexi("sources", "rm", "--json", "~no-such-user/notes")
    assert (done.code, json.loads(done.out)["code"], done.err) == (1, "not_found", "")
    assert nexi("sources", "rm", "~no-such-user", str(notes / "boat.md")).out == "1 removed\n"
    for command in (("verify",), ("proof", "install"), ("-o", "~no-such-user/answer.md")):
        done = nexi(*command, "~no-such-user/notes")
        assert (done.code > 0, "Traceback" in done.err) == (True, False)


def test_a_source_that_is_an_own_file_is_opened_where_it_is(nexi: Command, notes: Path) -> None:
    nexi("index", "--json", str(notes))
    nexi("--local", "-m", "extractive", "Where does the shed key hang?")
    assert nexi("open", "1", "--print").out == (notes / "garden.md").as_uri() + "\n"


def test_the_same_question_again_asks_nothing_of_the_web(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with miniweb.serve(miniweb.Corpus(PAGES)) as base:
        monkeypatch.setenv("SEARXNG_URL", base)
        monkeypatch.setenv("NEXI_ALLOW_PRIVATE", base.removeprefix("http://"))
        nexi("config", "set", "page_cache", "false")
        first = json.loads(nexi("--json", QUESTION).out)
        before = _stats(base)
        second = json.loads(nexi("--json", QUESTION).out)
        after = _stats(base)
    assert before["pages"] > 0
    assert before["searches"] > 0
    assert after == before
    assert (second["answer"], second["sources"][0]["digest"]) == (first["answer"], first["sources"][0]["digest"])


def _stats(base: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{base}/stats") as answer:  # noqa: S310 - the rig on loopback
        found: dict[str, int] = json.loads(answer.read())
    return {"pages": found.get("pages_requests", 0), "searches": found.get("search_requests", 0)}


@pytest.mark.parametrize(
    "args",
    [
        ["index"],
        ["index", "--watch", "a", "b"],
        ["find", "--tag", "x", "words"],
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_a_usage_error(nexi: Command, args: list[str]) -> None:
    done = nexi(*args)
    assert (done.code, "Error" in done.err) == (2, True)


def test_a_damaged_store_is_named_by_the_doctor_and_repaired(nexi: Command, notes: Path) -> None:
    nexi("index", "--json", str(notes))
    path = nexi.home / "knowledge.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * 4096 + data[8192:])
    listed, asked = nexi("sources"), nexi("--local", "Where does the shed key hang?")
    assert (listed.code, "doctor --repair" in listed.err) == (1, True)
    assert (asked.code, "doctor --repair" in asked.err) == (1, True)
    from asyncio import run

    from nexi.cli.doctor import _repair_store

    assert run(_repair_store()).startswith("Saved 2 sources with 2 passages.\nNo lost source is known; ")
    assert str(notes / "garden.md") in nexi("sources").out


def test_a_store_of_a_newer_nexi_is_left_alone(nexi: Command, notes: Path) -> None:
    import sqlite3

    nexi("index", "--json", str(notes))
    with sqlite3.connect(nexi.home / "knowledge.db") as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    done = nexi("sources", "--json")
    assert (done.code, json.loads(done.out)["code"]) == (1, "store_newer")


def test_the_languages_of_pictures_are_a_setting(nexi: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    assert nexi("config", "set", "ocr_languages", "deu, eng").code == 0
    nexi("index", str(tmp_path / "a.png"))
    assert "211PNG stdin stdout --psm 3 -l deu+eng" in nexi("find", "--local", "--json", "stdin stdout").out
