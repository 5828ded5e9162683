"""The tools of the loop: what the model may ask for, checked, run, and put into words.

Above it is the loop; below it, the searcher, the reader and the extract model. Policy lives here in code: arguments are
checked against the schema, a URL is fetched only if it came verbatim from the user, a hit or a fetched page, and no
configured key leaves in a query or URL. The seeds' function faces stand at the end of the file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nexi.errors import FetchError, NexiError
from nexi.events import SourceNumbered, ToolFinished, ToolStarted
from nexi.ports import LLM, Clock, Emit
from nexi.prompts import render
from nexi.ranking import ENOUGH
from nexi.reader import Reader
from nexi.schema import check, parse_lenient
from nexi.searcher import Searcher
from nexi.session import Session
from nexi.types import Message, Page, PageView, Query, SearchOutcome, ToolCall, ToolResult, ToolSpec
from nexi.urls import hit_key, is_web_url
from nexi.values import frozen

if TYPE_CHECKING:
    from nexi.knowledge.lookup import Known, Lookup

SUMMARY_TOKENS = 2000
FALLBACK_CHARS = 2000
CHUNK_CHARS = 2000
CHUNKS_SHOWN = 60
AT_ONCE = 8
REPEATED = "The same question was answered from these pages before: answer from them unless they have grown old."
STORED = "local"  # the name under which the knowledge store answers searches

WEB_SEARCH = ToolSpec(
    "web_search",
    "Search the web. Give 1 to 5 different queries; they run in parallel. Returns titles, URLs and snippets.",
    {
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 1000},
                "minItems": 1,
                "maxItems": 5,
                "description": "1 to 5 search queries",
            }
        },
        "required": ["queries"],
    },
)
WEB_GET = ToolSpec(
    "web_get",
    "Read 1 to 8 pages whose URLs came from search results, from pages already read, or from the user. "
    "Each page gets its citation number. By default a page is summarised for the question.",
    {
        "type": "object",
        "properties": {
            "urls": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 8192},
                "minItems": 1,
                "maxItems": 8,
                "description": "1 to 8 URLs, verbatim",
            },
            "instructions": {"type": "string", "description": "what to look for in these pages"},
            "get_full": {"type": "boolean", "description": "return the whole text instead of a summary"},
            "use_chunks": {"type": "boolean", "description": "return the passages that matter, word for word"},
        },
        "required": ["urls"],
    },
)
FINAL_ANSWER = ToolSpec(
    "final_answer",
    "Give the final answer in Markdown, citing pages as [n]. This ends the search.",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "minLength": 1, "description": "the complete answer"}},
        "required": ["answer"],
    },
)
LOCAL_SEARCH = ToolSpec(
    "local_search",
    "Search what nexi already knows: pages read before and the user's own files. Ask here first, and search the web only for "
    "what is missing. Returns passages, each page with its citation number, and how much of the question they cover.",
    {
        "type": "object",
        "properties": {
            "queries": WEB_SEARCH.parameters["properties"]["queries"],
            "get_full": {"type": "boolean", "description": "return whole pages instead of passages"},
        },
        "required": ["queries"],
    },
)
SPECS = (WEB_SEARCH, WEB_GET, FINAL_ANSWER)


def openai_form(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


TOOLS: tuple[dict[str, Any], ...] = tuple(openai_form(s) for s in SPECS)


def read_arguments(call: ToolCall, spec: ToolSpec) -> tuple[dict[str, Any], str]:
    """The checked arguments of a call, or what is wrong with them, in words for the model."""
    try:
        value = parse_lenient(call.arguments or "{}")
    except ValueError as error:
        return {}, f"the arguments are not JSON: {error}"
    value = _forgive(value, spec)
    problems = check(value, spec.parameters)
    if problems or not isinstance(value, dict):
        return {}, "; ".join(problems) or "the arguments must be an object"
    return value, ""


def _forgive(value: object, spec: ToolSpec) -> object:
    """A single string where a list is wanted is a list of one; weak models write that often."""
    if not isinstance(value, dict):
        return value
    properties = spec.parameters["properties"]
    listed = {k: [v] for k, v in value.items() if isinstance(v, str) and properties.get(k, {}).get("type") == "array"}
    return {**value, **listed}


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
            self.session.allow(h.url for h in outcome.hits if is_web_url(h.url))
            self.session.allow_stored(h.url for h in outcome.hits if h.backend == STORED)
        rows = zip_longest(*(o.hits for o in outcomes))
        self.reader.warm(h.url for row in rows for h in row if h and is_web_url(h.url))
        return ToolResult(outcomes, as_json(searches_form(outcomes)), any(o.hits for o in outcomes))

    async def _local_search(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Pages of the knowledge store, numbered like any that are read, with the passages that matter."""
        if self.lookup is None:
            return error_result("nothing is stored")
        known = await self.lookup.find(arguments["queries"])
        self.session.allow_stored(hit.url for hit in known.hits)
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
        if not self.session.may_fetch(url):
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
        for page in self.reader.asked_for():
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


