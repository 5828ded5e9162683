"""Knowledge: the store of one config, with what indexes into it and finds in it; nothing is opened until it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate
from nexi.config import Config
from nexi.errors import StoreError
from nexi.install import install_command
from nexi.knowledge.agentic import VARIABLES, KnowledgeSettings
from nexi.knowledge.indexing import Indexer, embedded_text
from nexi.knowledge.retrieval import Retriever
from nexi.ports import Emit, KnowledgeStore
from nexi.types import EVERYTHING, Chunk, Page, Passage, Scope, StoredSource

BATCH = 64
MEASURE_EVERY_S = 30.0
MAX_BATCH_SOURCES = 500


def settings_of(config: Config) -> KnowledgeSettings:
    """The engine's settings out of the config's."""
    return KnowledgeSettings(**{name: getattr(config, variable.lower()) for variable, name in VARIABLES.items()})


class Knowledge:
    """Built by `PortFactory.knowledge` and closed with its clients."""

    def __init__(self, ports: PortFactory, *, store: KnowledgeStore | None = None, about: str = "") -> None:
        """`about` says to a model what is in a store that is not what nexi knows."""
        self.config, self.clock, self.history = ports.config, ports.clock, ports.history
        self.about, self._ports, self._store = about, ports, store
        self._vectors: bool | None = None
        self._size, self._measure_at = 0, 0.0

    async def aclose(self) -> None:
        if self._store:
            await self._store.aclose()

    # what it is made of

    @property
    def is_remote(self) -> bool:
        return bool(self.config.qdrant_url)

    def may_hold_something(self) -> bool:
        """Whether there is a store at all, said without opening it."""
        has_server = self.is_remote or self._ports.shared.state is not None
        return self._store is not None or has_server or self.config.knowledge_path.exists()

    async def check_journal(self) -> None:
        """Raise StoreError where a running process writes into a journal that was removed; opens nothing."""
        if self._store is None and not self.is_remote and self._ports.shared.state is None:
            from nexi.stores.salvage import check_journal

            await asyncio.to_thread(check_journal, self.config.knowledge_path)

    async def holds_something(self) -> bool:
        """Whether a page is stored."""
        try:
            return self.may_hold_something() and await self.first_source() is not None
        except StoreError:
            return True  # asking it says why it cannot be read

    async def first_source(self) -> StoredSource | None:
        """The page that was stored last. Raises StoreError."""
        return next(iter(await (await self.open_store()).sources(count=1)), None)

    async def open_store(self) -> KnowledgeStore:
        """The store, its libraries loaded off the event loop. Raises StoreError."""
        if self._store is None:
            store = await asyncio.to_thread(self._make_store)
            self._store = self._store or store
        return self._store

    def _make_store(self) -> KnowledgeStore:
        config, state = self.config, self._ports.shared.state
        if config.qdrant_url:
            remote: KnowledgeStore = _open_qdrant(config, state.knowledge_sharing.list_owners if state else dict)
            return remote
        if state:
            return state.knowledge
        from nexi.stores.sqlite import SqliteStore

        return SqliteStore(config.knowledge_path)

    async def has_vectors(self) -> bool:
        """Whether the store has vectors to compare with; loading an embedder for none would only cost time."""
        if not self._vectors:
            self._vectors = bool((await (await self.open_store()).stats()).embedder)
        return self._vectors

    # what works with it

    async def retriever(self, gate: ModelGate) -> Retriever:
        """What finds passages; the models that help it are asked through the gate of whoever searches."""
        config, store = self.config, await self.open_store()
        compares = config.use_hybrid_search and await self.has_vectors()
        return Retriever(
            store,
            emit=gate.emit,
            clock=self.clock,
            embedder=await gate.open_embedder() if compares else None,
            code_aware=config.use_agentic_rag,
            reranker=gate.open_judge("rerank") if config.use_reranking else None,
            prompts_folder=config.prompts_dir,
        )

    async def indexer(self, gate: ModelGate, *, emit: Emit | None = None, embeds: bool = True) -> Indexer:
        """`embeds` is False where the words are enough for now: `embed_the_rest` makes up for it."""
        config, store = self.config, await self.open_store()
        return Indexer(
            store,
            emit=emit or gate.emit,
            clock=self.clock,
            embedder=await gate.open_embedder() if embeds else None,
            context_llm=gate.open_context_llm() if config.use_contextual_embeddings else None,
            chunk_size=config.knowledge_chunk_size,
            prompts_folder=config.prompts_dir,
        )

    async def embeds_behind_a_run(self) -> bool:
        """Whether what a run reads is embedded at once: where an endpoint is named, or where vectors are in use already."""
        return self.config.embedding_endpoint() is not None or await self.has_vectors()

    async def embed_the_rest(self, gate: ModelGate, *, afresh: bool = False) -> AsyncIterator[int]:
        """Give every chunk its vector, in batches, and say how many got one; `afresh` replaces those of another model."""
        store, embedder = await self.open_store(), await gate.open_embedder()
        if afresh and embedder:
            await store.prepare_reembedding(embedder.name)
        while embedder and (passages := await store.list_unembedded(BATCH)):
            texts = [embedded_text(p.title, Chunk(p.text, p.heading, p.context, p.code, p.start)) for p in passages]
            vectors = (await embedder.embed(texts)).vectors
            await store.add_vectors({p.id: v for p, v in zip(passages, vectors, strict=True)}, embedder=embedder.name)
            yield len(passages)
        self._vectors = None

    # pages out of it

    async def page(self, url: str) -> Page | None:
        """A stored page with its text: as it was read where that is kept, else put together from its chunks."""
        store = await self.open_store()
        source = await store.source(url)
        if source is None:
            return None
        text = await self._ports.pages().get(source.digest) if source.digest else None
        return Page(
            source.url,
            _join_passages(await store.passages(url)) if text is None else text,
            title=title_with_owner(source.title, source.owner),
            language=source.language,
            published=source.published,
            updated=source.updated,
            fetched_at=source.fetched_at,
            fetcher="local",
        )

    async def sources(self, scope: Scope = EVERYTHING) -> AsyncIterator[StoredSource]:
        store, skip = await self.open_store(), 0
        while batch := await store.sources(scope, count=MAX_BATCH_SOURCES, skip=skip):
            for source in batch:
                yield source
            skip += len(batch)

    async def is_full(self) -> bool:
        """Whether the store has reached its bound; Qdrant keeps its own."""
        most = self.config.knowledge_max_mb
        if not most or self.is_remote:
            return False
        if self._ports.shared.state:  # counting all of it for each page would cost more than storing the page
            if self.clock.monotonic() >= self._measure_at:
                self._measure_at = self.clock.monotonic() + MEASURE_EVERY_S
                self._size = (await (await self.open_store()).stats()).bytes
            return self._size > most * 1_000_000
        from nexi.stores.salvage import size_of

        path = self.config.knowledge_path
        return await asyncio.to_thread(lambda: path.exists() and size_of(path) > most * 1_000_000)

    async def require_room(self) -> None:
        """Raise StoreError where the store is full."""
        if await self.is_full():
            most = self.config.knowledge_max_mb
            fix = f"forget some of it with nexi sources rm, or: nexi config set knowledge_max_mb {most * 2}"
            raise StoreError("the knowledge store is full", cause=f"it has reached knowledge_max_mb, which is {most}", fix=fix)


def title_with_owner(title: str, owner: str) -> str:
    """The title as a reader sees it: what is somebody else's says whose it is."""
    return f"{title} (shared by {owner})" if owner else title


