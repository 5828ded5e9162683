"""The tools of one run: a call is checked and run, and its result is rendered as the JSON that the model sees.

Policy is enforced here: arguments are checked against the schema, a URL is fetched only if it came verbatim from the user, a
hit or a fetched page, and no configured key is sent in a query or URL.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from nexi.errors import FetchError, NexiError
from nexi.events import SourceNumbered, ToolFinished, ToolStarted
from nexi.ports import LLM, Clock, Emit
from nexi.prompts import render
from nexi.reader import NOT_RECORDED, Reader
from nexi.runs.session import Session
from nexi.searcher import Searcher
from nexi.structured.json_reader import parse_lenient
from nexi.structured.ranking import ENOUGH
from nexi.structured.schema_check import check_schema, object_schema
from nexi.text.chunking import chunk_markdown
from nexi.text.scope import plausible_day
from nexi.tools.specs import LOCAL_SEARCH, SPECS, WEB_GET, WEB_SEARCH, build_query, parse_arguments
from nexi.types import Message, Page, PageView, Query, SearchOutcome, ToolCall, ToolResult, ToolSpec
from nexi.urls import hit_key, is_web_url

if TYPE_CHECKING:
    from nexi.knowledge.lookup import Lookup

MAX_PARALLEL_READS = 8
MAX_SUMMARY_TOKENS = 2000
MAX_FALLBACK_CHARS = 2000
MAX_CHUNK_CHARS = 2000
MAX_CHUNKS = 60
OUT_OF_TIME = "stopped: the time target was reached"
ANSWERED_BEFORE_NOTE = "The same question was answered from these pages before: answer from them unless they have grown old."
LOCAL_BACKEND = "local"  # the backend name of the knowledge store
READ_ON_NOTE = "[part 1 and all others can be read: call again with get_full and part]"
CHUNK_NUMBER_BYTES = 1_000  # of the numbers that chunks are shown with


def error_result(message: str) -> ToolResult:
    return ToolResult(None, to_json({"error": message}), ok=False)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def render_searches(outcomes: Sequence[SearchOutcome]) -> dict[str, Any]:
    """Render search results as the seeds' JSON; a query without hits says why."""
    searches = []
    for outcome in outcomes:
        hits = [{"title": h.title, "url": h.url, "description": h.snippet} for h in outcome.hits]
        for form, hit in zip(hits, outcome.hits, strict=True):
            if hit.published:
                form["published_time"] = hit.published
        entry: dict[str, Any] = {"query": outcome.query, "results": hits}
        if outcome.backend:
            entry["backend"] = outcome.backend
        if outcome.failures:
            entry["failures"] = [f"{f.provider}: {f.message}" for f in outcome.failures]
        if not outcome.hits:
            entry["error"] = "no results. " + " ".join(f"{f.provider}: {f.message}." for f in outcome.failures)
        searches.append(entry)
    return {"searches": searches}


def render_pages(views: Sequence[PageView]) -> dict[str, Any]:
    """Render pages as the seeds' JSON: `[n] url`, a line, the text; with the day of the text where it is known."""
    pages = []
    for view in views:
        if view.error:
            pages.append({"url": view.url, "content": "", "error": view.error})
        else:
            head = f"[{view.number}] {view.url}" if view.number else view.url
            form = {"url": view.url, "title": view.title, "content": f"{head}\n---\n{view.text}"}
            pages.append({**form, "date": view.day} if view.day else form)
    return {"pages": pages}


class ExtractLimits(Struct, frozen=True):
    deadline: float | None = None
    prompts_folder: Any = None
    window_bytes: int = 60_000
    summary_tokens: int = MAX_SUMMARY_TOKENS

    def cut_to_window(self, text: str) -> str:
        """Cut a request to the window of the extract model; a text never has more tokens than bytes."""
        return text.encode("utf-8", "replace")[: self.window_bytes].decode("utf-8", "ignore")


