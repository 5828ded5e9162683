"""What every history promises: one suite over files and Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexi.history import FileHistory, create_entry
from nexi.ports import HistoryStore
from nexi.team.postgres.state import _PostgresHistory

WHEN = "2026-01-02T03:04:05"
FIRST = create_entry("Why?", "Because \x00of \ud83c rain.", ["https://a.example"], "m", 1, 0.5, 12, id="aaaaaa", ts=WHEN)
SECOND = create_entry("Wer?", "Ärzte", [], "s", 2, 1.5, 3, id="bbbbbb", ts=WHEN)


@pytest.fixture(params=["files", "postgres"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> HistoryStore:
    if request.param == "files":
        return FileHistory(tmp_path / "history.jsonl")
    return _PostgresHistory(request.getfixturevalue("database"), request.getfixturevalue("make_person")())


def test_a_new_history_is_empty(history: HistoryStore) -> None:
    assert (history.read().entries, history.get("aaaaaa"), history.remove("aaaaaa")) == ([], None, 0)


def test_entries_come_most_recent_first(history: HistoryStore) -> None:
    for entry in (FIRST, SECOND):
        history.add(entry)
    assert (history.read().entries, history.read(1).entries, history.read(0).entries) == ([SECOND, FIRST], [SECOND], [])


def test_an_entry_is_found_by_its_id_and_by_its_words(history: HistoryStore) -> None:
    for entry in (FIRST, SECOND):
        history.add(entry)
    assert (history.get("aaaaaa"), history.get("a\x00")) == (FIRST, None)
    words = ("ÄRZTE", "wer?", "BECAUSE", "why", "%", "_")
    found = {text: [entry.id for entry in history.find(text).entries] for text in words}
    answers, questions = {"ÄRZTE": ["bbbbbb"], "BECAUSE": ["aaaaaa"]}, {"wer?": ["bbbbbb"], "why": ["aaaaaa"]}
    assert found == {**answers, **questions, "%": [], "_": []}


def test_several_words_are_found_in_any_order_in_question_and_answer(history: HistoryStore) -> None:
    for entry in (FIRST, SECOND):
        history.add(entry)
    searches = ("because WHY", "  ärzte \n wer?", "why ärzte", "because_ why", "")
    found = {text: [entry.id for entry in history.find(text).entries] for text in searches}
    assert found == dict(zip(searches, (["aaaaaa"], ["bbbbbb"], [], [], ["bbbbbb", "aaaaaa"]), strict=True))


def test_what_is_removed_is_gone(history: HistoryStore) -> None:
    for entry in (FIRST, SECOND):
        history.add(entry)
    assert (history.remove("aaaaaa"), history.read().entries) == (1, [SECOND])
    history.clear()
    assert history.read().entries == []
