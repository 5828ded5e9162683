"""Keys typed during a search are not drawn, and however the search ends the terminal is as it was."""

from __future__ import annotations

import os
import pty
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nexi.cli.runner import hide_keys
from rig.terminal import CTRL_C, Terminal, terminal
from tests.faults.command import QUESTION, answering, endpoint, reading, searching
from tests.llm.server import call_delta, sse

pytestmark = pytest.mark.long

CTRL_BACKSLASH = "\x1c"
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
BEGUN = sse(call_delta(0, "f1", "final_answer", '{"answer": "The Moon is far [1]. It is'), done=False, then="hang")


@contextmanager
def hanging(env: dict[str, str], web: str, *flags: str) -> Iterator[Terminal]:
    """A search that has read a page and does not go on."""
    with endpoint([searching(), reading(web), BEGUN]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with terminal([*flags, QUESTION], {**env, **models}) as screen:
            screen.expect("1 page")
            yield screen


def test_keys_typed_during_a_search_are_not_shown(env: dict[str, str], web: str) -> None:
    with hanging(env, web) as screen:
        assert not screen.echoes()
        screen.type("typed too early")
        screen.type(CTRL_C)
        assert screen.ending() == 130
        assert screen.echoes()
    assert "typed" not in screen.raw


def test_the_terminal_echoes_again_after_an_answer(env: dict[str, str], web: str) -> None:
    with endpoint([searching(), reading(web), answering("Far [1].")]) as server:
        models = {"OPENAI_BASE_URL": server.url, "NEXI_MODEL": "scripted"}
        with terminal([QUESTION], {**env, **models}) as screen:
            assert screen.ending() == 0
            assert screen.echoes()


def test_the_terminal_echoes_again_after_a_search_that_failed(env: dict[str, str]) -> None:
    with endpoint([]) as server:
        gone = {"OPENAI_BASE_URL": f"{server.url}/nowhere", "NEXI_MODEL": "scripted", "SEARXNG_URL": "http://127.0.0.1:9"}
        with terminal([QUESTION], {**env, **gone}) as screen:
            assert screen.ending() != 0
            assert screen.echoes()


@pytest.mark.parametrize(
    ("keys", "code"),
    [(CTRL_C + CTRL_C, 130), (CTRL_BACKSLASH, -signal.SIGQUIT)],
    ids=["Ctrl-C twice", "Ctrl-backslash"],
)
def test_the_terminal_echoes_again_after_keys_that_end_the_search(env: dict[str, str], web: str, keys: str, code: int) -> None:
    with hanging(env, web) as screen:
        for key in keys:
            screen.type(key)
        assert screen.ending() == code
        assert screen.echoes()
    assert screen.raw.rfind(SHOWN) > screen.raw.rfind(HIDDEN) >= 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, -signal.SIGHUP)])
def test_the_terminal_echoes_again_after_a_signal(env: dict[str, str], web: str, number: signal.Signals, code: int) -> None:
    with hanging(env, web) as screen:
        screen.signal(number)
        assert screen.ending() == code
        assert screen.echoes()


def test_a_search_that_was_told_to_wait_goes_on_unseen(env: dict[str, str], web: str) -> None:
    with hanging(env, web, "-v") as screen:
        screen.signal(signal.SIGTSTP)  # nobody would wake the leader of a session, so it is not stopped
        screen.signal(signal.SIGCONT)
        screen.type("typed too early")
        screen.type(CTRL_C)
        assert screen.ending() == 130
        assert screen.echoes()
    assert "typed" not in screen.raw


def test_the_terminal_of_another_session_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    with os.fdopen(master, "rb"), os.fdopen(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        before = termios.tcgetattr(slave)
        with hide_keys():
            assert termios.tcgetattr(slave) == before


def test_without_a_terminal_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)]
    monkeypatch.setattr(sys, "stderr", None)
    with hide_keys():
        assert [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)] == handlers
