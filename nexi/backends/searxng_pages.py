"""As many pages of a SearXNG instance as a query needs: it gives about ten hits a page, and a caller may want more.

A page after the first that fails or brings nothing new ends the list; what came before it is the answer. Below is the dialect
of one page in `searxng`; how requests are sent is the sender's.
"""

from __future__ import annotations

from collections.abc import Callable

from nexi.errors import BackendError
from nexi.ports import SearchBackend
from nexi.types import Hit, Query

HITS_PER_PAGE = 10  # a query for no more than this is one request, even where the page brings fewer
MAX_PAGES = 10


class PagedSearxng:
    """A SearchBackend over the pages of one instance; `page_backend` gives the backend of a page, from 1."""

    def __init__(self, page_backend: Callable[[int], SearchBackend]) -> None:
        self._page_backend = page_backend
        first = page_backend(1)
        self._first = first
        self.name = first.name
        self.filters: frozenset[str] = getattr(first, "filters", frozenset())

    async def search(self, query: Query) -> list[Hit]:
        hits = await self._first.search(query)
        if query.count <= HITS_PER_PAGE:
            return hits
        urls = {hit.url for hit in hits}
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
        return hits[: query.count] if len(hits) > query.count else hits
