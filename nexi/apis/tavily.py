"""Passes as Tavily: `POST /tavily/search`, `/extract`, `/crawl`, `/map` and `/research`, in the shapes its own client knows.

A request may hold anything Tavily documents; what nexi has no counterpart for (images, a country, usage in credits) is
accepted and changes nothing. Errors are `{"detail": {"error": ...}}`. Below are the Search API, which searches, reads and
crawls, and the hosting of runs.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import accumulate
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.answers.streaming import find_rest
from nexi.apis.openai.shapes import BEAT_S, format_comment, format_event, problem_of_run, progress_line
from nexi.apis.openwebui import require_answer
from nexi.apis.search.crawl import CrawlRequest, ReadPages, crawl_site, map_site
from nexi.apis.search.excerpt import Relevance, best_paragraphs
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import MAX_QUERY_CHARS, Limits, QueryText, SearchRequest, clean_query
from nexi.app import RunLimits, RunRequest, check_run_id
from nexi.app.hosting import DOOR, HostedRun, RunHost
from nexi.errors import FetchError, NexiError
from nexi.events import RunFailed, RunFinished, TextDelta, find_end
from nexi.ports import Clock
from nexi.structured.schema_check import object_schema
from nexi.types import FetchLimits, Page, Query, Source
from nexi.urls import is_web_url
from nexi.web.contract import Contract
from nexi.web.payload import EventStream, Problem, bad_request, json_reply, read_body
from nexi.web.runs import ID

__all__ = ["CONTRACT", "tavily_error"]

MAX_RESULTS = 20
DEFAULT_RESULTS = 5
MAX_URLS = 20
CHUNK_CHARS = 500
CHUNKS = 3
JOINED = " [...] "
SEARCH_S = 20.0
ANSWER_S = 45.0
EXTRACT_S = {"basic": 10.0, "advanced": 30.0}
MAX_EXTRACT_S = 60
MAX_CRAWL_DEPTH = 5
MAX_CRAWL_BREADTH = 500
MAX_CRAWL_PAGES = 500
CRAWL_S = 150.0
CRAWLED_PAGE_S = 20.0
RESEARCH_DEPTHS: Mapping[str, int] = {"mini": 1, "auto": 0, "pro": 3}

_TEXT, _NUMBER, _MAYBE_TEXT = {"type": "string"}, {"type": "number"}, {"type": ["string", "null"]}
CLOSING = {"response_time": _NUMBER, "request_id": _TEXT}
ERROR = object_schema({"detail": object_schema({"error": _TEXT})})
CONTRACT = Contract("Tavily", error=ERROR, path={"id": ("The id of the research.", ID["id"][1])})
_RESULT = object_schema({"url": _TEXT, "title": _TEXT, "content": _TEXT, "score": _NUMBER, "raw_content": _MAYBE_TEXT})
_ANSWER = {"query": _TEXT, "follow_up_questions": {"type": "null"}, "answer": _MAYBE_TEXT, "images": {"type": "array"}}
RESULTS = object_schema({**_ANSWER, "results": {"type": "array", "items": _RESULT}, **CLOSING})
PAGE = {"type": "object", "properties": {"url": _TEXT, "raw_content": _TEXT, "images": {"type": "array"}}}
_FAILURES = {"type": "array", "items": {"type": "object", "properties": {"url": _TEXT, "error": _TEXT}}}
EXTRACTS = object_schema({"results": {"type": "array", "items": PAGE}, "failed_results": _FAILURES, **CLOSING})
PAGES = object_schema({"base_url": _TEXT, "results": {"type": "array", "items": PAGE}, **CLOSING})
URLS = object_schema({"base_url": _TEXT, "results": {"type": "array", "items": _TEXT}, **CLOSING})
STARTED = object_schema(dict.fromkeys(("request_id", "created_at", "status", "input", "model"), _TEXT))
REPORT = object_schema(dict.fromkeys(("request_id", "created_at", "status"), _TEXT))
UNDER_WAY = {"202": {"description": "Not ended yet.", "content": {"application/json": {"schema": REPORT}}}}

_CITATION = re.compile(r"\s?\[\d+\]")  # the numbers are of the engine's own sources, which Tavily has no place for
T = TypeVar("T")
Flag = bool | None  # accepted, and without effect
Domains = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=300)], ...], Meta(max_length=300)] | None
PageUrl = Annotated[str, Meta(min_length=1, max_length=8192)]
Day = Annotated[str, Meta(extra_json_schema={"format": "date"})] | None
Patterns = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=50)] | None


class TavilySearch(Struct, frozen=True):
    """A search as Tavily's clients ask for it."""

    query: QueryText
    search_depth: Literal["basic", "advanced", "fast", "ultra-fast"] | None = "basic"
    topic: Literal["general", "news", "finance"] | None = "general"
    max_results: Annotated[int, Meta(ge=0, le=MAX_RESULTS)] | None = DEFAULT_RESULTS
    chunks_per_source: Annotated[int, Meta(ge=1, le=CHUNKS)] | None = CHUNKS
    time_range: Literal["day", "week", "month", "year", "d", "w", "m", "y"] | None = None
    days: Annotated[int, Meta(ge=1)] | None = None
    start_date: Day = None
    end_date: Day = None
    include_answer: bool | Literal["basic", "advanced"] | None = False
    include_raw_content: bool | Literal["markdown", "text"] | None = False
    include_domains: Domains = None
    exclude_domains: Domains = None
    include_images: Flag = None
    include_image_descriptions: Flag = None
    include_favicon: Flag = None
    include_usage: Flag = None


