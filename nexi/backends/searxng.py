"""SearXNG (and searx 1.1): how it is asked and how its answers and refusals read; as many pages as a query needs; and several
instances that take turns. The dialect is pure; the sender does the rest.

What a client has to know: JSON is off by default and then answers 403 with HTML; the limiter answers 429; when every
engine fails the status is still 200 with no results, and the reason is only in `unresponsive_engines`; an unknown format
gives 200 with HTML; dates are null in one field while set in another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import Struct

from nexi.backends._replies import read_rows, service_message, with_sites
from nexi.backends.sender import BackendRequest
from nexi.errors import BackendError
from nexi.focus import FOCUSES, within_focus
from nexi.net.retry import retry_after
from nexi.notices import Notice
from nexi.ports import SearchBackend
from nexi.routing.route import Choice, Route
from nexi.types import Hit, Query
from nexi.urls import host_of

NAME = "searxng"
HITS_PER_PAGE = 10  # a query for no more than this is one request, even where the page brings fewer
MAX_PAGES = 10
INTERVAL_S = 5.0  # between two queries to one instance: public ones are other people's machines
FILTERS = frozenset({"site", "time", "language", "focus"})
_TIME_RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}


class Searxng(Struct, frozen=True):
    """The dialect of one instance, named by the URL of its start page or of its /search."""

    base_url: str
    timeout_s: float = 10.0
    name: str = NAME
    page: int = 1
    filters = FILTERS

    def request(self, query: Query) -> BackendRequest:
        focus = FOCUSES.get(query.focus)
        if focus and not focus.categories:
            query = within_focus(query)
        # A leading `!` would be a command that redirects away.
        params = {"q": with_sites(query).lstrip("! "), "format": "json", "pageno": str(self.page)}
        if query.language:
            params["language"] = query.language
        if focus and focus.categories:
            params["categories"] = focus.categories
        period = query.time_range.strip().lower()
        period = _TIME_RANGES.get(period, period)
        if period in _TIME_RANGES.values():
            params["time_range"] = period
        return BackendRequest(
            url=self.base_url.partition("?")[0].rstrip("/").removesuffix("/search") + "/search",
            params=tuple(params.items()),
            # The limiter turns away clients that do not say what a browser says.
            headers={"Accept": "application/json, text/html;q=0.5", "Accept-Language": query.language or "en"},
            timeout_s=self.timeout_s,
        )

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> list[Hit]:
        _check_status(status, headers, body)
        data = _parse_object(headers, body)
        results = data.get("results")
        if not isinstance(results, list):
            raise _wrong_url("the answer is JSON but has no list of results")
        hits = []
        for row in read_rows(results, "url"):
            title, snippet = _text_of(row.get("title")), _text_of(row.get("content"))
            hits.append(Hit(row["url"], title, snippet, _text_of(row.get("publishedDate") or row.get("pubdate")), NAME))
        if hits:
            return hits
        # no hits and engines that failed is a failure; no hits and nothing to complain of is an answer
        unresponsive = data.get("unresponsive_engines") or ()
        reasons = {str(pair[0]): str(pair[1]) for pair in unresponsive if isinstance(pair, list) and len(pair) >= 2}
        if not reasons:
            return []
        cause = ", ".join(f"{engine}: {reason}" for engine, reason in sorted(reasons.items()))[:500]
        if all("captcha" in reason.lower() for reason in reasons.values()):
            message = Notice("searxng.captcha", "the search engines behind SearXNG require a captcha")
            fix = Notice("fix.other_engines", "wait, or enable other engines in its settings.yml")
            raise BackendError(message, code="captcha", cause=cause, fix=fix)
        message = Notice("searxng.engines", "no search engine behind SearXNG answered")
        fix = Notice(
            "fix.suspended_engines",
            "wait for the suspension to end, enable other engines in its settings.yml, or check its network",
        )
        can_retry = not any("suspended" in reason.lower() for reason in reasons.values())
        raise BackendError(message, code="engines_suspended", cause=cause, fix=fix, retryable=can_retry)


def _text_of(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _check_status(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status == 200:
        return
    if status == 403:
        why = Notice(
            "searxng.json_off_why", "HTTP {n}: the instance has its JSON format switched off, which is its default", n=status
        )
        message = Notice("searxng.json_off", "SearXNG refuses to answer in JSON")
        fix = Notice("fix.searxng_json", "add `json` to search.formats in its settings.yml and restart it")
        raise BackendError(message, code="json_disabled", cause=why, fix=fix)
    wish = retry_after(headers)  # its own limiter names none; a proxy before it may
    if status == 429:
        why = Notice(
            "searxng.limiter_why",
            "HTTP {n}: its limiter counted too many requests, or does not take us for a browser",
            n=status,
        )
        message = Notice("searxng.limiter", "SearXNG limits how often it may be asked")
        fix = Notice("fix.searxng_limiter", "set server.limiter to false in its settings.yml, or wait")
        raise BackendError(message, code="limiter", cause=why, fix=fix, retry_after=wish, retryable=wish is not None)
    if status == 400:
        message, cause = Notice("searxng.bad_query", "SearXNG did not accept the query"), f"HTTP 400: {service_message(body)}"
        fix = Notice("fix.query", "change the query, its language or its time range")
        raise BackendError(message, code="bad_query", cause=cause, fix=fix, actor="model")
    if status >= 500:
        message, cause = Notice("searxng.fault", "SearXNG has a fault"), f"HTTP {status}"
        fix = Notice("fix.its_log", "look into its log")
        raise BackendError(message, code="server_error", cause=cause, fix=fix, retryable=True, retry_after=wish)
    raise _wrong_url(f"HTTP {status}")


def _parse_object(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    kind = headers.get("content-type", "").lower()
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        if "html" in kind or body.lstrip()[:1] == b"<":
            raise _wrong_url(Notice("searxng.html", "the answer is a web page and no JSON")) from error
        message = Notice("searxng.unreadable", "SearXNG sent an answer that cannot be read")
        cause = f"its JSON is broken: {str(error)[:200]}"
        fix = Notice("fix.proxy_between", "try again; if it stays, look for a proxy that changes its answers")
        raise BackendError(message, code="bad_json", cause=cause, fix=fix, retryable=True) from error
    if not isinstance(data, dict):
        raise _wrong_url(Notice("searxng.other_json", "the answer is JSON of another kind"))
    return data


def _wrong_url(cause: str) -> BackendError:
    message = Notice("searxng.none", "there is no SearXNG at this URL")
    fix = Notice("fix.searxng_url", "set SEARXNG_URL to the start page of the instance, like http://127.0.0.1:8080")
    return BackendError(message, code="wrong_url", cause=cause, fix=fix)


class PagedSearxng:
    """A SearchBackend over the pages of one instance, about ten hits each; `page_backend` gives that of a page, from 1."""

    def __init__(self, page_backend: Callable[[int], SearchBackend]) -> None:
        self._page_backend, self._first = page_backend, page_backend(1)
        self.name = self._first.name
        self.filters: frozenset[str] = getattr(self._first, "filters", frozenset())

    async def search(self, query: Query) -> list[Hit]:
        hits = await self._first.search(query)
        if query.count <= HITS_PER_PAGE:
            return hits
        urls = {hit.url for hit in hits}
        # A page that fails or brings nothing new ends the list; what came before it is the answer.
        for page in range(2, MAX_PAGES + 1):
            if not hits or len(hits) >= query.count:
                break
            try:
                page_hits = await self._page_backend(page).search(query)
            except BackendError:
                break
            new = [hit for hit in page_hits if hit.url not in urls]
            if not new:
                break
            urls.update(hit.url for hit in new)
            hits.extend(new)
        return hits[: query.count]


class SearxngInstances:
    """The SearchBackend port over instances that take turns; where one does not answer, another does.

    The searcher knows a backend with a `route`: it keeps the suspensions of each instance, which are its health, and the pause
    between two queries to one of them.
    """

    name = NAME
    filters = FILTERS

    def __init__(self, urls: Sequence[str], build: Callable[[str], SearchBackend]) -> None:
        self._members = {f"searxng at {host_of(url)}": _Instance(f"searxng at {host_of(url)}", build(url)) for url in urls}
        self._turns = count()

    def route(self, query: Query) -> Route:
        """The instance whose turn it is, and the others in reserve."""
        names = list(self._members)
        start = next(self._turns) % len(names)
        first, *others = [Choice(name, "its turn") for name in names[start:] + names[:start]]
        return Route((first,), tuple(others))

    def member(self, name: str) -> SearchBackend:
        return self._members[name]

    def phrase(self, query: Query, name: str) -> Query:
        return query

    async def search(self, query: Query) -> list[Hit]:
        route = self.route(query)
        failure: BackendError | None = None
        for choice in (*route.first, *route.reserve):
            try:
                return await self.member(choice.service).search(query)
            except BackendError as error:
                failure = error
        raise failure or BackendError("no instance is named")


class _Instance:
    """One instance under its own name, so that it is paced and suspended by itself."""

    interval_s = INTERVAL_S

    def __init__(self, name: str, backend: SearchBackend) -> None:
        self.name, self.search = name, backend.search
        self.filters: frozenset[str] = getattr(backend, "filters", frozenset())
