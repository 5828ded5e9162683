"""The knowledge store in company: several connections in one process, several processes, and a file only SQLite opens."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nexi import files
from nexi.app.documents import OWN_STORE, files_in
from nexi.app.stored_runs import list_indexed_urls
from nexi.errors import StoreError
from nexi.events import Fact, RunFinished, RunResumed, SourceNumbered, Warned
from nexi.stores._connection import open_database
from nexi.stores.salvage import check_journal
from nexi.stores.sqlite import SqliteStore
from nexi.types import Source, Usage
from tests.faults.company import keep_company
from tests.faults.knowledge_child import page
from tests.faults.processes import PATIENCE_S, home

pytestmark = pytest.mark.long

OTHER_PROCESS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2]:
    db.execute("INSERT INTO notes VALUES (?)", (sys.argv[2],))
print([row[0] for row in db.execute("SELECT x FROM notes ORDER BY x")])
db.close()
"""
NUMBERED = SourceNumbered(Source(1, "https://a.example/"))
FINISHED = RunFinished("It is.", (), "answered", 1, Usage(), 1.0, 1, 1)
OPENED_FILES: list[str] = []  # an audit hook cannot be taken away again, so one serves all tests
hook_is_set = threading.Event()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "knowledge.db"


@pytest.fixture
def opened_files() -> list[str]:
    """The database files that Python itself opened; what SQLite opens is not among them."""

    def note_opening(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and (name := Path(str(arguments[0])).name).startswith("knowledge.db"):
            OPENED_FILES.append(name)

    if not hook_is_set.is_set():
        hook_is_set.set()
        sys.addaudithook(note_opening)
    OPENED_FILES.clear()
    return OPENED_FILES


def _make_notes(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS notes(x)")


def _ask_other_process(path: Path, note: str = "") -> str:
    command = [sys.executable, "-c", OTHER_PROCESS, str(path), note]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("connections", [1, 2, 5])
def test_another_process_that_closes_leaves_the_journal_of_every_connection_here(path: Path, connections: int) -> None:
    """POSIX locks belong to a process: opening and closing the file beside SQLite would drop those of every connection."""
    held = [open_database(path, _make_notes) for _ in range(connections)]
    held[0].execute("INSERT INTO notes VALUES ('1')")
    assert _ask_other_process(path, "2") == "['1', '2']"
    assert path.with_name("knowledge.db-wal").exists()
    for number, connection in enumerate(held, 3):
        connection.execute("INSERT INTO notes VALUES (?)", (str(number),))
    expected = str([str(number) for number in range(1, connections + 3)])
    assert _ask_other_process(path) == expected
    for connection in held:
        connection.close()
    assert _ask_other_process(path) == expected


def test_a_new_file_and_its_journal_are_private_from_the_first_byte(path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(open_database(path, _make_notes)):
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("knowledge.db", "knowledge.db-wal", "knowledge.db-shm"), 0o600)


def test_a_file_that_another_made_meanwhile_is_left_to_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_database(path, _make_notes)) as first:
        monkeypatch.setattr(files, "is_existing_path", lambda _: False)
        with closing(open_database(path, _make_notes)) as second:
            second.execute("INSERT INTO notes VALUES ('1')")
            assert first.execute("SELECT x FROM notes").fetchall() == [("1",)]
    assert [file.name for file in path.parent.iterdir()] == ["knowledge.db"]


def test_without_hard_links_sqlite_makes_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse_link)
    with closing(open_database(path, _make_notes)) as db:
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    assert [file.name for file in path.parent.iterdir()] == ["knowledge.db"]


async def test_nothing_but_sqlite_opens_the_file_while_a_store_is_used(path: Path, opened_files: list[str]) -> None:
    store, other = SqliteStore(path), SqliteStore(path)
    await store.put([page("a", number) for number in range(4)], embedder="child")
    await other.put([page("b", number) for number in range(4)], embedder="child")
    assert len(await store.lexical("page3 part7", count=2)) == 2
    assert (await other.stats()).sources == 8
    await store.remove(["https://a.example/1"])
    reasons: list[str] = []
    list(files_in(path.parent, lambda _, reason: reasons.append(reason)))
    assert reasons[:1] == [OWN_STORE]
    assert (await other.repair()).kept_aside == ""
    await store.aclose()
    await other.aclose()
    assert opened_files == []
    path.read_bytes()
    assert opened_files == ["knowledge.db"], "the hook sees what it should"


