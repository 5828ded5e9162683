"""Knowledge: the store of one config, with what indexes into it and finds in it; nothing is opened until it is asked for.

What is known is also a search service and a fetcher, so that the loop and research use it like the web: a hit is a stored page
with the passages that matter. Who may ask for which address is `session`'s rule, not known here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers
from nexi.app.emit import QuietEmit
from nexi.app.factory import PortFactory
from nexi.app.gate import ModelGate
from nexi.config import Config
from nexi.errors import BackendError, FetchError, StoreError
from nexi.events import Fact, ToolFinished, Warned
from nexi.install import install_command
from nexi.knowledge.agentic import VARIABLES, KnowledgeSettings
from nexi.knowledge.indexing import Indexer, IndexQueue, IndexReport, embedded_text
from nexi.knowledge.retrieval import Retriever
from nexi.notices import Notice, join_sentences
from nexi.ports import Emit, KnowledgeStore
from nexi.text.chunking import PASSAGE_GAP
from nexi.text.scope import DocumentScope, asks_for_future, asks_for_past, find_periods, is_newer, order_versions, read_scope
from nexi.tools.specs import LOCAL_SEARCH
from nexi.tools.toolbox import ANSWERED_BEFORE_NOTE
from nexi.types import EVERYTHING, Chunk, FetchLimits, Hit, Page, Passage, Query, Scope, StoredSource
from nexi.urls import is_web_url

BATCH = 64
MEASURE_EVERY_S = 30.0
MAX_BATCH_SOURCES = 500
LOCAL_NAME = "local"
PASSAGES_PER_HIT = 3
MAX_PASSAGES = 60
MANY_VERSIONS = 8  # of one document among the results, from which there may be more
SPANS = {"d": 1, "w": 7, "m": 31, "y": 366}
HISTORY_LOOKED_AT = 200
DRAIN_S = 2.0  # how long a run waits at its end for pages that are still queued


def settings_of(config: Config) -> KnowledgeSettings:
    """The engine's settings out of the config's."""
    return KnowledgeSettings(**{name: getattr(config, variable.lower()) for variable, name in VARIABLES.items()})


class Knowledge:
    """Built by `PortFactory.knowledge` and closed with its clients."""

    def __init__(self, ports: PortFactory, *, store: KnowledgeStore | None = None, about: str = "") -> None:
        """`about` says to a model what is in a store that is not what nexi knows."""
        self.config, self.clock, self.history = ports.config, ports.clock, ports.history
        self.about, self._ports, self._store = about, ports, store
        self.is_remote = bool(ports.config.qdrant_url)
        self._vectors: bool | None = None
        self._size, self._measure_at = 0, 0.0

    async def aclose(self) -> None:
        if self._store:
            await self._store.aclose()

    # what it is made of

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
            title=_title_with_owner(source.title, source.owner),
            language=source.language,
            published=source.published,
            updated=source.updated,
            fetched_at=source.fetched_at,
            fetcher=LOCAL_NAME,
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


def _title_with_owner(title: str, owner: str) -> str:
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


# what is known, as a search service and as a fetcher


class LocalBackend:
    """The SearchBackend port over the knowledge store. `scope` narrows every search, to a user's files for instance."""

    name = LOCAL_NAME
    local = True
    filters = frozenset(("site", "time", "language"))

    def __init__(
        self, knowledge: Knowledge, gate: ModelGate, scope: Scope = EVERYTHING, *, is_about_question: bool = False
    ) -> None:
        """`is_about_question` says that what is stored came with the question: it is what a search without results returns."""
        self._knowledge, self._gate, self._scope = knowledge, gate, scope
        self._is_about_question = is_about_question

    async def search(self, query: Query) -> list[Hit]:
        days = SPANS.get(query.time_range, 0)
        scope = replace(
            self._scope,
            domains=tuple(map(_domain_of, query.sites)),
            excluded_domains=tuple(map(_domain_of, query.excluded_sites)),
            languages=(query.language,) if query.language else (),
            since=(self._knowledge.clock.now() - timedelta(days=days)).isoformat() if days else "",
        )
        try:
            retriever = await self._knowledge.retriever(self._gate)
            passages = await retriever.search(query.text, scope, min(MAX_PASSAGES, query.count * PASSAGES_PER_HIT))
            if newest := await self._find_newest(query.text, scope, passages):
                passages = [*await retriever.search(query.text, replace(scope, urls=(newest,)), PASSAGES_PER_HIT), *passages]
            groups: dict[str, list[Passage]] = {}
            for passage in passages:
                groups.setdefault(passage.url, []).append(passage)
            pages = list(groups.values())
            # one hit a page, the best first and the newest of several versions
            order = order_versions(query.text, [self._read_scope(page[0], query.text) for page in pages])
            if pages or not self._is_about_question:
                return [_make_hit(pages[n]) for n in order[: query.count]]
            sources = [source async for source in self._knowledge.sources(scope)]
            return [_hit_of_page(source) for source in sources[: query.count]]
        except StoreError as error:
            raise BackendError(error.message, cause=error.cause, fix=error.fix, code=error.code) from error

    async def _find_newest(self, question: str, scope: Scope, passages: Sequence[Passage]) -> str:
        """The newest version of the best page, where so many versions were found that it may not be among them; "" for none."""
        pages = {p.url: self._read_scope(p, question) for p in passages}
        best = next(iter(pages), "")
        family = [url for url, own in pages.items() if own.is_of_family(pages[best])]
        if len(family) < MANY_VERSIONS or asks_for_past(question) or find_periods(question):
            return ""
        scopes = {source.url: self._read_scope(source, question) async for source in self._knowledge.sources(scope)}
        versions = {url: own for url, own in {**pages, **scopes}.items() if own.is_of_family(pages[best]) and not own.standing}
        newest = best if best in versions else ""
        for url, own in versions.items():
            newest = url if newest and is_newer(own, versions[newest]) else newest
        return "" if newest in pages else newest

    def _read_scope(self, source: Passage | StoredSource, question: str) -> DocumentScope:
        head = source.text if isinstance(source, Passage) and source.number == 0 else ""
        today = "" if asks_for_future(question) else self._knowledge.clock.now().date().isoformat()
        return read_scope(source.title, source.url, head, (source.updated or source.published)[:10], today)


