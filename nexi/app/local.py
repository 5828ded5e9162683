"""What is known, as a search service and as a fetcher, so that the loop and research use it like the web.

A hit is a stored page with the passages that matter. Who may ask for which address is `session`'s rule, not known here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from nexi.answers.citations import extract_citation_markers
from nexi.app.emit import QuietEmit
from nexi.app.gate import ModelGate
from nexi.app.knowledge import Knowledge, title_with_owner
from nexi.errors import BackendError, FetchError, StoreError
from nexi.events import Fact, ToolFinished, Warned
from nexi.knowledge.indexing import IndexQueue, IndexReport
from nexi.notices import Notice, join_sentences
from nexi.text.chunking import PASSAGE_GAP
from nexi.text.scope import DocumentScope, asks_for_future, asks_for_past, find_periods, is_newer, order_versions, read_scope
from nexi.tools.specs import LOCAL_SEARCH
from nexi.tools.toolbox import ANSWERED_BEFORE_NOTE
from nexi.types import EVERYTHING, FetchLimits, Hit, Page, Passage, Query, Scope, StoredSource
from nexi.urls import is_web_url

NAME = "local"
PASSAGES_PER_HIT = 3
MAX_PASSAGES = 60
MANY_VERSIONS = 8  # of one document among the results, from which there may be more
SPANS = {"d": 1, "w": 7, "m": 31, "y": 366}
HISTORY_LOOKED_AT = 200
DRAIN_S = 2.0  # how long a run waits at its end for pages that are still queued


class LocalBackend:
    """The SearchBackend port over the knowledge store. `scope` narrows every search, to a user's files for instance."""

    name = NAME
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

    name = NAME

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
    return Hit(source.url, title_with_owner(source.title, source.owner), "", source.published, NAME)


def _make_hit(passages: Sequence[Passage]) -> Hit:
    """The hit of one page, with its best passages in the order of the page, each under its heading."""
    first, texts = passages[0], []
    for passage in sorted(passages[:PASSAGES_PER_HIT], key=lambda p: p.number):
        is_named = passage.heading.rpartition(" > ")[2] in passage.text[:250]
        texts.append(passage.text if is_named else f"# {passage.heading}\n\n{passage.text}")
    return Hit(first.url, title_with_owner(first.title, first.owner), PASSAGE_GAP.join(texts), first.published, NAME)


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
        return tuple(Hit(str(page["url"]), str(page.get("title", "")), "", "", NAME) for page in pages)
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
        if self._given_up or page.fetcher == NAME or not is_web_url(page.url) or not page.text.strip():
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