async def test_a_damaged_store_is_searched_and_saved_without_opening_the_file_beside_sqlite(
    path: Path, opened_files: list[str]
) -> None:
    store = SqliteStore(path)
    await store.put([page("a", number) for number in range(20)], embedder="child")
    [root] = await store._writer.run(
        lambda db: db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'bodies'").fetchone()
    )
    await store.aclose()
    _wipe_page(path, root)
    opened_files.clear()
    damaged = SqliteStore(path)
    await damaged._reader.run(lambda db: list(salvage_rows(db)))
    report = await damaged.repair()
    await damaged.aclose()
    assert (report.sources, opened_files) == (20, [])


def salvage_rows(db: sqlite3.Connection) -> Iterator[tuple[object, ...]]:
    from nexi.stores import salvage

    return salvage._read_rows(db, "bodies", "id, title")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files a process has open")
def test_a_process_that_writes_into_a_removed_journal_is_found(path: Path) -> None:
    with closing(open_database(path, _make_notes)) as db:
        check_journal(path)
        path.with_name("knowledge.db-wal").unlink()
        db.execute("INSERT INTO notes VALUES ('1')")
        with pytest.raises(StoreError) as caught:
            check_journal(path)
    assert (caught.value.code, f"kill -9 {os.getpid()}" in caught.value.fix) == ("store_journal", True)
    check_journal(path)


def test_where_open_files_cannot_be_seen_nothing_is_said(path: Path, tmp_path: Path) -> None:
    (tmp_path / "1" / "fd").mkdir(parents=True)
    check_journal(path, tmp_path)
    check_journal(path, tmp_path / "none")


async def test_a_repair_names_the_sources_whose_rows_are_lost(path: Path) -> None:
    store = SqliteStore(path)
    await store.put([page("a", number) for number in range(20)], embedder="child")
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        [root] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sources'").fetchone()
    _wipe_page(path, root)
    damaged = SqliteStore(path)
    report = await damaged.repair()
    await damaged.aclose()
    assert (report.sources, report.lost_count) == (0, 20)
    assert report.lost_sources == tuple(sorted(f"//a.example/{number}" for number in range(20)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files a process has open")
async def test_a_damaged_store_is_not_replaced_while_another_process_has_it_open(path: Path) -> None:
    store = SqliteStore(path)
    await store.put([page("a", number) for number in range(20)], embedder="child")
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        [root] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sources'").fetchone()
    _wipe_page(path, root)
    before = path.read_bytes()
    holding = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]).execute('SELECT 1'); print(1, flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", holding, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        damaged = SqliteStore(path)
        with pytest.raises(StoreError) as caught:
            await damaged.repair()
        await damaged.aclose()
        other.communicate(b"\n")
    assert (caught.value.code, f"kill {other.pid}" in caught.value.fix) == ("store_in_use", True)
    assert path.read_bytes() == before


def test_a_repair_says_which_pages_of_runs_are_gone(tmp_path: Path) -> None:
    with home(tmp_path) as at:
        at.more = {"NEXI_MODEL": "extractive"}
        at.start("--plain", "How far is the Moon?").communicate(timeout=PATIENCE_S)
        [run] = at.logs
        indexed = list_indexed_urls(at.facts(run.parent.name))
        _lose_first_source(at.path / "knowledge.db", indexed[0])
        _, printed = at.start("doctor", "--repair").communicate(timeout=PATIENCE_S)
    assert f"Saved {len(indexed) - 1} sources" in printed
    assert f"(lost, or removed by you): 1 pages.\n  {indexed[0]}\n" in printed


def _lose_first_source(path: Path, url: str) -> None:
    """As a journal that was thrown away: no trace of the page, and an index that does not fit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DELETE FROM sources WHERE url = ?", (url,))
        [root] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sources_fetched'").fetchone()
    _wipe_page(path, root)


def _wipe_page(path: Path, number: int) -> None:
    with path.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(bytes(4096))


@pytest.mark.parametrize(
    ("facts", "urls"),
    [
        ((NUMBERED, FINISHED), ["https://a.example/"]),
        ((NUMBERED,), []),
        ((NUMBERED, Warned("not_indexed", "1 of the pages"), FINISHED), []),
        ((NUMBERED, RunResumed(1, 2.0), FINISHED), []),
    ],
)
def test_a_run_counts_its_pages_as_stored_only_where_its_log_leaves_no_doubt(facts: tuple[Fact, ...], urls: list[str]) -> None:
    assert list_indexed_urls(facts) == urls


def test_a_server_terminals_and_an_index_on_one_home_lose_no_page_through_kills(tmp_path: Path) -> None:
    company = keep_company(tmp_path, seconds=20.0)
    assert company.violations == []
    assert company.counts["pages acknowledged"] > 0
