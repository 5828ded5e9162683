"""What every knowledge store promises: one suite over the embedded file, Postgres and Qdrant."""

from __future__ import annotations

import asyncio
import math
import os
from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from nexi.errors import StoreError
from nexi.ports import KnowledgeStore
from nexi.stores.sqlite import SqliteStore
from nexi.types import Chunk, IndexedPage, Passage, RunAudience, Scope, StoredSource, StoreStats, Vector, content_digest
from rig.qdrant import running_qdrant

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
Make = Callable[[pytest.FixtureRequest], KnowledgeStore]
MODEL = "letters"


def make_qdrant(request: pytest.FixtureRequest) -> KnowledgeStore:
    client = pytest.importorskip("qdrant_client")
    from nexi.stores.qdrant import QdrantStore

    return QdrantStore(client.AsyncQdrantClient(":memory:"))


def make_team_qdrant(request: pytest.FixtureRequest) -> KnowledgeStore:
    client = pytest.importorskip("qdrant_client")
    from nexi.stores.qdrant import QdrantStore

    return QdrantStore(client.AsyncQdrantClient(":memory:"), person="ada")


def require_distances(request: pytest.FixtureRequest) -> None:
    """Skip a test that compares vectors where Postgres here cannot."""
    if request.node.get_closest_marker("distances"):
        request.getfixturevalue("pgvector")


def make_postgres(request: pytest.FixtureRequest) -> KnowledgeStore:
    require_distances(request)
    database, make_person = request.getfixturevalue("database"), request.getfixturevalue("make_person")
    from nexi.stores.pgvector.store import PgvectorStore

    empty_team_collection(database)
    return PgvectorStore(database, make_person())


def empty_team_collection(database: Any) -> None:
    """Forget what tests of the same process have stored for the whole team, which everybody reads."""
    for table in ("embeddings", "bodies"):
        database.fetch(f"delete from {table} where collection = (select id from collections where owner is null)")  # noqa: S608
    database.fetch(
        "update collections set chunks = 0, terms = 0, pages = 0, bytes = 0, generation = generation + 1 where owner is null"
    )


def make_on_server(request: pytest.FixtureRequest, person: str = "") -> KnowledgeStore:
    """A store of its own on a real Qdrant server, which all tests share."""
    from nexi.stores.qdrant import QdrantStore

    return QdrantStore.at(request.getfixturevalue("qdrant_server"), prefix=f"nexi_{uuid4().hex}", person=person)


MAKERS: dict[str, Make] = {
    "sqlite": lambda request: SqliteStore(request.getfixturevalue("tmp_path") / "home" / "knowledge.db"),
    "qdrant": make_qdrant,
    "qdrant of a team": make_team_qdrant,
    "postgres": make_postgres,
}
QDRANT = os.environ.get("NEXI_QDRANT", "")  # the server's binary, which `make test-qdrant` names
if QDRANT:
    MAKERS |= {"qdrant server": make_on_server, "qdrant server of a team": partial(make_on_server, person="ada")}


@pytest.fixture(scope="session")
def qdrant_server() -> Iterator[str]:
    with running_qdrant(Path(QDRANT)) as url:
        yield url


