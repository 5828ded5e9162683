"""A disk that is full, read-only or in the way: the answer still comes, with a warning and exit code 0."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nexi.history import get_latest_entry
from tests.faults.command import (
    ANSWER,
    Outcome,
    answering,
    check_nothing_is_left_behind,
    check_nothing_is_lost,
    endpoint,
    reading,
    searching,
)

Ask = Callable[..., Outcome]
Search = Callable[[], Outcome]


@pytest.fixture
def search(ask: Ask, web: str) -> Search:
    """One search with a sound model."""

    def run() -> Outcome:
        with endpoint([searching(), reading(web), answering()]) as server:
            return ask(base_url=server.url)

    return run


def check_answer(done: Outcome, warning: str) -> None:
    assert (done.code, done.out[: len(ANSWER)]) == (0, ANSWER)
    assert "\n\nSources:\n[1] Moon facts - " in done.out
    assert "Warning: " in done.err
    assert warning in done.err
    check_nothing_is_left_behind(done)


def failing_writes(monkeypatch: pytest.MonkeyPatch, which: Callable[[int], bool], number: int = errno.ENOSPC) -> list[int]:
    """Let the writes of our files fail whose number, counted from 1, is such; the list holds the bytes of each."""
    written: list[int] = []
    write = os.write

    def broken(fd: int, data: bytes) -> int:
        written.append(len(data))
        if which(len(written)):
            raise OSError(number, os.strerror(number))
        return write(fd, data)

    monkeypatch.setattr(os, "write", broken)
    return written


def test_a_sound_disk_keeps_everything(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    written = failing_writes(monkeypatch, lambda n: False)
    done = search()
    assert (done.code, "Warning" in done.err, "Error" in done.err) == (0, False, False)
    assert len(written) > 12  # what the tests below rely on
    check_nothing_is_lost(done)
    check_nothing_is_left_behind(done)


@pytest.mark.parametrize("first", [1, 2, 3, 5, 8, 12])
def test_a_disk_that_fills_up_costs_the_log_but_not_the_answer(
    search: Search, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    failing_writes(monkeypatch, lambda n: n >= first)
    done = search()
    check_answer(done, "Free some disk space")
    assert done.err.count("Warning") == 1


@pytest.mark.parametrize("only", [1, 2, 4, 7, 10, 13])
def test_one_failed_write_is_told_and_the_rest_goes_on(search: Search, monkeypatch: pytest.MonkeyPatch, only: int) -> None:
    failing_writes(monkeypatch, lambda n: n == only)
    done = search()
    assert (done.code, done.out[: len(ANSWER)]) == (0, ANSWER)
    assert done.err.count("Free some disk space") == 1
    check_nothing_is_left_behind(done)


def test_a_write_that_takes_only_half_is_finished_by_the_next(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: max(1, len(data) // 2)]))
    done = search()
    assert (done.code, "Warning" in done.err, "Error" in done.err) == (0, False, False)
    check_nothing_is_lost(done)


def test_a_flush_that_fails_costs_the_log_but_not_the_answer(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    check_answer(search(), "this run is not kept")


def test_a_history_that_cannot_be_written_is_told(search: Search, environment: dict[str, str]) -> None:
    home = Path(environment["NEXI_HOME"])
    (home / "history.jsonl").mkdir(parents=True)
    check_answer(search(), "the answer is not in the history")


@pytest.mark.parametrize("name", ["runs", "pages"])
def test_a_file_where_a_folder_must_be_is_told(search: Search, environment: dict[str, str], name: str) -> None:
    home = Path(environment["NEXI_HOME"])
    home.mkdir(parents=True)
    (home / name).write_text("in the way", encoding="utf-8")
    done = search()
    check_answer(done, str(home / name))
    entry = get_latest_entry(home / "history.jsonl")
    assert entry is not None
    assert entry.answer == ANSWER


def test_a_home_that_is_a_file_is_a_setting_to_mend(ask: Ask, environment: dict[str, str]) -> None:
    home = Path(environment["NEXI_HOME"])
    home.write_text("in the way", encoding="utf-8")
    done = ask(base_url="http://127.0.0.1:9/v1")
    assert (done.code, done.out) == (2, "")
    assert "Not a directory" in done.err
    assert "set NEXI_HOME to another folder" in done.err
    check_nothing_is_left_behind(done)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for the superuser")
def test_a_read_only_home_costs_everything_but_the_answer(search: Search, environment: dict[str, str]) -> None:
    home = Path(environment["NEXI_HOME"])
    home.mkdir(parents=True)
    home.chmod(0o500)
    try:
        check_answer(search(), "this run is not kept")
    finally:
        home.chmod(0o700)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_home_that_refuses_every_folder_costs_everything_but_the_answer(
    search: Search, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(self: Path, *rest: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = search()
    check_answer(done, "this run is not kept")
    assert "NEXI_HOME" in done.err
