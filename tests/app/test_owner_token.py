"""The secret by which a server knows its owner: made once, in a private file, and void as soon as there is another."""

from __future__ import annotations

import base64
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nexi.app.owner_token import OwnerToken
from nexi.errors import StoreError


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_the_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: OwnerToken(tmp_path / "state").ensure(), range(64)))
    path = tmp_path / "state" / "token"
    assert (len(made), len(base64.urlsafe_b64decode(made.pop()))) == (1, 24)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_a_token_can_be_renewed_where_there_was_none(tmp_path: Path) -> None:
    owner = OwnerToken(tmp_path / "state")
    assert owner.renew() == owner.read() != ""
    assert stat.S_IMODE(owner.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(owner.path.parent.stat().st_mode) == 0o700


def test_a_new_token_is_on_the_disk_before_anybody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, sync = [], os.fsync

    def note(fd: int) -> None:
        flushed.append(fd)
        sync(fd)

    monkeypatch.setattr(os, "fsync", note)
    OwnerToken(tmp_path).renew()
    assert flushed


def test_a_server_that_runs_knows_a_new_token_and_no_longer_the_old_one(tmp_path: Path) -> None:
    server, command = OwnerToken(tmp_path), OwnerToken(tmp_path)
    old = server.ensure()
    old_cookie = server.cookie
    assert (server.is_token(old), server.is_cookie(old_cookie), server.ensure()) == (True, True, old)
    new = command.renew()
    assert new not in ("", old)
    assert (server.is_token(old), server.is_cookie(old_cookie)) == (False, False)
    assert (server.is_token(new), server.is_cookie(command.cookie)) == (True, True)


def test_a_cookie_is_no_token_and_a_token_no_cookie(tmp_path: Path) -> None:
    owner = OwnerToken(tmp_path)
    token = owner.ensure()
    assert (owner.is_token(owner.cookie), owner.is_cookie(token)) == (False, False)


@pytest.mark.parametrize("text", ["", "wrong", "\u00e9", "\ud800"])
def test_no_text_is_the_token_where_there_is_none_or_another(tmp_path: Path, text: str) -> None:
    owner = OwnerToken(tmp_path)
    assert (owner.read(), owner.cookie, owner.is_token(text), owner.is_cookie(text)) == ("", "", False, False)
    owner.ensure()
    assert (owner.is_token(text), owner.is_cookie(text)) == (False, False)
    owner.path.unlink()
    assert (owner.read(), owner.cookie, owner.is_token(text), owner.is_cookie(text)) == ("", "", False, False)


def test_a_token_that_cannot_be_read_is_refused_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError) as refused:
        OwnerToken(tmp_path).read()
    assert (str(tmp_path / "token") in refused.value.cause, refused.value.fix) == (
        True,
        "make it readable for you, or replace it: nexi token --new",
    )
