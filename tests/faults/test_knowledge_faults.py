"""The embedded knowledge store when processes are killed, disks are full and files are damaged."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nexi.errors import StoreError
from nexi.stores import _vectors
from nexi.stores.sqlite import SqliteStore
from nexi.types import Chunk, IndexedPage, StoredSource, StoreRepair
from tests.faults.knowledge_child import CHUNKS, page
from tests.raising import has_code

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("numpy")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "knowledge.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path, busy_s=0.05)
    yield made
    await made.aclose()


def start(path: Path, name: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.knowledge_child", str(path), name, *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def acknowledged(child: subprocess.Popen[str], count: int) -> list[int]:
    assert child.stdout is not None
    return [int(child.stdout.readline()) for _ in range(count)]


async def check_whole(store: SqliteStore, name: str, turns: int) -> None:
    """Every acknowledged page is there in its last version or a later one, with all of its chunks and vectors."""
    newest = {turn % 40: turn // 40 for turn in range(turns)}
    for number, version in newest.items():
        passages = await store.passages(f"https://{name}.example/{number}")
        versions = {p.text.split()[3] for p in passages}
        assert len(passages) == CHUNKS
        assert len(versions) == 1
        assert int(versions.pop().removeprefix("version")) >= version
    stats = await store.stats()
    assert (stats.unembedded, stats.chunks, stats.damage) == (0, stats.sources * CHUNKS, "")


async def test_a_killed_writer_loses_nothing_it_acknowledged_and_leaves_no_half_page(path: Path) -> None:
    done = 0
    for turns in (3, 57):
        child = start(path, "a")
        seen = acknowledged(child, turns)
        child.kill()
        rest = child.communicate()[0].split()
        done = max(done, seen[-1] + 1 + len(rest))
        async with _opened(path) as store:
            await check_whole(store, "a", seen[-1] + 1)
            near = await store.dense(array("f", [1.0, 1.0, 1.0, 0.0]), embedder="child", count=50)
            assert len(near) == 50 if turns > 5 else near
            await store.put([page("b", 1)], embedder="child")
            assert len(await store.passages("https://b.example/1")) == CHUNKS
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert done >= 57


async def test_two_processes_store_while_a_third_searches(path: Path) -> None:
    children = [start(path, name, "30") for name in ("a", "b")]
    async with _opened(path) as store:
        found = 0
        while any(child.poll() is None for child in children):
            found = len(await store.lexical("page7 part3"))
            await store.dense(array("f", [8.0, 4.0, 1.0, 0.0]), embedder="child")
        assert [child.wait() for child in children] == [0, 0]
        assert (await store.stats()).sources == 60
        assert found >= 0
        both = await store.dense(array("f", [8.0, 4.0, 1.0, 0.0]), embedder="child", count=2)
        assert {(p.url, p.number) for p in both} == {("https://a.example/7", 3), ("https://b.example/7", 3)}
        await check_whole(store, "a", 30)
        await check_whole(store, "b", 30)
    for child in children:
        child.communicate()


async def test_another_writer_is_waited_for_and_then_named(store: SqliteStore, path: Path) -> None:
    await store.put([page("a", 1)], embedder="child")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as busy:
            await store.put([page("a", 2)], embedder="child")
        assert len(await store.lexical("page1")) > 0
        other.execute("ROLLBACK")
    assert (busy.value.code, "Try again" in busy.value.fix) == ("store_busy", True)
    await store.put([page("a", 2)], embedder="child")
    assert (await store.stats()).sources == 2


async def test_a_full_disk_is_named_and_leaves_the_store_as_it_was(store: SqliteStore, path: Path) -> None:
    await store.put([page("a", 1)], embedder="child")
    await store._writer.run(lambda db: db.execute("PRAGMA max_page_count=1").fetchall())
    with pytest.raises(StoreError) as full:
        await store.put([page("a", number) for number in range(2, 60)], embedder="child")
    assert ("full" in str(full.value), "disk space" in full.value.fix) == (True, True)
    await store._writer.run(lambda db: db.execute("PRAGMA max_page_count=1000000").fetchall())
    before = (await store.stats()).sources
    await check_whole(store, "a", 0)
    await store.put([page("a", 99)], embedder="child")
    assert (await store.stats()).sources == before + 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
async def test_vectors_that_cannot_be_written_undo_the_page(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    await store.put([page("a", 1)], embedder="child")

    def fails(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_vectors.os, "fsync", fails)
    with pytest.raises(StoreError) as failed:
        await store.put([page("a", 2)], embedder="child")
    monkeypatch.undo()
    assert (os.strerror(number) in failed.value.cause, bool(failed.value.fix)) == (True, True)
    assert [s.url for s in await store.sources()] == ["https://a.example/1"]
    await store.put([page("a", 2)], embedder="child")
    await check_whole(store, "a", 0)
    near = await store.dense(array("f", [3.0, 1.0, 1.0, 0.0]), embedder="child", count=1)
    assert [(p.url, p.number) for p in near] == [("https://a.example/2", 0)]


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with _opened(tmp_path / "file" / "knowledge.db") as store:
        with pytest.raises(StoreError) as failed:
            await store.stats()
    assert failed.value.fix


@pytest.mark.parametrize(
    "content",
    [
        b"no database at all, but long enough to look at " * 100,
        b"SQLite format 3\x00" + b"\xff" * 5000,
    ],
)
async def test_a_file_that_is_no_database_is_called_damaged_and_can_be_put_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    async with _opened(path) as store:
        with pytest.raises(StoreError) as damaged:
            await store.lexical("moon")
        assert (damaged.value.code, "nexi doctor --repair" in damaged.value.fix) == ("store_damaged", True)
        report = await store.repair()
        assert (report.sources, Path(report.kept_aside).read_bytes()) == (0, content)
        await store.put([page("a", 1)], embedder="child")
        assert (await store.stats()).sources == 1


async def test_a_damaged_index_of_words_still_finds_every_text_and_is_repaired(store: SqliteStore, path: Path) -> None:
    await store.put([page("a", number) for number in range(5)], embedder="child")
    await store._writer.run(lambda db: db.execute("UPDATE words_data SET block = X'FFFFFFFFFF' WHERE id > 10").fetchall())
    passages = await store.lexical("page3 part7", count=3)
    assert (passages[0].url, passages[0].number) == ("https://a.example/3", 7)
    assert (await store.stats()).damage
    report = await store.repair()
    assert (report.sources, report.chunks, report.lost_chunks, report.unembedded) == (5, 5 * CHUNKS, 0, 0)
    assert Path(report.kept_aside).exists()
    again = await store.lexical("page3 part7", count=1)
    assert (again[0].url, again[0].number) == ("https://a.example/3", 7)
    assert (await store.stats()).damage == ""
    near = await store.dense(array("f", [4.0, 8.0, 1.0, 0.0]), embedder="child", count=1)
    assert (near[0].url, near[0].number) == ("https://a.example/3", 7)


async def test_damaged_texts_are_left_out_and_the_rest_is_found_and_kept(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(20)], embedder="child")
    _overwrite_page_with(path, b"page7 part5 version0")
    async with _opened(path) as store:
        assert (await store.lexical("page3 part7", count=1))[0].url == "https://a.example/3"
        near = await store.dense(array("f", [4.0, 8.0, 1.0, 0.0]), embedder="child", count=200)
        assert 0 < len(near) < 200
        report = await store.repair()
        assert 0 < report.lost_chunks < 20
        assert report.chunks == 20 * CHUNKS - report.lost_chunks
        assert len(await store.passages("https://a.example/3")) == CHUNKS
        partial = await store.source("https://a.example/7")
        assert partial is None or partial.digest != "a-7-0"
        assert (await store.lexical("page3 part7", count=1))[0].number == 7


async def test_a_changed_byte_inside_a_text_is_damage_and_costs_one_passage(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(3)], embedder="child")
    data = path.read_bytes()
    place = data.index(b"page1 part5")
    path.write_bytes(data[:place] + b"\xff" + data[place + 1 :])
    async with _opened(path) as store:
        with pytest.raises(StoreError) as damaged:
            await store.passages("https://a.example/1")
        assert (damaged.value.code, "nexi doctor --repair" in damaged.value.fix) == ("store_damaged", True)
        assert [p.url for p in await store.lexical("page2 part3", count=1)] == ["https://a.example/2"]
        report = await store.repair()
        assert (report.sources, report.lost_chunks, bool(report.kept_aside)) == (3, 1, True)
        assert len(await store.passages("https://a.example/1")) == CHUNKS - 1


async def test_an_emptied_file_beside_its_vectors_is_damage_and_not_an_empty_store(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", 1)], embedder="child")
    path.write_bytes(b"")
    async with _opened(path) as store:
        with pytest.raises(StoreError) as damaged:
            await store.stats()
        assert (damaged.value.code, path.read_bytes()) == ("store_damaged", b"")
        report = await store.repair()
        assert (report.sources, Path(report.kept_aside).read_bytes()) == (0, b"")
        assert (await store.stats()).sources == 0


@pytest.mark.parametrize("harm", ["gone", "cut"])
async def test_lost_vectors_leave_words_and_can_be_made_again(path: Path, harm: str) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(3)], embedder="child")
    [rows] = (path.parent / "knowledge.db-vectors").glob("*.f32")
    if harm == "gone":
        rows.unlink()
    else:
        rows.write_bytes(rows.read_bytes()[:100])
    async with _opened(path) as store:
        with pytest.raises(StoreError) as damaged:
            await store.dense(array("f", [1.0, 1.0, 1.0, 0.0]), embedder="child")
        assert damaged.value.code == "store_damaged"
        assert len(await store.lexical("page1")) > 0
        report = await store.repair()
        assert (report.sources, report.unembedded, report.lost_chunks) == (3, 3 * CHUNKS, 0)
        waiting = await store.list_unembedded(100)
        await store.add_vectors({p.id: array("f", [float(p.number), 1.0]) for p in waiting}, embedder="other")
        assert len(await store.dense(array("f", [1.0, 1.0]), embedder="other", count=50)) == 3 * CHUNKS


async def test_a_store_that_was_repaired_meanwhile_is_opened_again(path: Path) -> None:
    async with _opened(path) as one, _opened(path) as two:
        await one.put([page("a", 1)], embedder="child")
        assert len(await two.lexical("page1")) > 0
        await one._writer.run(lambda db: db.execute("UPDATE words_data SET block = X'FF' WHERE id > 10").fetchall())
        await one.repair()
        await one.put([page("a", 2)], embedder="child")
        assert len(await two.lexical("page2")) > 0
        assert (await two.stats()).sources == 2


async def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", 1)], embedder="child")
        await store._writer.run(lambda db: db.execute("PRAGMA user_version=99").fetchall())
    before = path.read_bytes()
    async with _opened(path) as store:
        with pytest.raises(StoreError) as refused:
            await store.put([page("a", 2)], embedder="child")
        assert (refused.value.code, "Update nexi" in refused.value.fix) == ("store_newer", True)
    assert path.read_bytes() == before


async def test_a_database_of_something_else_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE other(x)")
        db.commit()
    async with _opened(path) as store:
        with pytest.raises(StoreError, check=has_code("store", "knowledge.db")):
            await store.stats()


async def test_a_cancelled_put_is_whole_or_absent(store: SqliteStore) -> None:
    task = asyncio.create_task(store.put([page("a", number) for number in range(30)], embedder="child"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.put([page("b", 1)], embedder="child")
    assert (await store.stats()).sources in (1, 31)


async def test_a_page_of_too_many_chunks_is_refused(store: SqliteStore) -> None:
    many = IndexedPage(StoredSource("https://long.example/"), (Chunk("x"),) * 65_537)
    with pytest.raises(StoreError, check=has_code("store", "https://long.example/")):
        await store.put([many])


class _opened:  # noqa: N801  # read as a verb
    def __init__(self, path: Path) -> None:
        self._store = SqliteStore(path, busy_s=5)

    async def __aenter__(self) -> SqliteStore:
        return self._store

    async def __aexit__(self, *_: Any) -> None:
        await self._store.aclose()


def _overwrite_page_with(path: Path, text: bytes) -> None:
    """Spoil the one page of the file that holds a text."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    start = data.index(text) // 4096 * 4096
    data[start : start + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(data))