async def summarise(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """Summarise a page for a question; returns the beginning of the page if the model fails."""
    wish = instructions or "Answer the question."
    prompt = render("extractor", folder=limits.prompts_folder, query=question, instructions=wish)
    messages = [Message("system", prompt), Message("user", limits.cut_to_window(text))]
    try:
        reply = await llm.complete(messages, max_tokens=limits.summary_tokens, temperature=0.0, deadline=limits.deadline)
    except NexiError:
        return text[:MAX_FALLBACK_CHARS]
    return reply.text.strip() or text[:MAX_FALLBACK_CHARS]


async def _pick_chunks(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """Return the passages the model chose, verbatim and in order; the beginning of the page if it chose none."""
    chunks = [text[chunk.start : chunk.end].strip("\n") for chunk in chunk_markdown(text, MAX_CHUNK_CHARS)[:MAX_CHUNKS]]
    listing = "\n\n".join(f"[chunk {i}]\n{chunk}" for i, chunk in enumerate(chunks))
    prompt = render("chunks", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question.")
    schema = object_schema({"pick": {"type": "array", "items": {"type": "integer"}, "maxItems": len(chunks)}})
    messages = [Message("system", prompt), Message("user", limits.cut_to_window(listing))]
    try:
        reply = await llm.complete(messages, max_tokens=256, temperature=0.0, deadline=limits.deadline, schema=schema)
        value = parse_lenient(reply.text)
    except (NexiError, ValueError):
        return text[:MAX_FALLBACK_CHARS]
    if check_schema(value, schema) or not isinstance(value, dict):
        return text[:MAX_FALLBACK_CHARS]
    picks = sorted({i for i in value["pick"] if 0 <= i < len(chunks)})
    return "\n\n".join(chunks[i] for i in picks) or text[:MAX_FALLBACK_CHARS]


class Toolbox(Struct, frozen=True):
    """The tools of one run. Summaries are made for `question`."""

    session: Session
    searcher: Searcher
    reader: Reader
    extractor: LLM
    emit: Emit
    clock: Clock
    question: str
    free_bytes: Callable[[], int]  # how many bytes of page text still fit
    query_template: Query = Query("")
    prompts_folder: Any = None
    secrets: tuple[str, ...] = ()
    deadline: float | None = None
    extract_bytes: int = 60_000
    summary_tokens: int = MAX_SUMMARY_TOKENS
    specs: tuple[ToolSpec, ...] = SPECS
    lookup: Lookup | None = None
    part_of: str = ""  # the research question that `question` is a task of
    chooses_passages: bool = True  # of a long page; a run recorded before nexi did goes on with the beginning
    extra_searchers: Mapping[str, Searcher] = {}

    async def run(self, call: ToolCall) -> ToolResult:
        """Run one call and log its start and end; an error is a result for the model."""
        started = self.clock.monotonic()
        await self.emit(ToolStarted(call.id, call.name, call.arguments[:4000]))
        result = error_result("the tool was stopped before it finished")
        try:
            result = await self._dispatch(call)
        finally:
            seconds = round(self.clock.monotonic() - started, 3)
            await self.emit(ToolFinished(call.id, call.name, result.ok, result.text, seconds))
        return result

    def runners(self) -> Mapping[str, Callable[[Mapping[str, Any]], Awaitable[ToolResult]]]:
        """Map tool names to the methods that run them; subclasses may have other tools."""
        local = {LOCAL_SEARCH.name: self._local_search} if self.lookup else {}
        extra = {name: partial(self.search_source, name) for name in self.extra_searchers}
        return {**local, **extra, WEB_SEARCH.name: self._web_search, WEB_GET.name: self._web_get}

    def is_repeatable(self, call: ToolCall) -> bool:
        """Whether the same call again does something new."""
        return False

    def reminder_prompt(self) -> str:
        """The prompt that asks a model to read pages before it answers, with the names of these tools."""
        return "read_first"

    async def _dispatch(self, call: ToolCall) -> ToolResult:
        runner = self.runners().get(call.name)
        if runner is None:
            names = ", ".join(s.name for s in self.specs)
            return error_result(f"there is no tool called {call.name[:100]!r}; the tools are {names}")
        arguments, problem = parse_arguments(call, next(s for s in self.specs if s.name == call.name))
        if problem:
            return error_result(problem)
        if any(secret and secret in text for secret in self.secrets for text in (call.arguments, *_texts_in(arguments))):
            return error_result("refused: the arguments contain a configured key")
        return await runner(arguments)

    async def _web_search(self, arguments: Mapping[str, Any]) -> ToolResult:
        return await self.run_queries(self.searcher, arguments["queries"])

    async def search_source(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        queries = arguments["queries"] if "queries" in arguments else [arguments["query"]]
        return await self.run_queries(self.extra_searchers[tool], queries, build_query(self.query_template, arguments))

    async def run_queries(self, searcher: Searcher, queries: Sequence[str], template: Query | None = None) -> ToolResult:
        """Run queries in parallel, allow their hits to be read, and prefetch the best ones."""
        texts = list(dict.fromkeys(q.strip() for q in queries if q.strip()))
        if not texts:
            return error_result("the queries are blank: write what to search for")
        question = self.user_words()
        quotation = next((words for text in texts if (words := self.session.find_quotation(text, question))), "")
        if quotation and searcher.is_remote:
            reason = "stands in a private file, which no search service may learn; use other words"
            return error_result(f"refused: {quotation!r} {reason}")
        own_queries = [replace(template or self.query_template, text=text) for text in texts]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(searcher.search(query, deadline=self.deadline)) for query in own_queries]
        # hits that an earlier query of the same call has returned are dropped
        hit_keys: set[str] = set()
        outcomes: tuple[SearchOutcome, ...] = ()
        for result in [t.result() for t in tasks]:
            fresh = tuple(h for h in result.hits if hit_key(h.url) not in hit_keys)
            hit_keys.update(hit_key(h.url) for h in fresh)
            outcomes += (replace(result, hits=fresh) if fresh else result,)
        for outcome in outcomes:
            self.session.allow_urls(h.url for h in outcome.hits if is_web_url(h.url))
            self.session.add_papers(outcome.hits)
            stored_hits = [h for h in outcome.hits if h.backend == LOCAL_BACKEND]
            self.session.allow_stored_urls(h.url for h in stored_hits)
            self.session.recalled_urls.update(h.url for h in stored_hits if searcher is not self.searcher)
            self.session.add_found_passages(stored_hits)
            files = [h for h in outcome.hits if not is_web_url(h.url)]
            self.session.allow_file_urls(h.url for h in files)
            for hit in files:
                self.session.private.add(hit.snippet)
        self.reader.prefetch(h.url for row in zip_longest(*(o.hits for o in outcomes)) for h in row if h and is_web_url(h.url))
        return ToolResult(outcomes, to_json(render_searches(outcomes)), any(o.hits for o in outcomes))

    def user_words(self) -> str:
        """What the user has written, which may be searched for in any case."""
        return "\n".join((self.question, *self.session.user_texts))

    async def _local_search(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return pages of the knowledge store, numbered like pages of the web, with the relevant passages."""
        if self.lookup is None:
            return error_result("nothing is stored")
        stored_pages = await self.lookup.find(arguments["queries"])
        verdict, passages = stored_pages.assessment, {hit.url: hit.snippet for hit in stored_pages.hits}
        self.session.allow_stored_urls(passages)
        self.session.recalled_urls.update(() if stored_pages.repeated else passages)
        self.session.add_found_passages(stored_pages.hits)
        views = await self.read_pages({"urls": list(passages), "get_full": True}) if passages else ()
        is_enough = verdict.score >= ENOUGH or all(spec.name != WEB_SEARCH.name for spec in self.specs)
        if not (arguments.get("get_full") and is_enough):
            views = tuple(replace(v, text=passages[v.url] or v.text[:MAX_FALLBACK_CHARS]) for v in views)
        note = "Search the web for what these pages leave open."
        if not stored_pages.hits:
            note = "Nothing is known about this: search the web."
        elif stored_pages.repeated:
            note = ANSWERED_BEFORE_NOTE
        form = {**render_pages(views), "completeness": verdict.score, "missing": list(verdict.gaps), "note": note}
        return ToolResult((verdict, *views), to_json(form), any(not v.error for v in views))

    async def _web_get(self, arguments: Mapping[str, Any]) -> ToolResult:
        views = await self.read_pages(arguments)
        return ToolResult(views, to_json(render_pages(views)), any(not v.error for v in views))

    async def read_pages(self, arguments: Mapping[str, Any]) -> tuple[PageView, ...]:
        """Read the pages of a call in parallel and number them in the order of the call."""
        urls = list(dict.fromkeys(arguments["urls"]))
        share = max(MAX_FALLBACK_CHARS, self.free_bytes() // max(1, len(urls)))
        limit = asyncio.Semaphore(MAX_PARALLEL_READS)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._read_page(url, arguments, share, limit)) for url in urls]
        return tuple([await self._number_page(t.result()) for t in tasks])

    async def _read_page(
        self, url: str, arguments: Mapping[str, Any], share: int, limit: asyncio.Semaphore
    ) -> tuple[PageView, Page | None]:
        if reason := self.session.refuse_fetch(url):
            return PageView(url, error=reason), None
        async with limit:
            try:
                async with asyncio.timeout(None if self.deadline is None else self.deadline - self.clock.monotonic()):
                    page = await self.reader.read(url)
            except FetchError as error:
                # What a log does not hold had not arrived when the run was recorded, and is reported as it was then.
                reason = OUT_OF_TIME if error.cause == NOT_RECORDED else f"{error.reason}: {error}"
                return PageView(url, error=reason, fix=error.fix), None
            except TimeoutError:
                return PageView(url, error=OUT_OF_TIME), None
            text = await self.extract_text(page, arguments, share)
        body = text.encode("utf-8", "replace")
        if len(body) > share:  # a text never has more tokens than bytes
            beginning = body[:share].decode("utf-8", "ignore")
            text = f"{beginning}\n\n[cut here: {len(text) - len(beginning)} more characters; read on with get_full and part]"
        day, today = plausible_day(page.imprint), self.clock.now().date().isoformat()
        return PageView(url, title=page.title, text=text, day=day, read_on=today), page

    async def _number_page(self, viewed: tuple[PageView, Page | None]) -> PageView:
        """Give a page its citation number when it is handed to the model."""
        view, page = viewed
        if page is None:
            return view
        before = len(self.session.book.sources)
        source = self.session.book.number_for(page.final_url or page.url, page.title, page.digest, page.imprint)
        if len(self.session.book.sources) > before:
            await self.emit(SourceNumbered(source))
        return replace(view, number=source.number)

    async def number_read_pages(self) -> None:
        """Number pages that were read but not yet summarised when the run was stopped, so that they can be cited."""
        for page in self.reader.requested_pages():
            await self._number_page((PageView(page.url), page))

    async def extract_text(self, page: Page, arguments: Mapping[str, Any], room: int) -> str:
        """What the model is given of a page: a summary, passages word for word, or as much of the text as has room."""
        instructions = arguments.get("instructions") or ""
        if arguments.get("get_full"):
            part = arguments.get("part")
            if part is not None and self.chooses_passages:
                long_text = await asyncio.to_thread(self.session.index_text, page.text)
                return long_text.read_on(part, room)
            text = await self._choose_passages(page, instructions, room - len(READ_ON_NOTE))
            return text if text is page.text else f"{text}\n\n{READ_ON_NOTE}"
        numbers = CHUNK_NUMBER_BYTES if arguments.get("use_chunks") else 0
        text = await self._choose_passages(page, instructions, self.extract_bytes - numbers)
        limits = ExtractLimits(self.deadline, self.prompts_folder, self.extract_bytes, self.summary_tokens)
        if arguments.get("use_chunks"):
            return await _pick_chunks(self.extractor, text, self.question, instructions, limits)
        return await summarise(self.extractor, text, self.question, instructions, limits)

    async def _choose_passages(self, page: Page, instructions: str, room: int) -> str:
        """A page that fits, whole; of a longer one the passages that a search found and those that speak to the question."""
        if not self.chooses_passages:
            return page.text
        query, passages = f"{self.question} {instructions}".strip(), self.session.found_passages(page)
        return await asyncio.to_thread(self.session.excerpt, page.text, query, room, passages)


def _texts_in(value: object) -> Iterator[str]:
    """Every text in parsed arguments: in JSON a key can be spelled with escapes that a comparison of the source misses."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts_in(key)
            yield from _texts_in(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts_in(inner)