class TavilyExtract(Struct, frozen=True):
    """Pages to read, as Tavily's clients ask for them."""

    urls: PageUrl | Annotated[tuple[PageUrl, ...], Meta(min_length=1, max_length=MAX_URLS)]
    extract_depth: Literal["basic", "advanced"] | None = "basic"
    format: Literal["markdown", "text"] | None = "markdown"
    timeout: Annotated[float, Meta(ge=1, le=MAX_EXTRACT_S)] | None = None
    query: Annotated[str, Meta(max_length=MAX_QUERY_CHARS)] | None = None
    chunks_per_source: Annotated[int, Meta(ge=1, le=5)] | None = CHUNKS
    include_images: Flag = None
    include_favicon: Flag = None
    include_usage: Flag = None


def tavily_error(problem: Problem) -> dict[str, Any]:
    return {"detail": {"error": problem.advice}}


@CONTRACT.serve("POST /tavily/search", "Search as Tavily does.", body=TavilySearch, ok=RESULTS)
async def search_web(request: Request) -> Response:
    body = await read_body(request, TavilySearch)
    started = _monotonic(request)
    periods = (("d", 1), ("w", 7), ("m", 31), ("y", 366))
    shortest = next((name for name, days in periods if body.days and body.days <= days), "")
    query = Query(
        clean_query(body.query),
        sites=body.include_domains or (),
        excluded_sites=body.exclude_domains or (),
        time_range=body.time_range[:1] if body.time_range else shortest,
    )
    first, last = _parse_day(body.start_date, "start_date"), _parse_day(body.end_date, "end_date")
    if first and last and first > last:
        raise bad_request("start_date must not be after end_date")
    days = (first or "0001-01-01", last or "9999-12-31")  # of a result whose day is known
    async with asyncio.TaskGroup() as tasks:
        answering = tasks.create_task(_answer_question(request, query.text, body.include_answer))
        searching = tasks.create_task(_find_results(request, query, body, days))
    results = searching.result()
    if isinstance(results, NexiError):
        raise results
    return json_reply(
        {
            "query": body.query,
            "follow_up_questions": None,
            "answer": answering.result(),
            "images": [],
            "results": results,
            **_closing_fields(request, started),
        }
    )