async def test_a_store_without_its_first_page_loses_nothing(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(20)], embedder="child")
    _wipe(path, 1)
    async with _opened(path) as store:
        with pytest.raises(StoreError) as damaged:
            await store.lexical("page3 part7")
        assert damaged.value.code == "store_damaged"
        report = await store.repair()
        assert report == StoreRepair(20, 20 * CHUNKS, kept_aside=report.kept_aside)
        near = await store.dense(array("f", [4.0, 8.0, 1.0, 0.0]), embedder="child", count=1)
        assert [(p.url, p.number) for p in near] == [("https://a.example/3", 7)]
        assert (await store.lexical("page3 part7", count=1))[0].number == 7
    assert [file.name for file in path.parent.glob("*.*ed*")] == ["knowledge.db.damaged-1"]


async def test_without_the_first_page_and_a_page_of_texts_the_rest_is_saved(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(20)], embedder="child")
    _overwrite_page_with(path, b"page7 part5 version0")
    _wipe(path, 1)
    told: list[tuple[int, int]] = []
    async with _opened(path) as store:
        report = await store.repair(lambda done, total: told.append((done, total)))
        assert (report.chunks, 0 < report.lost_chunks < 20) == (20 * CHUNKS - report.lost_chunks, True)
        assert len(await store.passages("https://a.example/3")) == CHUNKS
    assert told == [(20, 20)]


async def test_texts_are_saved_though_the_list_of_bodies_is_lost(path: Path) -> None:
    async with _opened(path) as store:
        await store.put([page("a", number) for number in range(20)], embedder="child")
        [root] = await store._writer.run(
            lambda db: db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'bodies'").fetchone()
        )
    _wipe(path, root)
    async with _opened(path) as store:
        report = await store.repair()
        assert (report.sources, report.chunks, report.unembedded) == (20, 20 * CHUNKS, 20 * CHUNKS)
        assert (await store.lexical("page3 part7", count=1))[0].url == "https://a.example/3"


def _wipe(path: Path, number: int) -> None:
    with path.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(bytes(4096))
