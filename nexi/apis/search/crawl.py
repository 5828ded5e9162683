"""A site from one page on: level by level along its links, as far and as wide as a request allows.

Doors stand above and give the function that reads pages, with the guard, robots.txt and the cache behind it. Pages of other
sites may be read where a request allows them, but their links are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from nexi.errors import FetchError, QuestionError
from nexi.types import Page
from nexi.urls import hit_key, host_of, is_web_url, parse

__all__ = ["CrawlRequest", "ReadPages", "crawl_site", "map_site"]

MAX_PATTERN_CHARS = 200
MAX_MATCHED_CHARS = 300
MAX_REPETITIONS = 2
_GROUP_REPEATED = re.compile(r"\)[*+?{]")
_REPETITION = re.compile(r"(?<!\\)(?:[*+]|\{[0-9]*,[0-9]*\})")

ReadPages = Callable[[Sequence[str]], Awaitable[Sequence[Page | FetchError]]]


class CrawlRequest(Struct, frozen=True):
    """Where a crawl begins and which links it follows; patterns are regular expressions for a path or a host."""

    url: str
    max_depth: int = 1
    max_breadth: int = 20  # links of one page
    limit: int = 50  # pages in all
    select_paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    select_domains: tuple[str, ...] = ()
    exclude_domains: tuple[str, ...] = ()
    allow_external: bool = True


class CrawledPage(Struct, frozen=True):
    """A page of a crawl, under the URL it was found by."""

    url: str
    page: Page


async def crawl_site(request: CrawlRequest, read: ReadPages) -> list[CrawledPage]:
    """The pages that could be read, level by level. Raises the FetchError of the first page, and QuestionError."""
    rules = LinkRules(request)
    pages: list[CrawledPage] = []
    level, keys, attempts = [request.url], {hit_key(request.url)}, 0
    for depth in range(request.max_depth + 1):
        level = level[: request.limit - attempts]
        attempts += len(level)
        new = await _read_level(level, read, depth)
        pages += new
        level = rules.links_of(new, keys)
    return pages


async def map_site(request: CrawlRequest, read: ReadPages) -> list[str]:
    """The URLs a crawl would reach; the last level is not read. Raises the FetchError of the first page, and QuestionError."""
    rules = LinkRules(request)
    level, keys, urls = [request.url], {hit_key(request.url)}, [request.url]
    for depth in range(request.max_depth):
        if not level or len(urls) >= request.limit:
            break
        level = rules.links_of(await _read_level(level, read, depth), keys)
        urls += level
    return urls[: request.limit]


async def _read_level(urls: Sequence[str], read: ReadPages, depth: int) -> list[CrawledPage]:
    """The pages of a level that could be read; without the first page there is no crawl."""
    outcomes = await read(urls) if urls else ()
    if depth == 0 and isinstance(outcomes[0], FetchError):
        raise outcomes[0]
    return [CrawledPage(url, page) for url, page in zip(urls, outcomes, strict=True) if isinstance(page, Page)]


class LinkRules:
    """Which links of a page belong to a crawl."""

    def __init__(self, request: CrawlRequest) -> None:
        self._request, self._host = request, host_of(request.url)
        self._paths = [compile_pattern(text) for text in request.select_paths]
        self._not_paths = [compile_pattern(text) for text in request.exclude_paths]
        self._hosts = [compile_pattern(text) for text in request.select_domains]
        self._not_hosts = [compile_pattern(text) for text in request.exclude_domains]

    def links_of(self, pages: Sequence[CrawledPage], keys: set[str]) -> list[str]:
        """The next level: links whose key is not in `keys` yet, at most `max_breadth` of each page. Theirs are added."""
        links: list[str] = []
        for source in pages:
            if not self._is_inside(host_of(source.page.final_url or source.url)):
                continue
            urls = (link.partition("#")[0] for link in source.page.links)
            new = [url for url in urls if self.allows(url) and hit_key(url) not in keys]
            new = list({hit_key(url): url for url in reversed(new)}.values())[::-1][: self._request.max_breadth]
            keys.update(map(hit_key, new))
            links += new
        return links

    def allows(self, url: str) -> bool:
        if not is_web_url(url):
            return False
        host, path = host_of(url), parse(url).target
        return (
            (self._request.allow_external or self._is_inside(host))
            and (not self._paths or _matches_any(self._paths, path))
            and not _matches_any(self._not_paths, path)
            and (not self._hosts or _matches_any(self._hosts, host))
            and not _matches_any(self._not_hosts, host)
        )

    def _is_inside(self, host: str) -> bool:
        """The same host, or a part of it."""
        base = self._host.removeprefix("www.")
        return host == base or host.endswith(f".{base}")


def compile_pattern(text: str) -> re.Pattern[str]:
    """A regular expression that cannot take long on a path of MAX_MATCHED_CHARS. Raises QuestionError."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise QuestionError(f"{text[:100]!r} is not a regular expression", cause=str(error)) from error
    if len(text) > MAX_PATTERN_CHARS or _GROUP_REPEATED.search(text) or len(_REPETITION.findall(text)) > MAX_REPETITIONS:
        cause = f"a pattern may have {MAX_PATTERN_CHARS} characters, {MAX_REPETITIONS} repetitions and no repeated group"
        raise QuestionError(f"the pattern {text[:100]!r} is not accepted", cause=cause, fix="use several simple patterns")
    return pattern


def _matches_any(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text[:MAX_MATCHED_CHARS]) for pattern in patterns)
