"""`nexi history`, `nexi open`, and the options of the seeds over the same file."""

from __future__ import annotations

import json
import os
import webbrowser
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from nexi.history import create_entry, read_history, remove_entry
from tests.cli.command import Command

GARBAGE = b"\x00\xff\xfe{binary\x80"


def line(number: int, **values: object) -> bytes:
    """An entry whose id is its number in hex."""
    given = {"query": f"question {number}", "answer": f"answer {number}", "urls": [f"https://site.test/{number}"], **values}
    entry = create_entry(effort="m", iterations=2, duration_s=1.0, tokens=5, id=f"{number:06x}", **given)  # type: ignore[arg-type]
    return json.dumps(entry.to_dict()).encode()


def heads(out: str) -> list[str]:
    return [row.partition("): ")[2] for row in out.splitlines() if row.startswith("[")]


@pytest.mark.parametrize("command", [("history", "2"), ("history", "list", "2"), ("--last", "2")])
def test_the_last_searches_are_listed_newest_first(nexi: Command, command: tuple[str, ...]) -> None:
    nexi.keep(*map(line, range(5)))
    done = nexi(*command)
    assert (done.code, heads(done.out), done.err) == (0, ['"question 4"', '"question 3"'], "")


def test_ten_are_listed_unless_a_number_is_given(nexi: Command) -> None:
    nexi.keep(*map(line, range(12)))
    assert len(heads(nexi("history").out)) == 10


def at(days: int) -> str:
    """Noon so many days ago, by the clock of this machine."""
    return (datetime.now().astimezone().replace(hour=12, minute=0) - timedelta(days=days)).isoformat(timespec="seconds")


def test_questions_stand_under_their_days_and_one_that_was_repeated_is_one_line(nexi: Command) -> None:
    nexi.keep(line(1, ts=at(40)), line(2, ts=at(1)), line(3, ts=at(1), query="Question  2"), line(4, ts=at(0)))
    rows = [text.partition("): ")[2] or text.strip() for text in nexi("history").out.splitlines()]
    old = datetime.fromisoformat(at(40))
    days = ("Today", "Yesterday", f"{old:%A}, {old.day} {old:%B %Y}")
    assert [row for row in rows if row.startswith(('"', "Asked", *days))] == [
        days[0],
        '"question 4"',
        days[1],
        '"Question  2"',
        "Asked 2 times; before: 000002",
        days[2],
        '"question 1"',
    ]
    assert len(heads(nexi("history", "--all").out)) == 4
    assert len(json.loads(nexi("history", "--json").out)["entries"]) == 4


def test_the_list_is_of_one_space_or_effort_where_that_is_wanted(nexi: Command) -> None:
    nexi.keep(line(0, space="flat"), line(1), line(2, space="flat"))
    assert heads(nexi("history", "--space", "flat").out) == ['"question 2"', '"question 0"']
    assert heads(nexi("history", "search", "question 0", "--space", "flat").out) == ['"question 0"']
    none = nexi("history", "-e", "l")
    assert (none.code, none.err) == (
        1,
        "Error: no question of that kind was asked\n  Fix: `nexi history` lists all of them\n",
    )


@pytest.mark.parametrize("command", [("history",), ("history", "search", "question"), ("--last", "9"), ("history", "--json")])
def test_damaged_lines_are_skipped_and_counted_aloud(nexi: Command, command: tuple[str, ...]) -> None:
    nexi.keep(line(0), GARBAGE, line(1), b'{"id": 3}', b"", line(2))
    done = nexi(*command)
    assert (done.code, done.err) == (0, "2 damaged lines skipped\n")


def test_only_the_damage_that_was_met_is_counted(nexi: Command) -> None:
    nexi.keep(GARBAGE, line(0), GARBAGE, line(1))
    assert nexi("--last", "1").err == ""
    assert nexi("--last", "2").err == "1 damaged line skipped\n"


@pytest.mark.parametrize("command", [("history",), ("--last", "3"), ("--prev",), ("open", "1")])
def test_a_history_of_nothing_but_garbage_is_empty_and_says_so(nexi: Command, command: tuple[str, ...]) -> None:
    nexi.keep(GARBAGE, GARBAGE * 100_000)
    done = nexi(*command)
    assert (done.code, done.out) == (1, "")
    assert [row.partition(" ")[0] for row in done.err.splitlines()[:2]] == ["2", "Error:"]


def test_a_search_finds_questions_and_answers_whatever_their_case(nexi: Command) -> None:
    nexi.keep(line(0, query="Über Straßen"), line(1, answer="STRASSEN"), line(2))
    done = nexi("history", "search", "straßen")
    assert (done.code, heads(done.out)) == (0, ['"question 1"', '"Über Straßen"'])


def test_an_answer_whose_run_is_not_kept_says_so(nexi: Command) -> None:
    nexi.keep(line(0), line(1))
    (nexi.home / "runs" / "000001").mkdir(parents=True)
    note = "only the answer is kept, not its run"
    assert [text for text in nexi("history").out.splitlines() if "ID: " in text] == [
        "    ID: 000001",
        f"    ID: 000000 ({note})",
    ]
    assert [note in nexi("history", "show", entry).out for entry in ("000001", "000000")] == [False, True]


def test_a_search_that_finds_nothing_fails_with_a_fix(nexi: Command) -> None:
    nexi.keep(line(0))
    done = nexi("history", "search", "xyzzy")
    assert (done.code, done.out) == (1, "")
    assert ("'xyzzy'" in done.err, "nexi history" in done.err) == (True, True)