def _join_passages(passages: list[Passage]) -> str:
    """The text of a page from its chunks, each at its place; what was between them were line ends."""
    parts: list[str] = []
    at = 0
    for passage in passages:
        parts.append("\n" * max(0, min(2, passage.start - at)) + passage.text)
        at = passage.start + len(passage.text)
    return "".join(parts).strip()


def _open_qdrant(config: Config, list_owners: Callable[[], Mapping[str, str]] = dict) -> Any:
    try:
        from nexi.stores.qdrant import QdrantStore
    except ImportError as error:
        cause, fix = f"{error.name} is not installed", f"Install it: {install_command('qdrant')}"
        raise StoreError("Qdrant cannot be asked", cause=cause, fix=fix) from error
    return QdrantStore.at(
        config.qdrant_url,
        api_key=next(iter(config.keys_for("qdrant")), ""),
        shards=config.qdrant_shards or None,
        replicas=config.qdrant_replicas,
        person=config.person,
        list_owners=list_owners,
    )


def open_knowledge_of(ports: PortFactory, owner_id: str) -> Knowledge:
    """The knowledge base of another person of the team, for what she shares of it."""
    shared, key = ports.shared, ("of another", owner_id, ports.config.qdrant_url)
    if key not in shared.knowledge and shared.state:
        is_remote = bool(ports.config.qdrant_url)
        store = _open_qdrant(ports.config.for_person(owner_id)) if is_remote else shared.state.knowledge_of(owner_id)
        shared.knowledge[key] = shared.close_later(Knowledge(ports, store=store))
    return shared.knowledge[key]


async def remove_remote_knowledge(config: Config) -> None:
    """Delete what Qdrant has of the person of a config. Raises StoreError."""
    store = _open_qdrant(config)
    try:
        await store.remove_person()
    finally:
        await store.aclose()


@asynccontextmanager
async def open_temporary_knowledge(ports: PortFactory, about: str) -> AsyncIterator[Knowledge]:
    """An empty knowledge base in a file of its own, deleted with the block."""
    import tempfile

    from nexi.stores.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(prefix="nexi-knowledge-", ignore_cleanup_errors=True) as folder:
        knowledge = Knowledge(ports, store=SqliteStore(Path(folder) / "knowledge.db"), about=about)
        try:
            yield knowledge
        finally:
            await knowledge.aclose()
