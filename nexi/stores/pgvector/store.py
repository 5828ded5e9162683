"""Knowledge in Postgres, as the port KnowledgeStore: a collection for each person, and one that the whole team reads.

A search covers her own collection and the team's, a write only her own. Vectors are compared exactly, collection by
collection. The vectors of another model are made beside those in use, which they replace when every chunk has one; the former
ones stay for servers that still ask with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import StoreError
from nexi.notices import Notice
from nexi.stores import _writing
from nexi.stores._schema import CHUNKS, reverse_domain, scope_condition
from nexi.stores._vectors import other_embedder
from nexi.stores.pgvector._words import ARRAY_COLUMNS, ReadCollection, Rows, StatementRunner, Values, WordSearch, count_terms
from nexi.stores.sqlite import SOURCE_ROW
from nexi.types import EVERYTHING, IndexedPage, Passage, Scope, StoredSource, StoreRepair, StoreStats, Vector

T = TypeVar("T")
_SOURCE = f"{SOURCE_ROW}, name_of_sharer(s.collection)"
_PASSAGE = (
    "c.id, s.url, s.title, s.domain, s.language, s.fetched_at, s.tags, c.content, s.published, s.updated, "
    "name_of_sharer(s.collection)"
)
_SOURCES = "from sources s join bodies b on b.id = s.body where s.collection = any(%(collections)s)"


class _Embedding(Struct, frozen=True):
    """Vectors of one model for one collection."""

    id: int
    collection: int
    embedder: str
    dims: int
    state: str

    def is_of(self, embedder: str, dims: int) -> bool:
        return self.embedder == embedder and self.dims in (0, dims)


class PgvectorStore:
    """The knowledge of one person, or with no owner that of the whole team, which everybody reads."""

    name = "pgvector"

    def __init__(self, database: StatementRunner, owner: str | None) -> None:
        self._database, self._owner = database, owner
        self._words = WordSearch(self._fetch, is_personal=owner is not None)

    def _fetch(self, statement: str, values: Values | None = None) -> Rows:
        """The rows of a statement, behind the policies of its person; the team's own is kept by administrators."""
        if self._owner is None:
            return self._database.fetch(statement, values)
        return self._database.fetch_as(self._owner, statement, values)

    async def aclose(self) -> None:
        """The connections are the database's."""

    async def put(self, pages: Sequence[IndexedPage], *, embedder: str = "") -> None:
        for page in pages:
            _writing.check_chunks(page)
        dims = _writing.vector_length(pages)
        await self._write(lambda writing: writing.put(pages, embedder, dims))

    async def link(self, source: StoredSource) -> bool:
        return await self._write(lambda writing: writing.link(source))

    async def remove(self, urls: Sequence[str]) -> int:
        return await self._write(lambda writing: writing.remove(urls))

    async def add_vectors(self, vectors: Mapping[str, Vector], *, embedder: str) -> None:
        dims = next((len(vector) for vector in vectors.values()), 0)
        if dims:
            _writing.check_vectors(list(vectors.values()), dims)
            await self._write(lambda writing: writing.add_vectors(vectors, embedder, dims))

    async def forget_vectors(self) -> None:
        await self._write(lambda writing: writing.forget_vectors())

    async def prepare_reembedding(self, embedder: str) -> None:
        await self._write(lambda writing: writing.prepare_reembedding(embedder))

    async def repair(self, on_saved: Callable[[int, int], None] = lambda count, total: None) -> StoreRepair:
        """The database keeps its own files in order."""
        now = await self.stats()
        return StoreRepair(now.sources, now.chunks, unembedded=now.unembedded)

    async def source(self, url: str) -> StoredSource | None:
        """One's own before the team's."""
        sql = f"select {_SOURCE} {_SOURCES} and s.key = %(key)s {_OWN_FIRST} limit 1"
        rows = await self._fetch_readable(sql, key=_writing.key_of(url))
        return _parse_source(rows[0]) if rows else None

    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        condition, values = _source_condition(scope)
        sql = f"select {_SOURCE} {_SOURCES} {condition} order by s.fetched_at desc, s.id desc limit %(count)s offset %(skip)s"
        return [_parse_source(row) for row in await self._fetch_readable(sql, count=count, skip=skip, **values)]

    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        rows = await self._fetch_readable(
            f"select {_PASSAGE} from (select * from sources s where s.collection = any(%(collections)s) and s.key = %(key)s "  # noqa: S608
            f"{_OWN_FIRST} limit 1) s join chunks c on c.body = s.body "
            f"where c.id between s.body * {CHUNKS} + %(first)s and s.body * {CHUNKS} + %(last)s order by c.id",
            key=_writing.key_of(url),
            first=max(0, first),
            last=CHUNKS - 1 if last is None else min(last, CHUNKS - 1),
        )
        return [_parse_passage(row, 0.0) for row in rows]

    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        def search() -> list[Passage]:
            condition, values = _chunk_condition(scope)
            return self._read_passages(self._words.search(text, count, self._list_collections(), condition, values), scope)

        return await self._database.in_thread(search)

    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        def search() -> list[Passage]:
            embeddings = self._list_embeddings([c.id for c in self._list_collections()])
            matches = [e for e in embeddings if e.is_of(embedder, len(vector))]
            usable = {e.collection: e for state in ("former", "current") for e in matches if e.state == state}
            if not usable:
                for e in embeddings:
                    if e.state == "current":
                        raise other_embedder(e.embedder, e.dims, embedder, len(vector))
                return []
            condition, values = _chunk_condition(scope)
            join = f"join chunks c on c.id = v.chunk where true {condition} and" if condition else "where"
            vectors = {"vector": _format_vector(vector), "embeddings": [e.id for e in usable.values()]}
            rows = self._fetch(
                "select v.chunk, 1 - (v.vector <=> %(vector)s::vector) as score from chunk_vectors v "  # noqa: S608
                f"{join} v.embedding = any(%(embeddings)s) order by v.vector <=> %(vector)s::vector, v.chunk limit %(count)s",
                {**values, **vectors, "count": max(0, count)},
            )
            # a vector of zeros is near nothing
            return self._read_passages([(chunk, score) for chunk, score in rows if score == score], scope)

        return await self._database.in_thread(search)

    async def list_unembedded(self, count: int = 100) -> list[Passage]:
        def read() -> list[Passage]:
            own = [c.id for c in self._list_collections() if c.is_own]
            if not own or not self._fetch(_HAS_PGVECTOR)[0][0]:
                return []
            sql = "select chunk from unembedded where collection = %(own)s order by chunk limit %(count)s"
            rows = self._fetch(sql, {"own": own[0], "count": count})
            return self._read_passages([(chunk, 0.0) for (chunk,) in rows], EVERYTHING)

        return await self._database.in_thread(read)

    async def stats(self) -> StoreStats:
        def read() -> StoreStats:
            collections = self._list_collections()
            ids = [c.id for c in collections]
            pages, words = self._fetch(
                "select (select count(*) from sources where collection = any(%(ids)s)), coalesce(sum(words), 0) "
                "from bodies where collection = any(%(ids)s)",
                {"ids": ids},
            )[0]
            embeddings = self._list_embeddings(ids)
            own = [c.id for c in collections if c.is_own]
            current = sorted((e for e in embeddings if e.state == "current"), key=lambda e: e.collection not in own)
            embedding = current[0] if current else _Embedding(0, 0, "", 0, "")
            unembedded = 0
            if own and self._fetch(_HAS_PGVECTOR)[0][0]:
                unembedded = self._fetch("select count(*) from unembedded where collection = %(own)s", {"own": own[0]})[0][0]
            chunks, size = sum(c.chunks for c in collections), sum(c.bytes for c in collections if c.is_own)
            return StoreStats(pages, chunks, int(words), unembedded, embedding.embedder, embedding.dims, size)

        return await self._database.in_thread(read)

    def _list_collections(self) -> list[ReadCollection]:
        """Those that this person reads, her own first: the team's, and what others share and she has accepted."""
        rows = self._fetch(
            "select id, owner is not distinct from %(owner)s::uuid as own, generation, chunks, terms, pages, bytes "
            "from collections where (owner is null and %(owner)s::uuid is null) "
            "or id = any((select readable_collections())::bigint[]) order by own desc, id",
            {"owner": self._owner},
        )
        return [ReadCollection(*row) for row in rows]

    def _list_embeddings(self, collections: Sequence[int]) -> list[_Embedding]:
        rows = self._fetch(f"{_EMBEDDINGS} = any(%(ids)s) order by state", {"ids": list(collections)})
        return [_Embedding(*row) for row in rows]

    def _read_passages(self, ranking: Sequence[tuple[int, float]], scope: Scope) -> list[Passage]:
        """The chunks behind ids, each with the first source in scope that leads to it."""
        condition, values = _source_condition(scope)
        rows = self._fetch(
            f"select {_PASSAGE} from chunks c join lateral (select * from sources s where s.body = c.body {condition} "  # noqa: S608
            "order by s.id limit 1) s on true where c.id = any(%(ids)s)",
            {**values, "ids": [chunk for chunk, _ in ranking]},
        )
        row_by_chunk = {row[0]: row for row in rows}
        return [_parse_passage(row_by_chunk[chunk], score) for chunk, score in ranking if chunk in row_by_chunk]

    async def _fetch_readable(self, statement: str, **values: Any) -> Rows:
        def read() -> Rows:
            collections = self._list_collections()
            own = next((c.id for c in collections if c.is_own), 0)
            return self._fetch(statement, {**values, "collections": [c.id for c in collections], "own": own})

        return await self._database.in_thread(read)

    async def _write(self, work: Callable[[_Writing], T]) -> T:
        def write() -> T:
            with self._database.transaction(self._owner) as connection:
                writing = _Writing(connection, self._owner)
                result = work(writing)
                writing.finish()
                return result

        return await self._database.in_thread(write)