@pytest.mark.parametrize(
    "wrong", ["zzzzzz", "00000", "../../etc/passwd", "runs/000000", "", "\x1b[2J", "é" * 500, "000000\x00"]
)
@pytest.mark.parametrize("command", [("--show",), ("history", "show"), ("history", "rm")])
def test_a_wrong_id_is_refused_politely(nexi: Command, command: tuple[str, ...], wrong: str) -> None:
    nexi.keep(line(0))
    done = nexi(*command, wrong)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: ")
    assert "\x1b" not in done.err
    assert "nexi history" in done.err.splitlines()[-1]


def test_one_entry_is_deleted_and_no_other(nexi: Command) -> None:
    nexi.keep(line(0), GARBAGE, line(1), line(2))
    assert nexi("history", "rm", "000001").code == 0
    left = read_history(nexi.home / "history.jsonl")
    assert ([e.id for e in left.entries], left.damaged) == (["000002", "000000"], 1)
    assert b"question 1" not in (nexi.home / "history.jsonl").read_bytes()
    assert nexi("history", "rm", "000001").code == 1


def test_an_entry_is_deleted_by_its_id_and_not_by_a_mention_of_it(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(0, answer='"000001"') + b"\n" + line(1))
    assert remove_entry("000001", path) == 1
    assert [e.id for e in read_history(path).entries] == ["000000"]


@pytest.mark.parametrize("command", [("history", "clear"), ("--clear-history",)])
def test_the_history_is_cleared_and_what_stays_is_said(nexi: Command, command: tuple[str, ...]) -> None:
    nexi.keep(line(0))
    done = nexi(*command)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"Deleted the history. Runs and pages are still in {nexi.home}.\n"
    assert not (nexi.home / "history.jsonl").exists()


def test_a_history_that_cannot_be_read_is_an_error_with_a_fix(nexi: Command) -> None:
    (nexi.home / "history.jsonl").mkdir(parents=True)
    for command in (("history",), ("--last", "3"), ("history", "rm", "000000"), ("history", "clear")):
        done = nexi(*command)
        assert (done.code, done.out) == (1, "")
        assert "  Fix: " in done.err


def test_escapes_and_direction_marks_in_old_answers_do_not_reach_the_terminal(nexi: Command) -> None:
    nexi.keep(line(0, query="\x1b[2Jq\u202e", answer="\x1b]0;title\x07a\u2066", urls=["https://x.test/\x1b[1m"]))
    for command in (("history",), ("--prev",)):
        assert not set("\x1b\x07\u202e\u2066") & set(nexi(*command).out)


def test_a_long_question_is_cut_in_the_list(nexi: Command) -> None:
    nexi.keep(line(0, query="why " * 20_000))
    assert max(map(len, nexi("history").out.splitlines())) < 300


# open


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(urls.append(url)) or True)
    return urls


def test_off_a_terminal_the_address_is_printed(nexi: Command, opened: list[str]) -> None:
    nexi.keep(line(0, urls=["https://a.test/1", "https://b.test/2"]))
    done = nexi("open", "2")
    assert (done.code, done.out, opened) == (0, "https://b.test/2\n", [])


def test_on_a_terminal_the_browser_opens_it(nexi: Command, opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    nexi.keep(line(0))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert (nexi("open", "1").out, opened) == ("", ["https://site.test/0"])
    assert (nexi("open", "1", "--print").out, opened) == ("https://site.test/0\n", ["https://site.test/0"])


def test_with_no_browser_the_address_is_printed(nexi: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str) -> bool:
        raise webbrowser.Error("could not locate runnable browser")

    nexi.keep(line(0))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(webbrowser, "open", refuse)
    assert nexi("open", "1").out == "https://site.test/0\n"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "--new-window", "https:", ""])
def test_what_is_no_web_address_is_not_opened(nexi: Command, opened: list[str], url: str) -> None:
    nexi.keep(line(0, urls=[url]))
    done = nexi("open", "1")
    assert (done.code, done.out, opened) == (1, "", [])
    assert done.err.startswith("Error: ")


def test_a_source_that_the_answer_does_not_have_is_an_error(nexi: Command) -> None:
    nexi.keep(line(0))
    done = nexi("open", "2")
    assert (done.code, done.out) == (1, "")
    assert (" 2" in done.err, "nexi --prev" in done.err) == (True, True)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_read_only_history_is_not_changed_and_says_why(nexi: Command) -> None:
    nexi.keep(line(0))
    (nexi.home / "history.jsonl").chmod(0o400)
    done = nexi("history", "rm", "000000")
    assert (done.code, "write access" in done.err) == (1, True)


def test_runs_are_kept_and_tidied_by_command(nexi: Command) -> None:
    from datetime import UTC, datetime, timedelta

    from nexi.runs.log_format import encode_header

    for run_id, days in (("aaaaaa", 40), ("bbbbbb", 50), ("cccccc", 1)):
        folder = nexi.home / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "log.jsonl").write_bytes(encode_header(run_id, datetime.now(UTC) - timedelta(days=days)))
    assert nexi("runs", "keep", "aaaaaa").code == 0
    assert [line[:6] for line in nexi("runs", "tidy", "--dry-run").out.splitlines()] == ["bbbbbb"]
    assert nexi("runs", "tidy").code == 0
    assert sorted(path.name for path in (nexi.home / "runs").iterdir()) == ["aaaaaa", "cccccc"]
