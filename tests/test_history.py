"""The history: seeds' names, one locked append each, damage skipped and counted."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexi import files
from nexi.errors import StoreError
from nexi.history import (
    HistoryEntry,
    HistoryRead,
    add_history_entry,
    clear_history,
    create_entry,
    format_entry_full,
    format_entry_preview,
    format_time_ago,
    get_entry_by_id,
    get_history_path,
    get_last_n_entries,
    get_latest_entry,
    read_history,
    search_history,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def entry(number: int = 1, **changes: Any) -> HistoryEntry:
    values: dict[str, Any] = {
        "id": f"{number:06x}",
        "ts": (NOW - timedelta(minutes=5)).isoformat(),
        "query": f"question {number}",
        "answer": f"answer {number} [1]",
        "urls": ["https://a.example/1"],
        "effort": "m",
        "iterations": 4,
        "duration_s": 12.3,
        "tokens": 1000,
    }
    return HistoryEntry(**{**values, **changes})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nexi" / "history.jsonl"


def test_entries_come_back_most_recent_first(path: Path) -> None:
    for number in range(1, 6):
        add_history_entry(entry(number), path)
    assert get_last_n_entries(2, path) == [entry(5), entry(4)]
    assert get_latest_entry(path) == entry(5)
    assert get_entry_by_id("000002", path) == entry(2)
    assert get_entry_by_id("00000", path) is None
    assert read_history(path) == HistoryRead([entry(n) for n in (5, 4, 3, 2, 1)], 0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_missing_history_is_empty(path: Path) -> None:
    assert get_last_n_entries(3, path) == []
    assert get_latest_entry(path) is None
    assert get_entry_by_id("abc123", path) is None
    assert read_history(path) == HistoryRead([], 0)
    assert search_history("x", path) == []
    clear_history(path)


def test_the_default_place_is_the_home_of_nexi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEXI_HOME", str(tmp_path))
    assert get_history_path() == tmp_path / "history.jsonl"
    add_history_entry(entry())
    assert get_latest_entry() == get_entry_by_id("000001") == entry()
    assert get_last_n_entries(1) == read_history().entries == search_history("question") == [entry()]
    clear_history()
    assert not get_history_path().exists()


@pytest.mark.parametrize("n", [0, -1])
def test_no_entries_asked_none_given(path: Path, n: int) -> None:
    add_history_entry(entry(), path)
    assert get_last_n_entries(n, path) == []


def test_damaged_lines_are_skipped_and_counted(path: Path) -> None:
    add_history_entry(entry(1), path)
    damaged = [
        b"\x00\xff\xfe binary",
        b"{half",
        b"[]",
        b"7",
        b'{"id": "x"}',
        json.dumps({**entry(9).to_dict(), "iterations": "many"}).encode(),
        json.dumps({**entry(9).to_dict(), "tokens": True}).encode(),
        json.dumps({**entry(9).to_dict(), "urls": [1]}).encode(),
        b"[" * 100_000,
    ]
    with path.open("ab") as file:
        file.write(b"\n".join([*damaged, b"", b"  "]) + b"\n")
    add_history_entry(entry(2), path)
    assert read_history(path) == HistoryRead([entry(2), entry(1)], len(damaged))


def test_a_torn_last_line_does_not_swallow_the_next_entry(path: Path) -> None:
    add_history_entry(entry(1), path)
    with path.open("ab") as file:
        file.write(b'{"id": "to')
    add_history_entry(entry(2), path)
    assert read_history(path) == HistoryRead([entry(2), entry(1)], 1)


def test_fields_of_a_later_version_are_left_out() -> None:
    assert HistoryEntry.from_dict({**entry().to_dict(), "cost": 0.1}) == entry()


def test_any_text_survives(path: Path) -> None:
    strange = entry(query="a\nb\u2028c \ud800 👍", answer="\x00\r\n")
    add_history_entry(strange, path)
    assert get_latest_entry(path) == strange


def test_lines_longer_than_a_block_are_read_whole(path: Path) -> None:
    long = [entry(n, answer=f"{n}" * 200_000) for n in range(1, 4)]
    for one in long:
        add_history_entry(one, path)
    assert get_last_n_entries(9, path) == long[::-1]


def test_the_last_entries_of_a_long_history_are_read_from_its_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    line = json.dumps(entry(7).to_dict()) + "\n"
    path.write_text(line * 100_000)
    read = []
    real = files.lines_from_end
    monkeypatch.setattr(files, "lines_from_end", lambda p: (read.append(1) or text for text in real(p)))
    assert get_last_n_entries(3, path) == [entry(7)] * 3
    assert len(read) == 4  # the empty end of the file and three lines


def _append_many(path: str, first: int) -> None:
    for number in range(first, first + 50):
        add_history_entry(entry(number), Path(path))


def test_processes_that_append_at_once_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(str(path), first)) for first in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
    read = read_history(path)
    assert (sorted(e.id for e in read.entries), read.damaged) == (
        sorted(f"{n:06x}" for n in [*range(50), *range(100, 150)]),
        0,
    )


def test_a_full_disk_is_told_and_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_history_entry(entry(1), path)
    real = os.write
    room = [10]

    def write(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= (taken := real(fd, bytes(data[: room[0]])))
        return taken

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StoreError) as caught:
        add_history_entry(entry(2), path)
    assert caught.value.message == "Could not save the answer to the history"
    assert caught.value.cause == f"No space left on device ({path})"
    assert caught.value.fix.startswith("Free some disk space")
    assert read_history(path) == HistoryRead([entry(1)], 0)


def test_a_history_that_is_a_folder_is_told(path: Path) -> None:
    path.mkdir(parents=True)
    for action in (lambda: add_history_entry(entry(), path), lambda: get_latest_entry(path), lambda: clear_history(path)):
        with pytest.raises(StoreError):
            action()


def test_search_finds_words_in_question_and_answer_whatever_their_case(path: Path) -> None:
    for one in (entry(1, query="Why STRASSE?"), entry(2, answer="the straße"), entry(3)):
        add_history_entry(one, path)
    assert [e.id for e in search_history("Strasse", path)] == ["000002", "000001"]


def test_a_new_entry_gets_an_id_and_a_time_unless_given() -> None:
    fresh = create_entry("q", "a", ["u"], "m", 5, 10.5, 1000)
    assert (len(fresh.id), int(fresh.id, 16) >= 0) == (6, True)
    assert datetime.fromisoformat(fresh.ts).tzinfo is not None
    given = create_entry("q", "a", ["u"], "m", 5, 10.5, 1000, id="abc123", ts="2026-01-01T00:00:00+00:00")
    assert given == HistoryEntry("abc123", "2026-01-01T00:00:00+00:00", "q", "a", ["u"], "m", 5, 10.5, 1000)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-30, "0s ago"),
        (0, "0s ago"),
        (59, "59s ago"),
        (60, "1m ago"),
        (3599, "59m ago"),
        (7200, "2h ago"),
        (86_400, "1d ago"),
        (9_000_000, "104d ago"),
    ],
)
def test_time_ago_is_told_in_its_largest_unit(seconds: int, words: str) -> None:
    assert format_time_ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == words


@pytest.mark.parametrize("ts", ["", "invalid", "2026-13-01", "0001-01-01T00:00:00+23:59"])
def test_a_time_nobody_can_read_is_unknown(ts: str) -> None:
    assert format_time_ago(ts, NOW) == "unknown"


def test_times_without_now_are_measured_from_now() -> None:
    assert format_time_ago(datetime.now(UTC).isoformat()) == "0s ago"
    assert format_time_ago(datetime.now(UTC).isoformat().replace("+00:00", "Z")) == "0s ago"


def test_a_preview_shows_question_beginning_and_three_urls() -> None:
    shown = format_entry_preview(entry(urls=[f"https://a.example/{n}" for n in range(5)], answer="word " * 60), 1, NOW)
    assert shown == "\n".join(
        [
            '[1] 5m ago (m, 4 iter, 12s): "question 1"',
            "    " + ("word " * 40).rstrip() + "… [truncated]",
            "    https://a.example/0",
            "    https://a.example/1",
            "    https://a.example/2",
            "    (+2 more)",
            "    ID: 000001",
        ]
    )


def test_control_characters_cannot_break_a_preview() -> None:
    shown = format_entry_preview(entry(query="a\nb\x1b[31m\u202ec", answer="x\r\ny\x07", urls=[]), 2, NOW)
    assert shown == '[2] 5m ago (m, 4 iter, 12s): "a b [31m c"\n    x y\n    ID: 000001'


def test_a_whole_entry_is_shown_with_its_figures() -> None:
    assert format_entry_full(entry(iterations=5, answer="One.\n\nTwo\x1b[2J [1].")) == "\n".join(
        [
            "Query: question 1",
            "ID: 000001 · 2026-03-01T11:55:00+00:00 · effort m · 5 iterations, 12.3s, 1000 tokens",
            "",
            "One.",
            "",
            "Two[2J [1].",
            "",
            "URLs:",
            "  [1] https://a.example/1",
        ]
    )
    assert "1 iteration," in format_entry_full(entry(iterations=1, urls=[]))