@pytest.fixture(params=MAKERS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[KnowledgeStore]:
    made = MAKERS[request.param](request)
    yield made
    await made.aclose()


def vector(text: str) -> Vector:
    """A toy of an embedding: how often each letter occurs."""
    counts = [text.lower().count(chr(97 + i)) + 0.01 for i in range(26)]
    length = math.sqrt(sum(c * c for c in counts))
    return array("f", [c / length for c in counts])


def page(url: str, *texts: str, embed: bool = True, **about: object) -> IndexedPage:
    chunks = tuple(Chunk(text) for text in texts)
    source = replace(StoredSource(url, digest=content_digest("\n".join(texts))), **about)
    return IndexedPage(source, chunks, tuple(vector(text) for text in texts) if embed else ())


MOON = page(
    "https://space.example/moon",
    "The Moon is 384,400 km away.",
    "It orbits the Earth in 27 days.",
    title="Moon",
    language="en",
    fetched_at="2026-03-01T10:00:00+00:00",
    tags=("space", "night"),
)
SUN = page(
    "https://www.space.example/sun",
    "The Sun is a star of plasma.",
    title="Sun",
    language="en-GB",
    fetched_at="2026-05-01T10:00:00+00:00",
    tags=("space",),
)
CAT = page(
    "https://pets.example/cat", "Katzen schnurren leise.", title="Katze", language="de", fetched_at="2026-06-01T10:00:00+00:00"
)
PAGES = [MOON, SUN, CAT]


def found(passages: list[Passage]) -> list[tuple[str, int]]:
    return [(p.url, p.number) for p in passages]


async def test_an_empty_store_finds_nothing(store: KnowledgeStore) -> None:
    assert await store.lexical("moon") == []
    assert await store.dense(vector("moon"), embedder=MODEL) == []
    assert await store.source("https://space.example/moon") is None
    assert (await store.sources(), await store.list_unembedded(), await store.passages("https://x.example/")) == ([], [], [])
    assert (await store.stats()).chunks == 0


async def test_a_passage_comes_back_with_all_that_was_stored(store: KnowledgeStore) -> None:
    chunk = Chunk("def get_users(): ...", heading="API > Users", context="From the reference.", code="python", start=120)
    source = replace(MOON.source, url="https://docs.example/api#users")
    await store.put([IndexedPage(source, (Chunk("Nothing here."), chunk))])
    [passage] = await store.lexical("get_users")
    assert passage.score > 0
    assert replace(passage, id="", score=0.0) == Passage(
        id="",
        url="https://docs.example/api#users",
        number=1,
        text="def get_users(): ...",
        title="Moon",
        domain="docs.example",
        heading="API > Users",
        context="From the reference.",
        code="python",
        language="en",
        fetched_at="2026-03-01T10:00:00+00:00",
        tags=("space", "night"),
        start=120,
    )


async def test_sources_are_listed_with_their_counts_the_newest_first(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    assert [s.url for s in await store.sources()] == [p.source.url for p in (CAT, SUN, MOON)]
    assert [s.url for s in await store.sources(count=1, skip=1)] == [SUN.source.url]
    assert await store.source(MOON.source.url) == replace(MOON.source, domain="space.example", chunk_count=2, words=13)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("moons", (MOON.source.url, 0)),
        ("orbiting the EARTH?", (MOON.source.url, 1)),
        ("plasma", (SUN.source.url, 0)),
        ("384,400", (MOON.source.url, 0)),
        ("schnurren", (CAT.source.url, 0)),
    ],
)
async def test_words_find_their_chunk(store: KnowledgeStore, text: str, expected: tuple[str, int]) -> None:
    await store.put(PAGES)
    assert found(await store.lexical(text))[0] == expected


@pytest.mark.parametrize(
    "text", ["", " ", "?!", '"', "AND", "NEAR(", "*", "xyzzy", "a" * 5000, "\x00", "half \ud83c", "'; DROP"]
)
async def test_a_text_without_any_known_word_finds_nothing(store: KnowledgeStore, text: str) -> None:
    await store.put(PAGES)
    assert await store.lexical(text) == []


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("class HTTPServerError(Exception)", "http server error"),
        ("call getUserName() first", "getUserName"),
        ("set max_retry_count to 3", "retry count"),
        ("written in C++ and C#", "c++"),
        ("needs Python 3.11.4", "3.11.4"),
        ("Crème brûlée à la carte", "creme brulee"),
        ("全文検索エンジンの仕組み", "検索"),
        ("机器学习模型", "学习"),
        ("การค้นหาข้อความ", "ค้นหา"),
        ("검색엔진입니다", "검색"),
        ("Straße und Weg", "strasse"),
        ("Привет, Ёлка", "елка"),
    ],
)
async def test_code_and_every_script_can_be_searched(store: KnowledgeStore, stored: str, asked: str) -> None:
    await store.put([page("https://a.example/", stored), page("https://b.example/", "Something else entirely, unrelated.")])
    assert found(await store.lexical(asked)) == [("https://a.example/", 0)]


