"""`nexi token`: prints the same token each time, replaces it, and leaves one that was set elsewhere alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, Outcome


@pytest.fixture
def kept(nexi: Command) -> Path:
    return nexi.home / "state" / "token"


def test_the_first_call_makes_a_private_token_and_later_ones_print_it(nexi: Command, kept: Path) -> None:
    first = nexi("token")
    assert (first.code, first.out, first.err) == (0, kept.read_text(), "")
    assert len(first.out.strip()) == 32
    assert nexi("token") == first
    if sys.platform != "win32":
        assert [path.stat().st_mode & 0o777 for path in (kept, kept.parent)] == [0o600, 0o700]


def test_new_replaces_it(nexi: Command, kept: Path) -> None:
    old = nexi("token").out
    new = nexi("token", "--new")
    assert new == Outcome(0, kept.read_text(), "")
    assert new.out != old
    assert nexi("token") == new
    assert [path.name for path in kept.parent.iterdir()] == ["token"]


def test_a_token_that_was_set_is_printed_and_not_replaced(nexi: Command, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXI_TOKEN", "a-long-secret-of-the-test")
    assert nexi("token") == Outcome(0, "a-long-secret-of-the-test\n", "")
    refused = nexi("token", "--new")
    assert (refused.code, refused.out) == (2, "")
    assert "the token was not replaced: it is set by NEXI_TOKEN, or by token in the config\n" in refused.err
    assert "change it there" in refused.err
    assert not kept.exists()
