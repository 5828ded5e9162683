"""Pages into the knowledge store: cut, put in context, embedded, stored whole.

Above sit the agentic search, the doors that index files, and the run that keeps what it reads; below are the ports of the
store, the embedder and a model. It decides when a page is new. It refuses to know how passages are found again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import LLMError, StoreError
from nexi.events import PageIndexed, StatusDelta, Warned
from nexi.notices import Notice, join_sentences
from nexi.ports import LLM, Clock, Embedder, Emit, KnowledgeStore
from nexi.prompts import render
from nexi.text.blocks import parse_blocks
from nexi.text.chunking import SIZE, chunk_markdown, heading_path
from nexi.types import SPACE_TAG, Chunk, IndexedPage, Message, Page, StoredSource, Vector
from nexi.urls import host_of

__all__ = ["IndexQueue", "IndexReport", "Indexer", "embedded_text"]

BATCH = 20
MAX_PARALLEL = 8
MAX_CHUNKS = 30_000
MAX_EMBEDDED_CHARS = 8_000
CONTEXT_CHARS = 6_000
CONTEXT_TOKENS = 120
MAX_CONTEXT = 400
LONG = 100_000  # characters; cutting so many takes a few milliseconds
LEAD_WITHIN = 4_000
LEAD_CHARS = 150
MIN_LEAD_CHARS = 40
PLAIN_CODE = "code"  # the language of a fence that names none

Outcome = Literal["stored", "unchanged", "linked", "empty"]


class IndexReport(Struct, frozen=True):
    """What became of one page. `embedded` counts chunks; `failures` say what some chunks lack, and why."""

    url: str
    outcome: Outcome
    chunks: int = 0
    embedded: int = 0
    failures: tuple[str, ...] = ()


class _New(Struct, frozen=True):
    """A page that is not stored yet, cut."""

    page: Page
    source: StoredSource
    chunks: tuple[Chunk, ...]


@dataclass(eq=False)
class Indexer:
    """`context_llm` is given only where contextual embeddings are enabled."""

    store: KnowledgeStore
    _: KW_ONLY
    emit: Emit
    clock: Clock
    embedder: Embedder | None = None
    context_llm: LLM | None = None
    chunk_size: int = SIZE
    prompts_folder: Path | None = None

    async def index(self, page: Page, tags: Sequence[str] = ()) -> IndexReport:
        """Store one page unless it is there already. Raises StoreError."""
        [report] = await self.index_all([page], tags)
        return report

    async def index_all(self, pages: Sequence[Page], tags: Sequence[str] | None = None) -> list[IndexReport]:
        """Store several pages, all or none; without tags, a known page keeps those it has. Raises StoreError."""
        started = self.clock.monotonic()
        reports = await self._index_all(pages, None if tags is None else tuple(tags))
        seconds = round((self.clock.monotonic() - started) / max(1, len(pages)), 3)
        for report in reports:
            await self.emit(PageIndexed(report.url, report.outcome, report.chunks, report.embedded, seconds))
            for failure in report.failures:
                await self.emit(Warned("index_incomplete", failure))
        return reports

    async def is_known(self, url: str, max_age_days: int = 0) -> bool:
        """Whether the page under this URL is stored, and was read within `max_age_days` unless that is 0."""
        source = await self.store.source(url)
        if source is None or not max_age_days or not source.fetched_at:
            return source is not None
        try:
            age = self.clock.now() - datetime.fromisoformat(source.fetched_at)
        except (ValueError, TypeError):
            return True
        return age.total_seconds() <= max_age_days * 86_400

    async def stored_text(self, url: str) -> tuple[str, str]:
        """The title and text of a stored page; empty where it is not stored."""
        passages = await self.store.passages(url)
        return (passages[0].title, "\n\n".join(p.text for p in passages)) if passages else ("", "")

    async def _index_all(self, pages: Sequence[Page], tags: tuple[str, ...] | None) -> list[IndexReport]:
        """Copies within the batch come after the rest is stored, so that they are found there."""
        reports: dict[int, IndexReport] = {}
        new: dict[int, _New] = {}
        batch_marks: set[str] = set()
        for number, page in enumerate(pages):
            digest = page.digest
            if not batch_marks.isdisjoint(marks := {page.url, digest}):
                continue
            batch_marks |= marks
            outcome = await self._examine_page(page, digest, tags)
            if isinstance(outcome, IndexReport):
                reports[number] = outcome
            else:
                new[number] = outcome
        reports |= dict(zip(new, await self._store_pages(list(new.values())), strict=True))
        for number in range(len(pages)):
            if number not in reports:
                [reports[number]] = await self._index_all(pages[number : number + 1], tags)
        return [reports[number] for number in range(len(pages))]

    async def _examine_page(self, page: Page, digest: str, new_tags: tuple[str, ...] | None) -> IndexReport | _New:
        """What became of a page that need not be stored, else its chunks."""
        if not page.text.strip():
            return IndexReport(page.url, "empty")
        former = await self.store.source(page.url)
        tags = _merge_tags(new_tags, former.tags if former else ())
        tags = tuple(sorted({*page.tags, *(tag for tag in tags if not tag.startswith("#"))}))
        about = (digest, page.title, tags, page.published, page.updated)
        if former and (former.digest, former.title, former.tags, former.published, former.updated) == about:
            return IndexReport(page.url, "unchanged", former.chunk_count)
        if len(page.text) < LONG:
            chunks = cut_text(page.text, self.chunk_size)
        else:  # in a thread, so that the event loop is not blocked
            chunks = await asyncio.to_thread(cut_text, page.text, self.chunk_size)
        source = StoredSource(
            url=page.url,
            title=page.title,
            domain=host_of(page.url),
            language=page.language,
            fetched_at=page.fetched_at or self.clock.now().isoformat(),
            digest=digest,
            chunk_count=len(chunks),
            words=len(page.text.split()),
            tags=tags,
            published=page.published,
            updated=page.updated,
        )
        if await self.store.link(source):
            return IndexReport(page.url, "linked", len(chunks))
        return _New(page, source, chunks)

    async def _store_pages(self, new: Sequence[_New]) -> list[IndexReport]:
        """The pages, in context and with vectors, all in one put."""
        in_context = [await self._in_context(one.page, one.chunks) for one in new]
        rows = zip(new, in_context, strict=True)
        texts = [embedded_text(one.page.title, chunk) for one, (chunks, _) in rows for chunk in chunks]
        vectors, refusal = await self._embed_texts(new[0].page.title if len(new) == 1 else f"{len(new)} pages", texts)
        indexed_pages: list[IndexedPage] = []
        reports: list[IndexReport] = []
        at = 0
        for one, (chunks, failures) in zip(new, in_context, strict=True):
            own = vectors[at : at + len(chunks)]
            at += len(chunks)
            indexed_pages.append(IndexedPage(one.source, chunks, own))
            reports.append(IndexReport(one.page.url, "stored", len(chunks), len(own), (*failures, *refusal)))
        if indexed_pages:
            await self.store.put(indexed_pages, embedder=self.embedder.name if self.embedder and vectors else "")
        return reports

    async def _in_context(self, page: Page, chunks: tuple[Chunk, ...]) -> tuple[tuple[Chunk, ...], tuple[str, ...]]:
        """The chunks with a line of context each, where a model wrote one, and what is said of those without."""
        llm = self.context_llm
        if llm is None:
            return chunks, ()
        limit = asyncio.Semaphore(MAX_PARALLEL)
        async with asyncio.TaskGroup() as tasks:
            requests = [tasks.create_task(self._describe_context(llm, page, chunk, limit)) for chunk in chunks]
        lines = [task.result() for task in requests]
        without_line = sum(not line for line in lines)
        lack = Notice(
            "index.no_context", "{n} of {m} chunks of {page} have no context line", n=without_line, m=len(chunks), page=page.url
        )
        in_context = tuple(replace(chunk, context=line) if line else chunk for chunk, line in zip(chunks, lines, strict=True))
        return in_context, (lack,) if without_line else ()

    async def _describe_context(self, llm: LLM, page: Page, chunk: Chunk, limit: asyncio.Semaphore) -> str:
        beginning, part = page.text[:CONTEXT_CHARS], chunk.text[:CONTEXT_CHARS]
        request = f"Page: {page.title}\n\n{beginning}\n\n---\nChunk ({chunk.heading}):\n\n{part}"
        messages = [Message("system", render("chunk_context", folder=self.prompts_folder)), Message("user", request)]
        async with limit:
            try:
                reply = await llm.complete(messages, max_tokens=CONTEXT_TOKENS, temperature=0.0)
            except LLMError:
                return ""
        return " ".join(reply.text.split())[:MAX_CONTEXT]

    async def _embed_texts(self, title: str, texts: Sequence[str]) -> tuple[tuple[Vector, ...], tuple[str, ...]]:
        """A vector for each text, or none at all and the reason: words still find what no vector does."""
        if self.embedder is None:
            return (), ()
        vectors: list[Vector] = []
        try:
            for start in range(0, len(texts), BATCH):
                vectors += (await self.embedder.embed(texts[start : start + BATCH])).vectors
                if len(texts) > BATCH:
                    self.emit.delta(StatusDelta(f"Embedding {title[:60] or 'a page'}: {len(vectors)} of {len(texts)}"))
        except (LLMError, StoreError) as error:
            return (), (Notice("index.no_vectors", "the vectors of a page were not made: {error}", error=str(error)),)
        return tuple(vectors), ()


def _merge_tags(new_tags: tuple[str, ...] | None, former_tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of a page that is indexed again: new ones replace the old, but it stays in the spaces it is in."""
    spaces = {tag for tag in (*(new_tags or ()), *former_tags) if tag.startswith(SPACE_TAG)}
    own = [tag for tag in new_tags or () if tag not in spaces] or [tag for tag in former_tags if tag not in spaces]
    if new_tags is None or not spaces:
        return former_tags if new_tags is None else new_tags
    return tuple(sorted({*own, *spaces}))