class _Writing:
    """One transaction that changes a collection; others that would change it wait for its row."""

    def __init__(self, connection: Any, owner: str | None) -> None:
        self._connection, self._owner, self._collection = connection, owner, 0
        self._run("insert into collections (owner) values (%(owner)s) on conflict (owner) do nothing")
        rows = self._run("select id from collections where owner is not distinct from %(owner)s::uuid for update")
        self._collection = rows[0][0]
        self._embeddings = {row[4]: _Embedding(*row) for row in self._run(f"{_EMBEDDINGS} = %(collection)s")}
        self._change = dict.fromkeys(("pages", "chunks", "terms", "bytes"), 0)

    def _run(self, statement: str, **values: Any) -> Rows:
        """A statement with its values, beside which it may name the owner and the collection."""
        cursor = self._connection.execute(statement, {"owner": self._owner, "collection": self._collection, **values})
        return cursor.fetchall() if cursor.description else []

    def finish(self) -> None:
        self._run(
            "update collections set generation = generation + 1, chunks = chunks + %(chunks)s, terms = terms + %(terms)s, "
            "pages = pages + %(pages)s, bytes = bytes + %(bytes)s where id = %(collection)s",
            **self._change,
        )
        if self._owner and self._change["bytes"] > 0:
            # what goes beyond the storage of its person is refused before it is committed
            sql = "select storage_bytes, stored_bytes(%(owner)s::uuid) from quotas where person = %(owner)s::uuid"
            rows = self._run(f"{sql} and storage_bytes is not null")
            if rows and rows[0][1] > rows[0][0]:
                (most, used), size = rows[0], self._change["bytes"]
                raise StoreError(
                    Notice("quota.reached", "you have reached your quota of {quota}", quota=Notice("quota.storage", "storage")),
                    cause=f"{_show_size(used - size)} of {_show_size(most)} are used, and this needs {_show_size(size)} more",
                    fix="delete runs or stored sources, or ask an administrator for more",
                    code="quota_reached",
                )
        # the vectors of the next model are used once every chunk has one
        sql = "select exists (select from unembedded where collection = %(collection)s)"
        if "building" in self._embeddings and not self._run(sql)[0][0]:
            self._run("delete from embeddings where collection = %(collection)s and state = 'former'")
            sql = "update embeddings set state = %(after)s where collection = %(collection)s and state = %(before)s"
            for before, after in (("current", "former"), ("building", "current")):
                self._run(sql, before=before, after=after)

    def _count_body(self, sign: int, chunks: int, terms: int, size: int) -> None:
        for name, amount in (("pages", 1), ("chunks", chunks), ("terms", terms), ("bytes", size)):
            self._change[name] += sign * amount

    def put(self, pages: Sequence[IndexedPage], embedder: str, dims: int) -> None:
        # without pgvector the words are stored alone; the chunks get their vectors once the extension is there
        embeddings = self._claim(embedder, dims) if dims and self._run(_HAS_PGVECTOR)[0][0] else []
        for page in pages:
            body, is_new = self._put_body(page)
            self._put_source(page.source, body)
            if is_new and not (page.vectors and self._are_wanted(embeddings)):
                self._note_unembedded(body)
            self._put_vectors({body * CHUNKS + number: vector for number, vector in enumerate(page.vectors)}, embeddings)

    def link(self, source: StoredSource) -> bool:
        sql = "select id from bodies where collection = %(collection)s and digest = %(digest)s"
        rows = self._run(sql, digest=_clean_text(source.digest))
        if rows:
            self._put_source(source, rows[0][0])
        return bool(rows)

    def remove(self, urls: Sequence[str]) -> int:
        sql = "delete from sources where collection = %(collection)s and key = any(%(keys)s) returning body"
        rows = self._run(sql, keys=[_writing.key_of(url) for url in urls])
        self._drop_unused([body for (body,) in rows])
        return len(rows)

    def add_vectors(self, vectors: Mapping[str, Vector], embedder: str, dims: int) -> None:
        if not self._run(_HAS_PGVECTOR)[0][0]:
            cause = "this database has no pgvector"
            fix = "install the extension vector for Postgres and restart nexi, or set QDRANT_URL"
            raise StoreError("Vectors cannot be stored", cause=cause, fix=fix)
        embeddings = self._claim(embedder, dims)
        sql = "select id from chunks where collection = %(collection)s and id = any(%(ids)s) for key share"
        rows = self._run(sql, ids=[int(name) for name in vectors])
        self._put_vectors({chunk: vectors[str(chunk)] for (chunk,) in rows}, embeddings)

    def forget_vectors(self) -> None:
        self._run("delete from embeddings where collection = %(collection)s")
        self._embeddings = {}
        self._note_unembedded()

    def prepare_reembedding(self, embedder: str) -> None:
        """Vectors that are already being made with the same model are kept, so that an interrupted run goes on."""
        building = self._embeddings.get("building")
        if "current" not in self._embeddings or (building and building.embedder == embedder):
            return
        if building:
            self._run("delete from embeddings where id = %(id)s", id=building.id)
        self._add_embedding(embedder, 0, "building")
        self._note_unembedded()

    def _are_wanted(self, embeddings: Sequence[_Embedding]) -> bool:
        """Whether these are the vectors that every chunk is to have: of the model that is coming, or of the current one."""
        target = self._embeddings.get("building") or self._embeddings.get("current")
        return target is not None and any(e.id == target.id for e in embeddings)

    def _note_unembedded(self, body: int | None = None) -> None:
        """Let the chunks of a body, or of the whole collection, be embedded."""
        self._run(
            "insert into unembedded (chunk, collection) select id, collection from chunks where collection = %(collection)s "
            "and body = coalesce(%(body)s, body) on conflict do nothing",
            body=body,
        )

    def _claim(self, embedder: str, dims: int) -> list[_Embedding]:
        """Where vectors of a model go. Raises StoreError where they are of none that this collection has."""
        if not self._embeddings:
            self._add_embedding(embedder, dims, "current")  # the first model decides
        matches = [e for e in self._embeddings.values() if e.is_of(embedder, dims)]
        if not matches:
            current = self._embeddings["current"]
            raise other_embedder(current.embedder, current.dims, embedder, dims)
        for e in matches:
            if not e.dims:
                self._run("update embeddings set dims = %(dims)s where id = %(id)s", id=e.id, dims=dims)
        return matches

    def _add_embedding(self, embedder: str, dims: int, state: str) -> None:
        rows = self._run(
            "insert into embeddings (collection, embedder, dims, state) "
            "values (%(collection)s, %(name)s, %(dims)s, %(state)s) returning id, collection, embedder, dims, state",
            name=embedder,
            dims=dims,
            state=state,
        )
        self._embeddings[state] = _Embedding(*rows[0])

    def _put_body(self, page: IndexedPage) -> tuple[int, bool]:
        """The body of this content, and whether it is new: it is written where it is unknown or was cut another way."""
        digest, fingerprint = _clean_text(_writing.digest_of(page)), _writing.fingerprint_of(page)
        sql = "select id, fingerprint, chunks, length, bytes from bodies where collection = %(collection)s and digest = %(key)s"
        row = self._run(sql, key=digest)
        if row and row[0][1] == fingerprint:
            return int(row[0][0]), False
        texts = [map(_writing.clean_text, (c.text, c.heading, c.context, c.code)) for c in page.chunks]
        contents = [msgspec.json.encode((*parts, c.start)) for parts, c in zip(texts, page.chunks, strict=True)]
        text = "\n".join(chunk.text for chunk in page.chunks)
        body = {
            "collection": self._collection,
            "digest": digest,
            "fingerprint": fingerprint,
            "chunks": len(page.chunks),
            "words": _writing.count_words(page),
            "bytes": sum(map(len, contents)),
            **count_terms(self._collection, page.source.title, text, "title_counts"),
        }
        if row:
            number = int(row[0][0])
            self._count_body(-1, *row[0][2:])
            self._run("delete from chunks where body = %(id)s", id=number)
            changes = ", ".join(f"{name} = {_value_of(name)}" for name in body)
            self._run(f"update bodies set {changes} where id = %(id)s", **body, id=number)  # noqa: S608
        else:
            number = int(self._run(_insert("bodies", body) + " returning id", **body)[0][0])
        self._count_body(1, len(page.chunks), body["length"], body["bytes"])
        rows: list[dict[str, Any]] = []
        for place, (chunk, content) in enumerate(zip(page.chunks, contents, strict=True), number * CHUNKS):
            above = f"{page.source.title}\n{chunk.heading}\n{chunk.context}"
            head = {"id": place, "collection": self._collection, "body": number, "is_code": bool(chunk.code)}
            rows.append({**head, "content": content, **count_terms(self._collection, above, chunk.text, "head_counts")})
        if rows:
            self._connection.execute_many(_insert("chunks", rows[0]), rows)
        return number, True

    def _put_source(self, source: StoredSource, body: int) -> None:
        clean = _writing.clean_source(source, _clean_text)
        names = ("url", "title", "domain", "language", "fetched_at", "published", "updated")
        row = {
            "collection": self._collection,
            "key": _clean_text(_writing.key_of(source.url)),
            "body": body,
            "host": reverse_domain(clean.domain) if clean.domain else "",
            "tags": list(clean.tags),
            **{name: getattr(clean, name) for name in names},
        }
        sql = "select body from sources where collection = %(collection)s and key = %(key)s"
        before = self._run(sql, key=row["key"])
        changes = ", ".join(f"{name} = excluded.{name}" for name in row)
        self._run(f"{_insert('sources', row)} on conflict (collection, key) do update set {changes}", **row)
        if before and before[0][0] != body:
            self._drop_unused([before[0][0]])

    def _drop_unused(self, bodies: Sequence[int]) -> None:
        """A body to which no URL leads any more goes, with all it has."""
        rows = self._run(
            "delete from bodies where id = any(%(bodies)s) and not exists (select from sources where body = bodies.id) "
            "returning chunks, length, bytes",
            bodies=list(bodies),
        )
        for row in rows:
            self._count_body(-1, *row)

    def _put_vectors(self, vectors: Mapping[int, Vector], embeddings: Sequence[_Embedding]) -> None:
        rows = [(e.id, chunk, _format_vector(vector)) for e in embeddings for chunk, vector in vectors.items()]
        if rows:
            sql = "insert into chunk_vectors values (%s, %s, %s::vector)"
            self._connection.execute_many(f"{sql} on conflict (embedding, chunk) do update set vector = excluded.vector", rows)
            if self._are_wanted(embeddings):
                self._run("delete from unembedded where chunk = any(%(chunks)s)", chunks=list(vectors))