@CONTRACT.serve("POST /tavily/extract", "Read pages as Tavily does.", body=TavilyExtract, ok=EXTRACTS)
async def _extract_pages(request: Request) -> Response:
    body, timeouts_s = await read_body(request, TavilyExtract), getattr(request.app.state, "extract_timeouts_s", EXTRACT_S)
    started = _monotonic(request)
    urls = list(dict.fromkeys([body.urls] if isinstance(body.urls, str) else body.urls))
    patience = body.timeout or timeouts_s[body.extract_depth or "basic"]
    deadline = asyncio.get_running_loop().time() + patience
    outcomes = await service_of(request.app.state).read_all(urls, FetchLimits(timeout_s=patience), deadline)
    results, failures = [], []
    for url, outcome in zip(urls, outcomes, strict=True):
        if isinstance(outcome, FetchError):
            failures.append({"url": url, "error": str(outcome)})
        else:
            text = _extract_text(outcome, body.query, body.chunks_per_source)
            results.append({"url": url, "raw_content": text, "images": []})
    return json_reply({"results": results, "failed_results": failures, **_closing_fields(request, started)})


async def _find_results(
    request: Request, query: Query, body: TavilySearch, days: tuple[str, str]
) -> list[dict[str, Any]] | NexiError:
    """The results, or why there are none: an error raised here would reach the caller in a bundle."""
    count = DEFAULT_RESULTS if body.max_results is None else body.max_results
    reads = bool(body.include_raw_content) or body.search_depth == "advanced"
    limits = Limits(results=count, pages=count if reads else 0, total_s=SEARCH_S)
    try:
        outcome = await service_of(request.app.state).run(SearchRequest(query.text, limits=limits), query)
        require_answer(outcome)
    except NexiError as error:
        return error
    ranked_hits = [f for f in outcome.results if days[0] <= (f.hit.published[:10] or days[0]) <= days[1]]
    # From 0 to 1 by what a result holds of the query and by its place; never more than the one before it.
    relevance = Relevance(query.text)
    own_scores = ((1 + 3 * relevance.of(f.hit) + 1 / (f.place + 1)) / 5 for f in ranked_hits)
    scores = [round(score, 4) for score in accumulate(own_scores, min)]
    results: list[dict[str, Any]] = []
    for ranked_hit, score in zip(ranked_hits, scores, strict=True):
        hit, page = ranked_hit.hit, ranked_hit.page
        content, whole_text = hit.snippet, page.text if isinstance(page, Page) and body.include_raw_content else None
        if isinstance(page, Page) and body.search_depth == "advanced":
            chunks = best_paragraphs(page.text, query.text, body.chunks_per_source or CHUNKS, CHUNK_CHARS)
            content = JOINED.join(chunks) or hit.snippet
        dates = {"published_date": hit.published} if hit.published else {}
        about = {"url": hit.url, "title": hit.title, "content": content, "score": score}
        results.append({**about, "raw_content": whole_text, **dates})
    return results


async def _answer_question(request: Request, question: str, depth: object) -> str | None:
    """A short answer by the engine; None where none is wanted or there is none in time."""
    if not depth:
        return None
    effort, limits = "m" if depth == "advanced" else "s", RunLimits(time_target=ANSWER_S / 2)
    run = RunRequest(question, effort=effort, limits=limits, door="tavily", keeps_history=False, keeps_log=False)
    try:
        async with asyncio.timeout(ANSWER_S):
            result = await request.app.state.nexi.answer(run)
    except (NexiError, TimeoutError):
        return None
    return _CITATION.sub("", result.answer.text)


def _extract_text(page: Page, query: str | None, chunks: int | None) -> str:
    """The whole text, or its best paragraphs where a query says for what."""
    words = " ".join((query or "").split())
    return JOINED.join(best_paragraphs(page.text, words, chunks or CHUNKS, CHUNK_CHARS)) if words else page.text


