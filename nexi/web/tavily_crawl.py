"""Passes as Tavily: `POST /tavily/crawl` reads a site from one page on, `POST /tavily/map` lists its URLs.

With `instructions`, a page is given as the paragraphs that fit them best. Below are `nexi.search_api.crawl`, through the app,
and the shapes of `tavily`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nexi.app.search_service import MAX_QUERY_CHARS, CrawlRequest, crawl_site, map_site
from nexi.errors import FetchError
from nexi.types import FetchLimits, Page
from nexi.urls import is_web_url
from nexi.web.payload import build_operation, json_reply, read_json, with_error_shape
from nexi.web.problems import bad_request
from nexi.web.search import service_of
from nexi.web.tavily import TAG, closing_fields, error_schema, extract_text, monotonic, object_schema, tavily_error

MAX_DEPTH = 5
MAX_BREADTH = 500
MAX_PAGES = 500
CRAWL_S = 150.0
PAGE_S = 20.0

_FLAG: dict[str, Any] = {"type": ["boolean", "null"]}
_PATTERNS = {"type": ["array", "null"], "items": {"type": "string", "minLength": 1, "maxLength": 200}, "maxItems": 50}
MAP_BODY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "maxLength": 8192},
        "max_depth": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_DEPTH, "default": 1},
        "max_breadth": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_BREADTH, "default": 20},
        "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_PAGES, "default": 50},
        "instructions": {"type": ["string", "null"], "maxLength": MAX_QUERY_CHARS},
        **dict.fromkeys(("select_paths", "select_domains", "exclude_paths", "exclude_domains"), _PATTERNS),
        "allow_external": {**_FLAG, "default": True},
        "timeout": {"type": ["number", "null"], "minimum": 10, "maximum": 150, "default": 150},
        **dict.fromkeys(("include_images", "include_usage"), _FLAG),
    },
    "required": ["url"],
}
CRAWL_BODY: dict[str, Any] = {
    **MAP_BODY,
    "properties": {
        **MAP_BODY["properties"],
        "extract_depth": {"enum": ["basic", "advanced", None], "default": "basic"},
        "format": {"enum": ["markdown", "text", None], "default": "markdown"},
        "chunks_per_source": {"type": ["integer", "null"], "minimum": 1, "maximum": 5, "default": 3},
        "include_favicon": _FLAG,
    },
}


def routes(_state: object = None) -> list[Route]:
    return [Route("/tavily/crawl", crawl_pages, methods=["POST"]), Route("/tavily/map", map_pages, methods=["POST"])]


@with_error_shape(tavily_error)
async def crawl_pages(request: Request) -> Response:
    body = await read_json(request, CRAWL_BODY)
    started, asked = monotonic(request), parse_crawl(body)
    with _refuse_unreadable(asked.url):
        pages = await crawl_site(asked, _reader(request, body))
    as_query = {"query": body.get("instructions"), "chunks_per_source": body.get("chunks_per_source")}
    results = [{"url": c.url, "raw_content": extract_text(c.page, as_query), "images": []} for c in pages]
    return json_reply({"base_url": asked.url, "results": results, **closing_fields(request, started)})


@with_error_shape(tavily_error)
async def map_pages(request: Request) -> Response:
    body = await read_json(request, MAP_BODY)
    started, asked = monotonic(request), parse_crawl(body)
    with _refuse_unreadable(asked.url):
        urls = await map_site(asked, _reader(request, body))
    return json_reply({"base_url": asked.url, "results": urls, **closing_fields(request, started)})


@contextmanager
def _refuse_unreadable(url: str) -> Iterator[None]:
    """Make a first page that cannot be read a bad request."""
    try:
        yield
    except FetchError as error:
        raise bad_request(f"{url[:200]} cannot be read: {error}", parameter="url") from error


def parse_crawl(body: Mapping[str, Any]) -> CrawlRequest:
    """What to crawl. Raises a bad request for what is no address of the web."""
    url = body["url"].strip()
    url = url if "://" in url else f"https://{url}"
    if not is_web_url(url):
        raise bad_request(f"{url[:200]!r} is not a web address", parameter="url")
    usual = CrawlRequest(url)
    return CrawlRequest(
        url,
        body.get("max_depth") or usual.max_depth,
        body.get("max_breadth") or usual.max_breadth,
        body.get("limit") or usual.limit,
        select_paths=tuple(body.get("select_paths") or ()),
        exclude_paths=tuple(body.get("exclude_paths") or ()),
        select_domains=tuple(body.get("select_domains") or ()),
        exclude_domains=tuple(body.get("exclude_domains") or ()),
        allow_external=body.get("allow_external") is not False,
    )


def _reader(request: Request, body: Mapping[str, Any]) -> Callable[[Sequence[str]], Awaitable[Sequence[Page | FetchError]]]:
    """What reads the pages of a level, all levels within the time of the request."""
    deadline = asyncio.get_running_loop().time() + float(body.get("timeout") or CRAWL_S) * 0.9
    service, limits = service_of(request), FetchLimits(timeout_s=PAGE_S)

    async def read(urls: Sequence[str]) -> Sequence[Page | FetchError]:
        return await service.read_all(urls, limits, deadline)

    return read


def openapi() -> dict[str, Any]:
    """The paths of this module."""
    text, closing = {"type": "string"}, {"response_time": {"type": "number"}, "request_id": {"type": "string"}}
    page = {"type": "object", "properties": {"url": text, "raw_content": text, "images": {"type": "array"}}}
    crawled = object_schema({"base_url": text, "results": {"type": "array", "items": page}, **closing})
    mapped = object_schema({"base_url": text, "results": {"type": "array", "items": text}, **closing})
    error = error_schema()
    return {
        "/tavily/crawl": {
            "post": build_operation("Read a site as Tavily does.", TAG, body=CRAWL_BODY, ok=crawled, error=error)
        },
        "/tavily/map": {
            "post": build_operation("List the URLs of a site as Tavily does.", TAG, body=MAP_BODY, ok=mapped, error=error)
        },
    }