@pytest.mark.distances
async def test_vectors_find_the_nearest_first(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    passages = await store.dense(vector("The Sun is a star of plasma."), embedder=MODEL, count=2)
    assert found(passages)[0] == (SUN.source.url, 0)
    assert passages[0].score == pytest.approx(1.0, abs=1e-3)
    assert passages[0].score >= passages[1].score
    assert len(passages) == 2


SCOPES = [
    (Scope(urls=(MOON.source.url,)), [MOON]),
    (Scope(domains=("space.example",)), [MOON, SUN]),
    (Scope(domains=("www.space.example",)), [SUN]),
    (Scope(domains=("ace.example",)), []),
    (Scope(excluded_domains=("space.example",)), [CAT]),
    (Scope(languages=("en",)), [MOON, SUN]),
    (Scope(languages=("de", "en-gb")), [SUN, CAT]),
    (Scope(tags=("space",)), [MOON, SUN]),
    (Scope(tags=("space", "night")), [MOON]),
    (Scope(since="2026-05-01"), [SUN, CAT]),
    (Scope(until="2026-05-01"), [MOON, SUN]),
    (Scope(since="2026-04-01", until="2026-05-31", domains=("example",)), [SUN]),
    (Scope(code=True), []),
    (Scope(code=False), [MOON, SUN, CAT]),
]


@pytest.mark.distances
@pytest.mark.parametrize(("scope", "expected"), SCOPES, ids=[str(s).partition("(")[2][:60] for s, _ in SCOPES])
async def test_a_scope_holds_for_every_kind_of_search(store: KnowledgeStore, scope: Scope, expected: list[IndexedPage]) -> None:
    await store.put(PAGES, embedder=MODEL)
    text = "moon sun katzen orbits star schnurren"
    urls = {p.source.url for p in expected}
    assert {p.url for p in await store.lexical(text, scope=scope)} == urls
    assert {p.url for p in await store.dense(vector(text), embedder=MODEL, scope=scope)} == urls
    if scope.code is None:
        assert {s.url for s in await store.sources(scope)} == urls


@pytest.mark.distances
async def test_a_changed_page_is_replaced_whole(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    await store.put([page(MOON.source.url, "Only cheese is left.", title="Cheese")], embedder=MODEL)
    assert found(await store.lexical("orbits earth moon")) == []
    assert [p.text for p in await store.passages(MOON.source.url)] == ["Only cheese is left."]
    near = await store.dense(vector("It orbits the Earth in 27 days."), embedder=MODEL, count=10)
    assert sorted(found(near)) == sorted([(CAT.source.url, 0), (MOON.source.url, 0), (SUN.source.url, 0)])
    stats = await store.stats()
    assert (stats.sources, stats.chunks, stats.unembedded) == (3, 3, 0)


@pytest.mark.parametrize(
    "again", ["http://space.example/moon", "https://space.example/moon#facts", "HTTPS://SPACE.example/moon"]
)
async def test_two_spellings_of_a_url_are_one_page(store: KnowledgeStore, again: str) -> None:
    await store.put([MOON], embedder=MODEL)
    await store.put([page(again, "New text of the Moon.")], embedder=MODEL)
    assert [(s.url, s.chunk_count) for s in await store.sources()] == [(again, 1)]
    assert (await store.source(MOON.source.url)) is not None


@pytest.mark.distances
async def test_equal_content_is_kept_once_and_found_by_each_of_its_urls(store: KnowledgeStore) -> None:
    mirror = replace(MOON, source=replace(MOON.source, url="https://mirror.example/m", tags=("copy",)))
    await store.put([MOON, mirror], embedder=MODEL)
    assert len(await store.lexical("orbits")) == 1
    assert found(await store.lexical("orbits", scope=Scope(domains=("mirror.example",)))) == [("https://mirror.example/m", 1)]
    assert (await store.stats()).chunks == 2
    await store.remove([MOON.source.url])
    assert found(await store.lexical("orbits")) == [("https://mirror.example/m", 1)]
    assert found(await store.dense(MOON.vectors[0], embedder=MODEL))[0] == ("https://mirror.example/m", 0)


async def test_another_url_is_linked_to_content_that_is_there(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    mirror = replace(MOON.source, url="https://mirror.example/m")
    assert await store.link(mirror) is True
    assert await store.link(replace(mirror, url="https://other.example/", digest="unknown")) is False
    assert [p.text for p in await store.passages("https://mirror.example/m")] == [c.text for c in MOON.chunks]
    assert {s.url for s in await store.sources()} == {MOON.source.url, "https://mirror.example/m"}


async def test_putting_the_same_page_again_changes_only_what_is_said_of_it(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    later = replace(MOON, source=replace(MOON.source, fetched_at="2026-09-09T00:00:00+00:00", tags=("new",)))
    await store.put([later], embedder=MODEL)
    [passage] = await store.lexical("orbits")
    assert (passage.fetched_at, passage.tags) == ("2026-09-09T00:00:00+00:00", ("new",))
    assert (await store.stats()).chunks == 2


async def test_a_page_put_again_without_vectors_keeps_those_it_has(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    await store.put([replace(SUN, vectors=())])
    assert ((await store.stats()).unembedded, await store.list_unembedded()) == (0, [])


async def test_a_page_put_again_with_its_vectors_waits_for_them_no_longer(store: KnowledgeStore) -> None:
    await store.put([replace(waiting, vectors=()) for waiting in PAGES])
    await store.put([SUN], embedder=MODEL)
    assert sorted(found(await store.list_unembedded())) == sorted(
        [*((MOON.source.url, n) for n in (0, 1)), (CAT.source.url, 0)]
    )


async def test_no_vectors_at_all_name_no_model(store: KnowledgeStore) -> None:
    await store.put([replace(MOON, vectors=())])
    await store.add_vectors({}, embedder=MODEL)
    assert ((await store.stats()).embedder, (await store.stats()).unembedded) == ("", 2)


async def test_a_page_put_again_is_found_under_its_new_tags_alone(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    await store.put([replace(MOON, source=replace(MOON.source, tags=("new",)))], embedder=MODEL)
    assert found(await store.lexical("orbits", scope=Scope(tags=("new",)))) == [(MOON.source.url, 1)]
    assert await store.lexical("orbits", scope=Scope(tags=("night",))) == []


@pytest.mark.distances
async def test_a_scoped_search_sees_pages_that_were_put_since_the_last_one(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    scope = Scope(tags=("space",))
    assert found(await store.dense(SUN.vectors[0], embedder=MODEL, count=1, scope=scope))[0][0] == MOON.source.url
    await store.put([SUN], embedder=MODEL)
    assert found(await store.dense(SUN.vectors[0], embedder=MODEL, count=1, scope=scope)) == [(SUN.source.url, 0)]


async def test_chunks_of_a_removed_page_do_not_wait_for_vectors(store: KnowledgeStore) -> None:
    await store.put([page("https://a.example/", "alpha beta", "gamma", embed=False)])
    assert (await store.stats()).unembedded == 2
    await store.remove(["https://a.example/"])
    assert ((await store.stats()).unembedded, await store.list_unembedded()) == (0, [])


async def test_a_page_cut_another_way_replaces_the_former_chunks(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    whole = " ".join(chunk.text for chunk in MOON.chunks)
    await store.put([IndexedPage(MOON.source, (Chunk(whole),), (vector(whole),))], embedder=MODEL)
    assert [p.text for p in await store.passages(MOON.source.url)] == [whole]
    assert (await store.stats()).chunks == 1


@pytest.mark.distances
async def test_a_page_cut_another_way_gets_new_vectors_and_leaves_those_of_others(store: KnowledgeStore) -> None:
    await store.put([MOON, SUN], embedder=MODEL)
    pieces = tuple(Chunk(text) for text in ("The Moon is 384,400 km", "away.", "It orbits the Earth", "in 27 days."))
    await store.put([IndexedPage(MOON.source, pieces)])
    waiting = await store.list_unembedded()
    assert [p.text for p in waiting] == [piece.text for piece in pieces]
    await store.add_vectors({p.id: vector(p.text) for p in waiting}, embedder=MODEL)
    for text, place in (("It orbits the Earth", (MOON.source.url, 2)), (SUN.chunks[0].text, (SUN.source.url, 0))):
        [nearest] = await store.dense(vector(text), embedder=MODEL, count=1)
        assert (found([nearest]), nearest.score) == ([place], pytest.approx(1.0, abs=1e-3))


@pytest.mark.distances
async def test_a_removed_page_is_gone_and_the_others_stay(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    assert await store.remove([MOON.source.url, "https://never.example/"]) == 1
    assert await store.remove([MOON.source.url]) == 0
    assert found(await store.lexical("orbits moon plasma")) == [(SUN.source.url, 0)]
    assert await store.passages(MOON.source.url) == []
    assert MOON.source.url not in {p.url for p in await store.dense(MOON.vectors[0], embedder=MODEL)}


async def test_neighbours_of_a_passage_are_read_by_number(store: KnowledgeStore) -> None:
    await store.put([page("https://long.example/", *(f"Part {i} of it." for i in range(10)))], embedder=MODEL)
    assert [p.number for p in await store.passages("https://long.example/", 3, 5)] == [3, 4, 5]
    assert [p.number for p in await store.passages("https://long.example/", 8)] == [8, 9]
    assert [p.number for p in await store.passages("https://long.example/", -2, 1)] == [0, 1]


@pytest.mark.distances
async def test_chunks_without_vectors_are_known_and_can_get_them(store: KnowledgeStore) -> None:
    await store.put([page("https://a.example/", "alpha beta", "gamma delta", "epsilon", embed=False), SUN], embedder=MODEL)
    waiting = await store.list_unembedded()
    assert [p.text for p in waiting] == ["alpha beta", "gamma delta", "epsilon"]
    assert found(await store.dense(vector("gamma delta"), embedder=MODEL)) == [(SUN.source.url, 0)]
    await store.add_vectors({waiting[1].id: vector("gamma delta")}, embedder=MODEL)
    assert [p.text for p in await store.list_unembedded()] == ["alpha beta", "epsilon"]
    near = await store.dense(vector("gamma delta"), embedder=MODEL)
    assert found(near) == [("https://a.example/", 1), (SUN.source.url, 0)]
    await store.add_vectors({p.id: vector(p.text) for p in waiting}, embedder=MODEL)
    assert (await store.stats()).unembedded == 0


async def test_vectors_for_a_chunk_that_is_gone_are_passed_over(store: KnowledgeStore) -> None:
    await store.put([page("https://a.example/", "alpha beta", embed=False)])
    [waiting] = await store.list_unembedded()
    await store.remove(["https://a.example/"])
    await store.add_vectors({waiting.id: vector("alpha")}, embedder=MODEL)
    assert await store.dense(vector("alpha"), embedder=MODEL) == []


async def test_vectors_of_another_model_are_refused_and_nothing_changes(store: KnowledgeStore) -> None:
    await store.put([MOON], embedder=MODEL)
    with pytest.raises(StoreError) as refused:
        await store.put([SUN], embedder="other")
    assert (refused.value.code, MODEL in refused.value.fix, "other" in str(refused.value)) == ("store_embedder", True, True)
    with pytest.raises(StoreError) as shorter:
        await store.put([IndexedPage(SUN.source, SUN.chunks, (array("f", [1.0, 0.0]),))], embedder=MODEL)
    assert shorter.value.code == "store_embedder"
    with pytest.raises(StoreError) as asked:
        await store.dense(vector("sun"), embedder="other")
    assert asked.value.code == "store_embedder"
    assert [s.url for s in await store.sources()] == [MOON.source.url]


@pytest.mark.distances
async def test_forgotten_vectors_make_room_for_another_model(store: KnowledgeStore) -> None:
    await store.put([MOON, SUN], embedder=MODEL)
    await store.forget_vectors()
    assert await store.dense(array("f", [1.0, 0.0]), embedder="two") == []
    waiting = await store.list_unembedded()
    assert len(waiting) == 3
    await store.add_vectors({p.id: array("f", [float(p.number), 1.0]) for p in waiting}, embedder="two")
    assert len(await store.dense(array("f", [0.0, 1.0]), embedder="two")) == 3
    assert ((await store.stats()).embedder, (await store.stats()).dims) == ("two", 2)


@pytest.mark.parametrize(
    "vectors",
    [(vector("one"),), (array("f", [math.nan] * 26),) * 2, (array("f", [math.inf] + [0.0] * 25),) * 2],
    ids=["too few", "no numbers", "infinite"],
)
async def test_unusable_vectors_are_refused(store: KnowledgeStore, vectors: tuple[Vector, ...]) -> None:
    with pytest.raises(StoreError):
        await store.put([replace(MOON, vectors=vectors)], embedder=MODEL)
    assert await store.sources() == []


async def test_pages_put_together_are_stored_all_or_none(store: KnowledgeStore) -> None:
    with pytest.raises(StoreError):
        await store.put([SUN, replace(MOON, vectors=MOON.vectors[:1])], embedder=MODEL)
    assert await store.sources() == []


async def test_odd_pages_are_stored(store: KnowledgeStore) -> None:
    odd = [
        page("https://empty.example/"),
        page("file:///home/someone/notes on the sea.md", "Tides come twice a day."),
        page("https://odd.example/", "nul \x00 inside", "half \ud83c pair", "x" * 200_000, "\u202e tricky"),
    ]
    await store.put(odd, embedder=MODEL)
    assert [p.url for p in await store.lexical("tides")] == ["file:///home/someone/notes on the sea.md"]
    assert [p.text for p in await store.passages("https://odd.example/")] == [
        "nul \x00 inside",
        "half ? pair",
        "x" * 200_000,
        "\u202e tricky",
    ]
    assert (await store.source("https://empty.example/")).chunk_count == 0


async def test_reads_and_writes_at_once_all_succeed(store: KnowledgeStore) -> None:
    pages = [page(f"https://n{i}.example/", f"Number {i} common") for i in range(20)]
    await asyncio.gather(*(store.put([p], embedder=MODEL) for p in pages), *(store.lexical("common") for _ in range(20)))
    assert len(await store.lexical("common", count=50)) == 20
    assert (await store.stats()).sources == 20


@pytest.mark.distances
async def test_another_model_replaces_the_vectors_when_every_chunk_has_one(store: KnowledgeStore) -> None:
    await store.put([MOON, SUN], embedder=MODEL)
    await store.prepare_reembedding("two")
    first, *rest = await store.list_unembedded()
    await store.add_vectors({first.id: array("f", [1.0, 0.0])}, embedder="two")
    if store.name != "sqlite":  # which has room for one
        assert found(await store.dense(vector("The Sun is a star of plasma."), embedder=MODEL))[0] == (SUN.source.url, 0)
        assert (await store.stats()).embedder == MODEL
        await store.put([CAT], embedder=MODEL)  # by a server that does not know of it
        rest = await store.list_unembedded()
    await store.add_vectors({p.id: array("f", [0.5, 1.0]) for p in rest}, embedder="two")
    while left := await store.list_unembedded():
        await store.add_vectors({p.id: array("f", [0.5, 1.0]) for p in left}, embedder="two")
    passages = await store.dense(array("f", [1.0, 0.0]), embedder="two", count=10)
    assert found(passages)[0] == (first.url, first.number)
    now = await store.stats()
    assert (len(passages), now.embedder, now.dims, now.unembedded) == (now.chunks, "two", 2, 0)


async def test_repairing_a_sound_store_loses_nothing(store: KnowledgeStore) -> None:
    await store.put(PAGES, embedder=MODEL)
    report = await store.repair()
    assert (report.sources, report.chunks, report.lost_sources, report.lost_chunks) == (3, 4, (), 0)
    assert found(await store.lexical("plasma")) == [(SUN.source.url, 0)]


async def make_stores(request: pytest.FixtureRequest, kind: str) -> tuple[KnowledgeStore, KnowledgeStore, KnowledgeStore]:
    """The stores of Ada, of Eve and of the whole team."""
    if kind == "qdrant":
        client = pytest.importorskip("qdrant_client").AsyncQdrantClient(":memory:")
        from nexi.stores.qdrant import QdrantStore

        return QdrantStore(client, person="ada"), QdrantStore(client, person="eve"), QdrantStore(client, person="team")
    require_distances(request)
    database, make_person = request.getfixturevalue("database"), request.getfixturevalue("make_person")
    from nexi.stores.pgvector.store import PgvectorStore

    empty_team_collection(database)
    ada, eve = (PgvectorStore(database, make_person()) for _ in range(2))
    return ada, eve, PgvectorStore(database, None)


@pytest.mark.distances
@pytest.mark.parametrize("kind", ["postgres", "qdrant"])
async def test_each_person_has_her_own_pages_and_reads_the_teams(request: pytest.FixtureRequest, kind: str) -> None:
    ada, eve, team = await make_stores(request, kind)
    await ada.put([MOON, SUN], embedder=MODEL)
    await eve.put([page(MOON.source.url, "Eve says the Moon is cheese.")], embedder=MODEL)
    await team.put([CAT], embedder=MODEL)
    try:
        assert {s.url for s in await ada.sources()} == {p.source.url for p in (MOON, SUN, CAT)}
        assert {s.url for s in await eve.sources()} == {MOON.source.url, CAT.source.url}
        assert [s.url for s in await team.sources()] == [CAT.source.url]
        assert await eve.source(SUN.source.url) is None
        assert await eve.passages(SUN.source.url) == []
        assert [p.text for p in await eve.passages(MOON.source.url)] == ["Eve says the Moon is cheese."]
        assert [p.text for p in await eve.passages(CAT.source.url)] == [c.text for c in CAT.chunks]
        text = "moon sun plasma katzen cheese"
        for store, pages in ((ada, PAGES), (team, [CAT])):
            expected = {p.source.url for p in pages}
            assert {p.url for p in await store.lexical(text)} == expected
            assert {p.url for p in await store.dense(vector(text), embedder=MODEL)} == expected
        assert {p.text for p in await eve.lexical("orbits plasma cheese schnurren")} == {
            "Eve says the Moon is cheese.",
            "Katzen schnurren leise.",
        }
        assert await eve.link(replace(SUN.source, url="https://mine.example/")) is False
        assert await eve.remove([SUN.source.url, CAT.source.url]) == 0
        assert await ada.remove([MOON.source.url]) == 1
        assert [p.text for p in await eve.passages(MOON.source.url)] == ["Eve says the Moon is cheese."]
    finally:
        await team.remove([CAT.source.url])
        await team.forget_vectors()


async def make_sharing_stores(
    request: pytest.FixtureRequest, kind: str
) -> tuple[KnowledgeStore, KnowledgeStore, KnowledgeStore, Callable[[bool], None]]:
    """The stores of Ada, Eve and Bob, and what lets Eve read Ada's or takes it back."""
    database, make_person = request.getfixturevalue("database"), request.getfixturevalue("make_person")
    from nexi.stores.pgvector.store import PgvectorStore
    from nexi.team.postgres.sharing import PostgresKnowledgeSharing

    ada, eve, bob = (make_person() for _ in range(3))

    def share(is_shared: bool) -> None:
        PostgresKnowledgeSharing(database, ada).set_audience(RunAudience(people=(eve,) if is_shared else ()))
        if is_shared:
            PostgresKnowledgeSharing(database, eve).answer_offer(ada, is_accepted=True)

    if kind == "qdrant":
        client = pytest.importorskip("qdrant_client").AsyncQdrantClient(":memory:")
        from nexi.stores.qdrant import QdrantStore

        stores = [
            QdrantStore(client, person=person, list_owners=PostgresKnowledgeSharing(database, person).list_owners)
            for person in (ada, eve, bob)
        ]
        return stores[0], stores[1], stores[2], share
    require_distances(request)
    empty_team_collection(database)
    return PgvectorStore(database, ada), PgvectorStore(database, eve), PgvectorStore(database, bob), share


@pytest.mark.distances
@pytest.mark.parametrize("kind", ["postgres", "qdrant"])
async def test_shared_knowledge_is_found_by_those_it_is_shared_with_and_changed_by_none_of_them(
    request: pytest.FixtureRequest, kind: str
) -> None:
    ada, eve, bob, share = await make_sharing_stores(request, kind)
    await ada.put([MOON, SUN], embedder=MODEL)
    await eve.put([CAT], embedder=MODEL)
    text = "moon orbits sun plasma katzen"

    async def found_by(store: KnowledgeStore) -> list[set[str]]:
        return [
            {p.url for p in await store.lexical(text)},
            {p.url for p in await store.dense(vector(text), embedder=MODEL)},
            {s.url for s in await store.sources()},
        ]

    hers, all_of_it = {CAT.source.url}, {p.source.url for p in PAGES}
    assert await found_by(eve) == [hers] * 3
    share(True)
    assert await found_by(eve) == [all_of_it] * 3
    owners = {CAT.source.url: "", MOON.source.url: "Ada", SUN.source.url: "Ada"}
    assert {p.url: p.owner for p in await eve.dense(vector(text), embedder=MODEL)} == owners
    assert {s.url: s.owner for s in await eve.sources()} == owners
    assert [p.text for p in await eve.passages(SUN.source.url)] == [c.text for c in SUN.chunks]
    assert (await found_by(bob), await found_by(ada)) == ([set()] * 3, [{MOON.source.url, SUN.source.url}] * 3)
    assert await eve.remove([MOON.source.url, SUN.source.url]) == 0
    assert await eve.link(replace(SUN.source, url="https://mine.example/")) is False
    await eve.put([page(MOON.source.url, "Eve says the Moon is cheese.")], embedder=MODEL)
    assert [p.text for p in await eve.passages(MOON.source.url)] == ["Eve says the Moon is cheese."]
    assert [p.text for p in await ada.passages(MOON.source.url)] == [c.text for c in MOON.chunks]
    share(False)
    assert await found_by(eve) == [{CAT.source.url, MOON.source.url}] * 3
    assert await eve.source(SUN.source.url) is None


async def test_postgres_without_pgvector_stores_words_and_computes_the_vectors_once_it_is_there(
    request: pytest.FixtureRequest,
) -> None:
    admin, postgres = request.getfixturevalue("database"), request.getfixturevalue("postgres")
    from nexi.stores.pgvector.store import PgvectorStore
    from nexi.team.postgres.database import Database

    admin.fetch("create role unprivileged login")
    admin.fetch("grant nexi_person to unprivileged")
    admin.fetch("create database wordy owner unprivileged")
    admin.fetch("revoke create on database wordy from unprivileged")  # an owner with it may create the extension
    url = postgres.url_of("wordy")
    limited = Database(url.replace("postgres@", "unprivileged@")).open()
    try:
        ada = str(limited.fetch("insert into people (name) values ('Ada') returning id")[0][0])
        assert limited.fetch("select to_regclass('chunk_vectors') is null") == [(True,)]
        store = PgvectorStore(limited, ada)
        await store.put(PAGES, embedder=MODEL)
        assert found(await store.lexical("plasma")) == [(SUN.source.url, 0)]
        assert (await store.dense(vector("plasma"), embedder=MODEL), await store.list_unembedded()) == ([], [])
        assert replace(await store.stats(), bytes=0) == StoreStats(3, 4, 23, 0, "", 0)
        with pytest.raises(StoreError, match="no pgvector"):
            await store.add_vectors({"1": vector("plasma")}, embedder=MODEL)

        database = Database(url).open()
        store = PgvectorStore(database, ada)
        waiting = await store.list_unembedded()
        assert [p.text for p in waiting] == [chunk.text for page in PAGES for chunk in page.chunks]
        await store.add_vectors({p.id: vector(p.text) for p in waiting}, embedder=MODEL)
        assert replace(await store.stats(), bytes=0) == StoreStats(3, 4, 23, 0, MODEL, 26)
        database.close()
    finally:
        limited.close()


async def test_a_person_who_leaves_takes_her_points_along() -> None:
    client = pytest.importorskip("qdrant_client").AsyncQdrantClient(":memory:")
    from nexi.stores.qdrant import QdrantStore

    ada, eve = QdrantStore(client, person="ada"), QdrantStore(client, person="eve")
    await ada.put([MOON, SUN], embedder=MODEL)
    await eve.put([MOON], embedder=MODEL)
    await ada.remove_person()
    assert (await ada.sources(), await ada.lexical("moon orbits plasma")) == ([], [])
    assert [s.url for s in await eve.sources()] == [MOON.source.url]
    assert len(await eve.passages(MOON.source.url)) == 2
