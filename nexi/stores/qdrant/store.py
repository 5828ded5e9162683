"""The KnowledgeStore port over a Qdrant server (or cluster).

Chunks lie in one collection for each embedding model, with a dense and a sparse vector; before there is a model, in one
with words alone. Sources and the name of the collection in use lie in a second one. The server has no transactions: a
page's chunks are written before its source, and what is left of its former text is removed last, so that a crash leaves a
page that is stored again by the next reading of it, never a source without its text.

For a team, `person` is whose store this is: all of them share the collections, each point names its person, and every filter
asks for her own points, or when reading for the team's as well.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from nexi.errors import StoreError
from nexi.stores._schema import TERMS  # another made numbers of words that are no longer found by ours
from nexi.stores._vectors import other_embedder
from nexi.stores._writing import check_vectors, key_of, vector_length
from nexi.stores.qdrant import _points
from nexi.stores.qdrant._points import Payload, chunk_id, source_id
from nexi.types import EVERYTHING, TEAM, IndexedPage, Passage, Scope, StoredSource, StoreRepair, StoreStats, Vector

DENSE, WORDS = "dense", "words"
PAGE = 256
MOST = 10_000
CONFLICT = 409
P = ParamSpec("P")
T = TypeVar("T")


def _translate_errors(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """What the client raises leaves as a StoreError."""

    @functools.wraps(method)
    async def call(*given: P.args, **named: P.kwargs) -> T:
        try:
            return await method(*given, **named)
        except (ApiException, ResponseHandlingException, OSError) as error:
            is_refusal = getattr(error, "status_code", 0) in (401, 403)
            cause = " ".join(str(error).split())[:300] or type(error).__name__
            fix = "Set QDRANT_API_KEY to a key of this server." if is_refusal else "Check QDRANT_URL and that the server runs."
            raise StoreError("The Qdrant server could not be used", cause=cause, fix=fix, code="store_qdrant") from error

    return call


class QdrantStore:
    """`shards` and `replicas` are for a cluster, and hold for collections that are made from now on."""

    name = "qdrant"

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        prefix: str = "",
        shards: int | None = None,
        replicas: int = 1,
        person: str = "",
        list_owners: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`list_owners` has the names of those who let `person` read what is theirs, by their ids; it may block."""
        self._client, self._person, self._list_owners = client, person, list_owners
        self._names: Mapping[str, str] = {}
        self._others: tuple[str, ...] = (TEAM,)
        self._prefix = prefix or ("nexi_team" if person else "nexi")
        self._sources = f"{self._prefix}_sources"
        self._cluster: dict[str, Any] = {"shard_number": shards, "replication_factor": replicas}
        self._ready = False

    @classmethod
    def at(cls, url: str, *, api_key: str = "", timeout_s: int = 30, **options: Any) -> QdrantStore:
        # The client warns of a server more than one minor version away. What is called here is the same in all that matter:
        # `make test-qdrant` runs the whole contract against a server that is four versions older than the client.
        client = AsyncQdrantClient(url=url, api_key=api_key or None, timeout=timeout_s, check_compatibility=False)
        return cls(client, **options)

    async def aclose(self) -> None:
        await self._client.close()

    @_translate_errors
    async def put(self, pages: Sequence[IndexedPage], *, embedder: str = "") -> None:
        dims = vector_length(pages)
        state = await self._load_state()
        if dims:
            state = await self._claim_embedder(state, embedder, dims)
        collection = state["collection"]
        for page in pages:
            payload = _points.source_payload(page)
            digest = payload["digest"]
            twin = await self._find_twin(digest)
            if twin is not None and twin["fingerprint"] == payload["fingerprint"]:
                await self._attach_url(collection, payload)
                if page.vectors:
                    records = await self._all_points(collection, self._own(digest=digest))
                    await self._write_vectors(collection, {str(p.id): page.vectors[p.payload["number"]] for p in records})
                continue
            sharing = await self._sources_sharing(digest, but=payload["key"])
            await self._write_chunks(collection, page, payload, sharing)
            before = await self._find_source(payload["key"])
            body = {key: payload[key] for key in ("fingerprint", "chunks", "words")}
            for other in sharing:
                await self._put_source({**other, **body})
            await self._put_source(payload)
            if before is not None and before["digest"] != digest:
                await self._drop_body(collection, before["digest"], payload["key"])

    @_translate_errors
    async def link(self, source: StoredSource) -> bool:
        state = await self._load_state()
        twin = await self._find_twin(source.digest)
        if twin is None:
            return False
        body = {key: twin[key] for key in ("digest", "fingerprint", "chunks", "words")}
        await self._attach_url(state["collection"], _points.source_payload(IndexedPage(source)) | body)
        return True

    @_translate_errors
    async def remove(self, urls: Sequence[str]) -> int:
        state = await self._load_state()
        count = 0
        for key in dict.fromkeys(key_of(url) for url in urls):
            source = await self._find_source(key)
            if source is not None:
                await self._detach_url(state["collection"], source)
                await self._client.delete(self._sources, models.PointIdsList(points=[source_id(self._name(key))]), wait=True)
                count += 1
        return count

    @_translate_errors
    async def remove_person(self) -> None:
        if not self._person:
            raise ValueError("this store belongs to no single person")
        state = await self._load_state()
        mine = models.FilterSelector(filter=self._own())
        for collection in dict.fromkeys((state.get("next", {}).get("collection", ""), state["collection"], self._sources)):
            if collection:
                await self._client.delete(collection, mine, wait=True)

    @_translate_errors
    async def add_vectors(self, vectors: Mapping[str, Vector], *, embedder: str) -> None:
        dims = next((len(vector) for vector in vectors.values()), 0)
        if not dims:
            return None
        check_vectors(list(vectors.values()), dims)
        state = await self._load_state()
        if coming := state.get("next") if state.get("next", {}).get("embedder") == embedder else None:
            if coming["collection"]:
                _same_embedder(coming, embedder, dims)
            else:  # a collection for the vectors of the next model, with every chunk that there is
                name = f"{self._prefix}_{_points.slugify(embedder)}_{dims}"
                name += "_again" if name == state["collection"] else ""  # the one in use is kept until then
                coming = {**coming, "dims": dims, "collection": name}
                await self._make_chunks(coming)
                await self._copy_changed(state["collection"], name)
                await self._put_point("state", {**state, "next": coming})
            await self._write_stored(coming["collection"], vectors)
            return await self._switch_when_whole({**state, "next": coming}, coming)
        state = await self._claim_embedder(state, embedder, dims)
        return await self._write_stored(state["collection"], vectors)

    async def _write_stored(self, collection: str, vectors: Mapping[str, Vector]) -> None:
        """Those whose chunks are still there."""
        there = await self._client.retrieve(collection, list(vectors), with_payload=False)
        await self._write_vectors(collection, {str(point.id): vectors[str(point.id)] for point in there})

    async def _write_vectors(self, collection: str, vectors: Mapping[str, Vector]) -> None:
        """The vectors of points by their ids, which must be there."""
        ids: list[Any] = list(vectors)
        if ids:
            rows = [models.PointVectors(id=i, vector={DENSE: list(vectors[i])}) for i in ids]
            await self._client.update_vectors(collection, rows, wait=True)
            await self._client.set_payload(collection, {"embedded": True}, points=ids, wait=True)

    @_translate_errors
    async def prepare_reembedding(self, embedder: str) -> None:
        """Vectors that are already being made with the same model are kept, so that an interrupted run goes on."""
        state = await self._load_state()
        if state["dims"] and state.get("next", {}).get("embedder") != embedder:
            await self._put_point("state", {**state, "next": {"embedder": embedder, "dims": 0, "collection": ""}})

    async def _switch_when_whole(self, state: Payload, coming: Payload) -> None:
        """Use the next collection once it has a vector for every chunk; what was written meanwhile is copied first."""
        old, new = state["collection"], coming["collection"]
        unembedded = (await self._client.count(new, _filter_by(embedded=False), exact=True)).count
        if unembedded or await self._copy_changed(old, new):
            return
        current = {key: value for key, value in state.items() if key != "next"}
        await self._put_point("state", {**current, **coming})
        await self._copy_changed(old, new, only_missing=True)  # written while the state was
        await self._client.delete_collection(old)

    async def _copy_changed(self, old: str, new: str, *, only_missing: bool = False) -> int:
        """Copy the chunks that differ, without a vector, and say how many; drop those that are gone."""
        count, ids = 0, set()
        async for originals in self._scroll_batches(old, with_vectors=[WORDS]):
            there = await self._client.retrieve(new, [p.id for p in originals])
            copies = {p.id: {**(p.payload or {}), "embedded": False} for p in there}
            rows = [
                row
                for row in map(_without_vector, originals)
                if row.id not in copies or (not only_missing and row.payload != copies[row.id])
            ]
            if rows:
                await self._client.upsert(new, rows, wait=True)
            count += len(rows)
            ids |= {p.id for p in originals}
        if not only_missing:
            stale = [p.id for p in await self._all_points(new, models.Filter()) if p.id not in ids]
            if stale:
                await self._client.delete(new, models.PointIdsList(points=stale), wait=True)
        return count

    @_translate_errors
    async def forget_vectors(self) -> None:
        state = await self._load_state()
        if state["dims"]:
            await self._move_chunks(state, {"embedder": "", "dims": 0, "collection": f"{self._prefix}_words"})

    async def repair(self, on_saved: Callable[[int, int], None] = lambda count, total: None) -> StoreRepair:
        """The server keeps its own files in order."""
        now = await self.stats()
        return StoreRepair(now.sources, now.chunks, unembedded=now.unembedded)

    @_translate_errors
    async def source(self, url: str) -> StoredSource | None:
        await self._load_state()
        payload = await self._find_readable(key_of(url))
        return None if payload is None else _points.stored_source(payload, self._name_of_sharer(payload))

    @_translate_errors
    async def sources(self, scope: Scope = EVERYTHING, *, count: int = 100, skip: int = 0) -> list[StoredSource]:
        await self._load_state()
        newest = models.OrderBy(key="fetched", direction=models.Direction.DESC)
        within, limit = self._readable(_points.filter_sources(scope)), min(count + skip, MOST)
        records, _ = await self._client.scroll(self._sources, scroll_filter=within, limit=limit, order_by=newest)
        return [_points.stored_source(p.payload or {}, self._name_of_sharer(p.payload or {})) for p in records[skip:]]

    @_translate_errors
    async def passages(self, url: str, first: int = 0, last: int | None = None) -> list[Passage]:
        state = await self._load_state()
        source = await self._find_readable(key_of(url))
        if source is None:
            return []
        numbers = models.FieldCondition(key="number", range=models.Range(gte=first, lte=last))
        whose = [_points.match_value("person", source["person"])] if self._person else []
        within = models.Filter(must=[_points.match_value("digest", source["digest"]), numbers, *whose])
        records, owner = await self._all_points(state["collection"], within), self._name_of_sharer(source)
        return sorted((_points.build_passage(p, source, 0.0, owner) for p in records), key=lambda passage: passage.number)

    @_translate_errors
    async def lexical(self, text: str, *, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        state = await self._load_state()
        words = _points.asked_words(text)
        if not words or count < 1:
            return []
        query = models.SparseVector(indices=words, values=[1.0] * len(words))
        return await self._search_points(state, scope, query=query, using=WORDS, limit=count)

    @_translate_errors
    async def dense(self, vector: Vector, *, embedder: str, count: int = 10, scope: Scope = EVERYTHING) -> list[Passage]:
        state = await self._load_state()
        if not state["dims"] or count < 1:
            return []
        _same_embedder(state, embedder, len(vector))
        return await self._search_points(state, scope, query=list(vector), using=DENSE, limit=count)

    @_translate_errors
    async def list_unembedded(self, count: int = 100) -> list[Passage]:
        state = await self._load_state()
        within: models.Filter | None = self._own(embedded=False)
        if coming := state.get("next"):  # of everybody: the model changes for the whole collection
            state, within = (coming, _filter_by(embedded=False)) if coming["collection"] else (state, None)
        response: Any = await self._client.scroll(state["collection"], scroll_filter=within, limit=count)
        in_order = sorted(response[0], key=lambda p: (p.payload["owner"], p.payload["number"]))
        return [_points.build_passage(p, p.payload["sources"][0], 0.0) for p in in_order]

    @_translate_errors
    async def stats(self) -> StoreStats:
        state = await self._load_state()
        pages = await self._all_points(self._sources, self._readable(_points.filter_sources(EVERYTHING)) or models.Filter())
        chunks = (await self._client.count(state["collection"], self._readable(None), exact=True)).count
        unembedded = (await self._client.count(state["collection"], self._own(embedded=False), exact=True)).count
        words = {page.payload["digest"]: page.payload["words"] for page in pages}
        return StoreStats(len(pages), chunks, sum(words.values()), unembedded, state["embedder"], state["dims"])

    def _name(self, key: str) -> str:
        return f"{self._person} {key}" if self._person else key

    def _marked(self, payload: Payload) -> Payload:
        return {**payload, "person": self._person} if self._person else payload

    def _name_of_sharer(self, payload: Payload) -> str:
        return self._names.get(payload.get("person", ""), "")

    def _own(self, **values: str | bool) -> models.Filter:
        return _filter_by(**values, **({"person": self._person} if self._person else {}))

    def _readable(self, within: models.Filter | None) -> models.Filter | None:
        """The filter, narrowed to the points of this person, of the team and of those who share theirs."""
        if not self._person:
            return within
        people = models.FieldCondition(key="person", match=models.MatchAny(any=[self._person, *self._others]))
        must: Any = (within.must if within else None) or []
        return models.Filter(must=[people, *must], must_not=within.must_not if within else None)

    async def _write_chunks(self, collection: str, page: IndexedPage, payload: Payload, sharing: Sequence[Payload]) -> None:
        """The chunks of a page under its own ids. What others still need of the former text is first put under theirs."""
        key, digest = payload["key"], payload["digest"]
        before = await self._find_source(key)
        if before is not None and before["digest"] != digest:
            await self._hand_over(collection, before)
        about = [_points.about_source(page), *(_points.strip_body(other) for other in sharing)]
        rows = []
        for n, chunk in enumerate(page.chunks):
            vectors: dict[str, Any] = {
                WORDS: _points.sparse_vector(page.source.title, chunk.heading, chunk.context, chunk.text)
            }
            if page.vectors:
                vectors[DENSE] = list(page.vectors[n])
            body = self._marked(_points.chunk_payload(page, n, key, about))
            rows.append(models.PointStruct(id=chunk_id(self._name(key), n), vector=vectors, payload=body))
        await self._upsert(collection, rows)
        stale = models.Filter(
            must=self._own(digest=digest).must, must_not=[models.HasIdCondition(has_id=[row.id for row in rows])]
        )
        await self._client.delete(collection, models.FilterSelector(filter=stale), wait=True)

    async def _attach_url(self, collection: str, payload: Payload) -> None:
        """Lead one more URL to content that is there, or say something new of a URL that leads there already."""
        before = await self._find_source(payload["key"])
        await self._put_source(payload)
        sharing = await self._sources_sharing(payload["digest"], but=payload["key"])
        sources = [_points.strip_body(source) for source in (payload, *sharing)]
        sources.sort(key=lambda source: source["key"] != (before or {}).get("key"))
        await self._client.set_payload(collection, {"sources": sources}, points=self._own(digest=payload["digest"]), wait=True)
        if before is not None and before["digest"] != payload["digest"]:
            await self._detach_url(collection, before)

    async def _detach_url(self, collection: str, source: Payload) -> None:
        """A URL no longer leads to its content, which goes with the last of them."""
        await self._hand_over(collection, source)
        await self._drop_body(collection, source["digest"], source["key"])

    async def _hand_over(self, collection: str, source: Payload) -> None:
        """Content that other URLs lead to gets the ids of one of those."""
        others = await self._sources_sharing(source["digest"], but=source["key"])
        if not others:
            return
        heir, about = others[0]["key"], [_points.strip_body(other) for other in others]
        rows = []
        for p in await self._all_points(collection, self._own(digest=source["digest"]), vectors=True):
            name, payload = p.id, {**p.payload, "sources": about}
            if payload["owner"] == source["key"]:
                name, payload["owner"] = chunk_id(self._name(heir), payload["number"]), heir
            rows.append(models.PointStruct(id=name, vector=p.vector, payload=payload))
        await self._upsert(collection, rows)

    async def _upsert(self, collection: str, rows: Sequence[models.PointStruct]) -> None:
        for start in range(0, len(rows), PAGE):
            await self._client.upsert(collection, list(rows[start : start + PAGE]), wait=True)

    async def _drop_body(self, collection: str, digest: str, owner: str) -> None:
        await self._client.delete(collection, models.FilterSelector(filter=self._own(digest=digest, owner=owner)), wait=True)

    async def _put_source(self, payload: Payload) -> None:
        await self._put_point(self._name(payload["key"]), self._marked(payload))

    async def _put_point(self, name: str, payload: Payload) -> None:
        await self._upsert(self._sources, [models.PointStruct(id=source_id(name), vector={}, payload=payload)])

    async def _load_state(self) -> Payload:
        """Which collection is in use and which model made its vectors; the collections are there after this."""
        if self._person not in ("", TEAM):
            self._names = await asyncio.to_thread(self._list_owners)
            self._others = (TEAM, *self._names)
        if not self._ready:
            if not await self._client.collection_exists(self._sources):
                await self._create_collection(self._sources, {}, {}, _SOURCE_INDEXES)
            self._ready = True
        records = await self._client.retrieve(self._sources, [source_id("state")])
        state = dict(records[0].payload or {}) if records else {}
        if records and state.get("terms") == TERMS:
            return state
        if records:  # written by a version of nexi that cut words into terms in another way
            async for batch in self._scroll_batches(state["collection"]):
                rows = []
                for p in batch:
                    above = (p.payload["sources"][0]["title"], p.payload["heading"], p.payload["context"])
                    rows.append(models.PointVectors(id=p.id, vector={WORDS: _points.sparse_vector(*above, p.payload["text"])}))
                if rows:
                    await self._client.update_vectors(state["collection"], rows, wait=True)
        else:
            state = {"kind": "state", "embedder": "", "dims": 0, "collection": f"{self._prefix}_words"}
            await self._make_chunks(state)
        state = {**state, "terms": TERMS}
        await self._put_point("state", state)
        return state

    async def _claim_embedder(self, state: Payload, embedder: str, dims: int) -> Payload:
        """The first model gets a collection of its own, to which the chunks that are there move."""
        if state["dims"]:
            _same_embedder(state, embedder, dims)
            return state
        collection = f"{self._prefix}_{_points.slugify(embedder)}_{dims}"
        return await self._move_chunks(state, {"embedder": embedder, "dims": dims, "collection": collection})

    async def _move_chunks(self, state: Payload, changes: Payload) -> Payload:
        new = {**state, **changes}
        await self._make_chunks(new)
        async for records in self._scroll_batches(state["collection"], with_vectors=[WORDS]):
            if records:
                await self._client.upsert(new["collection"], [*map(_without_vector, records)], wait=True)
        await self._put_point("state", new)
        await self._client.delete_collection(state["collection"])
        return new

    async def _make_chunks(self, state: Payload) -> None:
        if await self._client.collection_exists(state["collection"]):
            return
        dense = models.VectorParams(size=state["dims"], distance=models.Distance.COSINE) if state["dims"] else None
        words = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        await self._create_collection(state["collection"], {DENSE: dense} if dense else {}, words, _CHUNK_INDEXES)

    async def _create_collection(
        self, name: str, vectors: Mapping[str, Any], words: Mapping[str, Any], indexes: Mapping[str, str]
    ) -> None:
        try:
            await self._client.create_collection(
                name, vectors_config=vectors, sparse_vectors_config=words or None, on_disk_payload=True, **self._cluster
            )
        except UnexpectedResponse as error:
            if error.status_code != CONFLICT:  # another process was first
                raise
        for field, kind in indexes.items():
            await self._client.create_payload_index(name, field, field_schema=models.PayloadSchemaType(kind), wait=True)
        if self._person:  # a tenant of the collection: its points are stored together
            tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            await self._client.create_payload_index(name, "person", field_schema=tenant, wait=True)

    async def _search_points(self, state: Payload, scope: Scope, **asked: Any) -> list[Passage]:
        response: Any = await self._client.query_points(
            state["collection"], query_filter=self._readable(_points.filter_chunks(scope)), with_payload=True, **asked
        )
        return [
            _points.build_passage(point, source, point.score, self._name_of_sharer(point.payload))
            for point in response.points
            if (source := _points.first_in_scope(point.payload["sources"], scope)) is not None
        ]

    async def _find_source(self, key: str) -> Payload | None:
        records = await self._client.retrieve(self._sources, [source_id(self._name(key))])
        return dict(records[0].payload or {}) if records else None

    async def _find_readable(self, key: str) -> Payload | None:
        """One's own source before the team's, and that before those of others."""
        source = await self._find_source(key)
        if source is None and self._person not in ("", TEAM):
            ids = [source_id(f"{person} {key}") for person in self._others]
            by_id = {point.id: point for point in await self._client.retrieve(self._sources, ids)}
            source = next((dict(by_id[each].payload or {}) for each in ids if each in by_id), None)
        return source

    async def _sources_sharing(self, digest: str, *, but: str) -> list[Payload]:
        records = await self._all_points(self._sources, self._own(digest=digest))
        return [dict(p.payload) for p in records if p.payload["key"] != but]

    async def _find_twin(self, digest: str) -> Payload | None:
        """A source of this person that has the same content."""
        records, _ = await self._client.scroll(self._sources, scroll_filter=self._own(digest=digest), limit=1)
        return records[0].payload if records else None

    async def _all_points(self, collection: str, within: models.Filter, *, vectors: bool = False) -> list[Any]:
        batches = self._scroll_batches(collection, scroll_filter=within, with_vectors=vectors)
        return [record async for batch in batches for record in batch]

    async def _scroll_batches(self, collection: str, **options: Any) -> AsyncIterator[list[Any]]:
        offset: Any = None
        while True:
            batch, offset = await self._client.scroll(collection, limit=PAGE, offset=offset, **options)
            yield list(batch)
            if offset is None:
                return


_KEYWORDS = ("digest", "owner", "sources[].key", "sources[].within", "sources[].languages", "sources[].tags")
_CHUNK_INDEXES = {
    **dict.fromkeys(_KEYWORDS, "keyword"),
    "number": "integer",
    "embedded": "bool",
    "is_code": "bool",
    "sources[].fetched": "float",
}
_SOURCE_INDEXES = {**dict.fromkeys(("kind", "key", "digest", "within", "languages", "tags"), "keyword"), "fetched": "float"}


def _without_vector(point: Any) -> models.PointStruct:
    """A chunk as it is before its vector is made."""
    return models.PointStruct(id=point.id, vector={WORDS: point.vector[WORDS]}, payload={**point.payload, "embedded": False})


def _filter_by(**values: str | bool) -> models.Filter:
    return models.Filter(must=[_points.match_value(key, value) for key, value in values.items()])


def _same_embedder(state: Payload, embedder: str, dims: int) -> None:
    if (state["embedder"], state["dims"]) != (embedder, dims):
        raise other_embedder(state["embedder"], state["dims"], embedder, dims)
