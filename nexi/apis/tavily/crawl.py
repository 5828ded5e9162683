"""Passes as Tavily: `POST /tavily/crawl` reads a site from one page on, `POST /tavily/map` lists its URLs.

With `instructions`, a page is given as the paragraphs that fit them best. Below are `nexi.apis.search.crawl` and the shapes of
`search`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nexi.apis.search.crawl import CrawlRequest, ReadPages, crawl_site, map_site
from nexi.apis.search.routes import service_of
from nexi.apis.search.schema import MAX_QUERY_CHARS
from nexi.apis.tavily import search
from nexi.errors import FetchError
from nexi.structured.schema_check import object_schema
from nexi.types import FetchLimits
from nexi.urls import is_web_url
from nexi.web.contract import Contract
from nexi.web.payload import json_reply, read_body
from nexi.web.problems import bad_request

MAX_DEPTH = 5
MAX_BREADTH = 500
MAX_PAGES = 500
CRAWL_S = 150.0
PAGE_S = 20.0
CONTRACT = Contract("Tavily", error=search.ERROR)
T = TypeVar("T")
_TEXT = {"type": "string"}
PAGES = object_schema({"base_url": _TEXT, "results": {"type": "array", "items": search.PAGE}, **search.CLOSING})
URLS = object_schema({"base_url": _TEXT, "results": {"type": "array", "items": _TEXT}, **search.CLOSING})
Patterns = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=50)] | None


class _TavilyMap(Struct, frozen=True):
    """A site whose URLs are wanted, as Tavily's clients ask for it."""

    url: search.PageUrl
    max_depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH)] | None = 1
    max_breadth: Annotated[int, Meta(ge=1, le=MAX_BREADTH)] | None = 20
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGES)] | None = 50
    instructions: Annotated[str, Meta(max_length=MAX_QUERY_CHARS)] | None = None
    select_paths: Patterns = None
    select_domains: Patterns = None
    exclude_paths: Patterns = None
    exclude_domains: Patterns = None
    allow_external: bool | None = True
    timeout: Annotated[float, Meta(ge=10, le=150)] | None = CRAWL_S
    include_images: search.Flag = None
    include_usage: search.Flag = None


class _TavilyCrawl(_TavilyMap, frozen=True):
    """A site whose pages are wanted."""

    extract_depth: Literal["basic", "advanced"] | None = "basic"
    format: Literal["markdown", "text"] | None = "markdown"
    chunks_per_source: Annotated[int, Meta(ge=1, le=5)] | None = search.CHUNKS
    include_favicon: search.Flag = None


@CONTRACT.serve("POST /tavily/crawl", "Read a site as Tavily does.", body=_TavilyCrawl, ok=PAGES)
async def _crawl_pages(request: Request) -> Response:
    body, started = await read_body(request, _TavilyCrawl), search.monotonic(request)
    url, pages = await _walk_site(request, body, crawl_site)
    texts = [search.extract_text(crawled_page.page, body.instructions, body.chunks_per_source) for crawled_page in pages]
    results = [{"url": c.url, "raw_content": text, "images": []} for c, text in zip(pages, texts, strict=True)]
    return json_reply({"base_url": url, "results": results, **search.closing_fields(request, started)})


@CONTRACT.serve("POST /tavily/map", "List the URLs of a site as Tavily does.", body=_TavilyMap, ok=URLS)
async def _map_pages(request: Request) -> Response:
    body, started = await read_body(request, _TavilyMap), search.monotonic(request)
    url, urls = await _walk_site(request, body, map_site)
    return json_reply({"base_url": url, "results": urls, **search.closing_fields(request, started)})


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
    read = partial(service_of(request.app.state).read_all, limits=FetchLimits(timeout_s=PAGE_S), deadline=deadline)
    try:
        return url, await walk(site, read)
    except FetchError as error:
        raise bad_request(f"{url[:200]} cannot be read: {error}", parameter="url") from error
