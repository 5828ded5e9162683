"""What people type and systems do: no traceback, the right exit code, and a way on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexi.history import create_entry
from tests.children import CHILD_PATH
from tests.cli.command import QUESTION, Command, pipe


def run(*args: str, stdin: int = subprocess.DEVNULL, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nexi", *args],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": CHILD_PATH, "PYTHONWARNINGS": "error", **env},
        stdin=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


TEMPLATE = json.dumps(create_entry("q" * 80, "a" * 300, ["https://a.test/"], "m", 1, 1.0, 1, id="%06x").to_dict()) + "\n"


def entry(number: int) -> bytes:
    return (TEMPLATE % number).encode()


@pytest.mark.parametrize(
    ("args", "near"),
    [
        (["--modle", "x", "a question"], "--model"),
        (["--jsn", "a question"], "--json"),
        (["find", "--jsn", "moon"], "--json"),
        (["history", "--jsn"], "--json"),
        (["open", "--prin", "1"], "--print"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_unknown_flag_is_a_usage_error_that_suggests_the_one_that_was_meant(
    nexi: Command, args: list[str], near: str
) -> None:
    done = nexi(*args)
    assert (done.code, done.out) == (2, "")
    assert near in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "line",
    [
        *("find", "find how far", "fetch", "fetch a b", "open", "open 0", "open source software"),
        *("history 0", "history -1", "history of rome", "history search", "history show"),
    ],
)
def test_a_subcommand_with_the_wrong_words_is_a_usage_error(nexi: Command, line: str) -> None:
    done = nexi(*line.split())
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("line", ["find how far", "fetch a b", "open source software", "history of rome"])
def test_words_that_may_have_been_a_question_are_answered_with_quotes(nexi: Command, line: str) -> None:
    assert f'quote it: nexi "{line.split()[0]} ..."' in nexi(*line.split()).err


@pytest.mark.parametrize(
    "address", ["", "example.com", "ftp://a.test/x", "http://", "http://[::1", "\x00", "http://user:pw@a.test/"]
)
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_what_is_no_page_is_refused_with_a_fix(nexi: Command, address: str, as_json: list[str]) -> None:
    done = nexi("fetch", *as_json, address)
    assert done.code == 1
    assert json.loads(done.out)["fix"] if as_json else "  Fix: " in done.err


@pytest.mark.parametrize("address", ["http://127.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://0x7f.1/"])
def test_private_addresses_are_refused_also_to_the_user(nexi: Command, address: str) -> None:
    done = nexi("fetch", address)
    assert (done.code, done.out) == (1, "")
    assert "allow_private" in done.err.lower()


@pytest.mark.parametrize("question", ["كم يبعد القمر عن الأرض؟", "🌙🌍📏 moon?", "\u202emoon", "Mañana ¿luna?", "moon \ud800"])
@pytest.mark.parametrize("command", [["--json"], ["find", "--json"]], ids=["ask", "find"])
def test_questions_in_any_script_are_taken(online: Command, command: list[str], question: str) -> None:
    done = online(*command, question)
    assert done.code in (0, 5)
    assert isinstance(json.loads(done.out), dict)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [["find"], ["find", "--json"], ["--plain"]], ids=" ".join)
def test_an_empty_question_is_a_usage_error(nexi: Command, command: list[str]) -> None:
    done = nexi(*command, " \n")
    assert (done.code, "error" in (done.out + done.err).lower()) == (2, True)


def test_a_megabyte_on_stdin_is_no_question(online: Command) -> None:
    with pipe(b"why " * 250_000) as stdin:
        done = online("--plain", stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "999,999 characters" in done.err


def test_a_history_of_a_hundred_thousand_lines_is_listed_shown_and_edited(nexi: Command) -> None:
    nexi.home.mkdir(parents=True)
    with (nexi.home / "history.jsonl").open("wb") as file:
        file.writelines(map(entry, range(100_000)))
    done = nexi("--last", "3")
    assert [row.split()[1] for row in done.out.splitlines() if "ID:" in row] == ["01869f", "01869e", "01869d"]
    assert nexi("--show", "000000").code == 0
    assert nexi("history", "rm", "000000").code == 0


@pytest.mark.parametrize(
    "args", [["--last", "3"], ["history"], ["find", "moon"], ["fetch", "https://a.test/"], [QUESTION]], ids=" ".join
)
def test_without_a_home_it_is_said_how_to_name_one(args: list[str]) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "NEXI_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("args", "code"), [(["--last", "3"], 1), (["history", "rm", "0000aa"], 1), (["find", "moon"], 2)])
def test_a_home_that_is_no_folder_is_named_with_a_fix(nexi: Command, args: list[str], code: int) -> None:
    nexi.home.write_text("a file", encoding="utf-8")
    done = nexi(*args)
    assert (done.code, done.out) == (code, "")
    assert (str(nexi.home) in done.err, "NEXI_HOME" in done.err) == (True, True)


def test_a_home_that_does_not_exist_is_no_trouble_for_reading(online: Command, web: str) -> None:
    assert online("find", "moon").code == 0
    assert not online.home.exists()
    assert online("fetch", f"{web}/moon.test/facts").code == 0
    assert [path.name for path in online.home.iterdir()] == ["cache"]


@pytest.mark.skipif(os.name == "nt", reason="pipes of a shell")
@pytest.mark.parametrize("args", [["--last", "50"], ["history", "2000"], ["history", "search", "q", "--json"]], ids=" ".join)
def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "history.jsonl").write_bytes(b"".join(map(entry, range(2000))))
    nexi = subprocess.Popen(
        [sys.executable, "-m", "nexi", *args],
        env={"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path), "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert nexi.stdout
    assert nexi.stderr
    nexi.stdout.read(10)
    nexi.stdout.close()
    with nexi.stderr:
        assert (nexi.wait(300), nexi.stderr.read()) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="closing a descriptor of a child")
def test_a_stdin_that_is_closed_is_no_question(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "NEXI_HOME": str(tmp_path)}
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m nexi <&-"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)


def test_listing_the_history_imports_no_engine_and_no_network() -> None:
    heavy = (
        "nexi.app.assembly",
        "nexi.agent",
        "nexi.fetchers",
        "nexi.backends",
        "nexi.llm",
        "httpx2",
        "rich",
        "asyncio",
        "prompt_toolkit",
    )
    code = (
        "import sys, nexi.cli\n"
        "try: nexi.cli.main(['--last', '3'])\n"
        "except SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    env = {"PATH": os.environ["PATH"], "NEXI_HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "flags", [("replay",), ("--template",), ("-o",), ("research", "-o"), ("verify",), ("resume",)], ids=" ".join
)
def test_a_name_that_is_too_long_for_a_file_is_an_error_without_a_traceback(nexi: Command, flags: tuple[str, ...]) -> None:
    done = nexi(*flags, "a" * 5_000, *((QUESTION,) if flags[-1].startswith("-") else ()))
    assert (done.code in (1, 2), done.out, "Traceback" in done.err) == (True, "", False)
    assert done.err.startswith("Error: ")
