"""The agentic search: look at what is known, and go to the web only for what is missing.

    check the store -> enough? -> search -> rank -> read the promising -> index -> check -> enough? -> refine -> search ...

It decides when to stop, never how to find, read or judge. It answers with the seed's JSON, whatever fails below it.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import ConfigError, FetchError, QuestionError, StoreError
from nexi.events import Warned
from nexi.knowledge.coverage import find_bridge, find_open_parts, score_next_hop
from nexi.knowledge.indexing import Indexer, IndexReport
from nexi.knowledge.judge import TOP, AgenticJudge
from nexi.knowledge.retrieval import Retriever
from nexi.notices import Notice, join_sentences
from nexi.ports import Emit
from nexi.routing.fusion import by_reciprocal_rank
from nexi.structured.ranking import Assessment
from nexi.text.chunking import count_code_blocks, headings_of
from nexi.text.words import content_words, find_words
from nexi.types import EVERYTHING, Hit, Page, Passage, Query, Scope, SearchOutcome
from nexi.urls import hit_key

__all__ = ["RANGES", "VARIABLES", "AgenticSearch", "KnowledgeSettings", "Web"]

RESULTS_PER_SEARCH = 10
MAX_TOPICS = 8
MAX_HEADERS = 30
HEADING_WEIGHT = 5

Status = Literal["complete", "max_iterations_reached", "error"]


class KnowledgeSettings(Struct, frozen=True):
    """The settings of a knowledge search, with the seed's defaults: AGENTIC_SEARCH_* are the first ten, USE_* four more."""

    enabled: bool = True
    completeness_threshold: float = 0.8
    max_iterations: int = 3
    max_urls_per_iteration: int = 3
    url_score_threshold: float = 0.7
    use_search_hints: bool = False
    llm_temperature: float = 0.3
    max_qdrant_results: int = 10
    concurrency: int = 3
    max_page_age_days: int = 30
    use_contextual_embeddings: bool = False
    use_hybrid_search: bool = True
    use_reranking: bool = False
    use_agentic_rag: bool = False
    follows_pages: bool = True  # without a model; a run recorded before this goes on as it began


_NAMES = KnowledgeSettings.__struct_fields__
VARIABLES = {f"AGENTIC_SEARCH_{name.upper()}": name for name in _NAMES[:10]} | {name.upper(): name for name in _NAMES[10:14]}
RANGES = {
    "completeness_threshold": (0.0, 1.0),
    "url_score_threshold": (0.0, 1.0),
    "llm_temperature": (0.0, 2.0),
    "max_iterations": (1, 20),
    "max_urls_per_iteration": (1, 20),
    "max_qdrant_results": (1, 100),
    "concurrency": (1, 20),
    "max_page_age_days": (0, 36_500),
}


class Web(Struct, frozen=True):
    """The outside: `search` never raises and names what failed, `read` raises FetchError."""

    search: Callable[[Query], Awaitable[SearchOutcome]]
    read: Callable[[str], Awaitable[Page]]


class _ReadPage(Struct, frozen=True):
    """A URL that was read; without a page where that failed."""

    url: str
    page: Page | None = None
    report: IndexReport | None = None


