"""Reading needs no writing: what is known can be read on a full disk, on a read-only one and in a snapshot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexi.errors import StoreError
from nexi.stores.sqlite import SqliteStore
from nexi.types import Chunk, IndexedPage, StoredSource
from tests.cli.command import Command

URL, TEXT = "https://zoo.example/lemurs", "Lemurs sleep sixteen hours a day."
QUESTION = "How long do lemurs sleep?"
PAGE = IndexedPage(StoredSource(URL, digest="d1", title="Lemurs"), (Chunk(TEXT),))
Close = Callable[[], None]


def run(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True, timeout=300).returncode == 0


def fill_disk(disk: Path) -> None:
    with (disk / "fill").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


@pytest.fixture(params=["full", "read-only"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Close]]:
    """A small disk, and what makes it one that cannot be written."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or not run("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)):
        pytest.skip("a file system cannot be mounted here")
    read_only = ("mount", "-o", "remount,ro", str(place))
    try:
        yield place, (lambda: fill_disk(place)) if request.param == "full" else (lambda: run(*read_only) and None)
    finally:
        run("umount", str(place))


async def read_all(path: Path) -> tuple[list[str], list[str]]:
    store = SqliteStore(path)
    try:
        return [s.url for s in await store.sources()], [p.text for p in await store.lexical("lemurs sleep")]
    finally:
        await store.aclose()


async def fill_store(path: Path) -> None:
    store = SqliteStore(path)
    await store.put([PAGE])
    await store.aclose()


async def test_the_store_is_read_where_nothing_can_be_written(disk: tuple[Path, Close]) -> None:
    place, close = disk
    await fill_store(place / "knowledge.db")
    close()
    assert await read_all(place / "knowledge.db") == ([URL], [TEXT])


async def test_where_no_store_can_be_made_nothing_is_stored(disk: tuple[Path, Close]) -> None:
    place, close = disk
    close()
    assert await read_all(place / "home" / "knowledge.db") == ([], [])


async def test_a_store_on_such_a_disk_refuses_to_be_written(disk: tuple[Path, Close]) -> None:
    place, close = disk
    await fill_store(place / "knowledge.db")
    close()
    store = SqliteStore(place / "knowledge.db")
    with pytest.raises(StoreError) as caught:
        await store.remove([URL])
    await store.aclose()
    assert caught.value.fix.startswith(("Free some disk space", "The file system is read-only"))


async def test_a_snapshot_with_a_journal_is_read_with_it_or_not_at_all(disk: tuple[Path, Close], tmp_path: Path) -> None:
    place, close = disk
    await fill_store(tmp_path / "knowledge.db")
    writing = SqliteStore(tmp_path / "knowledge.db")
    assert await writing.remove([URL]) == 1
    for name in ("knowledge.db", "knowledge.db-wal"):
        shutil.copyfile(tmp_path / name, place / name)
    await writing.aclose()
    assert (place / "knowledge.db-wal").stat().st_size > 0
    close()
    try:
        found = await read_all(place / "knowledge.db")
    except StoreError:
        found = ([], [])
    assert found == ([], [])


async def test_a_disk_that_is_freed_is_written_again_by_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill_store(tmp_path / "knowledge.db")
    store = SqliteStore(tmp_path / "knowledge.db")

    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: False)
        assert [s.url for s in await store.sources()] == [URL]
        with pytest.raises(StoreError):
            await store.remove([URL])
    assert (await store.remove([URL]), await store.sources()) == (1, [])
    await store.aclose()


def test_commands_that_read_work_on_such_a_disk(
    disk: tuple[Path, Close], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, close = disk
    note = tmp_path / "lemurs.md"
    note.write_text(f"# Lemurs\n\n{TEXT}\n", encoding="utf-8")
    monkeypatch.setenv("NEXI_HOME", str(place / "home"))
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:9")
    nexi = Command(place / "home", monkeypatch, capsys)
    assert (nexi("index", str(note)).code, nexi("--local", QUESTION).code) == (0, 0)
    run_id = nexi("runs").out.split()[0]
    close()
    commands = (("sources",), ("--local", QUESTION), ("runs",), ("--last", "1"), ("replay", run_id), ("--show", run_id))
    shown = {" ".join(command): nexi(*command) for command in commands}
    assert {name: done.code for name, done in shown.items()} == dict.fromkeys(map(" ".join, commands), 0)
    assert [TEXT in shown[f"{name}{run_id}"].out for name in ("replay ", "--show ")] == [True, True]
    assert (str(note) in shown["sources"].out, TEXT in shown[f"--local {QUESTION}"].out, run_id in shown["runs"].out) == (
        True,
    ) * 3
