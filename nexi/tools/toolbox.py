"""The tools of one run: a call is checked, run, and its result put into words.

Above it is the loop; below it, the searcher, the reader and the extract model. Policy lives here in code: arguments are
checked against the schema, a URL is fetched only if it came verbatim from the user, a hit or a fetched page, and no
configured key leaves in a query or URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nexi.errors import FetchError
from nexi.events import SourceNumbered, ToolFinished, ToolStarted
from nexi.ports import LLM, Clock, Emit
from nexi.reader import Reader
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.structured.ranking import ENOUGH
from nexi.tools.results import as_json, error_result, pages_form, searches_form
from nexi.tools.specs import LOCAL_SEARCH, SPECS, WEB_GET, WEB_SEARCH, read_arguments
from nexi.tools.summaries import FALLBACK_CHARS, SUMMARY_TOKENS, ExtractLimits, pick_chunks, summarise
from nexi.types import Page, PageView, Query, SearchOutcome, ToolCall, ToolResult, ToolSpec
from nexi.urls import hit_key, is_web_url
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.knowledge.lookup import Known, Lookup

AT_ONCE = 8
REPEATED = "The same question was answered from these pages before: answer from them unless they have grown old."
STORED = "local"  # the name under which the knowledge store answers searches


@frozen
class Toolbox:
    """The tools of one run. `question` steers summaries, `part_of` is the greater question where it is a task of one, and
    `room` says how many bytes of page text still fit."""

    session: Session
    searcher: Searcher
    reader: Reader
    extractor: LLM
    emit: Emit
    clock: Clock
    question: str
    room: Callable[[], int]
    query_template: Query = Query("")
    prompts_folder: Any = None
    secrets: tuple[str, ...] = ()
    deadline: float | None = None
    extract_bytes: int = 60_000
    summary_tokens: int = SUMMARY_TOKENS
    specs: tuple[ToolSpec, ...] = SPECS
    lookup: Lookup | None = None
    part_of: str = ""

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one call from start to finish; whatever goes wrong is a result for the model."""
        started = self.clock.monotonic()
        await self.emit(ToolStarted(call.id, call.name, call.arguments[:4000]))
        result = error_result("the tool was stopped before it finished")
        try:
            result = await self._dispatch(call)
        finally:
            seconds = round(self.clock.monotonic() - started, 3)
            finished = ToolFinished(call.id, call.name, result.ok, result.text, seconds)
            await self.emit(finished)
        return result

    def runners(self) -> Mapping[str, Callable[[Mapping[str, Any]], Awaitable[ToolResult]]]:
        """What runs each tool; another toolbox may have others."""
        local = {LOCAL_SEARCH.name: self._local_search} if self.lookup else {}
        return {**local, WEB_SEARCH.name: self._web_search, WEB_GET.name: self._web_get}

    async def _dispatch(self, call: ToolCall) -> ToolResult:
        runner = self.runners().get(call.name)
        if runner is None:
            names = ", ".join(s.name for s in self.specs)
            return error_result(f"there is no tool called {call.name[:100]!r}; the tools are {names}")
        arguments, problem = read_arguments(call, next(s for s in self.specs if s.name == call.name))
        if problem:
            return error_result(problem)
        if any(secret and secret in call.arguments for secret in self.secrets):
            return error_result("refused: the arguments contain a configured key")
        return await runner(arguments)

    async def _web_search(self, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.search_with(self.searcher, arguments["queries"])

    async def search_with(self, searcher: Searcher, asked: Sequence[str]) -> ToolResult:
        """Run queries in parallel, let their hits be read, and begin to read the best."""
        queries = list(dict.fromkeys(q.strip() for q in asked if q.strip()))
        if not queries:
            return error_result("the queries are blank: write what to search for")
        async with asyncio.TaskGroup() as group:
            asking = (searcher.search(replace(self.query_template, text=q), deadline=self.deadline) for q in queries)
            tasks = [group.create_task(search) for search in asking]
        outcomes = _without_repeats([t.result() for t in tasks])
        for outcome in outcomes:
            self.session.allow_urls(h.url for h in outcome.hits if is_web_url(h.url))
            self.session.allow_stored_urls(h.url for h in outcome.hits if h.backend == STORED)
        rows = zip_longest(*(o.hits for o in outcomes))
        self.reader.prefetch(h.url for row in rows for h in row if h and is_web_url(h.url))
        return ToolResult(outcomes, as_json(searches_form(outcomes)), any(o.hits for o in outcomes))

    async def _local_search(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Pages of the knowledge store, numbered like any that are read, with the passages that matter."""
        if self.lookup is None:
            return error_result("nothing is stored")
        known = await self.lookup.find(arguments["queries"])
        self.session.allow_stored_urls(hit.url for hit in known.hits)
        views = await self.read_pages({"urls": [hit.url for hit in known.hits], "get_full": True}) if known.hits else ()
        if not (arguments.get("get_full") and self._is_for_keeps(known)):
            passages = {hit.url: hit.snippet for hit in known.hits}
            views = tuple(replace(v, text=passages[v.url] or v.text[:FALLBACK_CHARS]) for v in views)
        verdict = known.assessment
        form = {**pages_form(views), "completeness": verdict.score, "missing": list(verdict.gaps), "note": _note_of(known)}
        return ToolResult((verdict, *views), as_json(form), any(not v.error for v in views))

    def _is_for_keeps(self, known: Known) -> bool:
        """Whether whole stored pages are worth their room: they answer the question, or nothing else will come."""
        return known.assessment.score >= ENOUGH or all(spec.name != WEB_SEARCH.name for spec in self.specs)

    async def _web_get(self, arguments: Mapping[str, Any]) -> ToolResult:
        views = await self.read_pages(arguments)
        return ToolResult(views, as_json(pages_form(views)), any(not v.error for v in views))

    async def read_pages(self, arguments: Mapping[str, Any]) -> tuple[PageView, ...]:
        """The pages of a call, read at once and numbered in the order in which they were asked for."""
        urls = list(dict.fromkeys(arguments["urls"]))
        share = max(FALLBACK_CHARS, self.room() // max(1, len(urls)))
        limit = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._view(url, arguments, share, limit)) for url in urls]
        return tuple([await self._numbered(t.result()) for t in tasks])

    async def _view(
        self, url: str, arguments: Mapping[str, Any], share: int, limit: asyncio.Semaphore
    ) -> tuple[PageView, Page | None]:
        if not self.session.can_fetch(url):
            reason = "refused: this URL came from no search result, no page that was read, and not from the user"
            return PageView(url, error=reason), None
        async with limit:
            try:
                async with asyncio.timeout(self._seconds_left()):
                    page = await self.reader.read(url)
            except FetchError as error:
                return PageView(url, error=f"{error.reason}: {error}"), None
            except TimeoutError:
                return PageView(url, error="stopped: the time target was reached"), None
            text = await self.text_of(page, arguments)
        return PageView(url, title=page.title, text=_cut(text, share)), page

    async def _numbered(self, seen: tuple[PageView, Page | None]) -> PageView:
        """A page gets its number when it is handed to the model, in the order it was asked for."""
        view, page = seen
        if page is None:
            return view
        before = len(self.session.book.sources)
        source = self.session.book.number_for(page.final_url or page.url, page.title, page.digest, page.imprint)
        if len(self.session.book.sources) > before:
            await self.emit(SourceNumbered(source))
        return replace(view, number=source.number)

    async def number_what_was_read(self) -> None:
        """For a run that stops while its pages are being summarised: they were read, and may be cited."""
        for page in self.reader.requested_pages():
            await self._numbered((PageView(page.url), page))

    async def text_of(self, page: Page, arguments: Mapping[str, Any]) -> str:
        if arguments.get("get_full"):
            return page.text
        instructions = arguments.get("instructions") or ""
        if arguments.get("use_chunks"):
            return await pick_chunks(self.extractor, page.text, self.question, instructions, self._limits())
        return await summarise(self.extractor, page.text, self.question, instructions, self._limits())

    def _seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - self.clock.monotonic()

    def _limits(self) -> ExtractLimits:
        return ExtractLimits(self.deadline, self.prompts_folder, self.extract_bytes, self.summary_tokens)


def _note_of(known: Known) -> str:
    if not known.hits:
        return "Nothing is known about this: search the web."
    if known.repeated:
        return REPEATED
    return "Search the web for what these pages leave open."


def _without_repeats(outcomes: Sequence[SearchOutcome]) -> tuple[SearchOutcome, ...]:
    """A hit that an earlier query of the same call found is not shown twice."""
    seen: set[str] = set()
    kept: list[SearchOutcome] = []
    for outcome in outcomes:
        fresh = tuple(h for h in outcome.hits if hit_key(h.url) not in seen)
        seen.update(hit_key(h.url) for h in fresh)
        kept.append(replace(outcome, hits=fresh) if fresh else outcome)
    return tuple(kept)


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes: bytes bound tokens in every script."""
    body = text.encode("utf-8", "replace")
    if len(body) <= limit:
        return text
    kept = body[:limit].decode("utf-8", "ignore")
    return f"{kept}\n\n[cut here: {len(text) - len(kept)} more characters; read it with instructions or use_chunks]"
