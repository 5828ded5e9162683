"""A file of questions from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import QUESTION, Command

ROWS = [
    {"id": "moon", "question": QUESTION, "answer": "384,400 km"},
    {"id": "mars", "question": "How many moons does Mars have?", "answer": ["two", "2"]},
    {"id": "none", "question": "xyzzy plugh", "answer": "nothing"},
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n{broken\n")
    return path


def figures(out: str) -> dict[str, object]:
    every = json.loads(out)["figures"][0]
    return {name: every[name] for name in ("asked", "failed")} | {"correct": round(every["correct"]["percent"], 1)}


def test_questions_are_asked_scored_and_drawn(online: Command, questions: Path) -> None:
    done = online("bench", str(questions), "-m", "extractive")
    assert done.code == 0
    assert "| all | 3 | 66.7 (21 to 94) |" in done.out
    assert "Warning: questions.jsonl, line 4: invalid JSON" in done.err
    assert (questions.parent / "questions-extractive.results.svg").read_text().startswith("<svg ")
    assert not (online.home / "history.jsonl").exists()


def test_a_bench_goes_on_where_it_was(online: Command, questions: Path) -> None:
    kept = questions.parent / "kept.jsonl"
    online("bench", str(questions), "-m", "extractive", "--limit", "1", "-o", str(kept), "--concurrency", "1")
    first = kept.read_text()
    done = online("bench", str(questions), "-m", "extractive", "-o", str(kept), "--json")
    assert "2 of 3 questions to ask" in done.err
    assert kept.read_text().startswith(first)
    assert figures(done.out) == {"asked": 3, "failed": 1, "correct": 66.7}
    again = online("bench", str(questions), "-m", "extractive", "-o", str(kept), "--json")
    assert "1 of 3 questions to ask" in again.err  # the one that failed
    assert figures(again.out) == figures(done.out)


def test_results_of_another_effort_are_not_mixed(online: Command, questions: Path) -> None:
    kept = str(questions.parent / "kept.jsonl")
    online("bench", str(questions), "-m", "extractive", "--limit", "1", "-o", kept)
    done = online("bench", str(questions), "-m", "extractive", "-e", "s", "-o", kept)
    assert (done.code, "its effort is 'm', not 's'" in done.err) == (2, True)


def test_a_file_that_is_not_there_is_said_to_be_so(online: Command, tmp_path: Path) -> None:
    done = online("bench", str(tmp_path / "none.csv"), "--json")
    assert done.code == 1
    assert json.loads(done.out)["code"] == "store"
