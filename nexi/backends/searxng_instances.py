"""SearXNG instances as backends: as many pages of one as a query needs, and several that take turns.

An instance gives about ten hits a page, and a caller may want more. Of several, each query goes to the next one, and another
answers where that one does not; the searcher knows a backend with a `route`: it keeps the suspensions of each instance, which
are its health, and the pause between two queries to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.routing.route import Choice, Route
from nexi.types import Hit, Query
from nexi.urls import host_of

HITS_PER_PAGE = 10  # a query for no more than this is one request, even where the page brings fewer
MAX_PAGES = 10
INTERVAL_S = 5.0  # between two queries to one instance: public ones are other people's machines


class PagedSearxng:
    """A SearchBackend over the pages of one instance; `page_backend` gives the backend of a page, from 1."""

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
    """The SearchBackend port over instances that take turns."""

    name = "searxng"
    filters = frozenset({"site", "time", "language", "focus"})

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
