"""What can still be had of a damaged store: a search over the texts that are left, and a sound file made of them.

Nothing is replaced while another process has the file open. A process that writes into a journal that was removed under it is
found too; only Linux tells, through `/proc`, and only of one's own processes; elsewhere nothing is known or said.

Tables are read row by row, and past the pages that cannot be read; indexes are never trusted. A page that lost some of its
chunks keeps the others under another digest, so that it counts as changed and is read again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from nexi.errors import StoreError
from nexi.stores import _connection, _schema
from nexi.stores._schema import CHUNKS, Ranked, read_meta, read_stats, scope_condition, set_meta
from nexi.stores._vectors import Held, VectorReader, VectorWriter, newest_epoch, read_sound_rows
from nexi.stores._writing import StoreTransaction, key_of
from nexi.text import terms
from nexi.types import Chunk, IndexedPage, Scope, StoredSource, StoreRepair

T = TypeVar("T")
Row = tuple[Any, ...]
OnSaved = Callable[[int, int], None]

BATCH_SIZE = 200
PROCESSES = Path("/proc")
_BODY = "id, digest, title, chunks, words, slot"
_SOURCE = "id, url, body, title, domain, language, fetched_at, tags"
_DATES = ", published, updated"  # none in the tables of a former version
_FORGOTTEN: Row = (0, "", "", 0, 0, -1)  # a body of which only the chunks are left
_CHUNK = "id, text, heading, context, code, start"
_TABLES = {"meta", "bodies", "sources", "chunks"}
_WAL = b"\x02\x02"  # the two bytes of the header that say how the file is written
_MODE, _CHANGES, _PAGES, _VALID_FOR = 18, 24, 28, 92  # places in the header


def size_of(path: Path) -> int:
    """Bytes of the store and all that lies beside it."""
    beside = [path, path.with_name(path.name + "-wal"), *path.with_name(path.name + "-vectors").glob("*")]
    return sum(file.stat().st_size for file in beside if file.is_file())


def has_lost_content(path: Path) -> bool:
    """Whether the file is empty although the vectors of its passages are beside it."""
    # In this order, a store that another process makes meanwhile is never taken for one that was emptied: vectors are written
    # when the file is not empty any more, or a journal is beside it.
    vectors = path.with_name(path.name + "-vectors")
    if not any(map(_size_of_file, vectors.glob("*"))) or path.with_name(path.name + "-wal").exists():
        return False
    return path.is_file() and not _size_of_file(path)


def _size_of_file(path: Path) -> int:
    """0 also for a file that another process has removed meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def by_words(db: sqlite3.Connection, text: str, count: int, scope: Scope) -> Ranked:
    """BM25 without an index, over every chunk that can be read."""
    question_terms = terms.question_terms(text)
    where = scope_condition(scope)
    sql = f"SELECT s.body FROM sources AS s NOT INDEXED WHERE {where.sql}"  # noqa: S608  # values are bound
    bodies = {int(row[0]) for row in db.execute(sql, where.values)} if where.sql else None
    chunks: list[tuple[int, Counter[str], int]] = []
    for body in _read_rows(db, "bodies", _BODY):
        for chunk, *texts, code, _ in _chunks_of(db, int(body[0]), int(body[3])):
            if (bodies is None or chunk // CHUNKS in bodies) and scope.code in (None, bool(code)):
                words = Counter(terms.extract_terms("\n".join(texts)))
                chunks.append((chunk, words, words.total()))
    rarity: dict[str, float] = {}
    for term in question_terms:
        having = sum(term in words for _, words, _ in chunks)
        rarity[term] = math.log(1 + (len(chunks) - having + 0.5) / (having + 0.5))
    mean = sum(length for _, _, length in chunks) / max(1, len(chunks)) or 1.0
    scores: Ranked = []
    for chunk, words, length in chunks:
        norm = 1.2 * (0.25 + 0.75 * (length / mean))
        scores.append((chunk, sum(worth * words[term] * 2.2 / (words[term] + norm) for term, worth in rarity.items())))
    return sorted((one for one in scores if one[1] > 0), key=lambda one: (-one[1], one[0]))[:count]


def _chunks_of(db: sqlite3.Connection, body: int, count: int) -> list[Row]:
    first = body * CHUNKS
    try:
        sql = f"SELECT {_CHUNK} FROM chunks NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id"  # noqa: S608  # names of ours
        return db.execute(sql, (first, first + CHUNKS - 1)).fetchall()
    except sqlite3.DatabaseError:
        return [row for row in (_read_row(db, "chunks", _CHUNK, first + n) for n in range(count)) if row]


def _read_rows(db: sqlite3.Connection, table: str, columns: str) -> Iterator[Row]:
    """Every row that can be read: from the front, from the back, and between the two one by one."""
    low, tail = 0, list[Row]()
    sql = f"SELECT {columns} FROM {table} NOT INDEXED ORDER BY id"  # noqa: S608  # names of ours
    try:
        for row in db.execute(sql):
            low = int(row[0])
            yield row
    except sqlite3.DatabaseError:
        pass
    else:
        return
    with suppress(sqlite3.DatabaseError):
        for row in db.execute(f"{sql} DESC"):
            if int(row[0]) > low:
                tail.append(row)
    high = int(tail[-1][0]) if tail else low + CHUNKS
    yield from (row for row in (_read_row(db, table, columns, number) for number in range(low + 1, high)) if row)
    yield from reversed(tail)


def _read_row(db: sqlite3.Connection, table: str, columns: str, number: int) -> Row | None:
    sql = f"SELECT {columns} FROM {table} NOT INDEXED WHERE id = ?"  # noqa: S608
    row: Row | None = _read_or(None, lambda: db.execute(sql, (number,)).fetchone())
    return row


def _read_or(default: T, read: Callable[[], T]) -> T:
    """What is read, or this where it is damaged."""
    try:
        return read()
    except (sqlite3.DatabaseError, ValueError):
        return default


@dataclass
class _SavedPages:
    """What the damaged file gave, and what it did not."""

    lost_chunks: int = 0
    lost_sources: list[str] = field(default_factory=list)
    missing_bodies: int = 0  # by the file's own count of its pages


def repair_store(path: Path, on_saved: OnSaved = lambda count, total: None) -> StoreRepair:
    """A sound store in the place of this one; the damaged file is kept beside it."""
    fresh, grafted = (path.with_name(path.name + end) for end in (".repaired", ".grafted"))
    try:
        with closing(sqlite3.connect(path, timeout=_connection.BUSY_S, isolation_level=None)) as db:
            if _is_sound(db, path):
                return _count_saved(path, StoreRepair())
            check_alone(path)
            # the list of tables is on the first page
            tables = _read_or(list[Row](), lambda: db.execute("SELECT name FROM sqlite_master").fetchall())
            saved_pages = _copy_pages(db, path, fresh, on_saved) if {row[0] for row in tables} >= _TABLES else None
        if saved_pages is None:  # its pages are copied outside SQLite, which must not have the file open then
            saved_pages = _save_headless(path, grafted, fresh, on_saved)
        check_alone(path)
        # the damaged file and its journal go away, under a name that is free
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        for journal in _journal_files(path):
            with suppress(FileNotFoundError):
                journal.replace(aside.with_name(journal.name.replace(path.name, aside.name)))
        path.replace(aside)
        fresh.replace(path)
    finally:
        for leftover in (fresh, grafted):
            _remove_file(leftover)
    lost_sources = tuple(saved_pages.lost_sources)
    lost_count = max(len(lost_sources), saved_pages.missing_bodies)
    report = StoreRepair(lost_sources=lost_sources, lost_chunks=saved_pages.lost_chunks, lost_count=lost_count)
    return _count_saved(path, replace(report, kept_aside=str(aside)))


def _save_headless(path: Path, grafted: Path, fresh: Path, on_saved: OnSaved) -> _SavedPages:
    """What a file without its first page holds, now that its tables can be found again; often all of it as it was."""
    _remove_file(grafted)
    is_grafted = _graft_first_page(path, grafted)
    place = grafted if is_grafted else path
    with closing(sqlite3.connect(place, timeout=_connection.BUSY_S, isolation_level=None)) as db:
        if not is_grafted or not _is_sound(db, path):
            return _copy_pages(db, path, fresh, on_saved)
        db.execute("PRAGMA journal_mode=DELETE")
    grafted.replace(fresh)
    return _SavedPages()


def _graft_first_page(path: Path, copy: Path) -> bool:
    """Write a copy of the file, with its journal, that has a first page again; False where that cannot help."""
    # Every store of one version is laid out alike, so the first page of a new store leads to the tables of any other; only
    # the counters in it are of the file at hand.
    with closing(_connection.open_database(copy, lambda db: _schema.prepare_tables(db, copy))) as new:
        new.execute("PRAGMA journal_mode=DELETE")
        size = int(new.execute("PRAGMA page_size").fetchone()[0])
    with copy.open("rb") as file:
        header = bytearray(file.read(size))
    pages, rest = divmod(path.stat().st_size, size)
    if pages < 2 or rest:
        return False
    shutil.copyfile(path, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(path.with_name(path.name + "-wal"), copy.with_name(copy.name + "-wal"))
    with copy.open("r+b") as file:
        header[_MODE : _MODE + 2] = _WAL
        header[_PAGES : _PAGES + 4] = pages.to_bytes(4, "big")
        header[_VALID_FOR : _VALID_FOR + 4] = header[_CHANGES : _CHANGES + 4]
        file.write(bytes(header))
    return True


def _remove_file(path: Path) -> None:
    for file in (path, *_journal_files(path)):
        file.unlink(missing_ok=True)


def _count_saved(path: Path, report: StoreRepair) -> StoreRepair:
    with closing(_connection.open_database(path, lambda db: _schema.prepare_tables(db, path))) as db:
        now = read_stats(db)
    return replace(report, sources=now.sources, chunks=now.chunks, unembedded=now.unembedded)


def _is_sound(db: sqlite3.Connection, path: Path) -> bool:
    try:
        if _schema.version_of(db, path) == 0:
            return not has_lost_content(path)
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            return False
        db.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        # no check of SQLite finds a changed byte in a text, but reading it raises sqlite3.OperationalError
        for columns in ("text, heading, context, code FROM chunks", "url, title FROM sources", "title FROM bodies"):
            for _ in db.execute(f"SELECT {columns}"):  # names of ours
                pass
        return _read_vectors(db, path) is not None or not int(read_meta(db, "slots") or 0)
    except sqlite3.DatabaseError as error:
        if not _connection.is_damage(error):
            raise
        return False


def _read_vectors(db: sqlite3.Connection, path: Path) -> Held | None:
    """The vectors, where the file of them can be read."""
    try:
        epoch, slots, dims = (int(read_meta(db, key) or 0) for key in ("epoch", "slots", "dims"))
        return VectorReader(path).read_vectors(epoch, slots, dims) if slots else None
    except (sqlite3.DatabaseError, StoreError):
        return None


def _copy_pages(db: sqlite3.Connection, path: Path, fresh: Path, on_saved: OnSaved) -> _SavedPages:
    """Every page that can be read, into a new file whose vectors lie beside the old ones."""
    _remove_file(fresh)
    saved_pages, vectors = _SavedPages(), VectorWriter(path)
    old_vectors = _read_vectors(db, path)
    embedder = _read_or("", lambda: read_meta(db, "embedder"))
    with closing(_connection.open_database(fresh, lambda new: _schema.prepare_tables(new, fresh))) as new:
        set_meta(new, "epoch", newest_epoch(path) + 1)  # the old vectors are still read
        bodies = {int(row[0]): row for row in _read_rows(db, "bodies", _BODY)}
        version = _read_or(_schema.VERSION, lambda: int(db.execute("PRAGMA user_version").fetchone()[0]))
        sources = list(_read_rows(db, "sources", _SOURCE + (_DATES if version >= 6 else "")))
        for start in range(0, len(sources), BATCH_SIZE):
            batch = list(_saved_pages(db, sources[start : start + BATCH_SIZE], bodies, old_vectors, saved_pages))
            _connection.in_transaction(new, partial(StoreTransaction(new, vectors, _schema.MIN_HOLES).put, batch, embedder))
            on_saved(min(start + BATCH_SIZE, len(sources)), len(sources))
        saved_pages.lost_sources += sorted(_named_keys(db) - {key_of(str(row[1])) for row in sources})
        body_count = _read_or(0, lambda: int(read_meta(db, "pages") or 0))  # as the file itself says
        saved_pages.missing_bodies = max(0, body_count - int(read_meta(new, "pages")))
        new.execute("PRAGMA journal_mode=DELETE")
    vectors.close()
    return saved_pages


def _named_keys(db: sqlite3.Connection) -> set[str]:
    """The sources that the index of them names; it lies on other pages than their rows, and may have outlived them."""
    keys: set[str] = set()
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.DatabaseError):
            for (key,) in db.execute(f"SELECT key FROM sources INDEXED BY sqlite_autoindex_sources_1 ORDER BY key {order}"):  # noqa: S608
                keys.add(str(key))
    return keys


def _saved_pages(
    db: sqlite3.Connection, sources: Sequence[Row], bodies: Mapping[int, Row], old_vectors: Held | None, saved: _SavedPages
) -> Iterator[IndexedPage]:
    for _, url, body, title, domain, language, fetched_at, tags, *dates in sources:
        _, digest, _, count, words, slot = bodies.get(body, _FORGOTTEN)
        rows = _chunks_of(db, body, count)
        if not rows and (count or body not in bodies):
            saved.lost_sources.append(url)
            saved.lost_chunks += count
            continue
        whole = body in bodies and len(rows) == count
        saved.lost_chunks += max(0, count - len(rows))
        digest, words = (digest, words) if whole else ("", 0)
        about = (domain, language, fetched_at, digest, len(rows), words, _parse_tags(tags), *dates)
        source = StoredSource(url, title, *about)
        chunks = tuple(Chunk(*row[1:]) for row in rows)
        places = [slot + int(row[0]) % CHUNKS for row in rows]
        yield IndexedPage(source, chunks, read_sound_rows(old_vectors, places) if slot >= 0 else ())


def _parse_tags(text: str) -> tuple[str, ...]:
    return _read_or((), lambda: tuple(str(tag) for tag in json.loads(text)))


def _journal_files(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def check_journal(path: Path, processes: Path = PROCESSES) -> None:
    """Raise StoreError for the first process that holds a removed journal of the store at this path."""
    for process in _find_holders(f"{path.resolve()}-wal (deleted)", processes):
        fix = (
            f"End it with `kill -9 {process}`: an orderly end could write its old pages over newer ones. Then run "
            "`nexi doctor --repair`, and ask again what it was asked since."
        )
        message = f"Process {process} stores pages where no other process can see them"
        cause = f"the journal of the knowledge base ({path}-wal) was removed while it was running"
        raise StoreError(message, cause=cause, fix=fix, code="store_journal")


def check_alone(path: Path) -> None:
    """Raise StoreError where another process has the store open: what it writes while the file is replaced would be lost."""
    for process in _find_holders(str(path.resolve()), PROCESSES):
        if process != os.getpid():
            message = "The knowledge base is not repaired while another process uses it"
            cause = f"process {process} has {path} open, and what it stores during the repair would be lost"
            fix = f"End it (`kill {process}`, or Ctrl-C where it runs), then run `nexi doctor --repair` again."
            raise StoreError(message, cause=cause, fix=fix, code="store_in_use")


def _find_holders(target: str, processes: Path) -> list[int]:
    """The processes that have this file open, as far as the system tells."""
    try:
        numbers = sorted(int(entry.name) for entry in processes.iterdir() if entry.name.isdigit())
    except OSError:
        return []
    holders: dict[int, None] = {}
    for number in numbers:
        with suppress(OSError):  # another user's process, or one that has ended
            for descriptor in (processes / str(number) / "fd").iterdir():
                with suppress(OSError):
                    if str(descriptor.readlink()) == target:
                        holders[number] = None
    return list(holders)