_EMBEDDINGS = "select id, collection, embedder, dims, state from embeddings where collection"
_HAS_PGVECTOR = "select to_regclass('chunk_vectors') is not null"
_OWN_FIRST = "order by s.collection <> %(own)s"


def _show_size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"


def _clean_text(text: str) -> str:
    """A text as a column takes it: no NUL, no half of a surrogate pair."""
    return _writing.clean_text(text.replace("\x00", ""))


def _insert(table: str, row: Values) -> str:
    return f"insert into {table} ({', '.join(row)}) values ({', '.join(map(_value_of, row))})"  # noqa: S608


def _value_of(column: str) -> str:
    return ARRAY_COLUMNS.get(column, f"%({column})s")


def _source_condition(scope: Scope) -> tuple[str, dict[str, Any]]:
    """What continues a condition on a source `s`, and its values."""
    where = scope_condition(replace(scope, tags=(), code=None))
    first, *rest = where.sql.split("?")
    sql = first + "".join(f"%(scope{i})s{part}" for i, part in enumerate(rest))
    values: dict[str, Any] = {f"scope{i}": value for i, value in enumerate(where.values)}
    clauses = [clause for clause in (sql, "s.tags @> %(tags)s::text[]" if scope.tags else "") if clause]
    return "".join(f" and {clause}" for clause in clauses), {**values, "tags": list(scope.tags)}


def _chunk_condition(scope: Scope) -> tuple[str, dict[str, Any]]:
    """The same on a chunk `c`: one of its sources is in scope."""
    condition, values = _source_condition(scope)
    sql = f" and exists (select from sources s where s.body = c.body{condition})" if condition else ""
    code = "" if scope.code is None else f" and {'' if scope.code else 'not '}c.is_code"
    return sql + code, values


def _format_vector(vector: Vector) -> str:
    return f"[{','.join(map(repr, vector))}]"


def _parse_source(row: Sequence[Any]) -> StoredSource:
    url, title, domain, language, fetched_at, digest, chunks, words, tags, *dates_and_owner = row
    return StoredSource(url, title, domain, language, fetched_at, digest, chunks, words, tuple(tags), *dates_and_owner)


def _parse_passage(row: Sequence[Any], score: float) -> Passage:
    chunk, url, title, domain, language, fetched_at, tags, content, *dates_and_owner = row
    text, *headings_and_code, start = msgspec.json.decode(bytes(content))
    about = (title, domain, *headings_and_code, language, fetched_at, tuple(tags), start, *dates_and_owner)
    return Passage(str(chunk), url, chunk % CHUNKS, text, score, *about)