@frozen
class ExtractLimits:
    deadline: float | None = None
    prompts_folder: Any = None
    window_bytes: int = 60_000
    summary_tokens: int = SUMMARY_TOKENS

    def fit(self, text: str) -> str:
        """What of a page the extract model can take in; bytes bound tokens in every script."""
        return text.encode("utf-8", "replace")[: self.window_bytes].decode("utf-8", "ignore")


async def summarise(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """What matters of a page, in at most `summary_tokens`; the page's beginning when the model fails."""
    prompt = render(
        "extractor", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question."
    )
    messages = [Message("system", prompt), Message("user", limits.fit(text))]
    try:
        reply = await llm.complete(messages, max_tokens=limits.summary_tokens, temperature=0.0, deadline=limits.deadline)
    except NexiError:
        return text[:FALLBACK_CHARS]
    return reply.text.strip() or text[:FALLBACK_CHARS]


async def pick_chunks(llm: LLM, text: str, question: str, instructions: str, limits: ExtractLimits) -> str:
    """The passages the model chose, word for word and in order; the page's beginning when it chose none."""
    chunks = split_chunks(text)[:CHUNKS_SHOWN]
    numbered = "\n\n".join(f"[chunk {i}]\n{chunk}" for i, chunk in enumerate(chunks))
    prompt = render("chunks", folder=limits.prompts_folder, query=question, instructions=instructions or "Answer the question.")
    schema = {
        "type": "object",
        "properties": {"pick": {"type": "array", "items": {"type": "integer"}, "maxItems": len(chunks)}},
        "required": ["pick"],
    }
    messages = [Message("system", prompt), Message("user", limits.fit(numbered))]
    try:
        reply = await llm.complete(messages, max_tokens=256, temperature=0.0, deadline=limits.deadline, schema=schema)
        picked = parse_lenient(reply.text)
    except (NexiError, ValueError):
        return text[:FALLBACK_CHARS]
    if check(picked, schema) or not isinstance(picked, dict):
        return text[:FALLBACK_CHARS]
    chosen = sorted({i for i in picked["pick"] if 0 <= i < len(chunks)})
    return "\n\n".join(chunks[i] for i in chosen) or text[:FALLBACK_CHARS]


def split_chunks(text: str, size: int = CHUNK_CHARS) -> list[str]:
    """Paragraphs joined up to `size` characters; a longer paragraph is cut."""
    chunks: list[str] = []
    current = ""
    for paragraph in text.split("\n\n"):
        for piece in [paragraph[i : i + size] for i in range(0, len(paragraph), size)] or [""]:
            if current and len(current) + len(piece) + 2 > size:
                chunks.append(current)
                current = ""
            current = f"{current}\n\n{piece}" if current else piece
    return [c for c in [*chunks, current] if c.strip()]


def _note_of(known: Known) -> str:
    if not known.hits:
        return "Nothing is known about this: search the web."
    if known.repeated:
        return REPEATED
    return "Search the web for what these pages leave open."


def error_result(message: str) -> ToolResult:
    return ToolResult(None, as_json({"error": message}), ok=False)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def searches_form(outcomes: Sequence[SearchOutcome]) -> dict[str, Any]:
    """The seeds' JSON of search results; a query without hits says why."""
    searches = []
    for outcome in outcomes:
        entry: dict[str, Any] = {"query": outcome.query, "results": [_hit_form(h) for h in outcome.hits]}
        if outcome.backend:
            entry["backend"] = outcome.backend
        if outcome.failures:
            entry["failures"] = [f"{f.provider}: {f.message}" for f in outcome.failures]
        if not outcome.hits:
            entry["error"] = "no results. " + " ".join(f"{f.provider}: {f.message}." for f in outcome.failures)
        searches.append(entry)
    return {"searches": searches}


def _hit_form(hit: Any) -> dict[str, str]:
    form = {"title": hit.title, "url": hit.url, "description": hit.snippet}
    return {**form, "published_time": hit.published} if hit.published else form


def pages_form(views: Sequence[PageView]) -> dict[str, Any]:
    """The seeds' JSON of pages: `[n] url`, a rule, the text."""
    pages = []
    for view in views:
        if view.error:
            pages.append({"url": view.url, "content": "", "error": view.error})
        else:
            pages.append({"url": view.url, "title": view.title, "content": page_text(view.number, view.url, view.text)})
    return {"pages": pages}


def page_text(number: int, url: str, text: str) -> str:
    head = f"[{number}] {url}" if number else url
    return f"{head}\n---\n{text}"


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


# The seeds' faces. Each delegates to the code above; the two that must reach the assembly import it when called.


@runtime_checkable
class SearchBackend(Protocol):
    """The seeds' plug-in for search; `nexi.app` puts it behind the port."""

    async def search(self, queries: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        ...


@runtime_checkable
class ContentFetcher(Protocol):
    """The seeds' plug-in for reading pages; `nexi.app` puts it behind the port."""

    async def fetch(self, urls: list[str], api_key: str, timeout: float, verbose: bool) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        ...


async def web_search(queries: list[str], config: Any, verbose: bool = False) -> dict[str, Any]:
    """Search 1 to 5 queries in parallel and return the seeds' JSON."""
    return await execute_tool(WEB_SEARCH.name, {"queries": queries}, config, verbose)


async def web_get(
    urls: list[str],
    config: Any,
    query: str = "",
    instructions: str = "",
    get_full: bool = False,
    use_chunks: bool = False,
    verbose: bool = False,
) -> dict[str, Any]:
    """Read 1 to 8 pages the caller vouches for and return the seeds' JSON."""
    arguments = {"urls": urls, "instructions": instructions, "get_full": get_full, "use_chunks": use_chunks}
    return await execute_tool(WEB_GET.name, arguments, config, verbose, query=query)


async def execute_tool(
    name: str, arguments: Mapping[str, Any], config: Any, verbose: bool = False, *, query: str = ""
) -> dict[str, Any]:
    """Run one tool outside a search; an unknown tool or a bad argument comes back as {"error": …}."""
    if name == FINAL_ANSWER.name:
        _, problem = read_arguments(ToolCall("", name, as_json(arguments)), FINAL_ANSWER)
        return {"error": problem} if problem else {"answer": arguments["answer"]}
    from nexi.app import Nexi

    async with Nexi(config) as nexi:
        result = await nexi.run_tool(ToolCall("direct", name, as_json(arguments)), question=query)
    value: dict[str, Any] = json.loads(result.text)
    return value


async def _extract_with_llm(content: str, query: str, instructions: str, llm: LLM) -> str:
    """What a page says about the query, by the extract model; `content[:2000]` when it fails."""
    return await summarise(llm, content, query, instructions, ExtractLimits())


class JinaSearchBackend:
    """Jina's search in the seeds' plug-in shape."""

    async def search(self, queries: list[str], api_key: str, timeout: float = 30, verbose: bool = False) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        from nexi.app import search_as_plugin

        return searches_form(await search_as_plugin("jina", queries, api_key, timeout))


class JinaContentFetcher:
    """Jina's reader in the seeds' plug-in shape."""

    async def fetch(self, urls: list[str], api_key: str, timeout: float = 40, verbose: bool = False) -> dict[str, Any]:  # noqa: ASYNC109 - the seeds' signature
        from nexi.app import fetch_as_plugin

        views = await fetch_as_plugin("jina", urls, api_key, timeout)
        return {"pages": [{"url": v.url, "content": v.text, **({"error": v.error} if v.error else {})} for v in views]}
