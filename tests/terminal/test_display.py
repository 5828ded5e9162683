"""One question in a terminal: what is drawn while it is answered, and what stays."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexi.cli.exits import EXIT_CANCELLED
from rig.terminal import CTRL_C, ESCAPE, Picture, Terminal, terminal
from tests.faults.command import QUESTION, answering, endpoint, reading, searching
from tests.llm.server import Canned, call_delta, sse

pytestmark = pytest.mark.long

ANSWER = (
    "# The Moon\n\nThe Moon is **384,400 km** away on average [1]. It has `Vec<T>` craters [1].\n\n"
    "- It is near to the Earth [1]\n- far\n\nשלום 👩‍🚀 is how a letter to the Moon ends [1]."
)
HOSTILE = (
    "Red \x1b[31mtext\x1b[0m and \x1b]0;owned\x07 a title \x1b]8;;http://evil.test\x1b\\link\x1b]8;;\x1b\\ \x9b2J "
    "\u202egnp.exe\u2066 bell\x07 [1]."
)


@contextmanager
def asking(
    env: dict[str, str], web: str, *arguments: str, answer: str = ANSWER, columns: int = 80, separate: tuple[str, ...] = ()
) -> Iterator[Terminal]:
    with endpoint([searching(), reading(web), answering(answer)]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted", "OPENAI_API_KEY": "sk-secret-1234567890"}
        with terminal([*arguments, QUESTION], {**env, **models}, columns=columns, separate=separate) as screen:
            yield screen


def test_an_answer_is_drawn_as_markdown_with_sources_and_what_it_took(env: dict[str, str], web: str) -> None:
    with asking(env, web) as screen:
        assert screen.ending() == 0
    shown = re.sub(r"\x1b?\]8;[^;]*;[^\\\x07]*[\\\x07]", "", Picture(screen.raw).text)  # hyperlinks are for the mouse
    took = (
        r"\n\n\d+\.\d s, 3 iterations, 1 page read, 45 tokens, cost unknown\n"
        r"Run [0-9a-f]{6} · nexi evidence 1 · nexi open 1 · nexi -c \"follow-up\"\n  nexi export [0-9a-f]{6} --format html$"
    )
    assert re.search(took, shown)
    assert re.sub(took, "", shown) == (
        "The Moon\n\n"
        "The Moon is 384,400 km away on average [1]. It has Vec<T> craters [1].\n\n"
        " • It is near to the Earth [1]\n • far\n\n"
        "שלום 👩‍🚀 is how a letter to the Moon ends [1].\n\n"
        f"Sources\n[1] Moon facts  127.0.0.1  4 of 4 sentences found\n    {web}/moon.test/facts\n\n"
        "○ Checked: 4 of 4 sentences found in the cited pages · 1 source."
    )
    assert "\x1b[1m384,400 km\x1b[0m" in screen.raw
    assert "Starting" in screen.raw  # how much more is drawn depends on how quick it all is


def test_a_sentence_is_shown_before_the_answer_is_whole(env: dict[str, str], web: str) -> None:
    begun = sse(call_delta(0, "f1", "final_answer", '{"answer": "The Moon is far [1]. It is'), done=False, then="hang")
    with endpoint([searching(), reading(web), begun]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with terminal([QUESTION], {**env, **models}) as screen:
            screen.expect("The Moon is far [1].")
            screen.expect("Writing")
            screen.type(CTRL_C)
            screen.expect("the answer breaks off here")
            assert screen.ending() == EXIT_CANCELLED
    assert "The Moon is far [1]." in Picture(screen.raw).text


def test_no_stream_shows_the_answer_once_at_the_end(env: dict[str, str], web: str) -> None:
    whole = Canned(
        200,
        (
            b'{"choices": [{"message": {"tool_calls": [{"id": "f", "type": "function", "function": {"name": "final_answer", '
            b'"arguments": "{\\"answer\\": \\"It is far [1].\\"}"}}]}, "finish_reason": "tool_calls"}]}',
        ),
    )
    with endpoint([searching(), reading(web), whole]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with terminal(["--no-stream", QUESTION], {**env, **models}) as screen:
            assert screen.ending() == 0
        assert [body.get("stream", False) for body in server.bodies] == [False] * 3
    assert screen.text.count("It is far [1].") == 1


@pytest.mark.parametrize(
    ("flags", "more"),
    [(["--plain"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--json"], {})],
    ids=["--plain", "NO_COLOR", "TERM=dumb", "--json"],
)
def test_no_escape_code_reaches_a_terminal_that_wants_none(
    env: dict[str, str], web: str, flags: list[str], more: dict[str, str]
) -> None:
    with asking({**env, **more}, web, *flags, answer=HOSTILE) as screen:
        assert screen.ending() == 0
    assert re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", screen.raw) == []
    assert "gnp.exe" in screen.raw


def test_nothing_in_an_answer_commands_the_terminal(env: dict[str, str], web: str) -> None:
    with asking(env, web, "-v", answer=HOSTILE) as screen:
        assert screen.ending() == 0
    shown = Picture(screen.raw).text
    assert "Red text and a title gnp.exe bell" in " ".join(shown.split())
    foreign = r"\x1b\](?!8;[^;]*;(?:http://127\.0\.0\.1|\x1b))|\x07|\x9b|[\u202a-\u202e\u2066-\u2069]|\x1b\[31mtext|\x1b\[2J"
    assert re.findall(foreign, screen.raw) == []  # links to sources are ours


def test_a_narrow_terminal_shows_everything(env: dict[str, str], web: str) -> None:
    with asking(env, web, columns=20) as screen:
        assert screen.ending() == 0
    drawn = re.sub(r"\s+", " ", Picture(screen.raw).text)
    assert "The Moon is 384,400 km away on average [1]. It has Vec<T> craters [1]. • It is near to the Earth [1] • far" in drawn
    status = [line for line in ESCAPE.sub("", screen.raw).replace("\r", "\n").split("\n") if "Starting" in line]
    assert status
    assert max(map(len, status)) <= 20


def test_verbose_names_every_call_and_no_key(env: dict[str, str], web: str) -> None:
    with asking(env, web, "-v") as screen:
        assert screen.ending() == 0
    shown = Picture(screen.raw).text
    for wanted in (
        "-> scripted (answer), call 1, about ",
        "<- web_search, 10+5 tokens, ",
        '   web_search {"queries": ["moon distance"]}',
        '   Searched "moon distance": 1 result from searxng',
        "   web_get ok, ",
        "   [1] is http://127.0.0.1",
        "<- final_answer, 10+5 tokens, ",
    ):
        assert wanted in shown
    assert "sk-secret" not in screen.raw


def test_an_answer_in_a_pipe_is_whole_while_the_status_is_drawn_beside_it(env: dict[str, str], web: str) -> None:
    with asking(env, web, separate=("stdout",)) as screen:
        assert screen.process.stdout is not None
        out = screen.process.stdout.read().decode()
        assert screen.ending() == 0
    assert out == f"{ANSWER}\n\nSources:\n[1] Moon facts - {web}/moon.test/facts\n"
    assert re.search("Starting|Thinking|Searching|Reading", screen.raw)


def test_progress_in_a_pipe_is_a_line_for_each_search_and_page(env: dict[str, str], web: str) -> None:
    with asking(env, web, separate=("stderr",)) as screen:
        assert screen.process.stderr is not None
        err = screen.process.stderr.read().decode()
        assert screen.ending() == 0
    assert err == 'Searched "moon distance": 1 result from searxng\nRead Moon facts (127.0.0.1)\n'
    assert "• It is near to the Earth [1]" in screen.text


@pytest.mark.parametrize("redirection", ["| head -c 1", ">&- 2>&-", "> /dev/full"])
def test_a_stream_that_takes_nothing_causes_no_traceback(env: dict[str, str], tmp_path: Path, redirection: str) -> None:
    log = tmp_path / "stderr"
    keep = "" if "2>&-" in redirection else f"2> {log}"
    done = subprocess.run(
        ["sh", "-c", f"{{ {sys.executable} -m nexi '{QUESTION}' {keep}; echo $? > {tmp_path}/code; }} {redirection}"],
        env={"PATH": os.environ["PATH"], **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    said = (log.read_text() if log.exists() else "") + done.stderr.decode()
    assert "Traceback" not in said
    assert "Exception ignored" not in said