def _parse_day(text: str | None, name: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise bad_request(f"{name} must be a day like 2026-01-31", parameter=name) from error


def _monotonic(request: Request) -> float:
    clock: Clock = request.app.state.nexi.clock
    return clock.monotonic()


def _closing_fields(request: Request, started: float) -> dict[str, Any]:
    return {"response_time": round(_monotonic(request) - started, 2), "request_id": str(uuid.uuid4())}


class _TavilyMap(Struct, frozen=True):
    """A site whose URLs are wanted, as Tavily's clients ask for it."""

    url: PageUrl
    max_depth: Annotated[int, Meta(ge=1, le=MAX_CRAWL_DEPTH)] | None = 1
    max_breadth: Annotated[int, Meta(ge=1, le=MAX_CRAWL_BREADTH)] | None = 20
    limit: Annotated[int, Meta(ge=1, le=MAX_CRAWL_PAGES)] | None = 50
    instructions: Annotated[str, Meta(max_length=MAX_QUERY_CHARS)] | None = None
    select_paths: Patterns = None
    select_domains: Patterns = None
    exclude_paths: Patterns = None
    exclude_domains: Patterns = None
    allow_external: bool | None = True
    timeout: Annotated[float, Meta(ge=10, le=150)] | None = CRAWL_S
    include_images: Flag = None
    include_usage: Flag = None


class _TavilyCrawl(_TavilyMap, frozen=True):
    """A site whose pages are wanted."""

    extract_depth: Literal["basic", "advanced"] | None = "basic"
    format: Literal["markdown", "text"] | None = "markdown"
    chunks_per_source: Annotated[int, Meta(ge=1, le=5)] | None = CHUNKS
    include_favicon: Flag = None


@CONTRACT.serve("POST /tavily/crawl", "Read a site as Tavily does.", body=_TavilyCrawl, ok=PAGES)
async def _crawl_pages(request: Request) -> Response:
    body, started = await read_body(request, _TavilyCrawl), _monotonic(request)
    url, pages = await _walk_site(request, body, crawl_site)
    texts = [_extract_text(crawled_page.page, body.instructions, body.chunks_per_source) for crawled_page in pages]
    results = [{"url": c.url, "raw_content": text, "images": []} for c, text in zip(pages, texts, strict=True)]
    return json_reply({"base_url": url, "results": results, **_closing_fields(request, started)})


@CONTRACT.serve("POST /tavily/map", "List the URLs of a site as Tavily does.", body=_TavilyMap, ok=URLS)
async def _map_pages(request: Request) -> Response:
    body, started = await read_body(request, _TavilyMap), _monotonic(request)
    url, urls = await _walk_site(request, body, map_site)
    return json_reply({"base_url": url, "results": urls, **_closing_fields(request, started)})


async def _walk_site(
    request: Request, body: _TavilyMap, walk: Callable[[CrawlRequest, ReadPages], Awaitable[T]]
) -> tuple[str, T]:
    """Where a crawl begins, and what it gave. Raises a bad request for what is no address of the web, or cannot be read."""
    url = body.url.strip()
    url = url if "://" in url else f"https://{url}"
    if not is_web_url(url):
        raise bad_request(f"{url[:200]!r} is not a web address", parameter="url")
    usual = CrawlRequest(url)
    site = CrawlRequest(
        url,
        body.max_depth or usual.max_depth,
        body.max_breadth or usual.max_breadth,
        body.limit or usual.limit,
        select_paths=body.select_paths or (),
        exclude_paths=body.exclude_paths or (),
        select_domains=body.select_domains or (),
        exclude_domains=body.exclude_domains or (),
        allow_external=body.allow_external is not False,
    )
    deadline = asyncio.get_running_loop().time() + (body.timeout or CRAWL_S) * 0.9  # of all levels; the rest is for the reply
    read = partial(service_of(request.app.state).read_all, limits=FetchLimits(timeout_s=CRAWLED_PAGE_S), deadline=deadline)
    try:
        return url, await walk(site, read)
    except FetchError as error:
        raise bad_request(f"{url[:200]} cannot be read: {error}", parameter="url") from error


class _TavilyResearch(Struct, frozen=True):
    """Research as Tavily's clients ask for it."""

    input: Annotated[str, Meta(min_length=1, max_length=100_000)]
    model: Literal["mini", "auto", "pro"] | None = "auto"
    stream: bool | None = None
    output_schema: dict[str, Any] | None = None
    citation_format: Literal["numbered", "mla", "apa", "chicago"] | None = "numbered"


@CONTRACT.serve("POST /tavily/research", "Research as Tavily does.", body=_TavilyResearch, ok=STARTED, streams=True)
async def _start_research(request: Request) -> Response:
    host: RunHost = request.app.state.host
    body = await read_body(request, _TavilyResearch)
    if body.output_schema:
        fix = "leave it out, and put the report into your schema; or ask nexi-deep at /v1/responses with text.format"
        raise bad_request("output_schema is not supported", fix=fix, parameter="output_schema")
    model, started = body.model or "auto", _monotonic(request)
    door = "tavily" if body.stream else DOOR  # what is streamed ends with its request, the rest is resumed after a restart
    question = RunRequest(body.input, mode="research", depth=RESEARCH_DEPTHS[model], door=door)
    if body.stream:
        return EventStream(_stream_report(await host.start(question), model, int(host.nexi.clock.now().timestamp())))
    run = await host.submit(question)
    seconds = round(_monotonic(request) - started, 2)
    head = {"request_id": run.id, "created_at": run.created, "status": "pending"}
    return json_reply({**head, "input": body.input, "model": model, "response_time": seconds})


@CONTRACT.serve("GET /tavily/research/{id}", "The report as Tavily gives it.", ok=REPORT, responses=UNDER_WAY)
async def _show_research(request: Request) -> Response:
    host: RunHost = request.app.state.host
    run_id = check_run_id(request.path_params["id"])
    snapshot = await host.snapshot_of(run_id)
    head: dict[str, Any] = {"request_id": run_id, "created_at": snapshot.created}
    match find_end(snapshot.facts):
        case RunFinished(answer=answer, sources=sources, seconds=seconds):
            report = {"content": answer, "sources": _source_list(sources), "response_time": seconds}
            return json_reply({**head, "status": "completed", **report})
        case RunFailed(message=message, cause=cause, seconds=seconds):
            why = f"{message}: {cause}" if cause else message
            return json_reply({**head, "status": "failed", "error": why, "response_time": seconds})
        case _:
            return json_reply({**head, "status": "in_progress"}, 202)


def _source_list(sources: Sequence[Source]) -> list[dict[str, Any]]:
    return [{"title": s.title or s.url, "url": s.url, "favicon": None, "citation": f"[{s.number}]"} for s in sources]


async def _stream_report(hosted: HostedRun, model: str, created: int) -> AsyncGenerator[bytes, None]:
    head = {"id": hosted.id, "object": "chat.completion.chunk", "model": model, "created": created}

    def chunk(**delta: Any) -> bytes:
        return format_event({**head, "choices": [{"delta": {"role": "assistant", **delta}}]})

    streamed_text = ""
    try:
        async for item in hosted.feed.follow(beat_s=BEAT_S):
            match item.event if item else None:
                case None:
                    yield format_comment("working")
                case TextDelta(text=text):
                    streamed_text += text
                    yield chunk(content=text)
                case RunFinished(answer=answer, sources=sources):
                    yield chunk(content=find_rest(streamed_text, answer))
                    yield chunk(sources=_source_list(sources))
                case RunFailed():
                    yield format_event(tavily_error(problem_of_run(hosted)), "error")
                case event if event is not None and (line := progress_line(event)):
                    yield format_comment(line)
                case _:
                    pass
        yield b"event: done\n\n"
    finally:
        await hosted.cancel()