class LocalFetcher:
    """The ContentFetcher port over the knowledge store."""

    name = LOCAL_NAME

    def __init__(self, knowledge: Knowledge, only: Container[str] | None = None) -> None:
        """`only` are the addresses it may answer for: others are left to the web, which has them as they are now."""
        self._knowledge, self._only = knowledge, only

    async def fetch(self, url: str, limits: FetchLimits) -> Page:
        if self._only is not None and url not in self._only:
            raise FetchError("the page is not asked of the knowledge store", cause="no search of it brought it up")
        try:
            page = await self._knowledge.page(url)
        except StoreError as error:
            raise FetchError(error.message, cause=error.cause, fix=error.fix) from error
        if page is None:
            raise FetchError("the page is not in the knowledge store", cause="it was never stored, or it was removed")
        return page


def _domain_of(site: str) -> str:
    return site.partition("/")[0].removeprefix("www.")


def _hit_of_page(source: StoredSource) -> Hit:
    return Hit(source.url, _title_with_owner(source.title, source.owner), "", source.published, LOCAL_NAME)


def _make_hit(passages: Sequence[Passage]) -> Hit:
    """The hit of one page, with its best passages in the order of the page, each under its heading."""
    first, texts = passages[0], []
    for passage in sorted(passages[:PASSAGES_PER_HIT], key=lambda p: p.number):
        is_named = passage.heading.rpartition(" > ")[2] in passage.text[:250]
        texts.append(passage.text if is_named else f"# {passage.heading}\n\n{passage.text}")
    return Hit(first.url, _title_with_owner(first.title, first.owner), PASSAGE_GAP.join(texts), first.published, LOCAL_NAME)


