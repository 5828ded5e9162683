"""The embedded store beyond the contract: older files, large stores, and files that stay small."""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import sys
import threading
from array import array
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nexi.errors import StoreError
from nexi.install import install_command
from nexi.stores import _schema, salvage
from nexi.stores._connection import SqliteThread, open_database
from nexi.stores._vectors import FirstPass, VectorWriter
from nexi.stores._writing import StoreTransaction, check_chunks, vector_length
from nexi.stores.sqlite import SqliteStore, StoreLimits
from nexi.text import terms
from nexi.types import Chunk, IndexedPage, Scope, StoredSource, StoreStats

pytest.importorskip("numpy")
V1 = Path(__file__).parent / "v1.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    await made.aclose()


def page(number: int, *texts: str, version: int = 0, **about: str) -> IndexedPage:
    rows = tuple(array("f", [float(number), float(i), 1.0 + version]) for i in range(len(texts)))
    digest = f"{number}-{version}-{hash(texts)}"
    return IndexedPage(StoredSource(f"https://n.example/{number}", digest=digest, **about), tuple(map(Chunk, texts)), rows)


async def test_a_store_of_version_1_is_brought_up_to_date(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(V1.read_text())
    store = SqliteStore(path)
    try:
        stats = await store.stats()
        assert StoreStats(stats.sources, stats.chunks, stats.words, stats.unembedded, stats.embedder, stats.dims) == StoreStats(
            2, 3, 11, 1, "letters", 2
        )
        near = await store.dense(array("f", [0.0, 1.0]), embedder="letters")
        assert [(p.url, p.number, round(p.score, 3)) for p in near] == [
            ("https://space.example/moon", 1, 1.0),
            ("https://space.example/moon", 0, 0.0),
        ]
        words_first = await store.lexical("moons", scope=Scope(tags=("space",)))
        assert words_first[0].text == "The moon is far."
        [waiting] = await store.list_unembedded()
        await store.add_vectors({waiting.id: array("f", [0.6, 0.8])}, embedder="letters")
        assert (await store.stats()).unembedded == 0
        assert await store.remove(["https://space.example/moon"]) == 1
        assert [p.text for p in await store.dense(array("f", [0.0, 1.0]), embedder="letters")] == ["Cats purr softly."]
    finally:
        await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def make_older(path: Path, version: int, tokenizer: str) -> None:
    """Give a store the tables it had in a former version. What their indexes hold is of no use to the present one."""
    columns = {"words": "text, head", "pages": "title, text"}
    tables = (
        f"CREATE VIRTUAL TABLE {name} USING fts5({of}, content='', tokenize='{tokenizer}');" for name, of in columns.items()
    )
    with closing(sqlite3.connect(path)) as db:
        db.executescript("ALTER TABLE sources DROP COLUMN published; ALTER TABLE sources DROP COLUMN updated;")
        if version < 5:
            db.executescript("DROP TABLE words; DROP TABLE word_places; ALTER TABLE bodies DROP COLUMN terms;")
            db.executescript("".join(tables))
            db.execute("DELETE FROM meta WHERE key IN ('pages', 'page_terms')")
        db.commit()
        db.execute(f"PRAGMA user_version = {version}")
        if version < 3:
            db.execute("DROP TABLE pages")


@pytest.mark.parametrize(("version", "tokenizer"), [(2, "porter ascii"), (3, "porter ascii"), (4, "ascii"), (5, "")])
async def test_a_store_of_a_former_version_finds_the_same_and_can_be_changed(path: Path, version: int, tokenizer: str) -> None:
    store = SqliteStore(path)
    await store.put([page(1, "she wrote letters", "gamma"), page(2, "delta letters", "epsilon")], embedder="e")
    found = await store.lexical("who writes a letter of gamma")
    assert [(p.url[-1], p.number) for p in found] == [("1", 1), ("1", 0), ("2", 0)]
    await store.aclose()
    make_older(path, version, tokenizer)
    again = SqliteStore(path)
    assert await again.lexical("who writes a letter of gamma") == found
    assert [p.url[-1] for p in await again.dense(array("f", [2.0, 0.0, 1.0]), embedder="e", count=1)] == ["2"]
    assert await again.remove(["https://n.example/1"]) == 1
    assert await again.lexical("gamma writes") == []
    assert (await again.repair()).chunks == 2
    await again.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")}
        assert tables == {"words", "word_places"}


async def test_a_store_whose_index_has_no_settings_yet_is_read_and_written_as_before(path: Path) -> None:
    store = SqliteStore(path)
    await store.put([page(1, "alpha beta", "gamma")])
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        settings = db.execute("SELECT k, v FROM words_config WHERE k <> 'version'").fetchall()
        assert settings == [("automerge", 8), ("hashsize", 8_388_608)]
        db.executescript("DELETE FROM words_config WHERE k <> 'version'")
    again = SqliteStore(path)
    await again.put([page(2, "alpha delta")])
    assert {p.text for p in await again.lexical("alpha")} == {"alpha beta", "alpha delta"}
    assert (await again.repair()).chunks == 3
    await again.aclose()


async def test_a_page_is_worth_what_an_index_of_whole_pages_would_give_it(path: Path, store: SqliteStore) -> None:
    """The score of a chunk is its own BM25 and twice that of its page, as SQLite counts both."""
    texts = [
        ("tide and moon moon", "the moon pulls"),
        ("moon", "sun", "moon sun tide"),
        ("月の光", "moon.rise()"),
        ("rain . 月",),
    ]
    pages = [page(n, *chunks, title="Moon and tide" if n % 2 else "") for n, chunks in enumerate(texts)]
    heads = [Chunk("sun", heading="tide of the moon"), Chunk("cloud", context="moon tide")]
    await store.put([*pages, IndexedPage(StoredSource("https://n.example/9", title="Sky"), tuple(heads))])
    await store.put([page(0, "moon", "wind and rain", version=1), *[page(n, f"filler {n}") for n in range(10, 30)]])
    with closing(sqlite3.connect(path)) as db:
        db.execute("""CREATE VIRTUAL TABLE pages USING fts5(title, text, content='', tokenize="ascii tokenchars '_.+#'")""")
        for body, title in db.execute("SELECT id, title FROM bodies").fetchall():
            rows = db.execute("SELECT text FROM chunks WHERE id / 65536 = ? ORDER BY id", (body,))
            text = " ".join(terms.join_roots(row[0]) for row in rows)
            db.execute("INSERT INTO pages(rowid, title, text) VALUES (?, ?, ?)", (body, terms.join_roots(title), text))
        for asked, match in (
            ("moon tide", '"moon" OR "tide"'),
            ("月", '"月"*'),
            ("moon.rise", '"moon.ris" OR "moon" OR "rise"'),
        ):
            of_pages = dict(db.execute("SELECT rowid, -bm25(pages, 2.0, 0.4) FROM pages WHERE pages MATCH ?", (match,)))
            of_chunks = dict(db.execute("SELECT rowid, -bm25(words, 1.0, 1.5, 1.5) FROM words WHERE words MATCH ?", (match,)))
            wanted = {str(n): pytest.approx(s + 2 * of_pages.get(n // 65536, 0)) for n, s in of_chunks.items()}
            assert {p.id: p.score for p in await store.lexical(asked, count=50)} == wanted
            assert wanted


async def test_a_page_that_changes_within_one_write_leaves_nothing_of_what_it_was(path: Path, store: SqliteStore) -> None:
    await store.put([page(1, "alpha"), page(1, "beta", version=1), page(2, "gamma")])
    assert await store.lexical("alpha") == []
    assert [p.text for p in await store.lexical("beta gamma")] == ["beta", "gamma"]
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        assert dict(db.execute("SELECT key, value FROM meta WHERE key LIKE 'page%'")) == {"pages": 2, "page_terms": 2}


async def test_a_removed_page_leaves_nothing_in_any_table(path: Path, store: SqliteStore) -> None:
    chunk = Chunk("Tides come twice.", heading="Sea", context="From a book.")
    headed = IndexedPage(StoredSource("https://n.example/3", title="Tides"), (chunk,))
    waiting = IndexedPage(StoredSource("https://n.example/2", digest="2", tags=("private",)), (Chunk("Waits for a vector."),))
    tagged = page(1, "The moon is far.")
    tagged = IndexedPage(structs.replace(tagged.source, tags=("private", "moon")), tagged.chunks, tagged.vectors)
    await store.put([tagged, waiting], embedder="letters")
    assert await store.link(structs.replace(tagged.source, url="https://copy.example/1"))
    await store.put([headed], embedder="letters")
    generation = read_generation(path)
    assert (
        await store.remove([f"https://{name}" for name in ("n.example/3", "n.example/1", "copy.example/1", "n.example/2")]) == 4
    )
    with closing(sqlite3.connect(path)) as db:
        tables = ("bodies", "sources", "tags", "chunks", "unembedded", "word_places")
        counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608
    assert counts == dict.fromkeys(tables, 0)
    assert read_generation(path) == generation + 1  # so that no reader goes on with what it had chosen


def read_generation(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(_schema.read_meta(db, "generation"))


async def test_every_change_begins_a_generation(store: SqliteStore, path: Path) -> None:
    """By it the readers of all processes notice that what they had chosen is of another moment."""
    vectors = array("f", [1.0, 1.0])
    generations = [read_generation(path) if path.exists() else 0]
    for change in (
        store.put([IndexedPage(StoredSource("https://n.example/1", digest="1"), (Chunk("alpha"),))]),
        store.link(StoredSource("https://copy.example/1", digest="1")),
        store.add_vectors({str(_schema.CHUNKS): vectors}, embedder="e"),
        store.forget_vectors(),
        store.remove(["https://n.example/1"]),
    ):
        await change
        generations.append(read_generation(path))
    assert generations == [0, 1, 2, 3, 4, 5]


def read_vector_files(path: Path) -> dict[str, list[float | None]]:
    """The numbers of the pages (see `page`) whose vectors each file holds, None for an empty row."""
    rows_by_file = {}
    for file in path.with_name(f"{path.name}-vectors").glob("*.f32"):
        numbers = array("f", file.read_bytes())
        rows = [numbers[at : at + 3] for at in range(0, len(numbers), 3)]
        rows_by_file[file.name] = [None if row[0] != row[0] else round(row[0] / row[2], 3) for row in rows]
    return rows_by_file


async def test_the_vectors_of_a_page_that_is_gone_or_changed_are_erased(store: SqliteStore, path: Path) -> None:
    await store.put([page(number, "one") for number in (1, 2, 3)], embedder="e")
    await store.remove(["https://n.example/3"])
    await store.put([page(1, "one")], embedder="e")  # its vector goes to another row
    assert read_vector_files(path) == {"1.f32": [None, 2, None, 1]}
    await store.forget_vectors()
    assert read_vector_files(path) == {}
    [first, _] = await store.list_unembedded()
    await store.add_vectors({first.id: array("f", [5.0, 0.0, 1.0])}, embedder="e")
    assert read_vector_files(path) == {"2.f32": [5]}


async def test_vectors_move_to_other_files_when_more_than_a_quarter_of_their_rows_are_empty(path: Path) -> None:
    store = SqliteStore(path, limits=StoreLimits(min_holes=1))
    await store.put([page(number, "one") for number in range(12)], embedder="e")
    counts = []
    for version, numbers in ((1, range(4)), (1, range(4, 5)), (2, range(4)), (2, range(4, 5))):
        await store.put([page(number, "one", version=version) for number in numbers], embedder="e")
        counts.append({name: len(rows) for name, rows in read_vector_files(path).items()})
    assert counts == [{"1.f32": 16}, {"2.f32": 12}, {"2.f32": 16}, {"3.f32": 12}]
    await store.aclose()


def test_content_that_another_process_removed_meanwhile_is_not_linked(path: Path) -> None:
    with closing(open_database(path, lambda db: _schema.prepare_tables(db, path))) as db:
        linking = StoreTransaction(db, VectorWriter(path), min_holes=0)
        assert linking.link(StoredSource("https://n.example/1", digest="gone")) is False


def test_a_page_has_as_many_chunks_as_its_ids_can_tell_apart() -> None:
    source, chunks = StoredSource("https://n.example/1"), (Chunk("alpha"),) * _schema.CHUNKS
    check_chunks(IndexedPage(source, chunks))
    with pytest.raises(StoreError, match="too long"):
        check_chunks(IndexedPage(source, (*chunks, Chunk("beta"))))


@pytest.mark.parametrize(
    ("pages", "length"),
    [([], 0), ([IndexedPage(StoredSource("https://n.example/1"), (Chunk("alpha"),))], 0), ([page(1, "alpha")], 3)],
)
def test_the_length_of_vectors_is_that_of_the_first_one(pages: list[IndexedPage], length: int) -> None:
    assert vector_length(pages) == length


async def test_of_two_chunks_alike_the_one_whose_page_says_more_comes_first(store: SqliteStore) -> None:
    others = [page(n, f"filler {n}", f"other {n}") for n in range(3, 30)]
    await store.put([page(1, "locks wait", "birds sing"), page(2, "locks wait", "deadlock timeout"), *others])
    found = await store.lexical("how do locks end a deadlock by timeout")
    assert [(p.url[-1], p.text) for p in found] == [("2", "deadlock timeout"), ("2", "locks wait"), ("1", "locks wait")]


async def test_the_index_is_made_anew_when_texts_give_other_terms(path: Path) -> None:
    store = SqliteStore(path)
    await store.put([page(1, "alpha beta", "gamma")])
    await store.aclose()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = 77 WHERE key = 'terms'")
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        db.commit()
    again = SqliteStore(path)
    assert [p.number for p in await again.lexical("gamma")] == [1]
    assert await again.remove(["https://n.example/1"]) == 1
    assert await again.lexical("gamma") == []
    await again.aclose()


async def test_files_are_private(store: SqliteStore, path: Path) -> None:
    await store.put([page(1, "alpha")], embedder="e")
    kept = [path, *path.with_name("knowledge.db-vectors").iterdir()]
    assert {file.stat().st_mode & 0o777 for file in kept} == {0o600}


async def test_replaced_vectors_give_their_place_back(path: Path) -> None:
    store, other = SqliteStore(path, limits=StoreLimits(min_holes=8)), SqliteStore(path)
    for version in range(12):
        await store.put([page(n, "one", "two", version=version) for n in range(5)], embedder="e")
        near = await other.dense(array("f", [3.0, 1.0, 1.0 + version]), embedder="e", count=20)
        assert (near[0].url, near[0].number, len(near)) == ("https://n.example/3", 1, 10)
    folder = path.with_name("knowledge.db-vectors")
    assert sum(file.stat().st_size for file in folder.glob("*.f32")) <= 24 * 3 * 4
    assert len(list(folder.iterdir())) == 2
    await other.aclose()
    await store.aclose()


async def test_a_vector_for_a_chunk_that_a_page_does_not_have_is_written_nowhere(store: SqliteStore) -> None:
    first, second = page(1, "alpha beta"), page(2, "gamma delta")
    await store.put([IndexedPage(first.source, first.chunks, ())])
    [waiting] = await store.list_unembedded()
    near = array("f", [9.0, 9.0, 9.0])
    await store.add_vectors({waiting.id: near}, embedder="toy")
    await store.put([second], embedder="toy")  # its vector lies behind the one of the first page
    before = await store.dense(near, embedder="toy")
    await store.add_vectors({str(int(waiting.id) + 1): near, str(int(waiting.id) + 2): near}, embedder="toy")
    assert await store.dense(near, embedder="toy") == before
    assert (await store.stats()).chunks == 2


async def test_a_first_pass_by_bits_finds_what_every_vector_would(store: SqliteStore, path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(3)
    centres = rng.standard_normal((20, 128))
    rows = (centres[rng.integers(0, 20, 600)] + 0.5 * rng.standard_normal((600, 128))).astype(np.float32)
    pages = [
        IndexedPage(
            StoredSource(f"https://n.example/{n}", language="de" if n % 3 else "en", digest=str(n)),
            (Chunk(f"text {n}"),),
            (array("f", rows[n].tobytes()),),
        )
        for n in range(600)
    ]
    await store.put(pages, embedder="e")
    german = Scope(languages=("de",))
    query = array("f", (rows[100] + 0.1).tobytes())
    exact = [await store.dense(query, embedder="e"), await store.dense(query, embedder="e", scope=german)]
    first_pass = FirstPass(min_numbers=0, min_candidates=120, oversampling=1)
    other = SqliteStore(path, limits=StoreLimits(first_pass=first_pass))
    by_bits = [await other.dense(query, embedder="e"), await other.dense(query, embedder="e", scope=german)]
    await other.aclose()
    assert [[p.id for p in found] for found in by_bits] == [[p.id for p in found] for found in exact]


async def test_the_rarest_words_choose_and_all_words_order(store: SqliteStore, path: Path) -> None:
    pages = [page(n, f"common word{n % 10} item{n}" + (" rare" if n in (7, 13) else ""), f"filler {n}") for n in range(60)]
    await store.put(pages)
    exact = await store.lexical("common rare word3", count=2)
    other = SqliteStore(path, limits=StoreLimits(max_scored=10))
    pruned = await other.lexical("common rare word3", count=2)
    assert [p.url for p in pruned] == [p.url for p in exact]
    assert pruned[0].url == "https://n.example/13"
    assert len(await other.lexical("common", count=5)) == 5
    assert len(await other.lexical("common", count=5, scope=Scope(urls=("https://n.example/1",)))) == 1
    await other.aclose()


async def test_a_search_reads_one_moment_while_pages_change(store: SqliteStore) -> None:
    await store.put([page(1, "alpha", "beta")], embedder="e")
    before = await store.dense(array("f", [1.0, 1.0, 1.0]), embedder="e")
    await store.put([page(1, "gamma", version=1)], embedder="e")
    after = await store.dense(array("f", [1.0, 1.0, 1.0]), embedder="e")
    assert ([p.text for p in before], [p.text for p in after]) == (["beta", "alpha"], ["gamma"])


async def test_without_numpy_words_are_found_and_vectors_name_what_is_missing(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    await store.put([IndexedPage(StoredSource("https://a.example/"), (Chunk("The moon is far."),))])
    assert [p.text for p in await store.lexical("moon")] == ["The moon is far."]
    with pytest.raises(StoreError) as missing:
        await store.put([page(1, "alpha")], embedder="e")
    assert install_command("vectors") in missing.value.fix
    assert (await store.repair()).sources == 1


def test_without_its_client_qdrant_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("nexi.stores.qdrant")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(StoreError) as missing:
        importlib.import_module("nexi.stores.qdrant")
    assert install_command("qdrant") in missing.value.fix


async def test_a_store_whose_closing_is_cancelled_leaves_no_connection_open(tmp_path: Path) -> None:
    thread, begun, release = SqliteThread(tmp_path / "x.db", lambda db: None), threading.Event(), threading.Event()

    def hold(db: sqlite3.Connection) -> None:
        begun.set()
        release.wait(300)

    working = asyncio.create_task(thread.run(hold))
    await asyncio.to_thread(begun.wait, 60)
    ending = asyncio.create_task(thread.aclose())
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait({ending})
    release.set()
    await working
    await asyncio.to_thread(thread._thread.shutdown)
    assert thread._connection is None


@pytest.mark.parametrize("number", range(4))
def test_a_store_that_another_process_makes_between_two_statements_is_opened(path: Path, number: int) -> None:
    """Each statement of the opening begins a moment of its own, and the other process comes just before one of them."""
    statements: list[str] = []
    others: list[sqlite3.Connection] = []

    def make_tables_elsewhere(statement: str) -> None:
        statements.append(statement)
        if len(statements) == number + 1:
            with suppress(sqlite3.OperationalError):  # the store is locked: the first one was faster
                others.append(open_database(path, lambda db: _schema.prepare_tables(db, path), busy_s=0))

    def prepare(db: sqlite3.Connection) -> None:
        db.set_trace_callback(make_tables_elsewhere)
        _schema.prepare_tables(db, path)
        db.set_trace_callback(None)

    with closing(open_database(path, prepare)) as opened:
        assert _schema.version_of(opened, path) == _schema.VERSION
    for other in others:
        other.close()


def test_vectors_that_another_process_removes_meanwhile_are_no_failure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = path.with_name(f"{path.name}-vectors")
    vectors.mkdir()
    path.touch()
    (vectors / "1.f32").write_bytes(b"1")
    assert salvage.has_lost_content(path)
    look = Path.stat

    def remove_first(file: Path, **rest: Any) -> Any:
        if file.parent == vectors:
            file.unlink()
        return look(file, **rest)

    monkeypatch.setattr(Path, "stat", remove_first)
    assert not salvage.has_lost_content(path)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_store_that_another_process_makes_while_it_is_looked_at_was_not_emptied(
    path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is empty at the first looks; then the other process writes all of it, and ends."""
    path.touch()
    look, looks = Path.stat, 0

    def write_after_look(file: Path, **rest: Any) -> Any:
        nonlocal looks
        seen, looks = look(file, **rest), looks + 1
        if looks == number:
            vectors = path.with_name(f"{path.name}-vectors")
            vectors.mkdir()
            (vectors / "1.f32").write_bytes(b"1")
            path.write_bytes(b"SQLite")
        return seen

    monkeypatch.setattr(Path, "stat", write_after_look)
    assert not salvage.has_lost_content(path)
