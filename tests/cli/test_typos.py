"""A mistyped command is not searched for."""

from __future__ import annotations

import pytest

from nexi.cli import COMMANDS
from nexi.cli.manual import _find_meant_command
from rig.terminal import terminal
from tests.cli.test_bad_input import run


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("reserach", "research"),
        ("reseach", "research"),
        ("researchh", "research"),
        ("doctr", "doctor"),
        ("dcotor", "doctor"),
        ("histery", "history"),
        ("sourcs", "sources"),
        ("historic", None),
        ("rust", None),
        ("run", None),
        ("Reserach", None),
        ("frobnicate", None),
    ],
)
def test_before_other_words_a_command_that_is_missed_by_one_letter_is_meant(word: str, meant: str | None) -> None:
    assert _find_meant_command([word, "moon"], COMMANDS) == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [("docter", "doctor"), ("Model", "models"), ("templats", "templates"), ("moon", None), ("how far is the moon", None)],
)
def test_a_word_alone_that_is_nearly_a_command_is_meant(word: str, meant: str | None) -> None:
    assert _find_meant_command([word], COMMANDS) == meant


def test_no_command_is_a_typo_of_another() -> None:
    assert [_find_meant_command([command, "x"], set(COMMANDS) - {command}) for command in COMMANDS] == [None] * len(COMMANDS)


def test_off_a_terminal_it_is_refused_before_anything_is_spent() -> None:
    ended = run("reserach", "the", "moon")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-2:] == [
        "Error: There is no command 'reserach'. Did you mean `nexi research the moon`?",
        'To ask it as a question: nexi -q "reserach the moon"',
    ]


def test_on_a_terminal_it_is_asked_and_enter_means_yes() -> None:
    with terminal(["vrify", "--help"], {}) as screen:
        screen.expect("Did you mean `nexi verify --help`?")
        screen.type("\r")
        screen.expect("Usage: nexi verify")
        assert screen.ending() == 0