async def pages_answered_before(knowledge: Knowledge, question: str) -> tuple[Hit, ...]:
    """The pages from which this very question was answered, while all of them are stored and none is out of date."""
    try:
        history = await asyncio.to_thread(knowledge.history().read, HISTORY_LOOKED_AT)
        same = (e for e in history.entries if _normalise_question(e.query) == _normalise_question(question))
        urls = next((entry.urls for entry in same if extract_citation_markers(entry.answer)), ())
        store = await knowledge.open_store() if urls else None
        rows = [await store.source(url) for url in urls] if store else []
    except StoreError:
        return ()
    sources = [source for source in rows if source]
    oldest = knowledge.clock.now() - timedelta(seconds=knowledge.config.page_cache_ttl_s)
    if not sources or len(sources) < len(urls) or not all(_is_fresh(source, oldest) for source in sources):
        return ()
    return tuple(map(_hit_of_page, sources))


def recorded_pages_answered_before(facts: Iterable[Fact]) -> tuple[Hit, ...] | None:
    """The same as a run was told of it, from its log; None where it had not asked yet."""
    searches = [fact for fact in facts if isinstance(fact, ToolFinished) and fact.name == LOCAL_SEARCH.name]
    if not searches:
        return None
    try:
        reply = json.loads(searches[0].text)
        pages = reply["pages"] if reply["note"] == ANSWERED_BEFORE_NOTE else ()
        return tuple(Hit(str(page["url"]), str(page.get("title", "")), "", "", LOCAL_NAME) for page in pages)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _normalise_question(question: str) -> str:
    return " ".join(question.split()).casefold().rstrip(" ?!.")


def _is_fresh(source: StoredSource, oldest: datetime) -> bool:
    """The user's own files are as old as they are; a page of the web grows old as it does in the page cache."""
    if source.url.startswith("file:"):
        return True
    try:
        return datetime.fromisoformat(source.fetched_at) >= oldest
    except (ValueError, TypeError):
        return False


class PageIndexer:
    """Stores the pages a run reads in the knowledge base, which is opened with the first page, in the background. A store that
    fails is said once and left alone for the rest of the run."""

    def __init__(self, gate: ModelGate, tasks: asyncio.TaskGroup, *, is_enabled: bool) -> None:
        self._gate, self._tasks, self._is_enabled, self._given_up = gate, tasks, is_enabled, False
        self._queue: IndexQueue | None = None

    def index_page(self, page: Page) -> None:
        """Queue a page; never waits."""
        if not self._is_enabled:
            return
        if self._queue is None:
            self._gate = self._gate.for_indexing()
            self._queue = IndexQueue(self.index, tasks=self._tasks, emit=self._gate.emit)
        self._queue.offer(page)

    async def index(self, page: Page, tags: Sequence[str] = ()) -> IndexReport:
        if self._given_up or page.fetcher == LOCAL_NAME or not is_web_url(page.url) or not page.text.strip():
            return IndexReport(page.url, "empty")
        try:
            knowledge = self._gate.ports.knowledge()
            await knowledge.require_room()
            embeds = await knowledge.embeds_behind_a_run()
            indexer = await knowledge.indexer(self._gate, emit=QuietEmit(warn=self._gate.emit), embeds=embeds)
            return await indexer.index(page, tags)
        except Exception as error:  # noqa: BLE001 - the edge of a background task: a fault in it must not end the run
            return await self._give_up(error, page)

    async def _give_up(self, error: Exception, page: Page) -> IndexReport:
        self._given_up = True
        fix = getattr(error, "fix", "")
        message = Notice("store.not_kept", "what this run reads is not kept in the knowledge store: {error}", error=str(error))
        await self._gate.emit(Warned("not_indexed", join_sentences(message, fix), cause=fix))
        return IndexReport(page.url, "empty")

    async def close(self, *, at_once: bool = False) -> None:
        """Store what is queued, but not for long, and not at all when the user stopped the run."""
        if self._queue:
            await self._queue.drain(0 if at_once else DRAIN_S)
