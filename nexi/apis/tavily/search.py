"""Passes as Tavily: `POST /tavily/search` and `/tavily/extract`, in the shapes its own client knows.

`crawl` and `research` have its other paths. A request may hold anything Tavily documents; what nexi has no counterpart for
(images, a country, usage in credits) is accepted and changes nothing. `include_answer` asks nexi's engine for a short answer
beside the results. Errors are `{"detail": {"error": ...}}`.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import date
from itertools import accumulate
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.openwebui import require_answer
from nexi.apis.search.excerpt import Relevance, best_paragraphs
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import MAX_QUERY_CHARS, Limits, QueryText, SearchRequest, clean_query
from nexi.app import RunLimits, RunRequest
from nexi.errors import FetchError, NexiError
from nexi.ports import Clock
from nexi.structured.schema_check import object_schema
from nexi.types import FetchLimits, Page, Query
from nexi.web.contract import Contract
from nexi.web.payload import json_reply, read_body
from nexi.web.problems import Problem, bad_request

__all__ = ["CLOSING", "CONTRACT", "ERROR", "closing_fields", "extract_text", "monotonic", "tavily_error"]

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

_TEXT, _NUMBER, _MAYBE_TEXT = {"type": "string"}, {"type": "number"}, {"type": ["string", "null"]}
CLOSING = {"response_time": _NUMBER, "request_id": _TEXT}
ERROR = object_schema({"detail": object_schema({"error": _TEXT})})
CONTRACT = Contract("Tavily", error=ERROR)
_RESULT = object_schema({"url": _TEXT, "title": _TEXT, "content": _TEXT, "score": _NUMBER, "raw_content": _MAYBE_TEXT})
_ANSWER = {"query": _TEXT, "follow_up_questions": {"type": "null"}, "answer": _MAYBE_TEXT, "images": {"type": "array"}}
RESULTS = object_schema({**_ANSWER, "results": {"type": "array", "items": _RESULT}, **CLOSING})
PAGE = {"type": "object", "properties": {"url": _TEXT, "raw_content": _TEXT, "images": {"type": "array"}}}
_FAILURES = {"type": "array", "items": {"type": "object", "properties": {"url": _TEXT, "error": _TEXT}}}
PAGES = object_schema({"results": {"type": "array", "items": PAGE}, "failed_results": _FAILURES, **CLOSING})

_CITATION = re.compile(r"\s?\[\d+\]")  # the numbers are of the engine's own sources, which Tavily has no place for
Flag = bool | None  # accepted, and without effect
Domains = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=300)], ...], Meta(max_length=300)] | None
PageUrl = Annotated[str, Meta(min_length=1, max_length=8192)]
Day = Annotated[str, Meta(extra_json_schema={"format": "date"})] | None


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
    started = monotonic(request)
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
            **closing_fields(request, started),
        }
    )


@CONTRACT.serve("POST /tavily/extract", "Read pages as Tavily does.", body=TavilyExtract, ok=PAGES)
async def _extract_pages(request: Request) -> Response:
    body, timeouts_s = await read_body(request, TavilyExtract), getattr(request.app.state, "extract_timeouts_s", EXTRACT_S)
    started = monotonic(request)
    urls = list(dict.fromkeys([body.urls] if isinstance(body.urls, str) else body.urls))
    patience = body.timeout or timeouts_s[body.extract_depth or "basic"]
    deadline = asyncio.get_running_loop().time() + patience
    outcomes = await service_of(request.app.state).read_all(urls, FetchLimits(timeout_s=patience), deadline)
    results, failures = [], []
    for url, outcome in zip(urls, outcomes, strict=True):
        if isinstance(outcome, FetchError):
            failures.append({"url": url, "error": str(outcome)})
        else:
            results.append({"url": url, "raw_content": extract_text(outcome, body.query, body.chunks_per_source), "images": []})
    return json_reply({"results": results, "failed_results": failures, **closing_fields(request, started)})


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


def extract_text(page: Page, query: str | None, chunks: int | None) -> str:
    """The whole text, or its best paragraphs where a query says for what."""
    words = " ".join((query or "").split())
    return JOINED.join(best_paragraphs(page.text, words, chunks or CHUNKS, CHUNK_CHARS)) if words else page.text


def _parse_day(text: str | None, name: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise bad_request(f"{name} must be a day like 2026-01-31", parameter=name) from error


def monotonic(request: Request) -> float:
    clock: Clock = request.app.state.nexi.clock
    return clock.monotonic()


def closing_fields(request: Request, started: float) -> dict[str, Any]:
    return {"response_time": round(monotonic(request) - started, 2), "request_id": str(uuid.uuid4())}