def cut_text(text: str, size: int = SIZE, max_chunks: int = MAX_CHUNKS) -> tuple[Chunk, ...]:
    """The chunks of a text as they are stored; a text of very many gets larger ones."""
    # The context of a chunk is what the page begins with, unless it is the beginning itself: a later part then is still found
    # by what the page is about.
    pieces = chunk_markdown(text, max(size, len(text) // max_chunks))
    begins, lead = 0, ""
    for block in parse_blocks(text[:LEAD_WITHIN]):
        if block.kind == "prose" and len(line := text[block.start : block.end].partition("\n")[0]) >= MIN_LEAD_CHARS:
            begins, lead = block.start, line[:LEAD_CHARS].strip()
            break
    chunks = []
    for p in pieces:
        code = (p.languages[0] if p.languages else PLAIN_CODE) if p.has_code else ""
        chunks.append(Chunk(p.text, heading_path(p.headings), lead if p.start > begins else "", code, p.start))
    return tuple(chunks)


def embedded_text(title: str, chunk: Chunk) -> str:
    """What is embedded for a chunk: its place, its context, its text."""
    head = " > ".join(part for part in (title, chunk.heading) if part)
    return "\n".join(part for part in (head, chunk.context, chunk.text) if part)[:MAX_EMBEDDED_CHARS]


class IndexQueue:
    """Indexes what a run reads, behind its back: `offer` never waits, `drain` ends it within a deadline.

    The run's task group owns the one worker. A page that finds the queue full, or is left when the deadline comes, is
    not stored, and that is said; its text is in the page store all the same.
    """

    def __init__(
        self, index: Callable[[Page], Awaitable[IndexReport]], *, tasks: asyncio.TaskGroup, emit: Emit, size: int = 64
    ) -> None:
        self._index, self._emit = index, emit
        self._waiting: asyncio.Queue[Page] = asyncio.Queue(size)
        self._idle = asyncio.Event()
        self._idle.set()
        self._open = 0
        self._worker = tasks.create_task(self._index_queued(), name="index what was read")

    def offer(self, page: Page) -> bool:
        """Take a page for later; False when there is no room."""
        self._open += 1
        try:
            self._waiting.put_nowait(page)
        except asyncio.QueueFull:
            return False
        self._idle.clear()
        return True

    async def drain(self, seconds: float) -> None:
        """Wait until every page is stored, but no longer than this, and end the worker."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        self._worker.cancel()
        if self._open:
            unstored = Notice(
                "pages.not_stored", "{n} of the pages that were read are not in the knowledge store", n=self._open
            )
            await self._emit(Warned("not_indexed", unstored))

    async def _index_queued(self) -> None:
        while True:
            page = await self._waiting.get()
            try:
                await self._index(page)
                self._open -= 1
            except StoreError as error:
                fault = Notice("page.not_stored", "{page} was not stored: {error}", page=page.url, error=str(error))
                await self._emit(Warned("store", join_sentences(fault, error.fix)))
            if self._waiting.empty():
                self._idle.set()