@dataclass(eq=False)
class AgenticSearch:
    """One search: what was found, judged and done so far."""

    query: str
    _: KW_ONLY
    retriever: Retriever
    indexer: Indexer
    judge: AgenticJudge
    web: Web
    emit: Emit
    settings: KnowledgeSettings = KnowledgeSettings()
    scope: Scope = EVERYTHING

    def __post_init__(self) -> None:
        """Raises QuestionError for an empty query and ConfigError for a setting out of range."""
        self.query = self.query.strip()
        if not self.query:
            raise QuestionError("there is no query", fix="give agentic_search a question")
        for name, (low, high) in RANGES.items():
            value = getattr(self.settings, name)
            if not math.isfinite(value) or not low <= value <= high:
                raise ConfigError(f"{name} is {value}", cause="it is out of range", fix=f"give a number from {low} to {high}")
        self.current = self.query
        self.iteration = 1
        self.history: list[dict[str, Any]] = []
        self.verdict = Assessment(0.0)
        self.passages: list[Passage] = []
        self.best: tuple[float, list[Passage]] = (0.0, [])
        self._rankings: dict[str, list[Passage]] = {}
        self._judged: set[frozenset[str]] = set()
        self._tried: set[str] = set()
        self._web_failed = False
        self._scored: dict[str, tuple[Hit, float]] = {}  # every hit so far, with its best score
        self._read: dict[str, tuple[str, str]] = {}  # titles and texts of the pages that were chosen
        self._follows_pages = self.settings.follows_pages and not self.judge.has_model
        self._concurrency = asyncio.Semaphore(self.settings.concurrency)

    async def run(self) -> dict[str, Any]:
        """The seed's response."""
        try:
            status = await self._run_stages()
        except StoreError as error:
            await self.emit(Warned(error.code, join_sentences(str(error), error.fix)))
            self._record_step("local_check", query=self.current, error=str(error))
            return self._build_response("error")
        is_failure = status != "complete" and not self.best[1] and self._web_failed
        return self._build_response("error" if is_failure else status)

    async def _run_stages(self) -> Status:
        await self._check_store([self.current])
        while not self._is_enough() or self._open_part():
            new_pages = await self._search_and_read()
            if new_pages:
                queries = [self.current]
                if self.settings.use_search_hints:  # in the words of the pages that were just stored
                    queries += await self.judge.hint(self.query, new_pages)
                await self._check_store(queries)
            if self._is_enough() and not self._open_part():
                break
            if self.iteration >= self.settings.max_iterations:
                return "complete" if self._is_enough() else "max_iterations_reached"
            part = self._open_part()
            refined_queries = (part,) if part else await self.judge.refine(self.query, self.current, self.verdict.gaps)
            self._record_step("query_refinement", query=self.current, refined_queries=list(refined_queries))
            self.current = next((q for q in refined_queries if q not in self._rankings), refined_queries[0])
            self.iteration += 1
            await self._check_store([self.current])
        return "complete"

    def _is_enough(self) -> bool:
        return self.verdict.score >= self.settings.completeness_threshold

    def _open_part(self) -> str:
        """A name of the question, or one that leads on, that no page found so far is about and that was not searched for."""
        # a model judges all parts of a question itself; the stand-in compares words, which one page may have of several parts
        if not self._follows_pages or not self._scored:
            return ""
        titles = [p.title for p in self.passages]
        parts = (*find_open_parts(self.query, titles), find_bridge(self.query, list(self._read.values())))
        return next((part for part in parts if part and part not in self._rankings), "")

    # --- stage 1: what is known

    async def _check_store(self, queries: Sequence[str]) -> None:
        """Ask the store and have the passages judged, unless the judge has seen just these."""
        for query in queries:
            self._rankings[query] = await self.retriever.search(query, self.scope, self.settings.max_qdrant_results)
        first, *others = rankings = [self._rankings[q] for q in dict.fromkeys([self.query, *queries])]
        if others:  # what one query found best stays near the front, with its best score
            best_by_id: dict[str, Passage] = {}
            for passage in chain.from_iterable(rankings):
                best_by_id[passage.id] = max(best_by_id.get(passage.id, passage), passage, key=lambda p: p.score)
            first = [best_by_id[key] for key, _ in by_reciprocal_rank([[p.id for p in ranking] for ranking in rankings])]
        self.passages = first[: self.settings.max_qdrant_results]
        ids = frozenset(p.id for p in self.passages[:TOP])
        if ids in self._judged:
            return
        self._judged.add(ids)
        self.verdict = await self.judge.assess(self.query, self.passages[:TOP])
        self._record_step("local_check", completeness=self.verdict.score, gaps=list(self.verdict.gaps), query=self.current)
        if (self.verdict.score, len(self.passages)) > (self.best[0], len(self.best[1])):
            self.best = (self.verdict.score, self.passages)

    # --- stage 2: where to look

    async def _search_and_read(self) -> list[Page]:
        """Search, have the hits scored and read the promising ones; the pages that brought something new."""
        outcome = await self.web.search(Query(self.current, RESULTS_PER_SEARCH))
        hits = list({hit_key(h.url): h for h in reversed(outcome.hits)}.values())[::-1]
        self._web_failed = not hits and bool(outcome.failures)
        ranking = await self.judge.rank(self.query, self.verdict.gaps, hits)
        step = self._record_step("web_search", urls_found=len(hits), urls_ranked=len(ranking), promising_urls=0)
        if self._follows_pages:
            promising, pages = await self._read_in_steps([(hits[s.index], s.score) for s in ranking])
        else:
            above = [hits[s.index] for s in ranking if s.score > self.settings.url_score_threshold]
            promising = above[: self.settings.max_urls_per_iteration]
            pages = await self._read_pages(promising)
        step["promising_urls"] = len(promising)
        if not pages:
            return []
        indexed_pages = [(r.page, r.report) for r in pages if r.page and r.report]
        new = [(page, report) for page, report in indexed_pages if report.outcome == "stored"]
        stored_count = sum(report.outcome in ("stored", "linked", "unchanged") for _, report in indexed_pages)
        self._record_step(
            "crawl",
            urls=[r.url for r in pages],
            urls_stored=stored_count,
            chunks_stored=sum(r.chunks for _, r in new),
            pages=[describe_page(page) for page, _ in indexed_pages],
        )
        return [page for page, _ in new]

    # --- stage 3: read and keep

    async def _read_in_steps(self, scores: Sequence[tuple[Hit, float]]) -> tuple[list[Hit], list[_ReadPage]]:
        """Read the best hit, then those that follow from it, also of earlier searches: the page it names, another part."""
        for hit, score in scores:
            before = self._scored.get(hit_key(hit.url), (hit, 0.0))
            self._scored[hit_key(hit.url)] = max(before, (hit, score), key=lambda pair: pair[1])
        first = self._next_hits(1)
        pages = await self._read_pages(first)
        more = self._next_hits(self.settings.max_urls_per_iteration - len(first))
        return [*first, *more], [*pages, *await self._read_pages(more)]

    def _next_hits(self, count: int) -> list[Hit]:
        """The best hits that were not chosen before, given what was read; each above the threshold."""
        read = list(self._read.values())
        candidates = [pair for key, pair in self._scored.items() if key not in self._read]
        scores = [(score_next_hop(self.query, hit, score, read), hit) for hit, score in candidates]
        above = [pair for pair in scores if pair[0] > self.settings.url_score_threshold]
        return [hit for _, hit in sorted(above, key=lambda pair: -pair[0])[:count]]

    async def _read_pages(self, hits: Sequence[Hit]) -> list[_ReadPage]:
        """Read and index the hits that are not stored yet, or that were stored too long ago."""
        fresh = []
        for hit in hits:
            is_known = await self.indexer.is_known(hit.url, self.settings.max_page_age_days)
            if not is_known and hit_key(hit.url) not in self._tried:
                fresh.append(hit.url)
            self._read[hit_key(hit.url)] = await self.indexer.stored_text(hit.url) if is_known else ("", "")
        self._tried.update(hit_key(url) for url in fresh)
        async with asyncio.TaskGroup() as tasks:
            reading = [tasks.create_task(self._read_and_index(url)) for url in fresh]
        pages = [task.result() for task in reading]
        for read in pages:
            if read.page:
                self._read[hit_key(read.url)] = (read.page.title, read.page.text)
        return pages

    async def _read_and_index(self, url: str) -> _ReadPage:
        """One page read and indexed; a page that cannot be read is passed over, and the reader has said why."""
        try:
            async with self._concurrency:
                page = await self.web.read(url)
        except FetchError:
            return _ReadPage(url)
        try:
            return _ReadPage(url, page, await self.indexer.index(replace(page, url=url)))
        except StoreError as error:
            notice = Notice("page.not_stored", "{page} was not stored: {error}", page=url, error=str(error))
            await self.emit(Warned("not_indexed", join_sentences(notice, error.fix)))
            return _ReadPage(url)

    # --- the response

    def _record_step(self, action: str, *, query: str = "", **what: Any) -> dict[str, Any]:
        entry = {"iteration": self.iteration, **({"query": query} if query else {}), "action": action, **what}
        self.history.append(entry)
        return entry

    def _build_response(self, status: Status) -> dict[str, Any]:
        score, passages = self.best
        return {
            "success": status != "error",
            "query": self.query,
            "iterations": self.iteration,
            "completeness": score,
            "results": [result_of(passage) for passage in passages],
            "search_history": self.history,
            "status": status,
        }


def result_of(passage: Passage) -> dict[str, Any]:
    """A passage in the seed's form."""
    return {"content": passage.text, "url": passage.url, "similarity_score": passage.score, "chunk_index": passage.number}


def describe_page(page: Page) -> dict[str, Any]:
    """A page as metadata: its title, description, topics, headings, words, and code blocks by language."""
    headings = page.headings or tuple(headings_of(page.text))
    heads = content_words(" ".join((page.title, *headings)))
    counts = Counter(word for word in content_words(page.text) if len(word) > 2)
    counts.update({word: HEADING_WEIGHT for word in heads if len(word) > 2})
    return {
        "url": page.url,
        "title": page.title,
        "description": page.description,
        "topics": [word for word, _ in counts.most_common(MAX_TOPICS)],
        "headers": list(headings[:MAX_HEADERS]),
        "words": len(find_words(page.text)),
        "code_blocks": [{"language": language, "count": count} for language, count in count_code_blocks(page.text).items()],
    }
